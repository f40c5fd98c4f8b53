"""The form of what others say of groups of pods: PodGroups of two schedulers, Kubernetes' own Workload, PodTemplate and
ProvisioningRequest.

They are other projects' kinds, so that only what Kerf reads is looked at; all else of them may change.
"""

from kerf.manifests.kinds import CONDITIONS, METADATA, TEMPLATE_METADATA, object_of
from kerf.manifests.schema import ANYTHING, FILLED, NAME, TEXTS, ListOf, Record, whole

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
