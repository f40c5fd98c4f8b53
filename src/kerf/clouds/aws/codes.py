"""Error codes of AWS: what a refusal says about the thing that was asked for, or about us.

From the error tables of EC2, IAM, SSM and EKS, and aws/karpenter-provider-aws v1.14.1 (2026-11).
"""

from kerf.clouds.aws.api import ApiFailed

DRY_RUN_PASSED = "DryRunOperation"
"""A dry run fails with this code where the call would have been done."""
NO_TEMPLATE = frozenset({"InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateName.NotFoundException"})
"""A launch names a launch template that EC2 does not show."""
_NOT_FOUND = NO_TEMPLATE | frozenset(
    {
        "InvalidCapacityReservationId.NotFound",
        "InvalidInstanceID.NotFound",
        "InvalidPlacementGroup.Unknown",
        "InvalidPlacementGroupId.Unknown",
        "NoSuchEntity",
        "ParameterNotFound",
    }
)
_EXISTS = frozenset({"EntityAlreadyExists", "InvalidLaunchTemplateName.AlreadyExistsException"})
_UNAUTHORIZED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "UnauthorizedOperation",
        "UnauthorizedException",
    }
)
_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidIdentityToken",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "NoCredentialsError",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


AUTH_FAILURE = "AuthFailure"
"""EC2's word for two things: it cannot validate the credentials, or the account may not use what the call names."""
_ABOUT_CALLER = "validate"
"""In its message of the first: `AWS was not able to validate the provided access credentials`."""

_PERSONS = (
    AUTH_FAILURE,
    "Blocked",
    "EncryptedVolumesNotSupported",
    "Invalid",
    "Malformed",
    "Missing",
    "OperationNotPermitted",
    "OptInRequired",
    "PendingVerification",
    "Unsupported",
    "Validation",
)
"""How codes begin that come again until a person has changed the object, the account or one of its limits."""
_LIMITS = ("LimitExceeded", "QuotaExceeded", "QuotaExceededException", "LimitExceededException")
"""How those of limits end."""
_PASSING = ("ConcurrentModification", "EntityTemporarilyUnmodifiable", "Internal", "RequestTimeout", "Service")
"""How codes begin that say nothing but that another try may do."""


def is_not_found(error: ApiFailed) -> bool:
    """Whether the thing that a call names does not exist."""
    return error.code in _NOT_FOUND


def exists_already(error: ApiFailed) -> bool:
    """Whether the thing that a call makes exists under its name."""
    return error.code in _EXISTS


def is_unauthorized(error: ApiFailed) -> bool:
    """Whether the policy of the controller, or of the account, forbids the call."""
    return error.code in _UNAUTHORIZED


def is_about_credentials(error: ApiFailed) -> bool:
    """Whether AWS knows no such caller: nothing that it says is about objects."""
    return error.code in _CREDENTIALS or (error.code == AUTH_FAILURE and _ABOUT_CALLER in error.message)


def is_for_a_person(error: ApiFailed) -> bool:
    """Whether no other try helps: the request, the account or a limit has to be changed first."""
    if is_about_credentials(error):
        return False
    return error.code.startswith(_PERSONS) or error.code.endswith(_LIMITS)


def is_passing(error: ApiFailed) -> bool:
    """Whether it is no answer: AWS failed, or does not take us for who we are."""
    return is_about_credentials(error) or error.code.startswith(_PASSING)
