"""Where a cluster gets to if nothing happens but what Kerf does with its nodes: one command after the other.

Each command is taken for done at once: the new nodes are up as planned, the pods have their places, and
consolidateAfter of the nodes that they came to is over. Else no time passes. So what came in the place of other nodes
is not replaced, as in a cluster for a while, and goes only where its pods fit on others; the steps end there. In a
cluster pods come and go meanwhile, and every command is decided on what is there then.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kerf.engine.bounding import alone
from kerf.engine.buy.bound import proven_of_served
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.disruption.buffers import keeps_buffers
from kerf.engine.disruption.candidates import candidates, moving
from kerf.engine.disruption.command import Command, deleting
from kerf.engine.disruption.ending import ended, endings
from kerf.engine.disruption.first import first_command
from kerf.engine.leaving import unbound
from kerf.engine.options import Options
from kerf.engine.supply.pricing import cluster_price
from kerf.engine.world import World
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from kerf.model.nodeclaim import (
    CONSOLIDATABLE,
    INITIALIZED,
    LAUNCHED,
    READY,
    REGISTERED,
    REPLACES,
    TRUE,
    Condition,
    NodeClaim,
)
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Launch, NodePlacement, PlacedPod
from kerf.model.pods import Pod
from kerf.model.promises import with_price
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.sharing.hami.pinning import without_pin
from kerf.sharing.registry import owner_of

MOST_STEPS = 200


@dataclass(frozen=True)
class ConsolidationStep:
    """One command, the pods that it moves, what the nodes cost an hour before and after it, and the worlds then.

    `decided` is the command without the places of pods that it plans for nowhere, which `command` has. The names of its
    launches are those of their nodes in later steps, and no other step has the same. `homeless` are pods of its nodes,
    `namespace/name`, that find no place and wait then.
    """

    command: Command
    moved: int
    before_micro: int
    after_micro: int
    before: World
    decided: Command
    after: World
    homeless: tuple[str, ...] = ()


def steps(world: World) -> Iterator[ConsolidationStep]:
    """What would be done, until nothing is or two hundred steps are over.

    Pods that wait and have a place on a node that is up count as there; of others nothing is decided. Cost: a decision
    for the pods that wait, and one about all nodes for each step.
    """
    world = world.of(_with_waiting(world.of(_ending(world))))
    taken = {node.name for node in world.snapshot.nodes}
    for _ in range(MOST_STEPS):
        gone = ended(world)
        # Those of one reason make a step.
        gone = tuple(each for each in gone if each.reason == gone[0].reason)
        command = deleting(world, gone) if gone else None
        if command is None:
            command, _ = first_command(world, candidates(world.snapshot)[0], partial(_kept, world))
        if command is None:
            return
        command = _named(command, taken)
        as_decided = command
        snapshot, rest = _carried_out(command, world)
        homeless: tuple[str, ...] = ()
        if rest:
            command, snapshot, homeless = _rehoused(command, world.of(snapshot), rest, taken)
        after = world.of(snapshot)
        placed = [place.pod.pod for places in command.deletions for place in places.moved]
        placed += [each.pod for launch in command.launches for each in launch.pods]
        moved = sum(not is_virtual(pod) for pod in placed)
        before, then = (cluster_price(each.snapshot.nodes, each.supply) for each in (world, after))
        yield ConsolidationStep(command, moved, before, then, world, as_decided, after, homeless)
        world = after


def _ending(world: World) -> ClusterSnapshot:
    """The cluster in which nodes that go at once, and whose pods hold their drain, are being deleted already."""
    held = endings(world.snapshot).keys() - {each.node for each in ended(world)}
    now_s = world.snapshot.taken_at_s
    nodes = tuple(
        replace(node, claim=replace(node.claim, deleted_s=now_s)) if node.name in held and node.claim else node
        for node in world.snapshot.nodes
    )
    return replace(world.snapshot, nodes=nodes) if held else world.snapshot


def _with_waiting(world: World) -> ClusterSnapshot:
    """The cluster once the pods that wait have come to the nodes that are up and have room for them."""
    snapshot = world.snapshot
    if not snapshot.pending:
        return snapshot
    made = decide(world, replace(world.options, with_bound=False))
    relabelled = {each.node for each in made.relabels}
    up = {node.name for node in snapshot.nodes if node.node is not None and node.is_initialized} - relabelled
    places = [each for each in made.placements if each.node in up]
    return replace(with_places(world, places, (), {pod.key: pod for pod in snapshot.pending}), pending=())


def _named(command: Command, taken: set[str]) -> Command:
    """The command with names for its launches that no node and no other launch has; they are `taken` then."""
    names: dict[str, str] = {}
    number = 0
    for launch in command.launches:
        while f"launch-{number}" in taken:
            number += 1
        names[launch.name] = f"launch-{number}"
        taken.add(names[launch.name])
    launches = tuple(replace(each, name=names[each.name]) for each in command.launches)
    deletions = tuple(
        replace(each, replaced_by=tuple(names[name] for name in each.replaced_by)) for each in command.deletions
    )
    return replace(command, launches=launches, deletions=deletions)


def _rehoused(
    command: Command, world: World, rest: Mapping[str, Sequence[Pod]], taken: set[str]
) -> tuple[Command, ClusterSnapshot, tuple[str, ...]]:
    """The command with places for pods that it planned for nowhere, `rest` by the node that goes; the cluster then; and
    the pods that find none. `world` is the one in which these nodes are gone."""
    homes = {pod.key: node for node, pods in rest.items() for pod in pods}
    waiting = tuple(without_pin(unbound(pod)) for pods in rest.values() for pod in pods)
    made = decide(
        world.with_pending(tuple(sorted(waiting, key=lambda pod: pod.key))), replace(world.options, with_bound=False)
    )
    places = [each for each in made.placements if each.pod.pod in homes]
    bought = tuple(launch for launch in made.launches if any(each.pod in homes for each in launch.pods))
    bought = _named(Command(command.cost, launches=bought), taken).launches
    snapshot = with_places(world, places, bought, {pod.key: pod for pod in waiting})
    found = {each.pod.pod for each in places} | {each.pod for launch in bought for each in launch.pods}
    deletions = tuple(
        replace(each, moved=(*each.moved, *(place for place in places if homes[place.pod.pod] == each.node)))
        for each in command.deletions
    )
    command = replace(command, launches=(*command.launches, *bought), deletions=deletions)
    return command, snapshot, tuple(sorted(homes.keys() - found))


def with_homes(command: Command, world: World, made: Decision) -> Command:
    """The command with a place, or a node to be bought, for each pod of its nodes for which it has none, beside what is
    decided for the pods that wait: a drain that may end by force does not wait for a place, and its pods come back.

    Cost: where there are such pods, a decision for them.
    """
    waiting = {pod.key: pod for pod in world.snapshot.pending}
    there = world.of(with_places(world, made.placements, made.launches, waiting))
    snapshot, rest = _carried_out(command, there)
    if not rest:
        return command
    left = world.of(replace(snapshot, pending=()))
    taken = {each.name for each in (*command.launches, *made.launches)} | {node.name for node in snapshot.nodes}
    return _rehoused(command, left, rest, taken)[0]


def _kept(world: World) -> tuple[NodePlacement, ...]:
    """Where CapacityBuffers have their room; of other pods none is planned for here."""
    return decide(world, Options(with_bound=False)).placements if keeps_buffers(world) else ()


def fleet_bound(world: World) -> int | None:
    """What nodes for all pods that Kerf's nodes hold cost at least, on a cluster that is empty; None where none is
    known. Pods that nothing for sale holds are left out."""
    pods = [pod for node in world.snapshot.nodes if node.claim is not None for pod in node.pods if not pod.is_daemon]
    shapes = alone(pod for pod in pods if not pod.is_ended)
    if not shapes or not world.market.types:
        return None
    bound, _ = proven_of_served(shapes, world.supply.available, world.holding)
    return None if bound is None else bound.micro


def proven_micro(found: Sequence[ConsolidationStep], world: World) -> int | None:
    """The fleet's bound where it holds for the nodes that there are, too.

    A node that shows more room than the catalogue gives its type can hold its pods for less than new nodes could: what
    the fleet costs in the end is then below the bound, and nothing is proven.
    """
    bound_micro = fleet_bound(world)
    after_micro = found[-1].after_micro if found else cluster_price(world.snapshot.nodes, world.supply)
    return None if bound_micro is not None and after_micro < bound_micro else bound_micro


def done(command: Command, world: World) -> ClusterSnapshot:
    """The cluster once the command is carried out as planned. Cost: linear in nodes, and in the pods that move."""
    return _carried_out(command, world)[0]


def _carried_out(command: Command, world: World) -> tuple[ClusterSnapshot, Mapping[str, Sequence[Pod]]]:
    """The same, and by node that is gone the pods that move and have no place in the command."""
    snapshot, gone = world.snapshot, {deletion.node for deletion in command.deletions}
    left = [node for node in snapshot.nodes if node.name in gone]
    pods = {pod.key: pod for pod in snapshot.pending}
    pods.update((pod.key, pod) for node in left for pod in node.pods)
    places = [placement for deletion in command.deletions for placement in deletion.moved]
    planned = {each.pod.pod for each in places} | {each.pod for launch in command.launches for each in launch.pods}
    rest = {node.name: [pod for pod in moving(node) if pod.key not in planned] for node in left}
    staying = replace(snapshot, nodes=tuple(node for node in snapshot.nodes if node.name not in gone))
    after = with_places(world.of(staying), places, command.launches, pods)
    return after, {node: pods for node, pods in rest.items() if pods}


def with_places(
    world: World, places: Sequence[NodePlacement], launches: Sequence[Launch], pods: Mapping[str, Pod]
) -> ClusterSnapshot:
    """The cluster with these nodes, up, and pods in these places."""
    snapshot, coming = world.snapshot, dict[str, list[PlacedPod]]()
    for placement in places:
        coming.setdefault(placement.node, []).append(placement.pod)
    nodes = [_with(node, coming.get(node.name, ()), pods) for node in snapshot.nodes]
    names = {node.name for node in snapshot.nodes}
    for launch in launches:
        pool = snapshot.pool(launch.node_pool)
        assert pool is not None
        name = launch.name if launch.name not in names else _free(launch.name, names)
        names.add(name)
        nodes.append(_with(_node(name, launch, pool, world), launch.pods, pods))
    return replace(snapshot, nodes=tuple(sorted(nodes, key=lambda node: node.name)))


def _free(name: str, taken: set[str]) -> str:
    number = 0
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def _with(node: ClusterNode, placed: Sequence[PlacedPod], pods: Mapping[str, Pod]) -> ClusterNode:
    """The node with these pods and their slices; not with room that is kept, which each decision finds again."""
    placed = [each for each in placed if not is_virtual(each.pod)]
    if not placed:
        return node
    here = [replace(pods[each.pod], node_name=node.name) for each in placed if each.pod in pods]
    devices = {device.index: device for device in node.devices}
    for part in (part for each in placed for part in each.slices):
        devices[part.device] = devices[part.device].holding(part)
    return replace(node, pods=(*node.pods, *here), devices=tuple(devices[index] for index in sorted(devices)))


def _node(name: str, launch: Launch, pool: NodePool, world: World) -> ClusterNode:
    """The node of a launch, up and empty."""
    planned = launch.offering
    sold = {INSTANCE_TYPE: planned.instance_type, CAPACITY_TYPE: planned.capacity_type, ZONE: planned.zone}
    kind = world.supply.type_in(pool.name, planned.instance_type) or world.market.find(
        planned.instance_type, pool.node_class
    )
    of_type = {
        key: next(iter(each.values))
        for key, each in (kind.requirements.items() if kind is not None else ())
        if not each.complement and len(each.values) == 1
    }
    labels = {**of_type, **pool.node_labels, **launch.labels, **sold}
    reached = (LAUNCHED, REGISTERED, INITIALIZED, READY, CONSOLIDATABLE)
    now_s = world.snapshot.taken_at_s
    amounts = (kind.capacity, kind.allocatable) if kind is not None else (launch.charge, launch.charge)
    node = Node(name, labels, {}, (*pool.taints, *launch.taints), *amounts, created_s=now_s, ready_since_s=now_s)
    claim = NodeClaim(
        name,
        pool.name,
        pool.node_class,
        launch.requirements,
        labels=labels,
        annotations={REPLACES: ",".join(launch.replaces), **with_price(launch.price_micro)} if launch.replaces else {},
        expire_after_s=pool.expire_after_s,
        created_s=now_s,
        node_name=name,
        capacity=amounts[0],
        conditions=tuple(Condition(stage, TRUE, stage, since_s=now_s) for stage in sorted(reached)),
    )
    family = owner_of(labels, {}, world.supply.families)
    devices = family.predict(launch.devices, labels, {}) if launch.devices else ()
    return ClusterNode(node, claim, (), tuple(devices), family.name if devices else "", devices_observed=True)
