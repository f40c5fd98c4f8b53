"""Why an EC2NodeClass cannot be used: found by discovery, user data, templates, profiles."""

from kerf.cloudprovider import NodeClassNotReady


class Unusable(NodeClassNotReady):
    """The EC2NodeClass cannot be used until a person changes it, or something in AWS.

    `reason` is the word of the condition, `message` what to change; `excess_bytes` is by how much a limit is passed.
    """

    def __init__(self, reason: str, message: str, excess_bytes: int = 0) -> None:
        self.reason = reason
        self.excess_bytes = excess_bytes
        self.message = message
        super().__init__(f"{reason}: {message}")
