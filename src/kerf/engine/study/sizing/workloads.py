"""A workload where it stands: what its pods ask against what they use, and which nodes would take them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kerf.engine.buy.limits import Ledger
from kerf.engine.place.fit import fit, nearest
from kerf.engine.place.shapes import Shape
from kerf.engine.study.sizing.compare import Asked, changed_spec
from kerf.engine.study.usage.overload import NodeLoad, node_loads, requested_by, used_by
from kerf.engine.supply.offered import OfferedType
from kerf.engine.world import World
from kerf.model.plan import Misfit
from kerf.model.pods import Pod
from kerf.model.quantities import CPU, MEMORY, NOTHING, Resources
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.usage import Usage


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


def openings(pod: Pod, requests: Asked, world: World) -> tuple[Opening, ...]:
    """Each NodePool, by name, for the pod as if it were new and asked for `requests` too."""
    new = replace(pod, node_name="", spec=changed_spec(pod.spec, requests))
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
