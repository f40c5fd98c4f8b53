"""The requests that fit the pods of a workload, container by container.

Pods that are scheduled make no autoscaler act, however slow their node is. The request that would have spread them is
worked out here, as advice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kerf.engine.options import Options
from kerf.engine.place.noderooms import daemons_of
from kerf.engine.study.sizing.compare import Variant, compared
from kerf.engine.study.sizing.workloads import Standing
from kerf.engine.study.usage.overload import requested_by
from kerf.engine.world import World
from kerf.model.pods import Container, Pod
from kerf.model.quantities import CPU, MEMORY, MIB, NOTHING, Resources
from kerf.model.usage import ContainerUsage, PodUsage, Usage

CPU_MARGIN_PERCENT, MEMORY_MARGIN_PERCENT = 115, 120
"""Of what one container was seen to use at most. 15 % is the Vertical Pod Autoscaler's recommendation margin; memory
gets more because a container that exceeds it is killed, and one look does not see the peak."""
_SEEN = "the most that one pod used, plus"

_Amounts = Mapping[str, int]
"""Of one resource, by container."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """Requests that would fit one pod, by container, why these, and what nodes all pods need with them.

    `crowd`: the most of these pods that one overloaded node has now.
    """

    containers: Mapping[str, Resources] = field(hash=False)
    why: str
    variant: Variant
    crowd: int = 0

    @property
    def requests(self) -> Resources:
        """Of these containers together."""
        return sum(self.containers.values(), NOTHING)

    @property
    def is_no_relief(self) -> bool:
        """Whether new nodes would get as many of them as an overloaded one has now."""
        return 0 < self.crowd <= self.variant.pods_a_node[1]


def fitting(pods: Sequence[Pod], stand: Standing, world: World, usage: Usage) -> Fitting | None:
    """Requests for pods that ask for less than they use; None where nothing is wrong, or too little is known.

    Each container gets what it was itself seen to use. On a node whose cpu is used up, use shows what a pod got and not
    what it needs: it gets a whole core then, which is the node's allocatable cpu, less that of DaemonSets, by its
    cores; or what it got with the margin, if that is more. Its containers share that as they shared what it got.
    """
    running = [pod for pod in pods if pod.node_name and not pod.is_ended and not pod.is_daemon]
    if not running or not stand.seen:
        return None
    samples = [usage.pods[pod.key] for pod in running if pod.key in usage.pods]
    lasting = running[0].spec.lasting
    found: dict[str, dict[str, int]] = {}
    whys = []
    for resource, amounts, why in (_cpu(lasting, samples, stand, world), _memory(lasting, samples)):
        # What they ask already is not made less by one look at them.
        more = {c.name: amounts[c.name] for c in lasting if amounts.get(c.name, 0) > c.requests.get(resource, 0)}
        for name, amount in more.items():
            found.setdefault(name, {})[resource] = amount
        whys += [why] if more else []
    if not found:
        return None
    containers = {each.name: Resources(found[each.name]) for each in lasting if each.name in found}
    new = tuple(replace(pod, node_name="", nominated_node="") for pod in running)
    alone = replace(world.snapshot, nodes=(), pending=new)
    variant = compared(World(alone, world.market), Options(with_bound=False), [containers])[1]
    crowd = max((each.pods for each in stand.stands if each.overloaded), default=0)
    return Fitting(containers, "; ".join(whys), variant, crowd)


def _cpu(
    lasting: Sequence[Container], samples: Sequence[PodUsage], stand: Standing, world: World
) -> tuple[str, _Amounts, str]:
    most = _most(lasting, samples, lambda used: used.cpu_millis)
    why = f"cpu: {_SEEN} {CPU_MARGIN_PERCENT - 100} %"
    if CPU not in stand.overloaded:
        short = (each for each in lasting if each.requests.get(CPU, 0) < most[each.name])
        return CPU, {each.name: _with_margin(most[each.name]) for each in short}, why
    core, used = _a_core(stand, world), _with_margin(max(sample.cpu_millis for sample in samples))
    why = f"{why}, at least" if used > core else "cpu: the node's allocatable cpu divided by its cores"
    why = f"{why}: on a saturated node, measured use only shows what pods were given"
    return CPU, dict(_shared(max(core, used), most)), why


def _with_margin(millis: int) -> int:
    return _up(millis * CPU_MARGIN_PERCENT, 1000) * 10


def _shared(millis: int, most: _Amounts) -> Iterator[tuple[str, int]]:
    """The amount in proportion to use; all of it for the first container where none was seen to use any."""
    total = sum(most.values())
    for number, (name, used) in enumerate(most.items()):
        yield name, _up(millis * used, total) if total else 0 if number else millis


def _memory(lasting: Sequence[Container], samples: Sequence[PodUsage]) -> tuple[str, _Amounts, str]:
    most = _most(lasting, samples, lambda used: used.memory_bytes)
    short = (each for each in lasting if each.requests.get(MEMORY, 0) < most[each.name])
    amounts = {each.name: _up(most[each.name] * MEMORY_MARGIN_PERCENT, 100 * MIB) * MIB for each in short}
    return MEMORY, amounts, f"memory: {_SEEN} {MEMORY_MARGIN_PERCENT - 100} %"


def _most(
    lasting: Sequence[Container], samples: Sequence[PodUsage], of: Callable[[ContainerUsage], int]
) -> dict[str, int]:
    """The most that each container was seen to use; 0 of one that was not seen."""
    seen = {each.name: 0 for each in lasting}
    for used in (each for sample in samples for each in sample.containers if each.name in seen):
        seen[used.name] = max(seen[used.name], of(used))
    return seen


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
