"""Kerf with the cloud aws on a real control plane: machines that cannot join, and a cloud that takes machines back."""

from collections.abc import Iterator, Mapping

import pytest

from kerf.testing.faultproxy.services import CloudCluster
from tests.controlplane.cluster import Cluster
from tests.controlplane.eks import Eks, Json, control_plane, eks_cluster
from tools.controlplane.server import Binaries

WHOLE = {"nvidia.com/gpu": "1"}
LOOK = "; what the machine wrote: aws ec2 get-console-output --region us-east-1 --instance-id "
HURRIED = ("--registration-deadline=6s", "--devices-deadline=6s")
NO_NODE = "Node not registered with cluster; given up at "
NO_CARD = "0 of 1 GPUs registered: the device plugin has not reported yet"


@pytest.fixture(scope="module")
def site(binaries: Binaries) -> Iterator[Cluster]:
    """Each test leaves it as empty as it was."""
    with control_plane(binaries) as made:
        yield made


@pytest.fixture
def eks(site: Cluster, moto_url: str) -> Iterator[Eks]:
    """An empty cluster; nothing may be left at its end."""
    with eks_cluster(site, moto_url) as made:
        yield made


class Watch:
    """What the claims of each pool have said of a stage, whenever the test looked."""

    def __init__(self, eks: Eks) -> None:
        self._eks = eks
        self.said: dict[str, set[str]] = {}

    def look(self) -> Mapping[str, set[str]]:
        """Look once more."""
        for claim in self._eks.plane.list("NodeClaim"):
            pool = claim["metadata"]["labels"]["karpenter.sh/nodepool"]
            for condition in claim.get("status", {}).get("conditions", ()):
                self.said.setdefault(pool, set()).add(str(condition.get("message", "")))
        return self.said

    def has(self, pool: str, text: str) -> bool:
        """Whether a claim of the pool has said that, and named its instance's console."""
        return any(text in each and LOOK in each for each in self.look().get(pool, ()))


def _events(eks: Eks, reason: str, pool: str) -> list[str]:
    about = [
        each for each in eks.plane.list("events", "default") if each["involvedObject"]["name"].startswith(f"{pool}-")
    ]
    return [each["message"] for each in about if each["reason"] == reason]


def _is_given_up(eks: Eks, watch: Watch, pool: str, stage: str) -> bool:
    """Whether the claim of a pool was given up, its instance is gone, and its pod was told that the type rests."""
    watch.look()
    told = [text for text in eks.site.events("FailedScheduling") if f"g5.xlarge backs off in NodePool {pool}" in text]
    return bool(told and _events(eks, f"{stage}TimedOut", pool))


def test_what_a_node_class_gets_wrong_is_seen_on_the_claim(eks: Eks) -> None:
    """Each claim names the stage, its deadline and the command for the console; it is given up, and its type rests."""
    eks.role("other")
    term = {"id": eks.image_without_driver}
    eks.node_class("group", securityGroupSelectorTerms=[{"id": eks.security_group("other")}])
    eks.node_class("role", role="other")
    eks.node_class("data", amiFamily="Custom", amiSelectorTerms=[{"id": eks.image}], userData="#!/bin/sh\ntrue\n")
    eks.node_class("driver", amiFamily="AL2023", amiSelectorTerms=[term])
    expected = dict.fromkeys(("group", "role", "data"), (NO_NODE, "Registered"))
    expected["driver"] = (NO_CARD, "Initialized")
    for name in expected:
        eks.pool(name, "g5.xlarge")
        eks.deployment(name, name, 1, WHOLE)
    eks.begin(*HURRIED)
    watch = Watch(eks)

    for name, (text, stage) in expected.items():
        eks.until(lambda name=name, text=text: watch.has(name, text), f"{name}: the claim says where to look")
        eks.until(lambda name=name, stage=stage: _is_given_up(eks, watch, name, stage), f"{name}: it is given up")
        assert all(LOOK in each for each in _events(eks, f"{stage}TimedOut", name))
    eks.until(lambda: [] == eks.proxy.instances.living(), "no machine runs in vain")
    assert [] == eks.site.pods("Running")
    consoles = {each.id: eks.ec2.get_console_output(InstanceId=each.id) for each in eks.proxy.instances.all()}
    assert all(name == answer["InstanceId"] for name, answer in consoles.items())


@pytest.mark.parametrize(
    "wrong", ["ca", *(pytest.param(each, marks=pytest.mark.long) for each in ("endpoint", "name"))]
)
def test_a_cluster_that_is_described_wrongly_gets_no_node(eks: Eks, wrong: str) -> None:
    """EKS names another CA, another endpoint, or Kerf was given another cluster's name: no machine joins."""
    url = "https://127.0.0.1:1" if wrong == "endpoint" else eks.plane.url
    name = "other" if wrong == "name" else "prod"
    eks.proxy.services.cluster(CloudCluster(name, url, "eA==" if wrong == "ca" else eks.ca))
    eks.node_class("gpu")
    eks.pool("gpu", "g5.xlarge")
    eks.deployment("gpu", "gpu", 1, WHOLE)
    eks.begin(*HURRIED, f"--cluster-name={name}")
    watch = Watch(eks)

    eks.until(lambda: watch.has("gpu", NO_NODE), "the claim says where to look")
    eks.until(lambda: _is_given_up(eks, watch, "gpu", "Registered"), "it is given up")


def test_spot_takes_three_of_ten_nodes_at_once(eks: Eks) -> None:
    """Each is replaced once, in another zone, and drained before its time is over: Kerf ends it, and not EC2."""
    for zone, usd in (("us-east-1a", 0.3), ("us-east-1b", 0.31)):
        eks.proxy.stock.spot_price("g5.xlarge", zone, usd)
    eks.node_class("spot")
    eks.pool("spot", "g5.xlarge", capacity_type="spot")
    eks.deployment("spot", "spot", 10, WHOLE)
    eks.begin()
    eks.until(lambda: 10 == len(eks.site.pods("Running")), "ten pods run")
    eks.until(lambda: all(_is_settled(claim) for claim in eks.plane.list("NodeClaim")), "ten nodes are settled")
    instances = eks.proxy.instances.living()
    assert (10, {"us-east-1a"}) == (len(instances), {each.zone for each in instances})
    taken, before = {each.id for each in instances[2:5]}, len(eks.proxy.calls)

    for name in sorted(taken):
        eks.proxy.events.spot_notice(name)
    eks.until(lambda: not taken & {each.id for each in eks.proxy.instances.living()}, "the three are gone")
    eks.until(lambda: 10 == len(eks.site.pods("Running")), "ten pods run again")

    calls = [call for call in eks.proxy.calls[before:] if call.parameters.get("DryRun") != "true"]
    assert 3 == [call.name for call in calls].count("ec2:CreateFleet")
    rows = [each for each in eks.proxy.instances.all() if each.id in taken]
    assert {"Client.UserInitiatedShutdown"} == {each.end_reason[0] for each in rows}
    assert {"us-east-1b"} == {each.zone for each in eks.proxy.instances.living() if each not in instances}


def _is_settled(claim: Json) -> bool:
    return any(each["type"] == "Initialized" and each["status"] == "True" for each in claim["status"]["conditions"])
