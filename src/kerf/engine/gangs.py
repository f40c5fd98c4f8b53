"""Groups of pods get nodes together or not at all.

A node bought for five of eight pods that wait for each other is paid for and does nothing. A try with all groups comes
first. Where one falls short, the groups are taken in the order of the queue, each on what those before it leave, and
one more try is made with those that got in. A group that breaks there is left out, and what was refused beside it is
looked at once more: it may have had room all the time.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kerf.engine.decision import Refusal
from kerf.engine.headroom.bookings import Booking, bookings
from kerf.engine.outcome import Outcome
from kerf.engine.place.shapes import queue_order
from kerf.engine.remainder import Remainder
from kerf.model.causes import Cause, Name
from kerf.model.groups import (
    COSCHEDULING,
    NATIVE,
    VOLCANO,
    CoschedulingGroup,
    GroupBehind,
    GroupIncomplete,
    GroupInvalid,
    GroupKey,
    GroupKind,
    GroupName,
    GroupShort,
    GroupUntried,
    MinimumUnreadable,
    NativeWorkload,
    VolcanoGroup,
    group_of,
    naming_groups,
    stated_min,
)
from kerf.model.plan import Stage
from kerf.model.pods import SUCCEEDED, Pod
from kerf.model.snapshot import ClusterSnapshot

Attempt = Callable[[frozenset[str]], Outcome]
"""Places and purchases without these pods, by `namespace/name`."""

_MOST_EXACT = 160
"""Kinds of groups times whole tries that may be made for groups which find no room one by one: their pods may fit once
all are packed together. Beyond it a group that finds no room is refused."""
_LEAST_EXACT = 1
"""So many such tries may be made whatever the number of kinds. Namespaces share them evenly."""
_GROWTH = 1.5
"""What got in is packed again where a group finds no room, once so many times as many are in as were packed before."""
_MOST_PACKED = 3
"""So many times this is also done where fewer have got in since."""
_FEW = 8
"""So many groups get a whole try each: a group may find room alone and take it, once packed, from one before it."""
_NEARLY = 0.05
"""Where a quick try with all groups leaves no larger part of their members over, an attempt may leave none."""
_MOST_LEFT_OUT = 3
"""Groups that are left out one by one where all that got in are not whole together; the next are taken in turns."""
_MOST_IN_TURNS = 32
"""Whole tries for those that are taken in turns."""
_MOST_AGAIN = 16
"""Whole tries in turns for those that were refused beside one that is left out."""


@dataclass(frozen=True, eq=False)
class Gang:
    """A group, or what a ProvisioningRequest asks for.

    `pods` are those to plan for, in queue order; `placed` of its members have their place already; `coming` are there
    too and no scheduler has refused them yet. `problem` is why nothing is planned for it, None where something is.
    """

    name: GroupName
    least: int
    pods: tuple[Pod, ...]
    placed: int = 0
    coming: int = 0
    problem: Cause | None = None
    stage: Stage = Stage.HELD

    def ready(self, made: Outcome) -> int:
        """How many members have a place after a try."""
        return self.placed + sum(made.holds(pod.key) for pod in self.pods)

    def is_whole(self, made: Outcome) -> bool:
        """Whether enough of them have."""
        return self.ready(made) >= self.least

    @property
    def needed(self) -> int:
        """How many of its pods must find a place."""
        return self.least - self.placed

    def refused(self, ready: int, first: Refusal | None) -> Refusal:
        """That `ready` members have room and not all; `first` is what stopped the first of the others."""
        if ready >= self.least:
            stage = Stage.RESOURCES
            return Refusal(self.pods, stage, GroupBehind(self.name, ready, self.least), first=first)
        cause = GroupShort(self.name, ready, self.least, self.coming)
        return Refusal(self.pods, Stage.HELD if first is None else None, cause, first=first)


def gangs(snapshot: ClusterSnapshot) -> tuple[Gang, ...]:
    """The groups of the pods that wait: higher priority first, then the one whose first pod is older, then by name.

    Last what ProvisioningRequests ask for, the oldest first.
    """
    members: dict[GroupKey, list[Pod]] = {}
    for pod in naming_groups(snapshot.pending, snapshot.pending_samples):
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
    minimums = Minimums(snapshot)
    made = (_gang(key, pods, others.get(key, ()), minimums) for key, pods in members.items())
    found = sorted(filter(None, made), key=lambda gang: (queue_order(gang.pods[0]), str(gang.name)))
    return (*found, *booked)


def _booked(booking: Booking) -> Gang:
    name = GroupName(GroupKind.REQUEST, Name(booking.request.key))
    return Gang(name, booking.bound + len(booking.pods), booking.pods, booking.bound)


def _gang(key: GroupKey, pods: Sequence[Pod], others: Sequence[Pod], minimums: "Minimums") -> Gang | None:
    """None where the object is missing that would make it one: its scheduler then takes the pods one by one, too."""
    ordered = tuple(sorted(pods, key=queue_order))
    placed = sum(bool(pod.node_name or pod.nominated_node) or pod.phase == SUCCEEDED for pod in others)
    coming = len(others) - placed
    name, least = GroupName(GroupKind.GROUP, Name(key.name)), minimums.of(key, (*ordered, *others))
    if isinstance(least, MinimumUnreadable):
        return Gang(name, 0, ordered, placed, coming, GroupInvalid(name, least), Stage.INVALID)
    if least == 0:
        return None
    there = len(pods) + len(others)
    problem = GroupIncomplete(name, there, least) if there < least else None
    return Gang(name, least, ordered, placed, coming, problem)


class Minimums:
    """How many pods of each group are of use only together. Cost: the objects of groups, once; then the pods asked."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._least: dict[tuple[str, str, str], int] = {}
        self._workloads: dict[str, list[NativeWorkload]] = {}
        for each in snapshot.pod_groups:
            if isinstance(each, NativeWorkload):
                self._workloads.setdefault(each.namespace, []).append(each)
            elif isinstance(each, CoschedulingGroup | VolcanoGroup):
                api = COSCHEDULING if isinstance(each, CoschedulingGroup) else VOLCANO
                self._least.setdefault((api, each.namespace, each.name), each.min_member)

    def of(self, key: GroupKey, pods: Iterable[Pod]) -> int | MinimumUnreadable:
        """How many pods are needed, or what is wrong with what they say; 0 where no object says it.

        Where pods of one group state different numbers, the largest counts.
        """
        if key.api in (COSCHEDULING, VOLCANO):
            return self._least.get((key.api, key.namespace, key.name), 0)
        if key.api == NATIVE:
            return max((each.least(key.name) for each in self._workloads.get(key.namespace, ())), default=0)
        stated = [stated_min(pod, key.api) for pod in pods]
        problem = next((each for each in stated if isinstance(each, MinimumUnreadable)), None)
        return problem or max((each for each in stated if isinstance(each, int)), default=0)


@dataclass(frozen=True, eq=False)
class Chosen:
    """The try in which every group is whole or left out, and what is said to those that are left out.

    `everyone` is what the try with all groups refused; empty where that is the one that was chosen.
    """

    found: tuple[Gang, ...]
    outcome: Outcome
    refusals: tuple[Refusal, ...] = ()
    everyone: tuple[Refusal, ...] = ()

    def grouped(self, refusals: Iterable[Refusal]) -> Iterator[Refusal]:
        """Refusals of pods that had a place, said of their groups where they are of one."""
        of_group = {pod.key: gang for gang in self.found for pod in gang.pods}
        for refusal in refusals:
            gangs_hit = list(dict.fromkeys(of_group[pod.key] for pod in refusal.pods if pod.key in of_group))
            others = tuple(pod for pod in refusal.pods if pod.key not in of_group)
            if others:
                yield replace(refusal, pods=others)
            for gang in gangs_hit:
                mine = tuple(pod for pod in refusal.pods if of_group.get(pod.key) is gang)
                yield replace(gang.refused(gang.placed, refusal), pods=mine)


def whole(found: Sequence[Gang], attempt: Attempt, quick: Attempt) -> Chosen:
    """The try in which every group is placed whole or not at all.

    Which of many groups get in is found out by `quick` tries, and what they get is an attempt again.
    Cost: one try where all groups have room; else one for each of a few groups, and for many of them three, a look at
    each group, and tries that halve what is wrong. Where one breaks then, those behind it are looked at once more.
    """
    groups = tuple(found)
    invalid = tuple(Refusal(gang.pods, gang.stage, gang.problem) for gang in groups if gang.problem is not None)
    waiting = [gang for gang in groups if gang.problem is None]
    are_few, out = len(waiting) <= _FEW, _without(groups, waiting)
    everyone = (attempt if are_few else quick)(out)
    if not are_few and _are_short(waiting, everyone) <= _NEARLY:
        everyone = attempt(out)
    if _are_whole(waiting, everyone):
        return Chosen(groups, everyone, invalid)
    search = _Search(groups, attempt if are_few else quick, everyone, waiting)
    if are_few:
        search.take(waiting, search.try_whole)
    else:
        search.take(waiting, search.try_rest)
        search.settle(attempt)
    return Chosen(groups, search.made, (*invalid, *search.refusals), everyone.refusals)


def _are_short(groups: Sequence[Gang], made: Outcome) -> float:
    """Which part of the members that are needed has no place."""
    missing = sum(max(0, gang.least - gang.ready(made)) for gang in groups)
    return missing / max(1, sum(gang.least for gang in groups))


def _are_whole(groups: Iterable[Gang], made: Outcome) -> bool:
    return all(gang.is_whole(made) for gang in groups)


def _without(groups: Iterable[Gang], taken: Iterable[Gang]) -> frozenset[str]:
    """The pods of all groups but those that are taken."""
    kept = set(map(id, taken))
    return frozenset(pod.key for gang in groups if id(gang) not in kept for pod in gang.pods)


_Short = tuple[int, Refusal | None]
"""How many members of a group have room, and what stopped the first of the others."""


class _Search:
    """Groups taken one by one in the order of the queue, and those that were refused, with why."""

    def __init__(self, groups: Sequence[Gang], attempt: Attempt, everyone: Outcome, waiting: Sequence[Gang]) -> None:
        self._groups, self._attempt = groups, attempt
        self._shapes = {pod.key: n for n, shape in enumerate(everyone.planned_for) for pod in shape.pods}
        kinds, namespaces = {self._kind(gang) for gang in waiting}, {_namespace(gang) for gang in waiting}
        self._exact_left = max(_LEAST_EXACT, _MOST_EXACT // max(1, len(kinds)))
        self._share = max(1, self._exact_left // max(1, len(namespaces)))
        self._exact = Counter[str]()
        self._taken: list[Gang] = []
        self._packs_left, self._packed, self._held = _MOST_PACKED, 0, 0
        """How often more may be packed, how many groups had got in when that was last done, how many are in `made`."""
        self._refused: dict[int, tuple[Gang, Refusal]] = {}
        self._left_out: list[Gang] = []
        self._doubted: set[int] = set()
        """Those of `_refused` that were whole in a try which other groups broke that may since have been left out."""
        self.made = self._try(())
        self._everyone = everyone

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """What is said to the groups that get nothing."""
        return tuple(refusal for _, refusal in self._refused.values())

    def _try(self, taken: Sequence[Gang]) -> Outcome:
        return self._attempt(_without(self._groups, taken))

    def _kind(self, gang: Gang) -> tuple[object, ...]:
        """Groups of equal kind need the same room, and others count and meet their pods alike."""
        shapes = Counter(self._shapes[pod.key] for pod in gang.pods if pod.key in self._shapes)
        return gang.needed, tuple(sorted(shapes.items()))

    @cached_property
    def _alone(self) -> Remainder:
        """What is there without any group."""
        return Remainder(self.made, self._everyone)

    @cached_property
    def _rest(self) -> Remainder:
        """What is left beside the groups that were let in."""
        return self._alone.after(self.made)

    def take(self, waiting: Sequence[Gang], let_in: Callable[[Gang], _Short | None]) -> None:
        """Let in each group that finds room; groups of the kind of one that did not, do not either, unless they seek
        the company of pods that have got in since."""
        hopeless: dict[tuple[object, ...], tuple[_Short, int]] = {}
        for gang in waiting:
            kind, now = self._kind(gang), len(self._taken)
            known = hopeless.get(kind)
            if known is None or (known[1] < now and any(pod.spec.pod_affinity.required for pod in gang.pods)):
                answer = let_in(gang)
                if answer is None:
                    self._taken.append(gang)
                    continue
                known = hopeless[kind] = answer, now
            self._refuse(gang, known[0])

    def _refuse(self, gang: Gang, short: _Short) -> None:
        self._refused[id(gang)] = gang, gang.refused(*short)

    def try_whole(self, gang: Gang) -> _Short | None:
        """None where one try makes the group and all that got in whole."""
        made = self._try((*self._taken, gang))
        if not _are_whole((*self._taken, gang), made):
            if gang.is_whole(made) and self._held != len(self._taken):
                self._doubted.add(id(gang))
            return gang.ready(made), _first_refusal(gang, made)
        self.made = made
        return None

    def try_rest(self, gang: Gang) -> _Short | None:
        """None where the group found room on what is left, which it then has.

        Where it found none, what got in is packed again, and the group is tried once in a whole plan. Neither is done
        for a group that would have no room without any other, so such groups take nothing from those behind them.
        """
        placed, first = self._rest.take(gang.pods, gang.needed)
        if placed >= gang.needed:
            return None
        packs = self._may_pack
        is_exact = self._exact_left > 0 and self._exact[_namespace(gang)] < self._share
        if not (packs or is_exact) or not self._alone.has_room(gang.pods, gang.needed):
            return gang.placed + placed, first
        if packs and self._pack():
            placed, first = self._rest.take(gang.pods, gang.needed)
            if placed >= gang.needed:
                return None
        if not is_exact:
            return gang.placed + placed, first
        self._exact_left -= 1
        self._exact[_namespace(gang)] += 1
        answer = self.try_whole(gang)
        if answer is None:
            self._packed = self._held = len(self._taken) + 1
            self._rest = self._rest.after(self.made)
        return answer

    @property
    def _may_pack(self) -> bool:
        there = len(self._taken)
        return there > _GROWTH * self._packed or (there > self._packed and self._packs_left > 0)

    def _pack(self) -> bool:
        """Pack all that got in together; whether that makes them whole, and leaves what is looked at from then on."""
        self._packs_left -= len(self._taken) <= _GROWTH * self._packed
        self._packed = len(self._taken)
        made = self._try(self._taken)
        if not _are_whole(self._taken, made):
            return False
        self.made, self._rest, self._held = made, self._rest.after(made), len(self._taken)
        return True

    def settle(self, attempt: Attempt) -> None:
        """One attempt with all that got in. Packed together some may fall short after all: then the first group that
        breaks those before it is left out, a few times, and after that those behind it are taken in turns. What was
        refused beside one that is left out may have room now."""
        self._attempt = attempt
        self._make_whole()
        if self._left_out:
            self._offer_again()

    def _make_whole(self) -> None:
        self.made = self._try(self._taken)
        for _ in range(_MOST_LEFT_OUT):
            if _are_whole(self._taken, self.made):
                return
            self._leave_out(self._taken.pop(self._first_that_breaks()), self.made)
            self.made = self._try(self._taken)
        if not _are_whole(self._taken, self.made):
            first = self._first_that_breaks()
            self._taken, others = self._taken[:first], self._taken[first:]
            self.made = self._try(self._taken)
            self._take_in_turns(others, _MOST_IN_TURNS)

    def _leave_out(self, late: Gang, made: Outcome) -> None:
        self._left_out.append(late)
        if late.is_whole(made):
            self._doubted.add(id(late))
        self._refuse(late, (late.ready(made), _first_refusal(late, made)))

    def _offer_again(self) -> None:
        """Take those that were refused and find room now, as `take` did, on top of those that are whole together.

        One that broke is not among them, but one that was whole while another broke is.
        """
        broken = {id(gang) for gang in self._left_out} - self._doubted
        first = min(self._groups.index(gang) for gang in self._left_out)
        others = [gang for gang in self._groups[first:] if id(gang) not in broken and self._was_tried(gang)]
        kept, self._rest = len(self._taken), self._rest.after(self.made)
        self.take(others, self._look)
        self._taken, found = self._taken[:kept], self._taken[kept:]
        more = {id(gang) for gang in found} | self._doubted
        again = [gang for gang in others if id(gang) in more]
        if again and self._take_together(again) is not None:
            self._take_in_turns(again, _MOST_AGAIN)

    def _was_tried(self, gang: Gang) -> bool:
        """Whether it was refused, and not because the work is bounded."""
        found = self._refused.get(id(gang))
        return found is not None and not isinstance(found[1].cause, GroupUntried)

    def _look(self, gang: Gang) -> _Short | None:
        """None where the group finds room on what is left, which it then has."""
        placed, first = self._rest.take(gang.pods, gang.needed)
        return None if placed >= gang.needed else (gang.placed + placed, first)

    def _take_together(self, more: Sequence[Gang]) -> Outcome | None:
        """Take these too where all are whole together; None then, else the try in which they are not."""
        made = self._try((*self._taken, *more))
        if not _are_whole((*self._taken, *more), made):
            return made
        self._taken, self.made = [*self._taken, *more], made
        for gang in more:
            self._refused.pop(id(gang), None)
        return None

    def _take_in_turns(self, groups: Sequence[Gang], tries: int) -> None:
        """Take them on top of those that are whole, in turn from each namespace, as many at once as are whole together.
        What is left once the tries are spent was not tried."""
        left, at_once = _in_turns(groups), 1
        for _ in range(tries):
            if not left:
                return
            made = self._take_together(left[:at_once])
            if made is None:
                left = left[at_once:]
                at_once *= 2
            elif at_once > 1:
                at_once //= 2
            else:
                self._leave_out(left[0], made)
                left = left[1:]
        for gang in left:
            self._refused[id(gang)] = gang, Refusal(gang.pods, Stage.HELD, GroupUntried(gang.name))

    def _first_that_breaks(self) -> int:
        """The number of groups, from the first on, that one try makes whole, by halving; fewer than all of them."""
        low, high = 0, len(self._taken) - 1
        while low < high:
            middle = (low + high + 1) // 2
            made = self._try(self._taken[:middle])
            low, high = (middle, high) if _are_whole(self._taken[:middle], made) else (low, middle - 1)
        return low


def _first_refusal(gang: Gang, made: Outcome) -> Refusal | None:
    refused = {pod.key: refusal for refusal in made.refusals for pod in refusal.pods}
    return next((refused[pod.key] for pod in gang.pods if pod.key in refused), None)


def _namespace(gang: Gang) -> str:
    return gang.pods[0].namespace


def _in_turns(groups: Iterable[Gang]) -> list[Gang]:
    """The first of each namespace, then the second of each, and so on."""
    turns = Counter[str]()
    ranked: list[tuple[int, int, Gang]] = []
    for number, gang in enumerate(groups):
        ranked.append((turns[_namespace(gang)], number, gang))
        turns[_namespace(gang)] += 1
    return [gang for _, _, gang in sorted(ranked, key=lambda each: each[:2])]
