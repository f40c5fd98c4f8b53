"""The form of Kubernetes' own objects, as far as Kerf reads them (API of Kubernetes 1.36).

Fields that are listed by name only exist and are not looked into.
"""

import re

from kerf.manifests.schema import (
    ANYTHING,
    BOOLEAN,
    COUNT,
    FILLED,
    INSTANT,
    INSTANT_AHEAD,
    INT32,
    INT64,
    LABEL_KEY,
    LABEL_VALUE,
    LABELS,
    NAME,
    QUANTITIES,
    TEXT,
    TEXTS,
    WHOLE,
    ListOf,
    MapOf,
    Record,
    Scalar,
    Schema,
    known,
    one_of,
    whole,
)

# Larger numbers are typing errors, and would be expanded pod by pod.
REPLICAS = whole(0, 1_000_000)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TOLERATION_OPERATORS = ("Equal", "Exists", "Gt", "Lt")
LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
"""Of selectors of labels."""
NODE_OPERATORS = (*LABEL_OPERATORS, "Gt", "Lt")
"""Of terms of node affinity."""

_PERCENT = re.compile(r"[0-9]{1,9}%", re.ASCII)


def _is_number_or_percent(value: object) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return 0 <= value < 2**31
    return isinstance(value, str) and _PERCENT.fullmatch(value) is not None


_OWNER = Record(
    {"kind": FILLED, "name": FILLED, "uid": TEXT, "controller": BOOLEAN, **known("apiVersion blockOwnerDeletion")},
    ("kind", "name"),
)
OWNERS = ListOf(_OWNER)
_METADATA_FIELDS: dict[str, Schema] = {
    "namespace": NAME,
    "labels": LABELS,
    "annotations": TEXTS,
    "uid": TEXT,
    "resourceVersion": TEXT,
    "generation": COUNT,
    "creationTimestamp": INSTANT,
    "deletionTimestamp": INSTANT_AHEAD,
    "finalizers": ListOf(TEXT),
    "ownerReferences": OWNERS,
    **known("generateName deletionGracePeriodSeconds managedFields selfLink"),
}
METADATA = Record({**_METADATA_FIELDS, "name": NAME}, ("name",))
TEMPLATE_METADATA = Record({**_METADATA_FIELDS, "name": TEXT})


def _conditions(status: Schema) -> ListOf:
    fields: dict[str, Schema] = {
        "type": FILLED,
        "status": status,
        "reason": TEXT,
        "message": TEXT,
        "lastTransitionTime": INSTANT,
    }
    return ListOf(Record(fields, ("type", "status"), is_open=True))


CONDITIONS = _conditions(one_of("True", "False", "Unknown"))
_OF_NODES = _conditions(FILLED)
"""The API server takes any text as the status of a node's condition, and an agent that writes one hides no node."""


def object_of(spec: Schema | None = None, status: Schema = ANYTHING, **others: Schema) -> Record:
    """A top-level object with its metadata; `spec` is required when it is given."""
    fields: dict[str, Schema] = {"apiVersion": FILLED, "kind": FILLED, "metadata": METADATA, "status": status, **others}
    if spec is None:
        return Record(fields, ("metadata",))
    return Record({**fields, "spec": spec}, ("metadata", "spec"))


_EXPRESSION_FIELDS: dict[str, Schema] = {"key": LABEL_KEY, "values": ListOf(TEXT)}
_NODE_EXPRESSION = Record({**_EXPRESSION_FIELDS, "operator": one_of(*NODE_OPERATORS)}, ("key", "operator"))
# What these fields must be is a matter of one pod, which is refused with a reason: see `pods.refusal`.
_LOOSE_EXPRESSION = Record({"key": TEXT, "operator": TEXT, "values": ListOf(TEXT)})
_LOOSE_SELECTOR = Record({"matchLabels": TEXTS, "matchExpressions": ListOf(_LOOSE_EXPRESSION)})
_NODE_TERM = Record({"matchExpressions": ListOf(_NODE_EXPRESSION), "matchFields": ListOf(_LOOSE_EXPRESSION)})
NODE_SELECTOR = Record({"nodeSelectorTerms": ListOf(_NODE_TERM, 1)}, ("nodeSelectorTerms",))
_LOOSE_NODE_TERM = Record({"matchExpressions": ListOf(_LOOSE_EXPRESSION), "matchFields": ListOf(_LOOSE_EXPRESSION)})
_NODE_AFFINITY = Record(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": Record({"nodeSelectorTerms": ListOf(_LOOSE_NODE_TERM)}),
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(
            Record({"weight": INT32, "preference": _LOOSE_NODE_TERM})
        ),
    }
)
_POD_TERM = Record(
    {
        "topologyKey": TEXT,
        "labelSelector": _LOOSE_SELECTOR,
        "namespaces": ListOf(TEXT),
        "namespaceSelector": _LOOSE_SELECTOR,
        "matchLabelKeys": ListOf(TEXT),
        "mismatchLabelKeys": ListOf(TEXT),
    }
)
_POD_AFFINITY = Record(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": ListOf(_POD_TERM),
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(
            Record({"weight": INT32, "podAffinityTerm": _POD_TERM})
        ),
    }
)
_SPREAD = Record(
    {
        "topologyKey": TEXT,
        "maxSkew": INT32,
        "minDomains": INT32,
        "whenUnsatisfiable": TEXT,
        "labelSelector": _LOOSE_SELECTOR,
        "matchLabelKeys": ListOf(TEXT),
        "nodeAffinityPolicy": TEXT,
        "nodeTaintsPolicy": TEXT,
    }
)
_AFFINITY = Record({"nodeAffinity": _NODE_AFFINITY, "podAffinity": _POD_AFFINITY, "podAntiAffinity": _POD_AFFINITY})
SELECTOR = Record(
    {
        "matchLabels": LABELS,
        "matchExpressions": ListOf(
            Record(
                {**_EXPRESSION_FIELDS, "operator": one_of(*LABEL_OPERATORS)},
                ("key", "operator"),
            )
        ),
    }
)

TAINTS = ListOf(
    Record(
        {"key": LABEL_KEY, "value": LABEL_VALUE, "effect": one_of(*EFFECTS), "timeAdded": INSTANT}, ("key", "effect")
    )
)
_TOLERATION: dict[str, Schema] = {"key": TEXT, "value": TEXT, "tolerationSeconds": INT64}
_TOLERATIONS = ListOf(
    Record({**_TOLERATION, "operator": one_of(*TOLERATION_OPERATORS), "effect": one_of("", *EFFECTS)})
)
_LOOSE_TOLERATIONS = ListOf(Record({**_TOLERATION, "operator": TEXT, "effect": TEXT}))

_RESOURCES = Record(
    {"limits": QUANTITIES, "requests": QUANTITIES, "claims": ListOf(Record({"name": TEXT}, is_open=True))}
)
_PORT = Record(
    {
        "containerPort": INT32,
        "hostPort": INT32,
        "protocol": TEXT,
        "hostIP": TEXT,
        "name": TEXT,
    },
    ("containerPort",),
)
_CONTAINERS = ListOf(
    Record(
        {
            "name": FILLED,
            "image": TEXT,
            "command": ListOf(TEXT),
            "args": ListOf(TEXT),
            "ports": ListOf(_PORT),
            "env": ListOf(Record({"name": TEXT}, is_open=True)),
            "resources": _RESOURCES,
            "restartPolicy": TEXT,
            "securityContext": MapOf(ANYTHING),
            "volumeMounts": ListOf(Record({"name": TEXT, "mountPath": TEXT}, is_open=True)),
            "volumeDevices": ListOf(Record({"name": TEXT, "devicePath": TEXT}, is_open=True)),
            **known(
                "workingDir envFrom resizePolicy restartPolicyRules livenessProbe readinessProbe startupProbe"
                " lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy stdin stdinOnce tty"
            ),
        },
        ("name",),
    )
)
_CLAIM_SPEC = Record(
    {
        "storageClassName": TEXT,
        "resources": Record({"requests": QUANTITIES}, is_open=True),
        "volumeAttributesClassName": TEXT,
    },
    is_open=True,
)
_VOLUME = Record(
    {
        "name": TEXT,
        "persistentVolumeClaim": Record({"claimName": FILLED, "readOnly": BOOLEAN}, ("claimName",)),
        "ephemeral": Record({"volumeClaimTemplate": Record({"metadata": ANYTHING, "spec": _CLAIM_SPEC})}),
        **known(
            "hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs rbd"
            " flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume quobyte azureDisk"
            " photonPersistentDisk projected portworxVolume scaleIO storageos csi image"
        ),
    }
)
POD_SPEC = Record(
    {
        "containers": _CONTAINERS,
        "initContainers": _CONTAINERS,
        "nodeSelector": TEXTS,
        "affinity": _AFFINITY,
        "tolerations": _LOOSE_TOLERATIONS,
        "schedulerName": TEXT,
        "priorityClassName": TEXT,
        "priority": INT32,
        "overhead": QUANTITIES,
        "schedulingGates": ListOf(Record({"name": FILLED}, ("name",))),
        "topologySpreadConstraints": ListOf(_SPREAD),
        "resourceClaims": ListOf(Record({"name": TEXT}, is_open=True)),
        "resources": _RESOURCES,
        "volumes": ListOf(_VOLUME),
        "nodeName": TEXT,
        "hostNetwork": BOOLEAN,
        "runtimeClassName": TEXT,
        # A negative one, as of old, is one second; some state the longest there is for "never".
        "terminationGracePeriodSeconds": INT64,
        "activeDeadlineSeconds": COUNT,
        "dnsPolicy": TEXT,
        "dnsConfig": Record({"nameservers": ListOf(TEXT)}, is_open=True),
        "os": Record({"name": TEXT}, is_open=True),
        "hostname": TEXT,
        "subdomain": TEXT,
        "serviceAccountName": TEXT,
        "hostPID": BOOLEAN,
        "shareProcessNamespace": BOOLEAN,
        "ephemeralContainers": ListOf(ANYTHING),
        **known(
            "restartPolicy serviceAccount automountServiceAccountToken hostIPC securityContext imagePullSecrets"
            " hostAliases readinessGates enableServiceLinks preemptionPolicy setHostnameAsFQDN hostUsers"
            " hostnameOverride schedulingGroup"
        ),
        "workloadRef": Record({"name": TEXT, "podGroup": TEXT, "podGroupReplicaKey": TEXT}, is_open=True),
    }
)
CONTAINER_STATUSES = ListOf(
    Record(
        {
            "name": TEXT,
            "state": MapOf(MapOf(ANYTHING)),
            "resources": Record({"requests": QUANTITIES}, is_open=True),
            "allocatedResources": QUANTITIES,
        },
        is_open=True,
    )
)
POD_STATUS = Record(
    {
        "phase": one_of("Pending", "Running", "Succeeded", "Failed", "Unknown"),
        "conditions": CONDITIONS,
        "startTime": INSTANT,
        "nominatedNodeName": TEXT,
        "initContainerStatuses": CONTAINER_STATUSES,
        "containerStatuses": CONTAINER_STATUSES,
    },
    is_open=True,
)
# The spec of a Pod is checked where equal specs are decoded once.
POD = object_of(ANYTHING, POD_STATUS)

_TEMPLATE = Record({"metadata": TEMPLATE_METADATA, "spec": ANYTHING}, ("spec",))
_JOB_SPEC = Record(
    {
        "parallelism": REPLICAS,
        "completions": COUNT,
        "suspend": BOOLEAN,
        "selector": SELECTOR,
        "template": _TEMPLATE,
        **known(
            "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode manualSelector managedBy"
            " maxFailedIndexes podFailurePolicy podReplacementPolicy successPolicy ttlSecondsAfterFinished"
        ),
    },
    ("template",),
)
_SET: dict[str, Schema] = {"replicas": REPLICAS, "selector": SELECTOR, "template": _TEMPLATE}
WORKLOADS: dict[str, Record] = {
    "Deployment": object_of(
        Record(
            {
                **_SET,
                **known("strategy minReadySeconds revisionHistoryLimit paused progressDeadlineSeconds"),
            },
            ("template",),
        )
    ),
    "ReplicaSet": object_of(Record({**_SET, **known("minReadySeconds")}, ("template",))),
    "StatefulSet": object_of(
        Record(
            {
                **_SET,
                "ordinals": Record({"start": COUNT}),
                "volumeClaimTemplates": ListOf(
                    Record({"metadata": Record({"name": NAME}, is_open=True), "spec": _CLAIM_SPEC}, is_open=True)
                ),
                **known(
                    "serviceName podManagementPolicy updateStrategy revisionHistoryLimit minReadySeconds"
                    " persistentVolumeClaimRetentionPolicy"
                ),
            },
            ("template",),
        )
    ),
    "Job": object_of(_JOB_SPEC, Record({"succeeded": COUNT, "startTime": INSTANT}, is_open=True)),
    "CronJob": object_of(
        Record(
            {
                "schedule": FILLED,
                "suspend": BOOLEAN,
                "jobTemplate": Record({"metadata": TEMPLATE_METADATA, "spec": _JOB_SPEC}, ("spec",)),
                **known(
                    "timeZone startingDeadlineSeconds concurrencyPolicy successfulJobsHistoryLimit"
                    " failedJobsHistoryLimit"
                ),
            },
            ("schedule", "jobTemplate"),
        )
    ),
}
JOB_SET = object_of(
    Record(
        {
            "replicatedJobs": ListOf(
                Record(
                    {
                        "name": FILLED,
                        "replicas": COUNT,
                        "template": Record({"metadata": TEMPLATE_METADATA, "spec": _JOB_SPEC}, ("spec",)),
                        **known("groupName dependsOn"),
                    },
                    ("name", "template"),
                )
            ),
            "suspend": BOOLEAN,
            "failurePolicy": Record({"maxRestarts": COUNT}, is_open=True),
            **known(
                "network successPolicy startupPolicy coordinator managedBy ttlSecondsAfterFinished"
                " volumeClaimPolicies activeDeadlineSeconds"
            ),
        },
        ("replicatedJobs",),
    ),
    Record({"terminalState": TEXT}, is_open=True),
)
DAEMON_SET = object_of(
    Record(
        {
            "selector": SELECTOR,
            "template": _TEMPLATE,
            **known("updateStrategy minReadySeconds revisionHistoryLimit templateGeneration"),
        },
        ("template",),
    )
)

NODE = Record(
    {
        "apiVersion": FILLED,
        "kind": FILLED,
        "metadata": METADATA,
        "spec": Record(
            {
                "taints": TAINTS,
                "unschedulable": BOOLEAN,
                "providerID": TEXT,
                **known("podCIDR podCIDRs externalID configSource"),
            }
        ),
        "status": Record(
            {
                "capacity": QUANTITIES,
                "allocatable": QUANTITIES,
                "conditions": _OF_NODES,
            },
            is_open=True,
        ),
    },
    ("metadata",),
)
_NUMBER_OR_PERCENT = Scalar("a whole number or a percentage such as 50%", _is_number_or_percent)
DISRUPTION_BUDGET = object_of(
    Record(
        {
            "selector": SELECTOR,
            "minAvailable": _NUMBER_OR_PERCENT,
            "maxUnavailable": _NUMBER_OR_PERCENT,
            **known("unhealthyPodEvictionPolicy"),
        }
    ),
    Record({"disruptionsAllowed": WHOLE}, is_open=True),
)
CONFIG_MAP = object_of(data=TEXTS, binaryData=ANYTHING, immutable=BOOLEAN)
_SCOPE = Record({"scopeName": TEXT, "operator": TEXT, "values": ListOf(TEXT)}, required=("scopeName", "operator"))
RESOURCE_QUOTA = object_of(
    Record(
        {
            "hard": QUANTITIES,
            "scopes": ListOf(TEXT),
            "scopeSelector": Record({"matchExpressions": ListOf(_SCOPE)}),
        }
    )
)
LIMIT_RANGE = object_of(
    Record(
        {
            "limits": ListOf(
                Record(
                    {
                        "type": FILLED,
                        **dict.fromkeys(
                            ("default", "defaultRequest", "max", "min", "maxLimitRequestRatio"), QUANTITIES
                        ),
                    },
                    ("type",),
                )
            )
        },
        ("limits",),
    )
)
PRIORITY_CLASS = Record(
    {
        "apiVersion": FILLED,
        "kind": FILLED,
        "metadata": METADATA,
        "value": INT32,
        "globalDefault": BOOLEAN,
        **known("description preemptionPolicy"),
    },
    ("metadata", "value"),
)
NAMESPACE = Record({"apiVersion": FILLED, "kind": FILLED, "metadata": METADATA, **known("spec status")}, ("metadata",))
SERVICE = Record(
    {
        "apiVersion": FILLED,
        "kind": FILLED,
        "metadata": METADATA,
        "spec": Record({"selector": TEXTS}, is_open=True),
        **known("status"),
    },
    ("metadata",),
)
RUNTIME_CLASS = Record(
    {
        "apiVersion": FILLED,
        "kind": FILLED,
        "metadata": METADATA,
        "handler": TEXT,
        "overhead": Record({"podFixed": QUANTITIES}),
        "scheduling": Record({"nodeSelector": LABELS, "tolerations": _TOLERATIONS}),
    },
    ("metadata",),
)
CLUSTER_POLICY = object_of(
    Record(
        {
            "mig": Record({"strategy": one_of("", "none", "single", "mixed")}, is_open=True),
            "devicePlugin": Record(
                {
                    "enabled": BOOLEAN,
                    "version": TEXT,
                    "config": Record({"name": TEXT, "default": TEXT}, is_open=True),
                },
                is_open=True,
            ),
            "daemonsets": Record({"tolerations": _LOOSE_TOLERATIONS}, is_open=True),
        },
        is_open=True,
    ),
    status=Record({"namespace": TEXT}, is_open=True),
)
NODE_CLASS = Record(
    {
        "apiVersion": FILLED,
        "kind": FILLED,
        "metadata": METADATA,
        "spec": ANYTHING,
        "status": Record({"conditions": CONDITIONS}, is_open=True),
    },
    ("metadata",),
)
