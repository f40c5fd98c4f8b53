"""Namespaces and Services: what selects pods besides their own labels."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kerf.model.constraints import Requirements

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that the server gives every namespace: its own name."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace and its labels, which namespace selectors of pod affinity read."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Service:
    """A Service as far as it selects pods, by which default spread constraints go. `selector` None: it selects none."""

    namespace: str
    name: str
    selector: Requirements | None = None
