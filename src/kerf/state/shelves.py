"""Where the state keeps objects: shelves in key order, groups by what objects share, and sums kept up to date.

A list of a hundred thousand keys is sorted once; after that each change finds its place by bisection.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, TypeVar

from kerf.model.quantities import NODES, Resources

_Value = TypeVar("_Value")


class Shelf(Generic[_Value]):
    """The objects of one kind. Their order is worked out when it is asked for, and kept until an object changes."""

    def __init__(self) -> None:
        self.held: dict[str, _Value] = {}
        self._keys: list[str] | None = None
        self._values: tuple[_Value, ...] | None = None
        self._named: Mapping[str, _Value] | None = None

    def put(self, key: str, value: _Value | None) -> _Value | None:
        """Hold `value` under `key`, or nothing for None; returns what was held before."""
        before = self.held.get(key)
        if value is None and before is None:
            return None
        self._values = self._named = None
        if value is None:
            del self.held[key]
            if self._keys is not None:
                del self._keys[bisect_left(self._keys, key)]
            return before
        if before is None and self._keys is not None:
            insort(self._keys, key)
        self.held[key] = value
        return before

    def keys(self) -> list[str]:
        """All keys, sorted; not to be changed."""
        if self._keys is None:
            self._keys = sorted(self.held)
        return self._keys

    def values(self) -> tuple[_Value, ...]:
        """All objects, by key."""
        if self._values is None:
            self._values = tuple(self.held[key] for key in self.keys())
        return self._values

    def by_key(self) -> Mapping[str, _Value]:
        """All objects with their keys, in the order of these; frozen as it is now."""
        if self._named is None:
            self._named = MappingProxyType({key: self.held[key] for key in self.keys()})
        return self._named

    def within(self, prefix: str) -> Iterator[_Value]:
        """Those whose keys begin with `prefix`, by key."""
        keys = self.keys()
        for position in range(bisect_left(keys, prefix), len(keys)):
            if not keys[position].startswith(prefix):
                return
            yield self.held[keys[position]]


class Groups:
    """Sorted keys by what they have in common; an empty name is no group.

    A group of one key is held as that key: of 100,000 pods nearly each has a group of its own, its claims.
    """

    def __init__(self) -> None:
        self._held: dict[str, str | list[str]] = {}

    def move(self, key: str, before: str, after: str) -> None:
        """Take `key` from one group to another."""
        if before == after:
            return
        if before:
            self._leave(key, before)
        if after:
            held = self._held.setdefault(after, key)
            if isinstance(held, list):
                insort(held, key)
            elif held is not key:
                self._held[after] = sorted((held, key))

    def _leave(self, key: str, name: str) -> None:
        held = self._held[name]
        if isinstance(held, str):
            del self._held[name]
            return
        del held[bisect_left(held, key)]
        if len(held) == 1:
            (self._held[name],) = held

    def of(self, name: str) -> Sequence[str]:
        """The keys of a group, sorted."""
        held = self._held.get(name, ()) if name else ()
        return (held,) if isinstance(held, str) else held


class Sum:
    """The sum of some claims, kept as they come and go; a resource that none of them states is not in it."""

    def __init__(self) -> None:
        self._amounts: Counter[str] = Counter()
        self._stated: Counter[str] = Counter()

    def add(self, capacity: Resources, sign: int) -> None:
        """Count a claim in, or out again with `sign` -1."""
        for name, amount in (capacity + {NODES: 1}).items():
            self._amounts[name] += sign * amount
            self._stated[name] += sign
            if not self._stated[name]:
                del self._amounts[name], self._stated[name]

    def total(self) -> Resources:
        """The sum."""
        return Resources(self._amounts)
