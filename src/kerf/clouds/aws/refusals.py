"""Why a launch failed, as the reason of the claim's condition, in Karpenter's words: alerts on them go on working.

Some differ. Karpenter says Unauthorized of AuthFailure, which no policy causes; of too many tags, a limit of instances,
a product without a subscription, and what a type does not take, it says nothing.
"""

from kerf.cloudprovider import LaunchFailed

_REASONS = (
    ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "SpotSLRCreationFailed"),
    ("UnauthorizedOperation", "Unauthorized"),
    ("AuthFailure", "AuthFailure"),
    ("TagLimitExceeded", "TagLimitExceeded"),
    ("InvalidAMIID", "InvalidAMIID"),
    ("InvalidLaunchTemplate", "LaunchTemplateNotFound"),
    ("InvalidUserData", "UserDataSizeLimitExceeded"),
    ("FreeTier", "FreeTierIneligible"),
    ("PendingVerification", "AccountPendingVerification"),
    ("MaxSpotInstanceCountExceeded", "SpotQuotaExceeded"),
    ("VcpuLimitExceeded", "VCPULimitExceeded"),
    ("MaxFleetCountExceeded", "FleetQuotaExceeded"),
    ("InstanceLimitExceeded", "InstanceLimitExceeded"),
    ("OptInRequired", "OptInRequired"),
    ("EncryptedVolumesNotSupported", "EncryptedVolumesNotSupported"),
    ("UnsupportedOperation", "UnsupportedOperation"),
    ("InsufficientFreeAddressesInSubnet", "InsufficientFreeAddressesInSubnet"),
    ("Internal", "InternalError"),
)
"""By how a code begins, the first that fits."""
_WORDS = (
    ("iamInstanceProfile", "InstanceProfileNameInvalid"),
    ("security group", "SecurityGroupSubnetVPCMismatch"),
    ("User data is limited", "UserDataSizeLimitExceeded"),
    ("not authorized for images", "AMIAuthorizationFailure"),
)
"""Where the code is a common one, by what the message has."""
_HINTS = {
    "SpotSLRCreationFailed": "create it once: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
    "Unauthorized": "compare the role of Kerf with its IAM policies",
    "AuthFailure": "no IAM policy: EC2 does not know the credentials or the account in this region, or the account may "
    "not use an image, snapshot or key that the launch names",
    "TagLimitExceeded": "take tags out of spec.tags of the EC2NodeClass",
}


def launch_failed(code: str, message: str) -> LaunchFailed:
    """The error of a launch that EC2 refused with this code."""
    reason = next((reason for words, reason in _WORDS if words.lower() in message.lower()), "")
    reason = reason or next((reason for start, reason in _REASONS if code.startswith(start)), "LaunchFailed")
    # The client that made the call may have said one already.
    hint = f" (hint: {_HINTS[reason]})" if reason in _HINTS and "(hint: " not in message else ""
    return LaunchFailed(f"{code}: {message}{hint}", reason)
