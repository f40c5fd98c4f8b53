"""What the AWS provider asks of an AWS API, as a Protocol: `clients` answers with boto3, tests with what they please.

Names and parameters are those of the API itself (`DescribeSubnets`, `Filters`), and a policy grants a call by
the name that it has here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from kerf.errors import CloudError

EC2, SSM, IAM, EKS, SQS, PRICING, STS = "ec2", "ssm", "iam", "eks", "sqs", "pricing", "sts"
SERVICES = (EC2, SSM, IAM, EKS, SQS, PRICING, STS)
"""The services that the provider calls, and the one that gives it credentials, by boto3's names."""

Reply = Mapping[str, Any]
"""A decoded reply, as boto3 returns it, without `ResponseMetadata`."""


class ApiFailed(CloudError):
    """AWS refused a call. `code` is its error code, e.g. `InvalidSubnetID.NotFound`; the caller decides by it."""

    def __init__(self, operation: str, code: str, message: str) -> None:
        self.operation = operation
        self.code = code
        self.message = message
        super().__init__(f"{operation}: {code}: {message}")


class Api(Protocol):
    """The AWS APIs of one region. All methods raise ApiFailed, or Throttled, which says nothing about the objects."""

    async def call(self, service: str, operation: str, **parameters: object) -> Reply:
        """One call, e.g. `call(EC2, "CreateLaunchTemplate", LaunchTemplateName="x", ...)`."""
        ...

    async def call_unless(self, check: Callable[[], None], service: str, operation: str, **parameters: object) -> Reply:
        """As `call`, unless `check` raises: it is asked while the call waits for its turn, and at last just before it.

        Once the call is made, it is finished.
        """
        check()
        return await self.call(service, operation, **parameters)

    async def pages(self, service: str, operation: str, key: str, **parameters: object) -> Sequence[Any]:
        """The elements under `key` of all pages of a listing, in the order of the API."""
        ...
