"""A histogram of what was used, small enough for ten thousand workloads: counts of buckets that grow by five percent.

As in the Vertical Pod Autoscaler's recommender the buckets grow exponentially (its growth is 5 % too), so a
percentile is right within 2.5 % whatever the scale. Unlike there, old samples do not weigh less: days are counted apart
and whole days are dropped, so all numbers are integers, a percentile is one of the samples that are named as its
evidence, and two sketches merge to the same bytes in any order.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

DAY_S = 86_400
DAYS = 8
"""How many days are kept: as many as VPA's recommender looks back at (`--memory-aggregation-interval-count`)."""
_MOST = 2**53
_MOST_COUNT = 2**63


def _bounds() -> tuple[int, ...]:
    """Where the buckets begin: each number up to 40 is one of its own, from there on they grow by a twentieth."""
    found = [0]
    while found[-1] < _MOST:
        found.append(max(found[-1] + 1, found[-1] * 21 // 20))
    return tuple(found)


_BOUNDS = _bounds()


@dataclass(frozen=True, slots=True)
class Sketch:
    """Samples by day, in one piece of memory: `data` has for each day, in order, its number and its packed counts.

    Values are whole and not negative, in whatever unit the owner keeps; those above 2**53 count as that.
    """

    data: bytes = b""

    @classmethod
    def of(cls, day: int, values: Iterable[int]) -> "Sketch":
        """Samples of one day, counted since the epoch; those of none are no day."""
        counts: dict[int, int] = {}
        peak = 0
        for value in values:
            held = min(max(value, 0), _MOST)
            bucket = bisect_right(_BOUNDS, held) - 1
            counts[bucket] = counts.get(bucket, 0) + 1
            peak = max(peak, held)
        return cls._of_days({day: _packed(peak, counts)} if counts else {})

    @classmethod
    def checked(cls, data: bytes) -> "Sketch":
        """The sketch of such data from outside. Raises ValueError for what no sketch has."""
        before = -1
        for day, packed in _days(data):
            peak, counts = _unpacked(packed)
            if day <= before or not counts or _packed(peak, counts) != packed:
                raise ValueError("days out of order, or counts that are not packed")
            before = day
        return cls(data)

    @classmethod
    def _of_days(cls, days: Mapping[int, bytes]) -> "Sketch":
        return cls(b"".join(_number(day) + _number(len(days[day])) + days[day] for day in sorted(days)))

    def merged(self, other: "Sketch") -> "Sketch":
        """The samples of both. Associative and commutative."""
        days = dict(_days(self.data))
        for day, packed in _days(other.data):
            held = days.get(day)
            days[day] = packed if held is None else _joined(held, packed)
        return self._of_days(days)

    def since(self, day: int) -> "Sketch":
        """Without the days before that one."""
        if not self.data or _Numbers(self.data).next() >= day:
            return self
        return self._of_days({held: packed for held, packed in _days(self.data) if held >= day})

    @property
    def count(self) -> int:
        """How many samples."""
        return sum(sum(_unpacked(packed)[1].values()) for _, packed in _days(self.data))

    @property
    def peak(self) -> int:
        """The largest sample, exactly; 0 without any."""
        return max((_unpacked(packed)[0] for _, packed in _days(self.data)), default=0)

    def percentile(self, percent: int) -> int:
        """The sample below which, itself included, lie `percent` of all: within 2.5 %, exactly up to 40.

        0 without any sample.
        """
        counts: dict[int, int] = {}
        for _, packed in _days(self.data):
            _add(counts, _unpacked(packed)[1])
        wanted, seen = sum(counts.values()) * percent, 0
        for bucket in sorted(counts):
            seen += counts[bucket]
            if seen * 100 >= wanted:
                # The middle, which no sample of the bucket is far from; the last bucket ends at the peak.
                last = _BOUNDS[bucket + 1] - 1 if bucket + 1 < len(_BOUNDS) else _BOUNDS[bucket]
                return min((_BOUNDS[bucket] + last) // 2, self.peak)
        return 0


def _days(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each day and its packed counts. Raises ValueError where they are cut off."""
    numbers = _Numbers(data)
    while numbers.is_more:
        day = numbers.next()
        yield day, numbers.raw(numbers.next())


def _joined(one: bytes, other: bytes) -> bytes:
    (peak, counts), (other_peak, more) = _unpacked(one), _unpacked(other)
    _add(counts, more)
    return _packed(max(peak, other_peak), counts)


def _add(counts: dict[int, int], more: dict[int, int]) -> None:
    for bucket, count in more.items():
        counts[bucket] = counts.get(bucket, 0) + count


# Packed: the peak, then for each bucket in order how far it lies from the one before, and its count.


def _packed(peak: int, counts: dict[int, int]) -> bytes:
    parts, before = [_number(peak)], 0
    for bucket in sorted(counts):
        parts += (_number(bucket - before), _number(counts[bucket]))
        before = bucket
    return b"".join(parts)


def _unpacked(data: bytes) -> tuple[int, dict[int, int]]:
    """The peak and the counts by bucket. Raises ValueError."""
    numbers = _Numbers(data)
    peak, bucket, counts = numbers.next(), 0, {}
    while numbers.is_more:
        bucket += numbers.next()
        counts[bucket] = numbers.next()
        if bucket >= len(_BOUNDS) or not counts[bucket]:
            raise ValueError("a bucket that does not exist, or one without samples")
    return peak, counts


def _number(value: int) -> bytes:
    """A number in as many groups of seven bits as it needs, the lowest first."""
    groups = []
    while value > 0x7F:
        groups.append(0x80 | value & 0x7F)
        value >>= 7
    return bytes((*groups, value))


class _Numbers:
    """Reads what `_number` has written, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def is_more(self) -> bool:
        return self._at < len(self._data)

    def next(self) -> int:
        """The next number. Raises ValueError at the end, and for one that is too large to be one of its own."""
        value, shift = 0, 0
        while self._at < len(self._data):
            group = self._data[self._at]
            self._at += 1
            value |= (group & 0x7F) << shift
            shift += 7
            if value >= _MOST_COUNT:
                raise ValueError("a number that is too large")
            if group < 0x80:
                return value
        raise ValueError("a number that is cut off")

    def raw(self, length: int) -> bytes:
        """The next bytes. Raises ValueError where there are fewer."""
        taken = self._data[self._at : self._at + length]
        if len(taken) < length:
            raise ValueError("counts that are cut off")
        self._at += length
        return taken
