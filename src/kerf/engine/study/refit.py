"""What Kerf would buy in the place of nodes that are there: they are taken out, their pods wait, and Kerf decides.

Nodes that stay take pods first, as in any decision. Some of their room may have been taken when the others were bought,
so a comparison with the past leans a little towards Kerf.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kerf.engine.decide import decide
from kerf.engine.leaving import unbound
from kerf.engine.options import Options
from kerf.engine.supply.pricing import capacity_type_of, present_price
from kerf.engine.world import World
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterNode, ClusterSnapshot


@dataclass(frozen=True)
class Fleet:
    """Nodes, what they cost per hour, and how many of each (instance type, capacity type), in name order."""

    nodes: int = 0
    price_micro: int = 0
    types: Mapping[tuple[str, str], int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Refit:
    """Nodes as they are beside those that Kerf would buy for their `pods`.

    `placed_on_others` of the pods would go on nodes that stay; `unplaced` would get no place.
    """

    pods: int
    present: Fleet
    planned: Fleet
    placed_on_others: int = 0
    unplaced: int = 0


def refit(world: World, nodes: Collection[str], options: Options) -> Refit:
    """One decision for the pods of these nodes. Pods that wait already are left out of it, on both sides.

    Names that are not there count for nothing, and a claim without a node is taken out without being counted: its pods
    wait. Cost: one decision for the pods of `nodes`.
    """
    taken = [node for node in world.snapshot.nodes if node.name in nodes and node.node is not None]
    decision = decide(world.of(without(world.snapshot, nodes)), options)
    bought = Counter((each.offering.instance_type, each.offering.capacity_type) for each in decision.launches)
    price_micro = sum(launch.price_micro for launch in decision.launches)
    return Refit(
        len(_waiting(taken)),
        fleet(taken, world),
        Fleet(len(decision.launches), price_micro, dict(sorted(bought.items()))),
        len(decision.placements),
        sum(len(refusal.pods) for refusal in decision.refusals),
    )


def without(snapshot: ClusterSnapshot, nodes: Collection[str]) -> ClusterSnapshot:
    """The cluster as if these nodes had never been: their pods wait, and nothing else does."""
    pods = _waiting(node for node in snapshot.nodes if node.name in nodes)
    staying = tuple(node for node in snapshot.nodes if node.name not in nodes)
    return replace(snapshot, nodes=staying, pending=tuple(sorted(pods, key=lambda pod: pod.key)))


def _waiting(nodes: Iterable[ClusterNode]) -> list[Pod]:
    # DaemonSets and static pods come with any node; what has ended needs none.
    return [unbound(pod) for node in nodes for pod in node.pods if not (pod.is_ended or pod.is_daemon)]


def fleet(nodes: Iterable[ClusterNode], world: World) -> Fleet:
    """These nodes with their present prices; one whose type is not for sale counts 0."""
    found = list(nodes)
    types = Counter((node.labels.get(INSTANCE_TYPE, ""), capacity_type_of(node)) for node in found)
    price_micro = sum(present_price(node, world.supply) for node in found)
    return Fleet(len(found), price_micro, dict(sorted(types.items())))
