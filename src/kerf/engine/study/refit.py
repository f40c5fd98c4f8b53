"""What Kerf would buy in the place of nodes that are there: they are taken out, their pods wait, and Kerf decides.

Nodes of NodePools that stay take pods first, as in any decision. Some of their room may have been taken when the others
were bought, so a comparison with the past leans a little towards Kerf. Nodes of no NodePool take none: room on a system
group that the comparison does not pay for would count as a saving. A pod keeps the model of its cards, because another
model with as much memory may be a slower one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kerf.engine.decide import decide
from kerf.engine.disruption.relocation import closed
from kerf.engine.leaving import unbound
from kerf.engine.options import Options
from kerf.engine.supply.pricing import capacity_type_of, present_price
from kerf.engine.world import World
from kerf.model.constraints import ANYTHING, INSTANCE_TYPE, Requirement, Requirements
from kerf.model.pods import Pod, PodDemand
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.sharing.family import Family
from kerf.sharing.registry import demand_of, families_of


@dataclass(frozen=True)
class Fleet:
    """Nodes, what they cost per hour, and how many of each (instance type, capacity type), in name order."""

    nodes: int = 0
    price_micro: int = 0
    types: Mapping[tuple[str, str], int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Refit:
    """Nodes as they are beside those that Kerf would buy for their `pods`.

    `placed_on_others` of the pods would go on nodes that stay; `unplaced` would get no place. `unknown_models` are the
    nodes, in the order of their names, of whose cards pods have a share and nothing says the model: any will do.
    """

    pods: int
    present: Fleet
    planned: Fleet
    placed_on_others: int = 0
    unplaced: int = 0
    unknown_models: tuple[str, ...] = ()


def refit(world: World, nodes: Collection[str], options: Options, *, with_any_gpu: bool = False) -> Refit:
    """One decision for the pods of these nodes. Pods that wait already are left out of it, on both sides.

    `with_any_gpu` lets pods go to cards of other models than those that they run on.

    Names that are not there count for nothing, and a claim without a node is taken out without being counted: its pods
    wait. Cost: one decision for the pods of `nodes`.
    """
    taken = [node for node in world.snapshot.nodes if node.name in nodes and node.node is not None]
    snapshot = without(world.snapshot, nodes)
    unknown: tuple[str, ...] = ()
    if not with_any_gpu:
        models = _models_of(taken, world)
        unknown = tuple(sorted(_sharing(snapshot.pending, [each for each in taken if not models[each.name]], world)))
        snapshot = replace(snapshot, pending=tuple(_on_their_models(snapshot.pending, taken, models, world)))
    decision = decide(world.of(snapshot), options)
    bought = Counter((each.offering.instance_type, each.offering.capacity_type) for each in decision.launches)
    price_micro = sum(launch.price_micro for launch in decision.launches)
    return Refit(
        len(_waiting(taken)),
        fleet(taken, world),
        Fleet(len(decision.launches), price_micro, dict(sorted(bought.items()))),
        len(decision.placements),
        sum(len(refusal.pods) for refusal in decision.refusals),
        unknown,
    )


def without(snapshot: ClusterSnapshot, nodes: Collection[str]) -> ClusterSnapshot:
    """The cluster as if these nodes had never been: their pods wait, nothing else does, and no node takes them that no
    NodePool bought."""
    pods = _waiting(node for node in snapshot.nodes if node.name in nodes)
    others = (node for node in snapshot.nodes if node.name not in nodes)
    staying = tuple(node if node.claim is not None else closed(node) for node in others)
    return replace(snapshot, nodes=staying, pending=tuple(sorted(pods, key=lambda pod: pod.key)))


def _waiting(nodes: Iterable[ClusterNode]) -> list[Pod]:
    # DaemonSets and static pods come with any node; what has ended needs none.
    return [unbound(pod) for node in nodes for pod in node.pods if not (pod.is_ended or pod.is_daemon)]


def _models_by_type(world: World) -> dict[str, frozenset[str]]:
    return {each.name: frozenset(shape.model.name for shape in each.devices) for each in world.market.types}


def _models_of(nodes: Iterable[ClusterNode], world: World) -> dict[str, frozenset[str]]:
    """By node the models of its cards: those of its type, or as they are registered; none where neither says any."""
    known = _models_by_type(world)
    return {node.name: known.get(node.labels.get(INSTANCE_TYPE, "")) or _registered(node, world) for node in nodes}


def _has_share(pod: Pod, families: Iterable[Family]) -> bool:
    """Whether the pod asks for cards or parts of them."""
    demands = (demand_of(pod, family) for family in families)
    return any(isinstance(each, PodDemand) and not each.is_empty for each in demands)


def _sharing(pods: Iterable[Pod], nodes: Iterable[ClusterNode], world: World) -> set[str]:
    """The names of those of the nodes of whose cards one of the pods has a share."""
    families, homes = families_of(world.snapshot), {pod.key: node.name for node in nodes for pod in node.pods}
    return {homes[pod.key] for pod in pods if pod.key in homes and _has_share(pod, families)}


def _on_their_models(
    pods: Iterable[Pod], nodes: Iterable[ClusterNode], models: Mapping[str, frozenset[str]], world: World
) -> Iterator[Pod]:
    """The pods, those with a share of a card asking for types with cards of the `models` of their node, by its name."""
    families, by_type = families_of(world.snapshot), _models_by_type(world)
    asked = dict[str, Requirements]()
    for node in nodes:
        if models[node.name]:
            alike = [name for name, others in by_type.items() if not others.isdisjoint(models[node.name])]
            required = Requirements([Requirement.of(INSTANCE_TYPE, "In", alike)])
            asked |= {pod.key: required for pod in node.pods}
    for pod in pods:
        required = asked.get(pod.key, ANYTHING) if _has_share(pod, families) else ANYTHING
        selector = pod.spec.node_selector.intersect(required)
        yield replace(pod, spec=replace(pod.spec, node_selector=selector)) if required else pod


def _registered(node: ClusterNode, world: World) -> frozenset[str]:
    """The models that the node's cards report, by the names that the market sells them under; as reported else."""
    shapes = (shape.model for each in world.market.types for shape in each.devices)
    sold = {model.registered_as: model.name for model in shapes}
    return frozenset(sold.get(device.model, device.model) for device in node.devices if device.model)


def fleet(nodes: Iterable[ClusterNode], world: World) -> Fleet:
    """These nodes with their present prices; one whose type is not for sale counts 0."""
    found = list(nodes)
    types = Counter((node.labels.get(INSTANCE_TYPE, ""), capacity_type_of(node)) for node in found)
    price_micro = sum(present_price(node, world.supply) for node in found)
    return Fleet(len(found), price_micro, dict(sorted(types.items())))
