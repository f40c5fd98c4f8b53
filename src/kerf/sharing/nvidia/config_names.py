"""Names of configurations of NVIDIA's tools that cannot be used.

Nodes name a configuration by a label, and ConfigMaps hold them by name. A name is of no use where no map has it, or
where two maps have different contents for it.
"""

from collections.abc import Collection
from dataclasses import dataclass

from kerf.model.causes import Cause, Name


@dataclass(frozen=True, slots=True)
class UnknownConfig(Cause):
    """A label names a configuration that no ConfigMap has; `known` are those that it may name, sorted.

    `annotation` is the pool's, where the label was chosen from one; None where the pool states the label itself.
    """

    label: Name
    got: Name
    known: tuple[Name, ...]
    annotation: Name | None = None


@dataclass(frozen=True, slots=True)
class TornConfig(Cause):
    """A label names a configuration of which two ConfigMaps have different contents; `annotation` as above."""

    label: Name
    got: Name
    annotation: Name | None = None


def name_problem(
    label: str, got: str, known: Collection[str], torn: Collection[str]
) -> UnknownConfig | TornConfig | None:
    """Why the configuration `got` cannot be used; None when it is known and not torn."""
    if got in torn:
        return TornConfig(Name(label), Name(got))
    return None if got in known else UnknownConfig(Name(label), Name(got), tuple(map(Name, sorted(known))))
