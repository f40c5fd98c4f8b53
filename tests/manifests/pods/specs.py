"""Specs of pods that an API server refuses, and their like that it takes.

Each is a change to `GOOD`, by top-level field. What the server says of each is asked in
`tests/controlplane/test_refused_pods.py`.
"""

from typing import Any

Spec = dict[str, Any]

CONTAINER: Spec = {"name": "a", "image": "example.com/a"}
GOOD: Spec = {"containers": [CONTAINER]}
_CPU = {"requests": {"cpu": "1"}}
_PORT = {"containerPort": 80, "hostPort": 80}
_TEMPLATE = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def containers(*changes: Spec, part: str = "containers") -> Spec:
    """One container a change, named a, b, c and so on."""
    made = [{**CONTAINER, "name": "abcdef"[number], **change} for number, change in enumerate(changes)]
    return {part: made}


def inits(*changes: Spec) -> Spec:
    """The same for init containers, which are named i0, i1 and so on."""
    made = [{**CONTAINER, "name": f"i{number}", **change} for number, change in enumerate(changes)]
    return {"initContainers": made}


def volumes(*sources: Spec) -> Spec:
    """One volume a source, named v0, v1 and so on."""
    return {"volumes": [{"name": f"v{number}", **source} for number, source in enumerate(sources)]}


def resources(requests: Spec | None = None, limits: Spec | None = None) -> Spec:
    """What one container asks."""
    return {"resources": {"requests": requests or {}, "limits": limits or {}}}


_TENANTS = {"matchExpressions": [{"key": "tenant", "operator": "Exists"}]}


def _term(**fields: Any) -> Spec:
    term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {}, **fields}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


REFUSED: tuple[Spec, ...] = (
    {"containers": []},
    containers({"name": "Bad_Name"}),
    containers({"name": "a.b"}),
    containers({"name": "x" * 64}),
    containers({}, {"name": "a"}),
    inits({"name": "a"}),
    # Ports.
    containers({"ports": [_PORT, _PORT]}),
    containers({"ports": [_PORT]}, {"ports": [{"containerPort": 81, "hostPort": 80}]}),
    containers({"ports": [{"name": "x", "containerPort": 80}, {"name": "x", "containerPort": 81}]}),
    containers({"ports": [{"name": "A_", "containerPort": 80}]}),
    containers({"ports": [{"name": "1", "containerPort": 80}]}),
    containers({"ports": [{"name": "a--b", "containerPort": 80}]}),
    containers({"ports": [{"name": "a" * 16, "containerPort": 80}]}),
    containers({"ports": [{"containerPort": 80, "hostPort": -1}]}),
    {**containers({"ports": [{"containerPort": 80, "hostPort": 81}]}), "hostNetwork": True},
    {**containers({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80}]}), "hostNetwork": True},
    inits({"ports": [_PORT, _PORT]}),
    # What containers ask.
    containers(resources({"cpu": "2"}, {"cpu": "1"})),
    containers(resources({"cpus": "1"})),
    containers(resources({"gpu": "1"}, {"gpu": "1"})),
    containers(resources({"storage": "1Gi"})),
    containers(resources({"a b/gpu": "1"}, {"a b/gpu": "1"})),
    containers(resources({"requests.nvidia.com/gpu": "1"}, {"requests.nvidia.com/gpu": "1"})),
    containers(resources({"nvidia.com/gpu": "1"})),
    containers(resources({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "2"})),
    containers(resources(limits={"nvidia.com/gpu": "500m"})),
    containers(resources({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "4Mi"})),
    containers(resources({"cpu": "1", "hugepages-2Mi": "2Mi"}, {"hugepages-2Mi": "4Mi"})),
    containers(resources({"cpu": "1", "hugepages-2Mi": "2Mi"})),
    containers(resources({"cpu": "1"}, {"hugepages-2Mi": "3Mi"})),
    containers(resources({"cpu": "1"}, {"hugepages-2Gi": "1500Mi"})),
    containers(resources({"cpu": "1"}, {"hugepages-x": "2Mi"})),
    inits(resources({"memory": "2Gi"}, {"memory": "1Gi"})),
    # What the pod asks as a whole.
    {**containers(resources(limits={"hugepages-2Mi": "4Mi", "cpu": "1"}))}
    | {"resources": {"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}}},
    {**containers({"resources": _CPU}), "resources": {"requests": {"cpu": "500m"}}},
    {**containers({"resources": _CPU}, {"resources": _CPU}), "resources": {"requests": {"cpu": "1900m"}}},
    {**containers({"resources": _CPU}), "resources": {"limits": {"cpu": "500m"}}},
    {**containers(resources(limits={"cpu": "1"})), "resources": {"limits": {"cpu": "500m"}}},
    {**inits({"resources": _CPU}), "resources": {"requests": {"cpu": "500m"}}},
    {**inits({"resources": _CPU, "restartPolicy": "Always"}), **containers({"resources": _CPU})}
    | {"resources": {"requests": {"cpu": "1500m"}}},
    {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
    {"resources": {"limits": {"nvidia.com/gpu": "1"}}},
    {"resources": {"requests": {"ephemeral-storage": "1Gi"}}},
    {"resources": {"requests": {"hugepages-2Mi": "2Mi"}}},
    {"resources": {"limits": {"hugepages-2Mi": "2Mi"}}},
    {"resources": {"limits": {"cpu": "1", "hugepages-2Mi": "3Mi"}}},
    # Mounts and volumes.
    containers({"volumeMounts": [{"name": "absent", "mountPath": "/x"}]}),
    inits({"volumeMounts": [{"name": "absent", "mountPath": "/x"}]}),
    {**containers({"volumeMounts": [{"name": "v0"}]}), **volumes({"emptyDir": {}})},
    {
        **containers({"volumeMounts": [{"name": "v0", "mountPath": "/x"}, {"name": "v0", "mountPath": "/x"}]}),
        **volumes({"emptyDir": {}}),
    },
    containers({"volumeDevices": [{"name": "absent", "devicePath": "/dev/x"}]}),
    {**containers({"volumeDevices": [{"name": "v0", "devicePath": "/dev/x"}]}), **volumes({"emptyDir": {}})},
    {"volumes": [{"name": "Bad_Name", "emptyDir": {}}]},
    {"volumes": [{"emptyDir": {}}]},
    {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]},
    volumes({"emptyDir": {}, "hostPath": {"path": "/x"}}),
    volumes({"persistentVolumeClaim": {"claimName": "c"}, "ephemeral": {"volumeClaimTemplate": _TEMPLATE}}),
    volumes({"hostPath": {}}),
    volumes({"secret": {}}),
    volumes({"configMap": {}}),
    volumes({"csi": {}}),
    volumes({"nfs": {"server": "a"}}),
    volumes({"ephemeral": {}}),
    volumes({"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}),
    volumes({"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}}}),
    volumes({"persistentVolumeClaim": {}}),
    # Restart policies.
    {"restartPolicy": "OnFail"},
    containers({"restartPolicy": "Sometimes"}),
    inits({"restartPolicy": "Sometimes"}),
    # Tolerations.
    {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
    {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoStart"}]},
    {"tolerations": [{"key": "a", "operator": "equal", "value": "x"}]},
    {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]},
    {"tolerations": [{"value": "x"}]},
    # Node selectors and affinity.
    {"nodeSelector": {"a b": "x"}},
    {"nodeSelector": {"a": "x y"}},
    _term(namespaces=["Bad NS"]),
    _term(namespaces=["a.b"]),
    _term(topologyKey=""),
    _term(matchLabelKeys=["tenant"], mismatchLabelKeys=["tenant"]),
    # Gates, names, deadlines, classes.
    {"schedulingGates": [{"name": "a.b/c"}, {"name": "a.b/c"}]},
    {"schedulingGates": [{"name": "a b"}]},
    {"schedulingGates": [{"name": "a.b/c"}], "nodeName": "x"},
    {"nodeName": "Bad_Name"},
    {"activeDeadlineSeconds": 0},
    {"overhead": {"cpu": "1"}},
    {"priority": 7},
    {"dnsPolicy": "Foo"},
    {"dnsPolicy": "None"},
    {"os": {"name": "plan9"}},
    {"hostname": "Bad_Name"},
    {"subdomain": "Bad_Name"},
    {"serviceAccountName": "Bad_Name"},
    {"hostPID": True, "shareProcessNamespace": True},
    containers({"resources": {"claims": [{"name": "absent"}]}}),
    {"ephemeralContainers": [{**CONTAINER, "name": "b"}]},
)

TAKEN: tuple[Spec, ...] = (
    {**inits(resources({"cpu": "1m"}, {"cpu": "1"})), "resources": {"limits": {"cpu": "500m"}}},
    {},
    containers({"ports": [{**_PORT, "hostIP": "nope"}]}),
    containers(resources({"kubernetes.io/batch-cpu": "1"})),
    {"os": {"name": "windows"}, "hostNetwork": True},
    {"hostPID": True},
    containers({}, {}, {}),
    containers({"ports": [_PORT, {**_PORT, "protocol": "UDP"}]}),
    containers({"ports": [{**_PORT, "hostIP": "10.0.0.1"}, {**_PORT, "hostIP": "10.0.0.2"}]}),
    containers({"ports": [_PORT, {**_PORT, "hostIP": "10.0.0.2"}]}),
    containers({"ports": [{"containerPort": 80}, {"containerPort": 80}]}),
    containers({"ports": [{"name": "x", "containerPort": 80}]}, {"ports": [{"name": "x", "containerPort": 81}]}),
    {**containers({"ports": [_PORT]}), **inits({"ports": [_PORT]})},
    {**containers({"ports": [_PORT]}), **inits({"ports": [_PORT], "restartPolicy": "Always"})},
    inits({"ports": [_PORT]}, {"ports": [_PORT]}),
    {**containers({"ports": [{"containerPort": 80}]}), "hostNetwork": True},
    containers(resources({"cpu": "1"}, {"cpu": "1"})),
    containers(resources({"ephemeral-storage": "1Gi"})),
    containers(resources({"cpu": "1"}, {"hugepages-2Mi": "4Mi"})),
    containers(resources(limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"})),
    containers(resources(limits={"cpu": "0"})),
    inits({"restartPolicy": "Always"}),
    inits({"restartPolicy": "OnFailure"}),
    inits({"restartPolicy": "Never"}),
    {**containers({"resources": _CPU}), "resources": {"requests": {"cpu": "1"}}},
    {**containers({"resources": _CPU}), **inits({"resources": _CPU}), "resources": {"requests": {"cpu": "1"}}},
    {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
    {"resources": {"limits": {"cpu": "1", "hugepages-2Mi": "2Mi"}}},
    {**containers(resources(limits={"cpu": "2"})), "resources": {"requests": {"cpu": "3"}}},
    {**containers({"volumeMounts": [{"name": "v0", "mountPath": "/x"}]}), **volumes({"emptyDir": {}})},
    {
        **containers({"volumeMounts": [{"name": "v0", "mountPath": "/x"}, {"name": "v0", "mountPath": "/y"}]}),
        **volumes({"emptyDir": {}}),
    },
    {
        **containers({"volumeDevices": [{"name": "v0", "devicePath": "/dev/x"}]}),
        **volumes({"persistentVolumeClaim": {"claimName": "c"}}),
    },
    volumes({}),
    volumes({"hostPath": {"path": "/x"}}, {"secret": {"secretName": "s"}}, {"configMap": {"name": "c"}}),
    volumes({"ephemeral": {"volumeClaimTemplate": _TEMPLATE}}),
    volumes({"persistentVolumeClaim": {"claimName": "Bad_Name"}}),
    volumes({"projected": {"sources": []}}),
    {"restartPolicy": "OnFailure"},
    containers({"restartPolicy": "Never"}),
    {"tolerations": [{"operator": "Exists"}, {"key": "a"}]},
    _term(namespaces=["a", "b-c"]),
    _term(mismatchLabelKeys=["tenant"], labelSelector=_TENANTS),
    {"schedulingGates": [{"name": "a.b/c"}, {"name": "a.b/d"}]},
    {"activeDeadlineSeconds": 1},
    {"terminationGracePeriodSeconds": 0},
    {"terminationGracePeriodSeconds": 2**63 - 1},
    {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2**63 - 1}]},
    {"priority": 0},
    {"dnsPolicy": "Default"},
    {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.0.0.1"]}},
    {"os": {"name": "windows"}},
    {"hostname": "a", "subdomain": "b"},
    {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "b"}]},
    {"schedulerName": "Some_Scheduler"},
    {"nodeName": "a.b"},
)
