"""A workload where it stands: what its pods ask against what they use, which nodes would take them, what fits them.

Pods that are scheduled make no autoscaler act, however slow their node is. The request that would have spread them is
worked out here, as advice.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.options import Options
from kerf.engine.place.fit import fit, nearest
from kerf.engine.place.shapes import Shape
from kerf.engine.place.trial import daemons_of
from kerf.engine.study.sizing.compare import Variant, changed_spec, compared
from kerf.engine.study.usage.overload import NodeLoad, node_loads, requested_by, used_by
from kerf.engine.supply.offered import OfferedType
from kerf.engine.world import World
from kerf.model.plan import Misfit
from kerf.model.pods import Pod
from kerf.model.quantities import CPU, MEMORY, MIB, NOTHING, Resources
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.usage import Usage

CPU_MARGIN_PERCENT, MEMORY_MARGIN_PERCENT = 115, 120
"""Of what one pod was seen to use at most. 15 % is the Vertical Pod Autoscaler's recommendation margin; memory gets
more because a pod that exceeds it is killed, and one look does not see the peak."""


@dataclass(frozen=True, slots=True)
class Stand:
    """Pods of the workload on one node, and the node's load where it is known."""

    node: str
    pods: int
    load: NodeLoad | None

    @property
    def overloaded(self) -> tuple[str, ...]:
        """The resources by which the node is overloaded."""
        return self.load.overloaded() if self.load is not None else ()


@dataclass(frozen=True, slots=True)
class Standing:
    """The running pods: `requested` together, `used` as far as `seen` of them are known. Most pods first."""

    pods: int
    stands: tuple[Stand, ...]
    requested: Resources
    used: Resources
    seen: int

    @property
    def overloaded(self) -> tuple[str, ...]:
        """The resources by which one of its nodes is overloaded, cpu first."""
        held = {name for stand in self.stands for name in stand.overloaded}
        return tuple(name for name in (CPU, MEMORY) if name in held)


def standing(pods: Sequence[Pod], snapshot: ClusterSnapshot, usage: Usage) -> Standing:
    """Where those of the pods are that run."""
    running = [pod for pod in pods if pod.node_name and not pod.is_ended]
    loads = node_loads(snapshot, usage)
    counts = sorted(Counter(pod.node_name for pod in running).items(), key=lambda pair: (-pair[1], pair[0]))
    return Standing(
        len(running),
        tuple(Stand(name, number, loads.get(name)) for name, number in counts),
        requested_by(running).without(("pods",)),
        used_by(running, usage),
        sum(1 for pod in running if pod.key in usage.pods),
    )


@dataclass(frozen=True, slots=True)
class Fitting:
    """Requests that would fit one pod, why these, and what nodes all pods need with them.

    `crowd`: the most of these pods that one overloaded node has now.
    """

    requests: Resources
    why: str
    variant: Variant
    crowd: int = 0

    @property
    def is_no_relief(self) -> bool:
        """Whether new nodes would get as many of them as an overloaded one has now."""
        return 0 < self.crowd <= self.variant.pods_a_node[1]


def fitting(pods: Sequence[Pod], stand: Standing, world: World, usage: Usage) -> Fitting | None:
    """Requests for pods that ask for less than they use; None where nothing is wrong, or too little is known.

    On a node whose cpu is used up, use shows what a pod got and not what it needs: it gets a whole core then, which is
    the node's allocatable cpu, less that of DaemonSets, by its cores; or what it got with the margin, if that is more.
    """
    running = [pod for pod in pods if pod.node_name and not pod.is_ended and not pod.is_daemon]
    if not running or not stand.seen:
        return None
    asks = running[0].spec.requests
    samples = [usage.pods[pod.key] for pod in running if pod.key in usage.pods]
    most = {CPU: max(s.cpu_millis for s in samples), MEMORY: max(s.memory_bytes for s in samples)}
    found, whys = dict[str, int](), list[str]()
    used_cpu = _up(most[CPU] * CPU_MARGIN_PERCENT, 1000) * 10
    why_used = f"cpu: the most that one was seen to use, plus {CPU_MARGIN_PERCENT - 100} %"
    if CPU in stand.overloaded:
        core = _a_core(stand, world)
        found[CPU] = max(core, used_cpu)
        why = f"{why_used}, at least" if used_cpu > core else "cpu: what such a node has for pods, by its cores"
        whys.append(f"{why}, because what pods use of a node that has no cpu left is what they got")
    elif asks.get(CPU, 0) < most[CPU]:
        found[CPU] = used_cpu
        whys.append(why_used)
    if asks.get(MEMORY, 0) < most[MEMORY]:
        found[MEMORY] = _up(most[MEMORY] * MEMORY_MARGIN_PERCENT, 100 * MIB) * MIB
        whys.append(f"memory: the most that one was seen to use, plus {MEMORY_MARGIN_PERCENT - 100} %")
    # What they ask already is not made less by one look at them.
    found = {name: amount for name, amount in found.items() if amount > asks.get(name, 0)}
    if not found:
        return None
    requests = Resources(found)
    new = tuple(replace(pod, node_name="", nominated_node="") for pod in running)
    alone = replace(world.snapshot, nodes=(), pending=new)
    variant = compared(World(alone, world.market), Options(with_bound=False), [requests])[1]
    return Fitting(requests, "; ".join(whys), variant, max((s.pods for s in stand.stands if s.overloaded), default=0))


def _up(amount: int, step: int) -> int:
    return -(-amount // step)


def _a_core(stand: Standing, world: World) -> int:
    """Of the fullest overloaded node: its cpu, less DaemonSets', by its cores."""
    name = next(each.node for each in stand.stands if CPU in each.overloaded)
    node = world.snapshot.node(name)
    assert node is not None
    assert node.node is not None
    daemons = requested_by(daemons_of(node, world.snapshot, world.market)).get(CPU, 0)
    left = max(0, node.node.allocatable.get(CPU, 0) - daemons)
    return left // max(1, _up(node.node.capacity.get(CPU, left), 1000))


@dataclass(frozen=True, slots=True)
class Opening:
    """What one NodePool has for a pod: why not, or the largest type that takes it, and how many nodes it may add.

    `room` None: any number; `limit` names what allows no more, empty without limits.
    """

    pool: str
    misfit: Misfit | None
    largest: str = ""
    allocatable: Resources = NOTHING
    room: int | None = None
    limits: Resources = NOTHING


def openings(pod: Pod, requests: Resources, world: World) -> tuple[Opening, ...]:
    """Each NodePool, by name, for the pod as if it were new and asked for `requests` too."""
    new = replace(pod, node_name="", spec=changed_spec(pod.spec, requests) if requests else pod.spec)
    ledger = Ledger.of(world)
    return tuple(
        _opening(pool.name, world.supply.by_pool.get(pool.name, ()), Shape((new,)), ledger)
        for pool in sorted(world.snapshot.node_pools, key=lambda each: each.name)
    )


def _opening(pool: str, offered_types: Sequence[OfferedType], shape: Shape, ledger: Ledger) -> Opening:
    misfits, takers = list[Misfit](), list[OfferedType]()
    for offered in offered_types:
        result = fit(offered.target, offered.room, shape)
        if isinstance(result, Misfit):
            misfits.append(result)
        else:
            takers.append(offered)
    if not takers:
        return Opening(pool, nearest(misfits) if misfits else None)
    largest = max(takers, key=lambda c: (c.room.free.get(CPU, 0), c.room.free.get(MEMORY, 0), c.kind.name))
    rooms = [ledger.room_for(offered) for offered in takers]
    room = None if None in rooms else max(each for each in rooms if each is not None)
    free = Resources({name: largest.room.free.get(name, 0) for name in (CPU, MEMORY)})
    return Opening(pool, None, largest.kind.name, free, room, ledger.limit(pool) or Resources())
