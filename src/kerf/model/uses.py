"""What a NodePool may be used for beside pods that wait, and the namespaces that it lets do so.

A tenant writes the annotation of a CronJob or a pod, an operator that of a pool. So a pool has the last word.
"""

import re
from collections.abc import Mapping
from enum import StrEnum

from kerf.errors import brief

EVERYBODY = "*"
_NAMESPACE = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


class Use(StrEnum):
    """A use; the value is the annotation of a NodePool with the namespaces it is for, separated by commas, or `*`."""

    PREWARM = "kerf.dev/prewarm-namespaces"
    BOOKING = "kerf.dev/booking-namespaces"
    BUFFER = "kerf.dev/buffer-namespaces"
    WINDOW = "kerf.dev/window-namespaces"
    OPPORTUNISTIC = "kerf.dev/opportunistic-namespaces"


def namespaces_for(use: Use, annotations: Mapping[str, str]) -> frozenset[str] | None:
    """The namespaces that a pool with these annotations lets do it, `*` for all; None where it says nothing.

    Raises ValueError with what was expected; such a pool lets no namespace do it.
    """
    text = annotations.get(use)
    if text is None:
        return None
    names = frozenset(filter(None, (name.strip() for name in text.split(","))))
    if not all(name == EVERYBODY or _NAMESPACE.fullmatch(name) for name in names):
        raise ValueError(f"annotation {use}: expected names of namespaces separated by commas, or *, got {brief(text)}")
    return names


def uses_problems(annotations: Mapping[str, str]) -> tuple[tuple[Use, str], ...]:
    """The annotations that cannot be read, each with what was expected."""
    found = []
    for use in Use:
        try:
            namespaces_for(use, annotations)
        except ValueError as error:
            found.append((use, str(error)))
    return tuple(found)
