"""The form of what others say of groups of pods: PodGroups of two schedulers, Kubernetes' own Workload, PodTemplate,
ProvisioningRequest and CapacityBuffer.

They are other projects' kinds, so only what Kerf reads is looked at; all else of them may change.
"""

from typing import Any

from kerf.manifests.kinds import CONDITIONS, METADATA, TEMPLATE_METADATA, object_of
from kerf.manifests.schema import ANYTHING, FILLED, NAME, QUANTITIES, TEXT, TEXTS, WHOLE, ListOf, Record, Report, whole

MOST_PODS = 16_384
"""Of one set: the bound that Cluster Autoscaler's proposal gives; more would be planned for one by one."""
POD_GROUP = object_of(Record({"minMember": whole(0)}, is_open=True))
WORKLOAD = object_of(
    Record(
        {
            "podGroups": ListOf(
                Record(
                    {"name": FILLED, "policy": Record({"gang": Record({"minCount": whole(1)})}, is_open=True)},
                    ("name",),
                    is_open=True,
                )
            )
        },
        is_open=True,
    )
)
POD_TEMPLATE = Record(
    {
        "apiVersion": FILLED,
        "kind": FILLED,
        "metadata": METADATA,
        "template": Record({"metadata": TEMPLATE_METADATA, "spec": ANYTHING}, ("spec",)),
    },
    ("metadata", "template"),
)
_POD_SET = Record(
    {"podTemplateRef": Record({"name": NAME}, ("name",)), "count": whole(1, MOST_PODS)}, ("podTemplateRef", "count")
)
PROVISIONING_REQUEST = object_of(
    Record(
        {"provisioningClassName": FILLED, "podSets": ListOf(_POD_SET, 1, 32), "parameters": TEXTS},
        ("provisioningClassName", "podSets"),
    ),
    Record({"conditions": CONDITIONS}, is_open=True),
)
_MOST_INT32 = 2**31 - 1
CAPACITY_BUFFER = object_of(
    Record(
        {
            "provisioningStrategy": TEXT,
            "podTemplateRef": Record({"name": FILLED}, ("name",)),
            "scalableRef": Record({"apiGroup": TEXT, "kind": FILLED, "name": FILLED}, ("kind", "name")),
            "replicas": whole(0, _MOST_INT32),
            "percentage": whole(0, _MOST_INT32),
            "limits": QUANTITIES,
        }
    ),
    Record(
        {
            "replicas": WHOLE,
            "podTemplateRef": Record({"name": TEXT}, is_open=True),
            "podTemplateGeneration": WHOLE,
            "provisioningStrategy": TEXT,
            "conditions": CONDITIONS,
        },
        is_open=True,
    ),
)


def check_capacity_buffer(raw: dict[str, Any], report: Report) -> None:
    """What the API server refuses by the rules of the definition."""
    spec = raw["spec"]
    has_template = spec.get("podTemplateRef") is not None
    if has_template and spec.get("scalableRef") is not None:
        hint = "take one of them away"
        report.problem(("spec", "scalableRef"), "podTemplateRef or scalableRef, not both", spec["scalableRef"], hint)
    elif has_template and spec.get("replicas") is None and spec.get("limits") is None:
        hint = "with a podTemplateRef one of replicas and limits says for how many pods room is kept"
        report.problem(("spec", "replicas"), "a whole number of at least 0, or limits", None, hint)
