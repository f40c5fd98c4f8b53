"""Selectors of labels, as manifests write them, to requirements."""

from collections.abc import Iterable
from typing import Any

from kerf.model.constraints import NEVER, Requirement, Requirements, all_of


def expressions_of(raws: Iterable[dict[str, Any]]) -> Requirements:
    """The `matchExpressions` of a selector; NEVER where two of them contradict each other."""
    return all_of(Requirement.of(raw["key"], raw["operator"], raw.get("values") or ()) for raw in raws)


def selector_of(raw: dict[str, Any] | None) -> Requirements:
    """A label selector; None selects nothing, an empty one everything."""
    if raw is None:
        return NEVER
    labels = Requirements.of_labels(raw.get("matchLabels") or {})
    stated = expressions_of(raw.get("matchExpressions") or ())
    return NEVER if stated.is_never else all_of((*labels.values(), *stated.values()))
