"""minValues of a claim at its launch: so many values of a label are among the types that EC2 may choose from.

A plan has counted them when it made the claim. What makes it hard is that a launch leaves types out for reasons of its
own: those that cost more than a factor, exotic ones, and spot over the on-demand price.
"""

from collections.abc import Iterable

from kerf.model.constraints import Requirements
from kerf.model.instancetypes import InstanceType


class MinValues:
    """Counts the values of types one after the other, until a claim has enough; those that it allows."""

    def __init__(self, requirements: Requirements) -> None:
        self._asked = {key: each for key, each in requirements.items() if each.min_values}
        self._held: dict[str, set[str]] = {key: set() for key in self._asked}

    def adds(self, kind: InstanceType) -> bool:
        """Count a type; whether it has a value that was missing and that no type before it had."""
        is_new = False
        for key, asked in self._asked.items():
            values, before = self._held[key], len(self._held[key])
            own = kind.requirements.get(key)
            values.update(filter(asked.has, own.values) if own is not None and not own.complement else ())
            is_new |= before < min(len(values), asked.min_values or 0)
        return is_new

    @property
    def is_enough(self) -> bool:
        """Whether no label lacks values."""
        return not self.lack

    @property
    def lack(self) -> str:
        """The labels that lack values, in words; empty for none."""
        found = ((key, len(self._held[key]), each.min_values or 0) for key, each in sorted(self._asked.items()))
        return ", ".join(f"minValues of {key}: {held} of {asked}" for key, held, asked in found if held < asked)


def has_enough(requirements: Requirements, kinds: Iterable[InstanceType]) -> bool:
    """Whether the types have as many values as the requirements ask for, also where they ask for none."""
    counted = MinValues(requirements)
    for kind in kinds:
        counted.adds(kind)
    return counted.is_enough


def needed(requirements: Requirements, kinds: Iterable[InstanceType]) -> list[InstanceType]:
    """The first of the types that have as many values; all that have some where they have fewer together."""
    counted, found = MinValues(requirements), []
    for kind in kinds:
        if counted.is_enough:
            break
        found += [kind] if counted.adds(kind) else []
    return found


def short_of(requirements: Requirements, kinds: Iterable[InstanceType]) -> str:
    """What the types lack, in words, e.g. `minValues of KEY: 5 of 6`; empty for nothing."""
    counted = MinValues(requirements)
    for kind in kinds:
        counted.adds(kind)
    return counted.lack
