"""Groups of pods get nodes together or not at all.

A node bought for five of eight pods that wait for each other is paid for and does nothing. Whether all have room shows
only when everything is planned, so that a plan is made with all groups; where one falls short, the groups are tried in
the order of the queue, each on what is left, and the plan is made again without those that fall short.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kerf.engine.bookings import Booking, bookings, title
from kerf.engine.shapes import queue_order
from kerf.model.groups import (
    COSCHEDULING,
    VOLCANO,
    CoschedulingGroup,
    GroupKey,
    VolcanoGroup,
    group_of,
    stated_min,
)
from kerf.model.plan import Plan, Stage, Unplaced
from kerf.model.pods import SUCCEEDED, Pod
from kerf.model.snapshot import ClusterSnapshot

Attempt = Callable[[frozenset[str]], Plan]
"""A plan in which these pods, by `namespace/name`, are left out."""


@dataclass(frozen=True, eq=False)
class Gang:
    """A group, or what a ProvisioningRequest asks for.

    `pods` are those to plan for, in queue order; `placed` of its members have their place already; `coming` are there
    too and no scheduler has refused them yet. `problem` says why nothing is planned for it.
    """

    name: str
    least: int
    pods: tuple[Pod, ...]
    placed: int = 0
    coming: int = 0
    problem: str = ""
    stage: Stage = Stage.HELD

    def ready(self, plan: Plan) -> int:
        """How many members have a place once the plan is done."""
        keys = {pod.key for pod in self.pods}
        placed = sum(placement.pod.pod in keys for placement in plan.placements)
        return self.placed + placed + sum(each.pod in keys for launch in plan.launches for each in launch.pods)

    @property
    def kind(self) -> tuple[object, ...]:
        """Groups of equal kind need the same room. Decode interns specs, so that identity tells equal ones."""
        return (self.least - self.placed, tuple(sorted(Counter(id(pod.spec) for pod in self.pods).items())))

    def refusals(self, reason: str, stage: Stage, like: Unplaced | None = None) -> Iterator[Unplaced]:
        """The same answer for each pod, with the hint, the patch of a pool and the misfits of one of them."""
        told = Unplaced("", stage, f"{self.name}: {reason}")
        if like is not None:
            patch = like.patch if like.patch is not None and like.patch.kind == "NodePool" else None
            told = replace(told, hint=like.hint, patch=patch, misfits=like.misfits)
        return (replace(told, pod=pod.key) for pod in self.pods)


def gangs(snapshot: ClusterSnapshot) -> tuple[Gang, ...]:
    """The groups of the pods that wait: higher priority first, then the one whose first pod is older, then by name.

    Last what ProvisioningRequests ask for, the oldest first.
    """
    members: dict[GroupKey, list[Pod]] = {}
    for pod in snapshot.pending:
        key = group_of(pod)
        if key is not None and not pod.is_daemon:
            members.setdefault(key, []).append(pod)
    booked = tuple(_booked(booking) for booking in bookings(snapshot) if booking.pods)
    if not members:
        return booked
    waiting = {pod.key for pods in members.values() for pod in pods}
    others: dict[GroupKey, list[Pod]] = {}
    for pod in snapshot.grouped:
        key = group_of(pod)
        if key in members and pod.key not in waiting:
            others.setdefault(key, []).append(pod)
    made = (_gang(key, pods, others.get(key, ()), snapshot) for key, pods in members.items())
    found = sorted(filter(None, made), key=lambda gang: (queue_order(gang.pods[0]), gang.name))
    return (*found, *booked)


def _booked(booking: Booking) -> Gang:
    return Gang(title(booking.request), booking.bound + len(booking.pods), booking.pods, booking.bound)


def _gang(key: GroupKey, pods: Sequence[Pod], others: Sequence[Pod], snapshot: ClusterSnapshot) -> Gang | None:
    """None where the object is missing that would make it one: its scheduler then takes the pods one by one, too."""
    ordered = tuple(sorted(pods, key=queue_order))
    placed = sum(bool(pod.node_name or pod.nominated_node) or pod.phase == SUCCEEDED for pod in others)
    coming = len(others) - placed
    least, problem = _least(key, (*ordered, *others), snapshot)
    if problem:
        return Gang(f"group {key.name}", 0, ordered, placed, coming, problem, Stage.INVALID)
    if least == 0:
        return None
    there = len(pods) + len(others)
    missing = f"{_pods(there)} there, {least} are needed" if there < least else ""
    return Gang(f"group {key.name}", least, ordered, placed, coming, missing)


def _pods(number: int) -> str:
    return "1 pod is" if number == 1 else f"{number} pods are"


def _least(key: GroupKey, pods: Iterable[Pod], snapshot: ClusterSnapshot) -> tuple[int, str]:
    """How many pods are needed, and what is wrong with what they say; 0 where no object says it.

    Where pods of one group state different numbers, the largest counts.
    """
    kinds = {COSCHEDULING: CoschedulingGroup, VOLCANO: VolcanoGroup}
    if key.api in kinds:
        named = (each for each in snapshot.pod_groups if isinstance(each, kinds[key.api]))
        found = next((each for each in named if (each.namespace, each.name) == (key.namespace, key.name)), None)
        return (found.min_member if found is not None else 0), ""
    stated = [stated_min(pod, key.api) for pod in pods]
    problem = next((problem for _, problem in stated if problem), "")
    return max(number for number, _ in stated), problem


def whole(found: Sequence[Gang], attempt: Attempt) -> Plan:
    """The plan in which every group is placed whole or not at all; pods of the others say what their group lacks.

    Cost: one plan where all groups have room; else some plans for each group that gets none, where groups of equal
    kind count once.
    """
    refused = [each for gang in found if gang.problem for each in gang.refusals(gang.problem, gang.stage)]
    waiting = [gang for gang in found if not gang.problem]
    tries = _Tries(found, attempt)
    taken: list[Gang] = []
    while (most := tries.most(taken, waiting)) < len(waiting):
        late = waiting[most]
        taken += waiting[:most]
        made = tries.plan((*taken, late))
        ready, first = late.ready(made), _first_refusal(late, made)
        alike = [gang for gang in waiting[most:] if gang.kind == late.kind]
        for gang in alike:
            refused += _refused(gang, ready, first)
        waiting = [gang for gang in waiting[most:] if gang not in alike]
    made = tries.plan((*taken, *waiting))
    return replace(made, unplaced=tuple(sorted((*made.unplaced, *refused), key=lambda each: each.pod)))


class _Tries:
    """Plans with some of the groups, each made once."""

    def __init__(self, found: Sequence[Gang], attempt: Attempt) -> None:
        self._found, self._attempt = tuple(found), attempt
        self._made: dict[frozenset[str], Plan] = {}

    def plan(self, taken: Sequence[Gang]) -> Plan:
        out = frozenset(pod.key for gang in self._found if gang not in taken for pod in gang.pods)
        if out not in self._made:
            self._made[out] = self._attempt(out)
        return self._made[out]

    def most(self, taken: Sequence[Gang], waiting: Sequence[Gang]) -> int:
        """How many of those that wait, from the first on, get whole beside those that are taken; by halving."""
        low, high = 0, len(waiting)
        while low < high:
            # All of them first: that is the rule.
            middle = high if high == len(waiting) else (low + high + 1) // 2
            tried = (*taken, *waiting[:middle])
            made = self.plan(tried)
            if all(gang.ready(made) >= gang.least for gang in tried):
                low = middle
            else:
                high = middle - 1
        return low


def _first_refusal(gang: Gang, made: Plan) -> Unplaced | None:
    refusals = {each.pod: each for each in made.unplaced}
    return next((refusals[pod.key] for pod in gang.pods if pod.key in refusals), None)


def _refused(gang: Gang, ready: int, first: Unplaced | None) -> Iterator[Unplaced]:
    have = f"{ready} of {gang.least} have room"
    if ready >= gang.least:
        return gang.refusals(f"{have} only in the place of groups that go before it", Stage.RESOURCES, first)
    if first is None:
        return gang.refusals(f"{have}: no scheduler has refused {gang.coming} others yet", Stage.HELD)
    return gang.refusals(f"{have}: {first.reason}", first.stage, first)
