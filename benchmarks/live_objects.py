"""Objects as a live API server sends them: pods of 8 KB of which a quarter is `managedFields`, and nodes of 10 KB.

What differs from pod to pod is what differs in a real cluster: names, uids, addresses, times, the token volume's name.
"""

import json
from typing import Any

Json = dict[str, Any]

_DAY = "2026-01-05"
_PODS_ON_NODE = 20


def _uid(number: int, salt: int) -> str:
    digits = f"{number * 2654435761 + salt:032x}"[-32:]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _instant(number: int) -> str:
    return f"{_DAY}T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"


def _managed(kind: str, size: int) -> list[Json]:
    """Who set which field, as server-side apply notes it, of about `size` bytes."""
    fields: Json = {}
    entry = {"manager": kind, "operation": "Update", "apiVersion": "v1", "time": _instant(0), "fieldsType": "FieldsV1"}
    while len(json.dumps(fields)) < size - 150:
        fields[f'k:{{"name":"field-{len(fields)}"}}'] = {".": {}, "f:image": {}, "f:resources": {".": {}, "f:cpu": {}}}
    return [{**entry, "fieldsV1": {"f:spec": {"f:containers": fields}}}]


def _container(shape: int, position: int) -> Json:
    # Twenty pods of consecutive shapes fill a node of 16 cpus, so that nothing is left to consolidate.
    requests = {"cpu": f"{385 + shape % 20}m", "memory": f"{64 + shape // 20 * 4}Mi"}
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1}
    address = {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}
    return {
        "name": f"container-{position}",
        "image": f"registry.example/team/service-{shape}:v1.{shape}.0",
        "args": ["--listen=:8080", "--log-format=json", f"--shard={shape}"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            {"name": "POD_IP", **address},
            *({"name": f"SETTING_{n}", "value": f"value-{n}-of-shape-{shape}"} for n in range(16)),
        ],
        "resources": {"requests": requests, "limits": {"memory": requests["memory"]}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def _pod_spec(number: int, shape: int, node: str) -> Json:
    token = f"kube-api-access-{number:05x}"
    mount = {"name": token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    expiry = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    spec = {
        "volumes": [{"name": token, "projected": {"sources": [expiry], "defaultMode": 420}}],
        "containers": [{**_container(shape, position), "volumeMounts": [mount]} for position in range(2)],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": f"service-{shape}",
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for why in ("not-ready", "unreachable")
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    return {**spec, "nodeName": node} if node else spec


def _pod_status(number: int, shape: int, node: str) -> Json:
    at = _instant(number)
    if not node:
        message = f"0/{number // _PODS_ON_NODE} nodes are available: Insufficient cpu."
        reason = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        return {"phase": "Pending", "conditions": [{**reason, "lastProbeTime": None, "lastTransitionTime": at}]}
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    image = f"registry.example/team/service-{shape}"
    statuses = [
        {
            "name": f"container-{position}",
            "state": {"running": {"startedAt": _instant(number + 4)}},
            "lastState": {},
            "ready": True,
            "restartCount": 0,
            "image": f"{image}:v1.{shape}.0",
            "imageID": f"{image}@sha256:{shape:064x}",
            "containerID": f"containerd://{number:064x}",
        }
        for position in range(2)
    ]
    address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    return {
        "phase": "Running",
        "conditions": [
            {"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": _instant(number + 4)}
            for type_ in types
        ],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": at,
        "containerStatuses": statuses,
        "qosClass": "Burstable",
    }


def pod(number: int, shapes: int = 2_000, *, is_bound: bool = True) -> Json:
    """The pod of that number, an item of a list and so without kind; one of `shapes` Deployments owns it."""
    shape = number % shapes
    node = f"ip-10-0-{number // _PODS_ON_NODE >> 8}-{number // _PODS_ON_NODE & 255}.example" if is_bound else ""
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"service-{shape}-7d9f8b6c5d",
        "uid": _uid(shape, 1),
    }
    network = json.dumps([{"name": "cluster", "interface": "eth0", "ips": [f"10.0.{number}"], "default": True}])
    metadata = {
        "name": f"service-{shape}-7d9f8b6c5d-{number:05x}",
        "generateName": f"service-{shape}-7d9f8b6c5d-",
        "namespace": f"team-{shape % 100}",
        "uid": _uid(number, 2),
        "resourceVersion": str(1_000_000 + number),
        "generation": 1,
        "creationTimestamp": _instant(number),
        "labels": {
            "app.kubernetes.io/name": f"service-{shape}",
            "app.kubernetes.io/instance": f"service-{shape}-production",
            "app.kubernetes.io/version": f"v1.{shape}.0",
            "team": f"team-{shape % 100}",
            "pod-template-hash": "7d9f8b6c5d",
        },
        "annotations": {
            "checksum/config": f"{shape:064x}",
            "prometheus.io/scrape": "true",
            "k8s.v1.cni.cncf.io/network-status": network,
        },
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        "managedFields": _managed("kubelet", 2_100),
    }
    return {
        "metadata": metadata,
        "spec": _pod_spec(number, shape, node),
        "status": _pod_status(number, shape, node),
    }


def node(number: int, pool: str = "all") -> Json:
    """The node of that number, with the claim's provider id, thirty labels and fifty images."""
    name = f"ip-10-0-{number >> 8}-{number & 255}.example"
    amounts = {"cpu": "16", "memory": f"{64_000_000 + number % 97}Ki", "ephemeral-storage": "80Gi", "pods": "110"}
    labels = {f"topology.example/level-{n}": f"value-{number % (n + 1)}" for n in range(20)}
    known = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": "m5.4xlarge",
        "topology.kubernetes.io/zone": f"us-east-1{'abc'[number % 3]}",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.sh/nodepool": pool,
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
    }
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    times = {"lastHeartbeatTime": _instant(number), "lastTransitionTime": _instant(60)}
    return {
        "metadata": {
            "name": name,
            "uid": _uid(number, 3),
            "resourceVersion": str(number + 1),
            "creationTimestamp": _instant(0),
            "labels": {**labels, **known},
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                "csi.volume.kubernetes.io/nodeid": f'{{"a":"{name}"}}',
            },
            "finalizers": ["karpenter.sh/termination"],
            "managedFields": _managed("kubelet", 2_100),
        },
        "spec": {"providerID": f"aws:///us-east-1a/i-{number:017x}"},
        "status": {
            "capacity": amounts,
            "allocatable": {**amounts, "cpu": "15890m"},
            "conditions": [{**ready, **times}],
            "images": [
                {"names": [f"registry.example/team/image-{n}@sha256:{n:064x}"], "sizeBytes": 10**8} for n in range(50)
            ],
        },
    }


def claim(number: int, pool: str = "all") -> Json:
    """The NodeClaim of the node of that number, initialised and consolidatable."""
    stages = ("Launched", "Registered", "Initialized", "Ready", "Consolidatable")
    conditions = [
        {"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": _instant(60)}
        for type_ in stages
    ]
    resources = {"cpu": "16", "memory": "64000000Ki", "pods": "110"}
    return {
        "metadata": {
            "name": f"{pool}-{number:05}",
            "uid": _uid(number, 4),
            "resourceVersion": str(number + 1),
            "creationTimestamp": _instant(0),
            "labels": {"karpenter.sh/nodepool": pool, "node.kubernetes.io/instance-type": "m5.4xlarge"},
            "finalizers": ["karpenter.sh/termination"],
        },
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
            "expireAfter": "Never",
        },
        "status": {
            "providerID": f"aws:///us-east-1a/i-{number:017x}",
            "nodeName": f"ip-10-0-{number >> 8}-{number & 255}.example",
            "capacity": resources,
            "allocatable": resources,
            "conditions": conditions,
        },
    }


def _surrounding(kind: str, name: str, number: int, namespace: str = "", **metadata: Any) -> Json:
    """The metadata of an object that the scheduler looks up of pods, with who manages it."""
    of = {"name": name, "uid": _uid(number, len(kind)), "resourceVersion": str(number + 1)}
    if namespace:
        of["namespace"] = namespace
    return {**of, "creationTimestamp": _instant(number), **metadata, "managedFields": _managed(kind, 1_000)}


def namespace(number: int) -> Json:
    """A Namespace with the labels of a tenant."""
    labels = {
        "kubernetes.io/metadata.name": f"team-{number}",
        "tier": f"tier-{number % 3}",
        "owner": f"o-{number % 50}",
    }
    meta = _surrounding("namespace", f"team-{number}", number, labels=labels)
    return {"metadata": meta, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def service(number: int) -> Json:
    """A Service of one workload."""
    ports = [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}]
    spec = {"clusterIP": f"10.1.{number // 256 % 256}.{number % 256}", "ports": ports, "type": "ClusterIP"}
    meta = _surrounding("service", f"service-{number}", number, f"team-{number % 50}")
    return {
        "metadata": meta,
        "spec": {**spec, "selector": {"app": f"service-{number}"}},
        "status": {"loadBalancer": {}},
    }


def volume_claim(number: int) -> Json:
    """A bound PersistentVolumeClaim of a StatefulSet."""
    marks = {"pv.kubernetes.io/bind-completed": "yes", "volume.kubernetes.io/storage-provisioner": "ebs.csi.aws.com"}
    meta = _surrounding("claim", f"data-db-{number}", number, f"team-{number % 50}", annotations=marks)
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "100Gi"}},
        "storageClassName": "gp3",
        "volumeMode": "Filesystem",
        "volumeName": f"pvc-{_uid(number, 5)}",
    }
    return {"metadata": meta, "spec": spec, "status": {"phase": "Bound", "capacity": {"storage": "100Gi"}}}


def volume(number: int) -> Json:
    """A bound PersistentVolume of EBS in one of three zones."""
    key, zone = "topology.kubernetes.io/zone", f"us-east-1{'abc'[number % 3]}"
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [zone]}]}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "100Gi"},
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": f"team-{number % 50}", "name": f"data-db-{number}"},
        "csi": {"driver": "ebs.csi.aws.com", "fsType": "ext4", "volumeHandle": f"vol-{number:017x}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "persistentVolumeReclaimPolicy": "Delete",
        "storageClassName": "gp3",
    }
    return {
        "metadata": _surrounding("volume", f"pvc-{_uid(number, 5)}", number),
        "spec": spec,
        "status": {"phase": "Bound"},
    }


def storage_class(number: int) -> Json:
    """A StorageClass that waits for its first consumer."""
    return {
        "metadata": _surrounding("class", f"gp3-{number}", number),
        "provisioner": "ebs.csi.aws.com",
        "parameters": {"type": "gp3"},
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def csi_node(number: int) -> Json:
    """A CSINode with two drivers."""
    drivers = [
        {"name": name, "nodeID": f"i-{number:017x}", "topologyKeys": ["topology.kubernetes.io/zone"], **more}
        for name, more in (("ebs.csi.aws.com", {"allocatable": {"count": 25}}), ("efs.csi.aws.com", {}))
    ]
    meta = _surrounding("csinode", f"ip-10-0-{number // 256}-{number % 256}", number)
    return {"metadata": meta, "spec": {"drivers": drivers}}


def runtime_class(number: int) -> Json:
    """A RuntimeClass with an overhead."""
    meta = _surrounding("runtime", f"runtime-{number}", number)
    return {"metadata": meta, "handler": "runsc", "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}}}
