"""One bad object of a tenant never ends the plan of the others, whatever stands in any of its fields."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.cli.program import kerf
from tests.examples import examples

often = examples(90, derandomize=True, database=None, deadline=None)

NODE_CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
REQUIREMENTS = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.xlarge"]}]
POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "p"},
    "spec": {"template": {"spec": {"nodeClassRef": NODE_CLASS, "requirements": REQUIREMENTS}}},
}
FINE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "fine", "namespace": "other"},
    "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]},
}
ZONE, NAMES = "topology.kubernetes.io/zone", {"name": "w", "namespace": "team"}
REQUIRED, PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))


def selector() -> Any:
    """Labels and an expression."""
    return {"matchLabels": {"app": "w"}, "matchExpressions": [{"key": "app", "operator": "In", "values": ["w"]}]}


def claim_spec() -> Any:
    """Of a claim and of templates of claims."""
    size = {"requests": {"storage": "1Gi"}}
    return {"accessModes": ["ReadWriteOnce"], "storageClassName": "sc", "volumeMode": "Filesystem", "resources": size}


def pod_spec(policy: str = "Always") -> Any:
    """A spec with every field that Kerf reads."""
    amounts = {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1"}}
    node_term = {
        "matchExpressions": [{"key": "k", "operator": "Gt", "values": ["1"]}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
    }
    pod_term = {
        "topologyKey": ZONE,
        "labelSelector": selector(),
        "namespaces": ["a"],
        "namespaceSelector": selector(),
        "matchLabelKeys": ["app"],
    }
    spread = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "minDomains": 2,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector(),
        "matchLabelKeys": ["app"],
        "nodeAffinityPolicy": "Honor",
        "nodeTaintsPolicy": "Ignore",
    }
    main = {
        "name": "main",
        "ports": [{"containerPort": 80, "hostPort": 81, "protocol": "TCP", "hostIP": "1.2.3.4", "name": "http"}],
        "resources": amounts,
        "env": [{"name": "A", "value": "b"}],
        "securityContext": {"privileged": False},
        "volumeMounts": [{"name": "v", "mountPath": "/x"}],
    }
    return {
        "containers": [main],
        "initContainers": [{"name": "first", "restartPolicy": "Always", "resources": {"limits": {"cpu": "1"}}}],
        "restartPolicy": policy,
        "nodeSelector": {"a": "b"},
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [node_term]},
                PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [{"key": "k", "operator": "Exists"}]}}],
            },
            "podAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": deepcopy(pod_term)}]},
            "podAntiAffinity": {REQUIRED: [pod_term]},
        },
        "tolerations": [
            {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 3},
        ],
        "topologySpreadConstraints": [spread],
        "schedulerName": "default-scheduler",
        "priority": 0,
        "priorityClassName": "",
        "schedulingGates": [],
        "runtimeClassName": "rc",
        "overhead": {"cpu": "1m"},
        "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}},
        "terminationGracePeriodSeconds": 30,
        "activeDeadlineSeconds": 5,
        "hostNetwork": False,
        "dnsPolicy": "ClusterFirst",
        "os": {"name": "linux"},
        "hostname": "h",
        "nodeName": "",
        "volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "pvc"}},
            {"name": "e", "ephemeral": {"volumeClaimTemplate": {"metadata": {}, "spec": claim_spec()}}},
        ],
    }


def template(policy: str = "Always") -> Any:
    """Of a workload."""
    return {"metadata": {"labels": {"app": "w"}, "annotations": {"a": "b"}}, "spec": pod_spec(policy)}


def job() -> Any:
    """The spec of a Job."""
    return {"parallelism": 2, "completions": 2, "suspend": False, "template": template("Never")}


def objects() -> Iterator[Any]:
    """One of each kind that tenants write, with every field that Kerf reads."""
    of_set = {"replicas": 2, "selector": selector()}
    kinds: list[tuple[str, str, Any]] = [
        ("v1", "Pod", pod_spec()),
        ("apps/v1", "Deployment", {**of_set, "template": template()}),
        (
            "apps/v1",
            "StatefulSet",
            {
                **of_set,
                "ordinals": {"start": 0},
                "template": template(),
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec()}],
            },
        ),
        ("apps/v1", "DaemonSet", {"selector": selector(), "template": template()}),
        ("batch/v1", "Job", job()),
        ("batch/v1", "CronJob", {"schedule": "@daily", "timeZone": "UTC", "jobTemplate": {"spec": job()}}),
        ("v1", "PersistentVolumeClaim", {**claim_spec(), "volumeName": "", "selector": selector()}),
        (
            "v1",
            "PersistentVolume",
            {
                **{name: value for name, value in claim_spec().items() if name != "resources"},
                "capacity": {"storage": "1Gi"},
                "claimRef": {"name": "pvc", "namespace": "team"},
                "csi": {"driver": "ebs.csi.aws.com"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": []}]}},
            },
        ),
        ("v1", "Service", {"selector": {"app": "w"}}),
        (
            "v1",
            "LimitRange",
            {"limits": [{"type": "Container", "default": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "4"}}]},
        ),
        (
            "v1",
            "ResourceQuota",
            {
                "hard": {"cpu": "9", "requests.memory": "9Gi", "count/pods": "4"},
                "scopes": ["NotTerminating"],
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["x"]}]
                },
            },
        ),
        ("v1", "Namespace", {}),
        ("policy/v1", "PodDisruptionBudget", {"selector": selector(), "minAvailable": "50%"}),
    ]
    for version, kind, spec in kinds:
        yield {"apiVersion": version, "kind": kind, "metadata": {**NAMES, "labels": {"app": "w"}}, "spec": spec}
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "sc", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["us-east-1a"]}]}],
    }
    yield {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "rc"},
        "handler": "x",
        "overhead": {"podFixed": {"cpu": "1m"}},
        "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
    }
    yield {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "pc"},
        "value": 5,
        "globalDefault": False,
    }


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value, outermost first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in items for found in paths_of(item, (*path, key)))]


OBJECTS = list(objects())
HEAD = (("kind",), ("apiVersion",))
PLACES = [(index, path) for index, each in enumerate(OBJECTS) for path in paths_of(each)[1:] if path not in HEAD]
BAD: list[Any] = [
    *("", "-1", "é", "a b", "<x>", "nan", "1e400", "9" * 500, "x" * 5000, "10000000000000000000Gi", "*", "100%"),
    *(-1, 0, 10**30, 2**31, 2**53 + 1, 2**63, -(2**63), 1.5, -5.5, 1e300, True, None),
    *([], {}, [None], [{}], [[]], ["a", "a"], {"a": None}, {"": None}, {"a": {}}, {"a": [1]}),
]


@st.composite
def spoiled(draw: Callable[..., Any]) -> Any:
    """One of the objects with another value in one of its places."""
    index, path = draw(st.sampled_from(PLACES))
    found = deepcopy(OBJECTS[index])
    holder = found
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = deepcopy(draw(st.sampled_from(BAD)))
    return found


@often
@given(spoiled())
def test_one_bad_object_never_ends_the_plan_of_the_others(bad: Any) -> None:
    """Exit 0 or 3, the pod beside it is placed, and lint reads the object without a failing rule."""
    text = "\n".join(map(json.dumps, (POOL, FINE, bad)))
    planned, linted = kerf("plan", "-f", "-", "-o", "json", stdin=text), kerf("lint", "-f", "-", stdin=text)

    assert planned.returncode in (0, 3), planned.stderr
    assert "other/fine" in [pod for launch in planned.data["launches"] for pod in launch["pods"]]
    assert linted.returncode in (0, 3), linted.stderr
    assert "failed:" not in linted.stdout
