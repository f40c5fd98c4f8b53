"""EC2NodeClasses that come and go."""

import asyncio
import gc
from collections import Counter
from dataclasses import replace

from kerf.clouds.aws.nodeclass.model import EC2NodeClass
from kerf.clouds.aws.provider import AwsCloud, AwsOptions
from kerf.clouds.aws.userdata.facts import ClusterFacts
from kerf.model.instancetypes import InstanceType
from kerf.testing.builders import AWS_CLASS, a_pool
from tests.clouds.aws.nodeclass.objects import an_object
from tests.clouds.aws.test_reconcile import SPEC, Region


def kept() -> Counter[str]:
    """What is in memory: instance types, and EC2NodeClasses by name."""
    gc.collect()
    found = gc.get_objects()
    names = Counter(each.name for each in found if isinstance(each, EC2NodeClass))
    return names + Counter(type=sum(isinstance(each, InstanceType) for each in found))


def test_what_is_known_of_an_ec2_node_class_goes_with_it() -> None:
    """Its spec, what was found for it, and its types: in CI each run may have a name, or a uid, of its own."""
    region = Region()
    facts = ClusterFacts("demo", "https://demo", "Y2E=", "10.100.0.0/16", "10.100.0.10", "1.34", "us-east-1")
    cloud = AwsCloud(region.account, region.clock, AwsOptions("demo", "us-east-1"), facts)

    async def come_and_go(name: str, *uids: str) -> int:
        sold = 0
        for uid in uids:
            raw = an_object(name, **SPEC)
            raw["metadata"] = {**raw["metadata"], "uid": uid}
            await cloud.node_classes.resolve(raw)
            sold = len(await cloud.instance_types(a_pool("gpu", node_class=replace(AWS_CLASS, name=name))))
        cloud.node_classes.forget(name)
        return sold

    before = kept()
    assert all(asyncio.run(come_and_go(f"ci-{run}", f"uid-{run}", f"uid-{run}-again")) for run in range(2))
    assert before == kept()
