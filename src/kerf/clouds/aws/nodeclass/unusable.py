"""Why an EC2NodeClass cannot be used: found by discovery, user data, templates, profiles."""

from kerf.cloudprovider import NodeClassNotReady


class Unusable(NodeClassNotReady):
    """The EC2NodeClass cannot be used until a person changes it, or something in AWS.

    `reason` is the word of the condition, `message` what to change. The claim that needs it goes.
    """

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        self.message = message
        super().__init__(f"{reason}: {message}")
