"""Values of a label that a pool's instance types have and its template does not name: which of them a pod could ask."""

from collections.abc import Iterable
from dataclasses import replace
from difflib import SequenceMatcher

from kerf.engine.supply.offered import OfferedType
from kerf.model.causes import LabelMismatch
from kerf.model.constraints import Requirement
from kerf.model.nodeclaim import COMING_LABELS
from kerf.model.nodepool import NodePool
from kerf.model.plan import Misfit

_SHOWN = 6


def nearest_values(asked: Requirement, offered_types: Iterable[OfferedType]) -> list[str]:
    """The values that the types have of the label, those first that come nearest to what is asked.

    Numbers by their distance, others by their letters. Linear in types; empty where none has the label.
    """
    held = (each.kind.requirements.get(asked.key) for each in offered_types)
    values = {value for each in held if each is not None and not each.complement for value in each.values if value}
    wanted = [str(bound) for bound in (asked.at_least, asked.at_most) if bound is not None]
    wanted += () if asked.complement else sorted(asked.values)
    if all(each.isdigit() for each in (*values, *wanted)):
        numbers = [int(each) for each in wanted]
        return sorted(values, key=lambda value: (min((abs(int(value) - n) for n in numbers), default=0), int(value)))
    return sorted(values, key=lambda value: (-max((_likeness(value, w) for w in wanted), default=0.0), value))


def with_all_values(misfit: Misfit, pool: NodePool, offered_types: Iterable[OfferedType]) -> Misfit:
    """The misfit with what all types of the pool have, not one alone, where the label is theirs and not the pool's."""
    cause = misfit.cause
    if not isinstance(cause, LabelMismatch) or cause.held is None:
        return misfit
    if cause.asked.key in pool.template_requirements() or cause.asked.key in COMING_LABELS:
        return misfit
    values = nearest_values(cause.asked, offered_types)
    if not values:
        return replace(misfit, cause=replace(cause, held=None))
    held = Requirement.of(cause.asked.key, "In", values[:_SHOWN])
    return replace(misfit, cause=replace(cause, held=held, more=len(values[_SHOWN:])))


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()
