"""HAMi's choice of cards on one node: its rules in its order, and its greedy walk over the ranked cards.

Hard because the result depends on more than what is free: the cards are ranked by present use (never by the request),
the ranking survives from one container to the next, the walk goes from the last to the first and takes what it meets,
and every refusal has a name that operators know from HAMi's events. The names and their order are those of HAMi
v2.10.0 (commit 4707fb02), as 10,588 recorded verdicts of its scheduler show them (tests/data/hami).
"""

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations

from kerf.model.causes import Name
from kerf.model.gpu import DeviceState, Placement, SliceRequest
from kerf.model.pods import ContainerDemand
from kerf.sharing.hami.mig import place_profile
from kerf.sharing.hami.options import MIG_MODE, HamiOptions

NOT_HEALTHY, CORDONED, WRONG_TYPE = Name("CardNotHealth"), Name("CardCordoned"), Name("CardTypeMismatch")
OTHER_NUMA, WRONG_ID, NO_SLOT = Name("NumaNotFit"), Name("CardUuidMismatch"), Name("CardTimeSlicingExhausted")
EXCLUSIVE, OVER_QUOTA = Name("ExclusiveDeviceAllocateConflict"), Name("ResourceQuotaNotFit")
NO_MEMORY, NO_CORES = Name("CardInsufficientMemory"), Name("CardInsufficientCore")
CORES_EXHAUSTED, NO_MIG_PLACE = Name("CardComputeUnitsExhausted"), Name("CardMigTopologyInfeasible")
TOO_FEW, TOO_FEW_TAKERS = Name("NodeInsufficientDevice"), Name("AllocatedCardsInsufficientRequest")

VENDOR = "NVIDIA"
PairScores = Sequence[Sequence[int]]
"""How well two cards are linked, by their positions on the node."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one container gets of the card at `position` of the node's list."""

    position: int
    memory_mib: int
    cores: int
    placement: Placement | None = None


Segment = tuple[Share, ...]
"""What one container gets, in the order in which it was taken; empty for a container that HAMi counts without a GPU."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """What the ResourceQuotas of a namespace leave, in MiB and percent points; None where they set no limit."""

    memory_mib: int | None = None
    cores: int | None = None

    def allows(self, memory_mib: int, cores: int) -> bool:
        """Whether that much more may be booked."""
        return (self.memory_mib is None or memory_mib <= self.memory_mib) and (
            self.cores is None or cores <= self.cores
        )


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why a container gets no card, and the cards as they were when it was refused.

    `counts` is how many of `total` cards gave each of HAMi's codes; a `total` of 0 means that HAMi counts none.
    `refusals` are the cards that were looked at, by position, each with its code.
    """

    counts: tuple[tuple[Name, int], ...]
    total: int
    request: SliceRequest
    devices: tuple[DeviceState, ...]
    refusals: tuple[tuple[int, Name], ...] = ()

    @property
    def codes(self) -> tuple[Name, ...]:
        """HAMi's codes, sorted."""
        return tuple(sorted(code for code, _ in self.counts))

    @property
    def reason(self) -> str:
        """As HAMi's extender answers: `1/2 CardInsufficientMemory, 1/2 CardTypeMismatch`."""
        if not self.total:
            return ", ".join(self.codes)
        return ", ".join(sorted(f"{count}/{self.total} {code}" for code, count in self.counts))


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that decides about one pod, apart from the cards."""

    options: HamiOptions
    headroom: Headroom | None = None
    pairs: PairScores | None = None


@dataclass(slots=True)
class _Cards:
    """The use of a node's cards while one pod is being placed; `order` is HAMi's ranking so far."""

    devices: Sequence[DeviceState]
    slots: list[int]
    memory: list[int]
    cores: list[int]
    placements: list[tuple[Placement, ...]]
    order: list[int]

    @classmethod
    def of(cls, devices: Sequence[DeviceState]) -> "_Cards":
        return cls(
            devices,
            [d.used_slots for d in devices],
            [d.used_memory_mib for d in devices],
            [d.used_cores for d in devices],
            [d.placements for d in devices],
            # A card whose type does not name the vendor does not exist for HAMi.
            [i for i, d in enumerate(devices) if VENDOR in d.model.upper()],
        )

    def book(self, share: Share) -> None:
        at = share.position
        self.slots[at] += 1
        self.memory[at] += share.memory_mib
        self.cores[at] += share.cores
        if share.placement is not None:
            self.placements[at] = (*self.placements[at], share.placement)

    def frozen(self) -> tuple[DeviceState, ...]:
        """The cards as they are now."""
        now = zip(self.devices, self.memory, self.cores, self.slots, self.placements, strict=True)
        return tuple(
            d if s == d.used_slots else replace(d, used_memory_mib=m, used_cores=c, used_slots=s, placements=p)
            for d, m, c, s, p in now
        )


def place(
    devices: Sequence[DeviceState], containers: Sequence[ContainerDemand], request: Request
) -> tuple[Segment, ...] | Shortage:
    """What each container gets, init containers first, or why one of them gets nothing.

    An init container is placed alone, on the cards as they are; app containers each see those before them. A container
    without a GPU has no segment, unless a card is registered as exactly `NVIDIA` (then it has an empty one).
    """
    counts_empty = any(d.model == VENDOR for d in devices)
    apps, init_count = _Cards.of(devices), sum(container.is_init for container in containers)
    of_init, of_apps = list[Segment](), list[Segment]()
    for container in containers:
        segments = of_init if container.is_init else of_apps
        if container.request is None:
            if counts_empty:
                segments.append(())
            continue
        cards = _Cards.of(devices) if container.is_init else apps
        taken = _Walk(cards, container.request, request, tuple(segments), init_count).take()
        if isinstance(taken, Shortage):
            return taken
        for share in taken:
            cards.book(share)
        segments.append(taken)
    return (*of_init, *of_apps)


@dataclass(slots=True)
class _Walk:
    """One container's way through the ranked cards."""

    cards: _Cards
    ask: SliceRequest
    request: Request
    earlier: tuple[Segment, ...] = ()
    """What containers of the same kind, init or not, got before it."""
    init_count: int = 0
    taken: list[Share] = field(default_factory=list)
    refusals: list[tuple[int, Name]] = field(default_factory=list)
    dropped: int = 0

    def take(self) -> Segment | Shortage:
        """The cards it gets, or why it gets too few."""
        cards, options, wanted = self.cards, self.request.options, self.ask.count
        self._rank()
        if wanted > len(cards.order) and not self._may_repeat():
            return self._shortage({TOO_FEW: 0}, 0)
        collects_all = options.is_topology_aware
        numa = -1
        for position in reversed(cards.order):
            device = cards.devices[position]
            reason = self._unusable(device)
            if reason is None and options.numa_bind and device.numa != numa:
                self.dropped += 0 if collects_all else len(self.taken)
                self.taken.clear()
                numa = device.numa
            while reason is None:
                reason = self._offer(position, device)
                if not collects_all and len(self.taken) == wanted:
                    return tuple(self.taken)
                if device.mode != MIG_MODE:
                    break
            if reason is not None:
                self.refusals.append((position, reason))
        if collects_all and len(self.taken) >= wanted:
            return self._best_linked()
        return self._shortage(self._counts(), len(cards.order))

    def _rank(self) -> None:
        """Sort the cards by HAMi's score, keeping the previous order among equals."""
        cards = self.cards
        words = self.request.options.ranking
        scores = [self._score(d, i) for i, d in enumerate(cards.devices)]
        columns = [_column(word, cards, scores) for word in words]
        keys = list(zip(*columns, strict=True))
        cards.order.sort(key=keys.__getitem__)

    def _score(self, device: DeviceState, position: int) -> float:
        cards = self.cards
        slots, cores, memory = cards.slots[position], cards.cores[position], cards.memory[position]
        if device.model == VENDOR:
            # Requests are kept under the vendor's word, so they count only for a card registered by just that.
            slots, cores, memory = slots + self.ask.count, cores + self.ask.cores, memory + self.ask.memory_on(device)
        use, size = (slots, cores, memory), (device.slots, device.cores, device.memory_mib)
        return use_score(use, size, self.request.options.weights)

    def _may_repeat(self) -> bool:
        """Whether one card may give more than one instance, so the number of cards is no limit."""
        return self.request.options.allows_mig and any(d.mode == MIG_MODE for d in self.cards.devices)

    def _unusable(self, device: DeviceState) -> Name | None:
        """Why the card is out of the question whatever is used of it; None when it is not."""
        if not device.healthy:
            return NOT_HEALTHY
        if device.cordoned:
            return CORDONED
        return None if self.request.options.accepts_type(device) else WRONG_TYPE

    def _offer(self, position: int, device: DeviceState) -> Name | None:
        """Take a share of the card; or why not."""
        options, cards = self.request.options, self.cards
        if not options.accepts_id(device):
            return WRONG_ID
        if cards.slots[position] >= device.slots:
            return NO_SLOT
        if options.is_mutex and cards.slots[position] > 0:
            return EXCLUSIVE
        cores, memory = min(self.ask.cores, 100), self.ask.memory_on(device)
        reason = self._overload(position, device, memory, cores)
        if reason is not None:
            return reason
        if device.mode != MIG_MODE:
            self.taken.append(Share(position, memory, cores))
            return None
        here = tuple(s.placement for s in self.taken if s.position == position and s.placement is not None)
        found = place_profile(device, memory, cards.placements[position] + here)
        if found is None:
            return NO_MIG_PLACE
        self.taken.append(Share(position, found[0].memory_mib, found[0].cores, found[1]))
        return None

    def _overload(self, position: int, device: DeviceState, memory: int, cores: int) -> Name | None:
        """Which limit of quota or card the share would break; None when none."""
        cards = self.cards
        if self.request.headroom is not None and not self._within_quota(self.request.headroom, position):
            return OVER_QUOTA
        if device.memory_mib - cards.memory[position] < memory:
            return NO_MEMORY
        if device.cores - cards.cores[position] < cores:
            return NO_CORES
        if device.cores == 100 and cores == 100 and cards.slots[position] > 0:
            return EXCLUSIVE
        if device.cores != 0 and cards.cores[position] == device.cores and cores == 0:
            return CORES_EXHAUSTED
        return None

    def _within_quota(self, headroom: Headroom, position: int) -> bool:
        """As `fitQuota` of HAMi counts the pod with one more share: `CollapseInitContainerUsage` (v2.10.0) of what its
        containers of this kind have by then.

        On each card the larger of two: the most that one of the first containers takes, as many as the pod has init
        containers, and the sum of the others. App containers are counted without those for init containers, so the
        first of them count as if they ran one after the other.
        """
        cards, cores = self.cards, min(self.ask.cores, 100)
        mine = [
            (at, self.ask.memory_on(cards.devices[at]), cores) for at in (*(s.position for s in self.taken), position)
        ]
        before = [[(share.position, share.memory_mib, share.cores) for share in each] for each in self.earlier]
        peaks, sums = dict[str, tuple[int, int]](), dict[str, tuple[int, int]]()
        for number, segment in enumerate((*before, mine)):
            for at, memory, points in segment:
                key = cards.devices[at].id
                if number < self.init_count:
                    held = peaks.get(key, (0, 0))
                    peaks[key] = max(held[0], memory), max(held[1], points)
                else:
                    held = sums.get(key, (0, 0))
                    sums[key] = held[0] + memory, held[1] + points
        used = [(peaks.get(key, (0, 0)), sums.get(key, (0, 0))) for key in {**peaks, **sums}]
        return headroom.allows(sum(max(a[0], b[0]) for a, b in used), sum(max(a[1], b[1]) for a, b in used))

    def _best_linked(self) -> Segment:
        """Of all cards that would do: for one the worst linked, for several the best linked among themselves."""
        wanted, taken, pairs = self.ask.count, self.taken, self.request.pairs
        if len(taken) == wanted or pairs is None:
            return tuple(taken[:wanted])
        if wanted == 1:
            return (min(taken, key=lambda one: sum(pairs[one.position][other.position] for other in taken)),)
        return max(combinations(taken, wanted), key=lambda group: _linkage(group, pairs))

    def _counts(self) -> Mapping[Name, int]:
        """How many cards gave which code."""
        counts = Counter(reason for _, reason in self.refusals)
        if self.dropped:
            counts[OTHER_NUMA] += self.dropped
        if self.taken:
            counts[TOO_FEW_TAKERS] += len(self.taken)
        return counts

    def _shortage(self, counts: Mapping[Name, int], total: int) -> Shortage:
        return Shortage(tuple(counts.items()), total, self.ask, self.cards.frozen(), tuple(self.refusals))


def _column(word: str, cards: _Cards, scores: Sequence[float]) -> Sequence[float]:
    match word:
        case "score":
            return scores
        case "-score":
            return [-score for score in scores]
        case "numa":
            return [d.numa for d in cards.devices]
        case "-numa":
            return [-d.numa for d in cards.devices]
        case "-slots":
            return [-slots for slots in cards.slots]
        case _:
            return [d.index for d in cards.devices]


def _linkage(group: Sequence[Share], pairs: PairScores) -> int:
    return sum(pairs[a.position][b.position] for a, b in combinations(group, 2))


def node_score(devices: Sequence[DeviceState]) -> float:
    """HAMi's score of a node, by what is used of all its cards."""
    use = (
        sum(d.used_slots for d in devices),
        sum(d.used_cores for d in devices),
        sum(d.used_memory_mib for d in devices),
    )
    size = sum(d.slots for d in devices), sum(d.cores for d in devices), sum(d.memory_mib for d in devices)
    return use_score(use, size)


@lru_cache(maxsize=8192)
def use_score(
    use: tuple[int, int, int], size: tuple[int, int, int], weights: tuple[int, int, int] = (1, 1, 1)
) -> float:
    """Ten times the weighted sum of the used shares of slots, cores and memory; 0 where one of the sizes is 0.

    Each step is rounded to 32 bits as HAMi's is: it decides which cards tie (2*0.2 + 0.2 equals 2*0.3 only so).
    """
    if not all(size):
        return 0.0
    total = 0.0
    for used, available, weight in zip(use, size, weights, strict=True):
        total = _float32(total + _float32(weight * _float32(used / available)))
    return _float32(10 * total)


_FLOAT32 = struct.Struct("f")


def _float32(number: float) -> float:
    rounded: float = _FLOAT32.unpack(_FLOAT32.pack(number))[0]
    return rounded
