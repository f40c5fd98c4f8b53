"""An EKS cluster on moto behind the fault proxy, with all that an EC2NodeClass selects, and the provider for it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from kerf.clouds.aws.clients import BotoApi
from kerf.clouds.aws.iam import POLICIES, STATEMENTS, Statement, filled
from kerf.clouds.aws.provider import AwsCloud, AwsOptions
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool
from kerf.testing.builders import AWS_CLASS, a_pool
from kerf.testing.faultproxy.services import CloudCluster
from tests.awscloud import REGION
from tests.awscloud import AwsCloud as Cloud
from tests.clouds.aws.nodeclass.objects import an_object

CLUSTER, ROLE, QUEUE = "gpu", "KerfNode", "interruptions"
ACCESS_KEY = "kerf"
"""With which the provider signs; the proxy gives it Kerf's policies, and all other callers everything."""
ZONES = ("us-east-1a", "us-east-1b")
POOL = a_pool("gpu")
_NAMES = {
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": "123456789012",
    "ClusterName": CLUSTER,
    "NodeRole": ROLE,
    "Queue": QUEUE,
}


def documents(statements: Iterable[Statement] = STATEMENTS) -> dict[str, Any]:
    """The policies of Kerf's role for the cluster, of these statements alone."""
    kept = list(statements)
    return {
        policy: filled({"Statement": [each.document for each in kept if each.policy == policy]}, _NAMES)
        for policy in POLICIES
    }


class ProxyClock:
    """The clock of the proxy, as `kerf.ports.Clock`."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def now_s(self) -> float:
        """See Clock."""
        return self._cloud.clock()

    def call_at(self, when_s: float, callback: Callable[[], None]) -> None:
        """Nothing here waits."""
        raise AssertionError("nothing here waits")


class Eks:
    """The cluster, and the provider that a test runs; `api` is shared, because clients of boto3 are slow to make."""

    def __init__(self, cloud: Cloud, api: BotoApi) -> None:
        self.cloud, self.api, self.clock = cloud, api, ProxyClock(cloud)
        proxy = cloud.proxy
        proxy.services.cluster(CloudCluster(CLUSTER, "https://gpu.example", "Y2E="))
        for variant in ("standard", "nvidia"):
            proxy.images.release_al2023("1.34", "v20261101", variant=variant)
        ec2, iam = cloud.client("ec2"), cloud.client("iam")
        in_zones = [{"Name": "availability-zone", "Values": list(ZONES)}]
        found = ec2.describe_subnets(Filters=in_zones)["Subnets"]
        self.subnets = {each["AvailabilityZone"]: each["SubnetId"] for each in found}
        (group, *_) = ec2.describe_security_groups(Filters=[{"Name": "group-name", "Values": ["default"]}])[
            "SecurityGroups"
        ]
        iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": []}))
        cloud.client("sqs").create_queue(QueueName=QUEUE)
        proxy.queue = QUEUE
        self.group = group["GroupId"]
        self.node_class = self.document()
        self.may()
        self.provider = self.life()

    def document(self, **spec: Any) -> dict[str, Any]:
        """An EC2NodeClass that selects what is there; `spec` goes over it."""
        terms = [{"id": self.subnets[zone]} for zone in sorted(self.subnets)]
        groups = [{"id": self.group}]
        return an_object(**{"role": ROLE, "subnetSelectorTerms": terms, "securityGroupSelectorTerms": groups, **spec})

    def may(self, statements: Iterable[Statement] = STATEMENTS) -> None:
        """From now on the provider may do what these statements allow."""
        self.cloud.proxy.permissions.enforce(documents(statements), ACCESS_KEY)

    def life(self) -> AwsCloud:
        """A provider that knows nothing yet, with the EC2NodeClass resolved."""

        async def begin() -> AwsCloud:
            made = await AwsCloud.connect(self.api, self.clock, AwsOptions(CLUSTER, REGION, QUEUE))
            await made.node_classes.resolve(self.node_class)
            return made

        return asyncio.run(begin())

    def done(self, call: Awaitable[Any]) -> Any:
        """What a call gives."""

        async def run() -> Any:
            return await call

        return asyncio.run(run())

    async def wait(self, seconds: float) -> None:
        """Let time pass in the cloud."""
        self.cloud.clock.advance(seconds)

    def claim(self, number: int = 1, *, types: tuple[str, ...] = ("g5.xlarge",), **given: Any) -> NodeClaim:
        """A claim that was made now; `given`: `zones`, `capacity_types`, fields of NodeClaim."""
        allowed = {
            INSTANCE_TYPE: types,
            ZONE: given.pop("zones", ()),
            CAPACITY_TYPE: given.pop("capacity_types", ("spot",)),
        }
        wanted = Requirements(Requirement.of(key, "In", values) for key, values in allowed.items() if values)
        now_s = self.clock.now_s()
        return NodeClaim(f"gpu-{number}", "gpu", AWS_CLASS, wanted, uid=f"uid-{number}", created_s=now_s, **given)

    def pool(self) -> NodePool:
        """The pool of the claims."""
        return POOL
