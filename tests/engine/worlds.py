"""Pools, markets and pods of the engine's tests, and plans told in a few words."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.engine.place.fit import Placed, fit
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.offered import OfferedType, Supply, supply
from kerf.model.instancetypes import InstanceType
from kerf.model.market import Market
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.plan import Misfit, Plan, Unplaced
from kerf.model.pods import Container, HostPort, Owner, Pod, PodSpec
from kerf.model.policies import COST
from kerf.model.snapshot import ClusterNode, ClusterSnapshot, DaemonSet, Upserted, Watched
from kerf.sharing.hami.records import REGISTER, register_annotation
from kerf.sharing.registry import FAMILIES, family_named
from kerf.state import ClusterState
from kerf.testing.builders import NOON_S, a_container, a_market, a_pod, a_pool, a_snapshot, an_instance_type, cards

HAMI = {"gpu": "on"}
"""The label by which HAMi's device plugin selects nodes."""

M5 = an_instance_type("m5.xlarge", cpu=4, memory="16Gi", price="0.192")
M5_2X = an_instance_type("m5.2xlarge", cpu=8, memory="32Gi", price="0.384")
G5 = an_instance_type("g5.xlarge", cpu=4, memory="16Gi", devices=cards(1), price="1.006")
G5_2X = an_instance_type("g5.2xlarge", cpu=8, memory="32Gi", devices=cards(1), price="1.212")
G5_12X = an_instance_type("g5.12xlarge", cpu=48, memory="192Gi", devices=cards(4), price="5.672")


def a_hami_pool(name: str = "pool", **given: Any) -> NodePool:
    """A pool whose cards HAMi manages."""
    return a_pool(name, labels={**HAMI, **given.pop("labels", {})}, **given)


def a_slice(name: str = "p", **given: Any) -> Pod:
    """A pod that asks HAMi for a part of one card."""
    return a_pod(name, gpu=given.pop("gpu", 1), **given)


def some(count: int, name: str = "p", **given: Any) -> list[Pod]:
    """So many equal pods, `p-0`, `p-1`, ... that share one spec."""
    first = a_pod(f"{name}-0", **given)
    return [replace(first, name=f"{name}-{n}") for n in range(count)]


def port_spec(port: int) -> PodSpec:
    """The spec of a pod that takes a port of its node."""
    return PodSpec((Container("main", host_ports=(HostPort(port),)),))


def a_daemon_set(name: str = "agent", *, spec: PodSpec | None = None, **given: Any) -> DaemonSet:
    """A DaemonSet by its pod."""
    pod = a_pod(f"{name}-template", spec=spec, owner=Owner("DaemonSet", name), **given)
    return DaemonSet("default", name, pod)


def shape_of(pod: Pod) -> Shape:
    """The shape of that pod alone."""
    return Shape((pod,))


def supply_of(*pools: NodePool, types: Sequence[InstanceType], **given: Any) -> Supply:
    """What these pools offer; `given` are fields of the snapshot, and `market` for other markets than a plain one."""
    market = given.pop("market", None) or a_market(*types)
    return supply(a_snapshot(pools=pools, **given), market)


def offer(pool: NodePool, kind: InstanceType, **given: Any) -> OfferedType:
    """The one type of a pool."""
    return supply_of(pool, types=[kind], **given).available[0]


def tried(pod: Pod, offered: OfferedType) -> Placed | Misfit:
    """The pod on an empty node of the type."""
    return fit(offered.target, offered.room, shape_of(pod))


def refusal(pod: Pod, offered: OfferedType) -> Misfit:
    """Why an empty node of the type refuses the pod."""
    result = tried(pod, offered)
    assert isinstance(result, Misfit)
    return result


def planned(
    pods: Iterable[Pod],
    pools: Iterable[NodePool],
    types: Sequence[InstanceType] = (),
    strategy: str = COST,
    market: Market | None = None,
    **given: Any,
) -> Plan:
    """The plan for pending pods; `given` are fields of the snapshot."""
    return plan(a_snapshot(pools=pools, pods=pods, **given), market or a_market(*types), Options(strategy))


def bought(decided: Plan) -> list[tuple[str, int]]:
    """Type and number of pods of each launch, sorted."""
    return sorted((launch.offering.instance_type, len(launch.pods)) for launch in decided.launches)


def per_hour(decided: Plan) -> int:
    """What the launches cost, in millionths."""
    return sum(launch.price_micro for launch in decided.launches)


def refused(decided: Plan) -> list[str]:
    """Keys of the pods that are left."""
    return [unplaced.pod for unplaced in decided.unplaced]


def only_unplaced(decided: Plan) -> Unplaced:
    """The one pod that is left."""
    assert 1 == len(decided.unplaced)
    return decided.unplaced[0]


def registered_cards(count: int, memory_mib: int = 22888) -> str:
    """HAMi's register annotation of that many idle cards."""
    return register_annotation(family_named("hami", FAMILIES).predict(cards(count, memory_mib), {}, {}))


def a_hami_node(node: Node, count: int = 1, memory_mib: int = 22888) -> Node:
    """The node with HAMi's label and register."""
    annotations = {**node.annotations, REGISTER: registered_cards(count, memory_mib)}
    labels = {**node.labels, **HAMI}
    return replace(node, labels=labels, annotations=annotations)


def seen(*values: Watched, at_s: float = NOON_S) -> ClusterSnapshot:
    """The snapshot of a cluster that holds these objects."""
    state = ClusterState(assume_node_classes=True)
    for value in values:
        state.apply(Upserted(value))
    return state.snapshot(at_s)


def joined(snapshot: ClusterSnapshot, name: str = "node") -> ClusterNode:
    """The node of that name, with its claim and pods."""
    found = snapshot.node(name)
    assert found is not None
    return found


def two_containers(**amounts: Any) -> tuple[Container, ...]:
    """Two equal containers."""
    return a_container("first", **amounts), a_container("second", **amounts)
