"""Kubernetes quantities as exact integers, and vectors of them.

The API accepts `1`, `0.5`, `100m`, `1e3`, `1Gi`, `2E`, as text or as a number. Floats would round money and memory,
so everything becomes an integer in the resource's base unit: milli for cpu, millionths for money, one (bytes, cards,
MiB) for all else.
A fraction of the base unit is rounded up, as apimachinery's `Quantity.Value` and `MilliValue` do.
"""

import re
from collections.abc import ItemsView, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeVar, overload

Other = TypeVar("Other")

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPHEMERAL_STORAGE = "ephemeral-storage"
STORAGE = "storage"
"""What a claim asks for."""
NODES = "nodes"
"""Pseudo-resource of NodePool limits: every node counts one."""

COST_PER_HOUR = "kerf.dev/cost-per-hour"
"""Pseudo-resource of NodePool limits: every node counts its price, in the catalogue's currency."""

RESERVED_PREFIX = "kerf.dev/reservation/"
"""Begins the pseudo-resource of a reservation: every node that is bought by it counts one."""

HUGEPAGES_PREFIX = "hugepages-"
"""Begins the resources of pages that are set aside: what is theirs is no memory for pods any more."""

MIB = 1024 * 1024

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
# apimachinery pkg/api/resource: <sign><digits>[.<digits>]<suffix>; the suffix is binary, decimal or an exponent.
_FORM = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([KMGTPE]i)|([eE][+-]?\d{1,9})|([numkMGTPE]?))", re.ASCII)
_SCALES = {CPU: 3, COST_PER_HOUR: 6}
"""Powers of ten of the base units that are not one."""
_MOST_DIGITS = 40
"""Of a number that is worked out: a larger one counts as the first of more digits, a far smaller one as the least."""
_LONGEST = 1000
"""Characters of a text that is read at all."""


class QuantityError(ValueError):
    """Text that is no Kubernetes quantity."""


@lru_cache(maxsize=8192)
def _scaled(text: str, scale: int) -> int:
    """`text` times 10**`scale`, rounded away from zero."""
    match = _FORM.fullmatch(text)
    if match is None or len(text) > _LONGEST:
        raise QuantityError(text)
    sign, digits, binary, exponent, decimal = match.groups()
    whole, _, fraction = digits.partition(".")
    significant = (whole + fraction).lstrip("0")
    power = scale - len(fraction)
    if not binary:
        power += int(exponent[1:]) if exponent else _DECIMAL[decimal]
    value = _shifted(significant, power, _BINARY.get(binary, 1)) if significant else 0
    return -value if sign == "-" else value


def _shifted(digits: str, power: int, factor: int) -> int:
    """`digits` x `factor` x 10**`power`, rounded up; `digits` begin with another one than 0."""
    if len(digits) + power > _MOST_DIGITS:
        return int(10**_MOST_DIGITS)
    if len(digits) + power < -_MOST_DIGITS:
        return 1
    numerator = int(digits) * factor
    return int(numerator * 10**power) if power >= 0 else -int(-numerator // 10**-power)


def quantity(value: str | int | float, *, milli: bool = False) -> int:
    """The whole number that `value` stands for, in thousandths with `milli`. Raises QuantityError."""
    return _base_units(value, 3 if milli else 0)


def _base_units(value: str | int | float, scale: int) -> int:
    if isinstance(value, bool):
        raise QuantityError(str(value))
    if isinstance(value, int):
        return value * int(10**scale)
    return _scaled(repr(value) if isinstance(value, float) else value, scale)


def quantity_of(resource: str, value: str | int | float) -> int:
    """`value` in the base unit of `resource`. Raises QuantityError."""
    return _base_units(value, _SCALES.get(resource, 0))


def money_text(micro: int) -> str:
    """Millionths as people write money: at least two, at most six decimals."""
    whole, decimals = divmod(abs(micro), 10**6)
    return f"{'-' if micro < 0 else ''}{whole}.{f'{decimals:06d}'.rstrip('0').ljust(2, '0')}"


def quantity_text(resource: str, amount: int) -> str:
    """The canonical text of an amount: `3920m`, `4`, `14162Mi`, `12.50` of money."""
    if resource == COST_PER_HOUR:
        return money_text(amount)
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in (MEMORY, EPHEMERAL_STORAGE, STORAGE) or resource.startswith(HUGEPAGES_PREFIX):
        for suffix in ("Gi", "Mi", "Ki"):
            if amount and amount % _BINARY[suffix] == 0:
                return f"{amount // _BINARY[suffix]}{suffix}"
    return str(amount)


class Resources(Mapping[str, int]):
    """An immutable vector of amounts by resource name, in base units; what is absent counts as zero.

    An explicit zero is kept, because HAMi treats `gpumem: 0` otherwise than a missing key.
    """

    __slots__ = ("_amounts", "_hash")

    def __init__(self, amounts: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        # A dict is copied at once, another Mapping by one call for each name.
        self._amounts: dict[str, int] = dict(amounts._amounts if isinstance(amounts, Resources) else amounts)
        self._hash: int | None = None

    @classmethod
    def parse(cls, texts: Mapping[str, str | int | float]) -> "Resources":
        """From the texts of a manifest. Raises QuantityError for the first that is none."""
        return cls({name: quantity_of(name, text) for name, text in texts.items()})

    @classmethod
    def total(cls, held: Iterable[tuple[Mapping[str, int], int]]) -> "Resources":
        """The sum of all of these, each so many times."""
        amounts: dict[str, int] = {}
        for each, times in held:
            for name, amount in each.items():
                amounts[name] = amounts.get(name, 0) + amount * times
        return cls(amounts)

    def __getitem__(self, name: str) -> int:
        return self._amounts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._amounts)

    def __len__(self) -> int:
        return len(self._amounts)

    # What a Mapping has of its own goes by way of exceptions and of one call for each name.

    def __contains__(self, name: object) -> bool:
        return name in self._amounts

    @overload
    def get(self, name: str) -> int | None: ...

    @overload
    def get(self, name: str, default: int) -> int: ...

    @overload
    def get(self, name: str, default: Other) -> int | Other: ...

    def get(self, name: str, default: object = None) -> object:
        """As a Mapping's."""
        return self._amounts.get(name, default)

    def items(self) -> ItemsView[str, int]:
        """As a Mapping's."""
        return self._amounts.items()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._amounts.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resources) and self._amounts == other._amounts

    def __repr__(self) -> str:
        return f"Resources({dict(sorted(self._amounts.items()))})"

    def __add__(self, other: Mapping[str, int]) -> "Resources":
        total = dict(self._amounts)
        for name, amount in _plain(other).items():
            total[name] = total.get(name, 0) + amount
        return Resources(total)

    def __sub__(self, other: Mapping[str, int]) -> "Resources":
        left = dict(self._amounts)
        for name, amount in _plain(other).items():
            left[name] = left.get(name, 0) - amount
        return Resources(left)

    def __mul__(self, factor: int) -> "Resources":
        return Resources({name: amount * factor for name, amount in self._amounts.items()})

    def largest(self, other: Mapping[str, int]) -> "Resources":
        """The larger amount of each resource."""
        most = dict(self._amounts)
        for name, amount in _plain(other).items():
            most[name] = max(most.get(name, amount), amount)
        return Resources(most)

    def replaced(self, other: Mapping[str, int]) -> "Resources":
        """These amounts with those of `other` in their place."""
        return Resources({**self._amounts, **other})

    def without(self, names: Iterable[str]) -> "Resources":
        """The same without some resources."""
        gone = set(names)
        if gone.isdisjoint(self._amounts):
            return self
        return Resources({name: amount for name, amount in self._amounts.items() if name not in gone})

    def shortfall(self, available: Mapping[str, int]) -> "Resources":
        """How much of each resource `available` lacks for these; empty when they fit."""
        missing, held = {}, _plain(available)
        for name, amount in self._amounts.items():
            lack = amount - held.get(name, 0)
            if amount > 0 and lack > 0:
                missing[name] = lack
        return Resources(missing)

    def times_in(self, available: Mapping[str, int]) -> int | None:
        """How often these fit into `available`; None when they ask for nothing at all."""
        held = _plain(available)
        counts = [held.get(name, 0) // amount for name, amount in self._amounts.items() if amount > 0]
        return max(0, min(counts)) if counts else None


def _plain(amounts: Mapping[str, int]) -> Mapping[str, int]:
    """The dict behind Resources: the `get` of a Mapping goes by way of an exception."""
    return amounts._amounts if isinstance(amounts, Resources) else amounts


def set_aside(amounts: Mapping[str, int]) -> int:
    """The bytes of memory that huge pages take, of all sizes together."""
    return sum([amount for name, amount in amounts.items() if name.startswith(HUGEPAGES_PREFIX)])


NOTHING = Resources()
