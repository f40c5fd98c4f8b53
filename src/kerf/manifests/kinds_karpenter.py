"""The form of Karpenter's objects: `karpenter.sh/v1` NodePool and NodeClaim, `karpenter.sh/v1alpha1` NodeOverlay.

Types and bounds as the CRDs state them; rules between fields stand in `rules`.
"""

import re

from kerf.manifests.kinds import CONDITIONS, TAINTS, TEMPLATE_METADATA, object_of
from kerf.manifests.schema import (
    COUNT,
    DURATION,
    DURATION_OR_NEVER,
    FILLED,
    INSTANT,
    LABEL_KEY,
    QUANTITIES,
    REQUIRED_VALUE,
    TEXT,
    ListOf,
    Record,
    Scalar,
    Schema,
    one_of,
    whole,
)
from kerf.model.constraints import OPERATORS

_MOST = 100
_PERCENT = re.compile(r"(?:100|[0-9]{1,2})%|[0-9]{1,9}", re.ASCII)
_SCHEDULE = re.compile(r"@(?:annually|yearly|monthly|weekly|daily|midnight|hourly)|\S+(?:\s+\S+){4}", re.ASCII)
_HOURS_AND_MINUTES = re.compile(r"(?:[0-9]{1,9}[mh])+(?:0s)?", re.ASCII)
_PRICE = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?", re.ASCII)
_ADJUSTMENT = re.compile(r"[+-][0-9]{1,15}(?:\.[0-9]{1,15})?%?", re.ASCII)

_REQUIREMENT: dict[str, Schema] = {
    "key": LABEL_KEY,
    "operator": one_of(*OPERATORS),
    "values": ListOf(REQUIRED_VALUE),
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
_NODE_FIELDS: dict[str, Schema] = {
    "taints": TAINTS,
    "startupTaints": TAINTS,
    "requirements": _REQUIREMENTS,
    "nodeClassRef": _NODE_CLASS_REF,
    "terminationGracePeriod": DURATION,
    "expireAfter": DURATION_OR_NEVER,
}


def _matches(form: re.Pattern[str], words: str) -> Scalar:
    return Scalar(words, lambda value: isinstance(value, str) and form.fullmatch(value) is not None)


def _is_budget(value: object) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return 0 <= value < 10**9
    return isinstance(value, str) and _PERCENT.fullmatch(value) is not None


_BUDGET = Record(
    {
        "nodes": Scalar("a number of nodes or a percentage such as 10%", _is_budget),
        "schedule": _matches(_SCHEDULE, "a cron expression of five fields, or a macro such as @daily"),
        "duration": _matches(_HOURS_AND_MINUTES, "a duration in hours and minutes such as 1h30m"),
        "reasons": ListOf(one_of("Underutilized", "Empty", "Drifted"), 0, 50),
    }
)
NODE_POOL = object_of(
    Record(
        {
            "template": Record(
                {
                    "metadata": TEMPLATE_METADATA,
                    "spec": Record(_NODE_FIELDS, ("requirements", "nodeClassRef")),
                },
                ("spec",),
            ),
            "disruption": Record(
                {
                    "consolidateAfter": DURATION_OR_NEVER,
                    "consolidationPolicy": one_of("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"),
                    "budgets": ListOf(_BUDGET, 0, 50),
                }
            ),
            "limits": QUANTITIES,
            "weight": whole(1, 100),
            "replicas": COUNT,
        },
        ("template",),
    ),
    Record({"resources": QUANTITIES, "conditions": CONDITIONS}, is_open=True),
)
NODE_CLAIM = object_of(
    Record(
        {**_NODE_FIELDS, "resources": Record({"requests": QUANTITIES})},
        ("requirements", "nodeClassRef"),
    ),
    Record(
        {
            "conditions": CONDITIONS,
            "capacity": QUANTITIES,
            "allocatable": QUANTITIES,
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
            "capacity": QUANTITIES,
            "weight": whole(1, 10000),
        },
        ("requirements",),
    )
)
