"""The form of Karpenter's objects: `karpenter.sh/v1` NodePool and NodeClaim, `karpenter.sh/v1alpha1` NodeOverlay.

Types and bounds as the CRDs state them, no stricter: what a server has accepted must be read. Rules between fields,
and what is refused of a manifest although the API would take it, stand in `rules`.
"""

import re
from typing import Any

from kerf.manifests.kinds import CONDITIONS, EFFECTS, object_of
from kerf.manifests.schema import (
    DURATION,
    DURATION_OR_NEVER,
    FILLED,
    INSTANT,
    LABEL_VALUE,
    QUALIFIED_NAME,
    QUANTITY_HINT,
    TEXT,
    ListOf,
    MapOf,
    Path,
    Record,
    Report,
    Scalar,
    Schema,
    is_quantity,
    one_of,
    whole,
)
from kerf.model.constraints import OPERATORS
from kerf.model.quantities import quantity_of

_MOST = 100
_PERCENT = re.compile(r"(?:100|[0-9]{1,2})%|[0-9]+", re.ASCII)
_HOURS_AND_MINUTES = re.compile(r"(?:[0-9]+[mh]|[0-9]+h[0-9]+m)(?:0s)?", re.ASCII)
_PRICE = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
_ADJUSTMENT = re.compile(r"[+-](?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)%?", re.ASCII)
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_QUANTITY = re.compile(rf"[+-]?{_NUMBER}(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?{_NUMBER})?", re.ASCII)


def _matches(form: re.Pattern[str], words: str) -> Scalar:
    return Scalar(words, lambda value: isinstance(value, str) and form.fullmatch(value) is not None)


def _weight(most: int) -> Scalar:
    # A server takes 1.0 for it, and stores 1; it refuses 1.0 where its rules compute with the number.
    return Scalar(
        f"a whole number from 1 to {most}",
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value in range(1, most + 1),
    )


class _Texts(MapOf):
    """A map of texts. A live object may have null for what is absent."""

    def check(self, value: Any, path: Path, report: Report) -> None:
        """See Schema."""
        if report.is_live and isinstance(value, dict):
            value = {name: text for name, text in value.items() if text is not None}
        super().check(value, path, report)


class _Quantities:
    """A map of resource names to quantities as the CRDs have them: text, or whole numbers.

    A live object may have negative ones, and null for what is absent.
    """

    def check(self, value: Any, path: Path, report: Report) -> None:
        """See Schema."""
        if not isinstance(value, dict):
            report.problem(path, "a mapping of resources to quantities", value)
            return
        for name, amount in value.items():
            at = (*path, name)
            if isinstance(amount, float) and not amount.is_integer():
                report.problem(at, "text or a whole number", amount)
            elif not (_is_amount(amount) or (report.is_live and amount is None)):
                report.problem(at, "a quantity", amount, QUANTITY_HINT)
            elif not report.is_live and is_quantity(name, amount) and quantity_of(name, amount) < 0:
                report.problem(at, "a quantity that is not negative", amount)

    def fits(self, value: Any, report: Report) -> bool:
        """See Schema."""
        if not isinstance(value, dict):
            return False
        return all(self._is_sound(name, amount, report.is_live) for name, amount in value.items())

    def _is_sound(self, name: str, amount: Any, is_live: bool) -> bool:
        if not _is_amount(amount):
            return is_live and amount is None
        if isinstance(amount, float) and not amount.is_integer():
            return False
        return is_live or not is_quantity(name, amount) or quantity_of(name, amount) >= 0


def _is_amount(value: object) -> bool:
    if isinstance(value, str):
        return _QUANTITY.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


_QUANTITIES = _Quantities()
_REQUIREMENT: dict[str, Schema] = {
    "key": Scalar(
        "a label key such as example.com/name",
        lambda value: QUALIFIED_NAME.accepts(value) and len(value) <= 316,
    ),
    "operator": one_of(*OPERATORS),
    "values": ListOf(TEXT),
}
_REQUIREMENTS = ListOf(Record({**_REQUIREMENT, "minValues": whole(1, 50)}, ("key", "operator")), 0, _MOST)
_NODE_CLASS_REF = Record(
    {
        "group": Scalar("a group such as karpenter.k8s.aws", lambda v: isinstance(v, str) and v != "" and "/" not in v),
        "kind": FILLED,
        "name": FILLED,
    },
    ("group", "kind", "name"),
)
_TAINTS = ListOf(
    Record(
        {"key": QUALIFIED_NAME, "value": QUALIFIED_NAME, "effect": one_of(*EFFECTS), "timeAdded": INSTANT},
        ("key", "effect"),
    )
)
_NODE_FIELDS: dict[str, Schema] = {
    "taints": _TAINTS,
    "startupTaints": _TAINTS,
    "requirements": _REQUIREMENTS,
    "nodeClassRef": _NODE_CLASS_REF,
    "terminationGracePeriod": DURATION,
    "expireAfter": DURATION_OR_NEVER,
}


_BUDGET = Record(
    {
        "nodes": _matches(_PERCENT, "text that is a number of nodes or a percentage such as 10%"),
        "schedule": FILLED,
        "duration": _matches(_HOURS_AND_MINUTES, "a duration in hours and minutes such as 1h30m"),
        "reasons": ListOf(one_of("Underutilized", "Empty", "Drifted", "Unhealthy"), 0, 50),
    }
)
DISRUPTION = Record(
    {
        "consolidateAfter": DURATION_OR_NEVER,
        "consolidationPolicy": one_of("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"),
        "budgets": ListOf(_BUDGET, 0, 50),
    }
)
"""A NodePool's `spec.disruption`."""
NODE_POOL = object_of(
    Record(
        {
            "template": Record(
                {
                    "metadata": Record({"labels": _Texts(LABEL_VALUE, most=_MOST), "annotations": _Texts(TEXT)}),
                    "spec": Record(_NODE_FIELDS, ("requirements", "nodeClassRef")),
                },
                ("spec",),
            ),
            "disruption": DISRUPTION,
            "limits": _QUANTITIES,
            "weight": _weight(100),
            "replicas": whole(0, 2**31 - 1),
        },
        ("template",),
    ),
    Record({"resources": _QUANTITIES, "conditions": CONDITIONS}, is_open=True),
)
NODE_CLAIM = object_of(
    Record(
        {**_NODE_FIELDS, "resources": Record({"requests": _QUANTITIES})},
        ("requirements", "nodeClassRef"),
    ),
    Record(
        {
            "conditions": CONDITIONS,
            "capacity": _QUANTITIES,
            "allocatable": _QUANTITIES,
            "providerID": TEXT,
            "nodeName": TEXT,
            "lastPodEventTime": INSTANT,
        },
        is_open=True,
    ),
)
NODE_OVERLAY = object_of(
    Record(
        {
            "requirements": ListOf(Record(_REQUIREMENT, ("key", "operator")), 0, _MOST),
            "price": _matches(_PRICE, 'text that is a price per hour such as "1.006"'),
            "priceAdjustment": _matches(_ADJUSTMENT, 'text that is a signed number or percentage such as "-10%"'),
            "capacity": _QUANTITIES,
            "weight": _weight(10000),
        },
        ("requirements",),
    )
)
