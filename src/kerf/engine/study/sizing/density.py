"""How a node is divided among N equal jobs, and why its size divided by N is the wrong request.

A machine of 4 CPUs has 3920m for pods, and DaemonSets take their part of that: with requests of 4 / 4 = 1 CPU it holds
three jobs. So the quotient is taken of what is left, and what fits is counted by the same rules as in a plan.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kerf.engine.buy.filling import Filler
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.offered import OfferedType
from kerf.model.constraints import Toleration
from kerf.model.pods import Container, Pod, PodSpec
from kerf.model.quantities import CPU, MEMORY, MIB, PODS, Resources

_STEPS = {CPU: 1, MEMORY: MIB}
"""What is divided, in the steps in which people write it: millis of a CPU, MiB of memory."""
_EVERYTHING = (Toleration(operator="Exists"),)


@dataclass(frozen=True, slots=True)
class Breakdown:
    """One resource of one node, in its base unit: `machine` = `reserved` (kubelet and system) + `daemons` + `left`.

    `each` is a job's part of what is left; `naive` its part of the machine, and `naive_fit` how many jobs that ask so
    much fit by this resource alone.
    """

    resource: str
    machine: int
    reserved: int
    daemons: int
    left: int
    each: int
    naive: int
    naive_fit: int


@dataclass(frozen=True)
class Division:
    """A node of the type for so many jobs.

    `each` is what a job should ask, and `fit` how many jobs that ask so much one node holds; fewer than `jobs` where
    pods or cards are too few. `naive` is the machine divided by the jobs, and `naive_fit` what that holds. `pods_left`
    are pods that the node takes beside its DaemonSets. `cards` is what each asks of the cards, empty where the node has
    none or they cannot be divided so often.
    """

    offered: OfferedType
    jobs: int
    shares: tuple[Breakdown, ...]
    pods_left: int
    each: Resources
    fit: int
    naive: Resources
    naive_fit: int
    cards: Resources

    @property
    def is_possible(self) -> bool:
        """Whether a node holds so many jobs."""
        return self.fit >= self.jobs


def divided(offered: OfferedType, jobs: int) -> Division:
    """One node of the type divided among `jobs` equal pods of one container."""
    shares = tuple(_share(offered, name, jobs) for name in (CPU, MEMORY))
    devices = offered.room.devices
    cards = offered.target.family.divided(devices, jobs) if devices else Resources()
    each = Resources({share.resource: share.each for share in shares}) + cards
    naive = Resources({share.resource: share.naive for share in shares}) + cards
    return Division(
        offered,
        jobs,
        shares,
        max(0, offered.room.free.get(PODS, 0)),
        each,
        held(offered, each, jobs),
        naive,
        held(offered, naive, jobs),
        cards,
    )


def _share(offered: OfferedType, name: str, jobs: int) -> Breakdown:
    kind, step = offered.kind, _STEPS[name]
    machine, allocatable = kind.capacity.get(name, 0), kind.allocatable.get(name, 0)
    left = max(0, offered.room.free.get(name, 0))
    naive = machine // jobs // step * step
    return Breakdown(
        name,
        machine,
        machine - allocatable,
        allocatable - left,
        left,
        left // jobs // step * step,
        naive,
        left // naive if naive else 0,
    )


def held(offered: OfferedType, requests: Resources, most: int) -> int:
    """How many equal pods with these requests an empty node of the type holds, up to `most`.

    0 too where they would ask for nothing of something.
    """
    if any(not amount for amount in requests.values()):
        return 0
    # Limits too: what families of GPU sharing read.
    container = Container("job", requests, requests)
    pod = Pod("default", "job", PodSpec((container,), tolerations=_EVERYTHING))
    return Filler([Shape((pod,) * most)]).alone(0, offered)


def by_density(offered_types: Sequence[OfferedType], jobs: int) -> list[Division]:
    """Each type divided, the cheapest a job first, those that cannot hold so many last."""
    found = [divided(offered, jobs) for offered in offered_types]
    return sorted(found, key=lambda each: (not each.is_possible, each.offered.order))
