"""Causes: why a pod, a pool or a node is refused, as values that code may branch on.

A cause holds enums, quantities and names, never a sentence. `engine.explain` is the one place that turns causes into
words, and nothing reads those words back. Causes of one room (a sharing family, CapacityWindows) are declared there
and inherit from `Cause`, so that a test can find all of them.
"""

from dataclasses import dataclass
from typing import NewType

Name = NewType("Name", str)
"""An identifier: of an object, a label key, a resource, a code. Printed as it is."""
Quoted = NewType("Quoted", str)
"""Text that an API, a decoder or a person wrote. It is quoted; no code reads it."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why something is refused. Subclasses are frozen, and their fields are no sentences."""


@dataclass(frozen=True, slots=True)
class Lack:
    """A quantity that is missing: `amount` of a resource in its base unit, or of `MiB`, `cores`, `GPU`."""

    amount: int
    of: Name
