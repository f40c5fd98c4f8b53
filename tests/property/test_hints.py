"""Hints on random refusals: applied to the manifests, each of them places its pod, or it says that it does not."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.catalog.gpus import shape_of
from kerf.engine.explain.plan import plan
from kerf.manifests.decode import decode
from kerf.manifests.read import parse
from kerf.manifests.workloads.expansion import expand
from kerf.model.market import Market
from kerf.model.plan import Plan, Unplaced
from kerf.testing.builders import a_market, a_snapshot, an_instance_type, cards
from tests.patches import Object, merged

ZONE, ARCH, TYPE = "topology.kubernetes.io/zone", "kubernetes.io/arch", "node.kubernetes.io/instance-type"
CAPACITY = "karpenter.sh/capacity-type"
ZONES = ("us-east-1a", "us-east-1b")
FOUR = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
A100S = (shape_of("A100", 40960, "stated"),) * 8
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "device-plugin-config", "namespace": "kube-system"},
    "data": {"four": FOUR},
}
MARKET: Market = a_market(
    an_instance_type("m5.xlarge", price="0.192", zones=ZONES),
    an_instance_type("m5.2xlarge", cpu=8, memory="32Gi", price="0.384"),
    an_instance_type("g4dn.xlarge", devices=cards(1, 15360, "T4"), price="0.526", zones=ZONES),
    an_instance_type("g4dn.2xlarge", cpu=8, memory="32Gi", devices=cards(1, 15360, "T4"), price="0.752"),
    an_instance_type("g5.12xlarge", cpu=48, memory="192Gi", devices=cards(4), price="5.672"),
    an_instance_type("m6g.xlarge", price="0.154", zones=ZONES, labels={ARCH: "arm64"}),
    an_instance_type("p4d.24xlarge", cpu=96, memory="1152Gi", devices=A100S, price="32.77", capacity_types=("spot",)),
)
LABELS = [
    {},
    {"gpu": "on"},
    {"gpu": "on", "team": "b"},
    {"team": "a"},
    {"nvidia.com/mig.config": "all-1g.5gb"},
    {"nvidia.com/device-plugin.config": "four"},
]
CARDS: list[Object] = [
    {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000},
    {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 12000},
    {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 20000},
    {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 1000},
    {"nvidia.com/gpu": 1, "nvidia.com/gpumem": "4Gi"},
    {"nvidia.com/gpu": 2},
    {"nvidia.com/mig-1g.5gb": 1},
    {"nvidia.com/mig-3g.20gb": 1},
]
TAINTS: list[Object] = [
    {"key": "team", "value": "a", "effect": "NoSchedule"},
    {"key": "gpu", "effect": "NoExecute"},
]
PROMISES = re.compile(
    r"add a|allow |drop |write |.* is (the smallest|a) .* limit|.* is the least cap|.* let the pod ask"
    r"|.* is the most that fits"
)
QUICK = settings(max_examples=60, derandomize=True)
LONG = settings(QUICK, max_examples=1_000)
Draw = Callable[..., Any]


def sometimes(strategy: st.SearchStrategy[Any], otherwise: Any) -> st.SearchStrategy[Any]:
    """One time in three."""
    return st.one_of(st.just(otherwise), st.just(otherwise), strategy)


@st.composite
def node_pools(draw: Draw, name: str) -> Object:
    """A pool with some of what refuses pods."""
    capacity_types = draw(st.sampled_from([["on-demand"], ["on-demand"], ["spot"], ["on-demand", "spot"]]))
    requirements = [{"key": CAPACITY, "operator": "In", "values": capacity_types}]
    names = [*(kind.name for kind in MARKET.types), "m5.xlrge"]
    for key, values in (
        (TYPE, names),
        (ZONE, [*ZONES, "us-east-1z"]),
        (ARCH, ["arm64", "amd64"]),
        ("tier", ["x", "y"]),
    ):
        chosen = draw(sometimes(st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True), []))
        if chosen:
            requirements.append({"key": key, "operator": "In", "values": chosen})
    limits = {
        "cpu": draw(sometimes(st.sampled_from(["1", "4", "10"]), None)),
        "nodes": draw(sometimes(st.sampled_from(["0", "1", "2"]), None)),
        "nvidia.com/gpu": draw(sometimes(sometimes(st.sampled_from(["0", "3"]), None), None)),
        "kerf.dev/cost-per-hour": draw(sometimes(st.sampled_from(["0.1", "0.6", "1.2"]), None)),
    }
    caps = {
        "kerf.dev/max-price-per-hour": draw(sometimes(st.sampled_from(["0.2", "0.6"]), None)),
        "kerf.dev/max-price-per-gpu-hour": draw(sometimes(st.sampled_from(["0.5", "0.75"]), None)),
        "kerf.dev/max-launches-per-minute": draw(sometimes(st.just("1"), None)),
        "kerf.dev/gpu-sharing": draw(sometimes(sometimes(st.sampled_from(["none", "time-slicing"]), None), None)),
    }
    labels = draw(st.sampled_from(LABELS))
    template: Object = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": requirements,
        "taints": draw(sometimes(st.lists(st.sampled_from(TAINTS), max_size=2, unique_by=lambda t: str(t["key"])), [])),
    }
    metadata: Object = {"name": name, "annotations": {key: cap for key, cap in caps.items() if cap}}
    spec: Object = {"template": {"metadata": {"labels": labels}, "spec": template}}
    if any(limits.values()):
        spec["limits"] = {key: limit for key, limit in limits.items() if limit}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec}


some_cards: st.SearchStrategy[Object] = st.sampled_from(CARDS)


@st.composite
def deployments(draw: Draw, name: str) -> Object:
    """One to four pods that ask for cpu, perhaps for cards or slices of them, labels or tolerations."""
    asked: Object = {"cpu": draw(st.sampled_from(["100m", "2", "7", "40", "200"])), **draw(sometimes(some_cards, {}))}
    selector = {
        key: value
        for key, values in (
            ("team", ["a"]),
            ("karpenter.sh/foo", ["x"]),
            (ZONE, ["us-east-1b", "us-east-1y"]),
            (ARCH, ["amd64", "arm64"]),
            (CAPACITY, ["spot"]),
            ("tier", ["x"]),
        )
        if (value := draw(sometimes(sometimes(st.sampled_from(values), None), None)))
    }
    tolerations = draw(sometimes(st.just([{"key": "team", "operator": "Exists"}]), []))
    container = {"name": "main", "image": "x", "resources": {"limits": asked}}
    spec = {"containers": [container], "nodeSelector": selector, "tolerations": tolerations}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    whole = {"replicas": draw(st.integers(1, 4)), "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


@st.composite
def manifests(draw: Draw) -> list[Object]:
    """One or two pools, and one to three Deployments."""
    pools = [draw(node_pools(name)) for name in ("blue", "green")[: draw(st.integers(1, 2))]]
    return [
        *pools,
        CONFIG_MAP,
        *(draw(deployments(name)) for name in ("web", "etl", "train")[: draw(st.integers(1, 3))]),
    ]


def planned(objects: list[Object]) -> Plan:
    """The plan for these manifests, which must be valid."""
    decoded = decode(parse("\n---\n".join(map(json.dumps, objects))))
    assert not any(pool.invalid for pool in decoded.node_pools)
    snapshot = a_snapshot(pools=decoded.node_pools, pods=expand(decoded), config_maps=decoded.config_maps)
    return plan(snapshot, MARKET)


def applied(objects: list[Object], unplaced: Unplaced) -> list[Object]:
    """The manifests with its patches."""
    found = list(objects)
    for patch in unplaced.patches:
        at = [n for n, each in enumerate(found) if (each["kind"], each["metadata"]["name"]) == (patch.kind, patch.name)]
        found[at[0]] = merged(found[at[0]], patch.change)
    return found


def left_of(found: Plan, hint: str) -> set[str]:
    """The pods without a place, save those that wait for nothing but the pace that the hint names."""
    is_said = "a minute" in hint
    return {each.pod for each in found.unplaced if not (is_said and each.reason.startswith("paced: "))}


def placed_as_said(one: Unplaced, unplaced: Sequence[Unplaced], left: set[str]) -> None:
    """Of the pods with this hint all have a place once it is applied, or some where it says so; `left` have none."""
    mine = {each.pod for each in unplaced if each.hint == one.hint and each.patches == one.patches}
    if "of these" in one.hint:
        assert mine - left, one.hint
    else:
        assert not mine & left, (one.hint, one.patches)


def losses_are_said(one: Unplaced, unplaced: Sequence[Unplaced], left: set[str]) -> None:
    """Pods that had a place and have none once it is applied are counted in the hint."""
    lost = left - {each.pod for each in unplaced}
    said = re.search(r"; (\d+) other pods? loses? (its|their) place", one.hint)
    assert len(lost) == (int(said.group(1)) if said else 0), (one.hint, lost)


def keeps_its_word(objects: list[Object]) -> None:
    """What the property says, of each hint of a plan once."""
    unplaced = planned(objects).unplaced
    for one in {each.hint: each for each in unplaced}.values():
        if not one.patches:
            says_so = "Kerf found no change that does" in one.hint or "which alone does not help: then" in one.hint
            assert says_so or not PROMISES.match(one.hint), one.hint
            continue
        left = left_of(planned(applied(objects, one)), one.hint)
        placed_as_said(one, unplaced, left)
        losses_are_said(one, unplaced, left)


@QUICK
@given(manifests())
def test_every_hint_that_has_a_patch_places_its_pods(objects: list[Object]) -> None:
    """Planned again with it; a hint without one promises nothing."""
    keeps_its_word(objects)


@pytest.mark.long
@LONG
@given(manifests())
def test_a_thousand_random_refusals_keep_their_word(objects: list[Object]) -> None:
    """The same, oftener."""
    keeps_its_word(objects)
