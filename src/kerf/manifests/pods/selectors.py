"""Selectors of labels, as manifests write them, to requirements.

Old names of a label mean the new one on nodes alone (Karpenter reads requirements so, selectors of pods by
apimachinery): a pod with `beta.kubernetes.io/arch` does not have `kubernetes.io/arch`.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from kerf.model.constraints import NEVER, Requirement, Requirements, all_of


def node_expressions_of(raws: Iterable[dict[str, Any]]) -> Requirements:
    """The `matchExpressions` of a term that selects nodes; NEVER where two of them contradict each other."""
    return all_of(Requirement.of(raw["key"], raw["operator"], raw.get("values") or ()) for raw in raws)


def node_labels_of(labels: Mapping[str, str]) -> Requirements:
    """A `nodeSelector`; two spellings of one label with two values contradict each other."""
    return all_of(chain.from_iterable(Requirements.of_labels({key: labels[key]}).values() for key in labels))


def selector_of(raw: dict[str, Any] | None) -> Requirements:
    """A label selector; None selects nothing, an empty one everything."""
    if raw is None:
        return NEVER
    labels = Requirements.spelt(raw.get("matchLabels") or {})
    raws = raw.get("matchExpressions") or ()
    stated = all_of(Requirement.spelt(each["key"], each["operator"], each.get("values") or ()) for each in raws)
    return stated if stated.is_never else all_of((*labels.values(), *stated.values()))
