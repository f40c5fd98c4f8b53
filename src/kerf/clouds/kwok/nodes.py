"""The Nodes of the acted-out machines: how they come, and how they go when the machine has gone.

KWOK keeps every node alive that has its annotation, so a machine that ends must first be taken from it. Its Lease does
that: KWOK leaves nodes alone whose Lease another holds. Without the annotation it would miss the deletion of the Node
and go on renewing the Lease of a node that is gone.
"""

from collections.abc import Sequence
from hashlib import sha256

from kerf.cloudprovider import Instance
from kerf.clouds.kwok.records import INSTANCE_LABEL, InstanceRecord, Json, ObjectStore, date_text
from kerf.model.constraints import ARCH, HOSTNAME, OS
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.nodeclaim import TERMINATION_FINALIZER, UNREGISTERED_TAINT
from kerf.model.quantities import Resources, quantity_text
from kerf.model.times import instant_text
from kerf.ports import AlreadyExists, Clock, NotFound

FAKE_NODE = {"kwok.x-k8s.io/node": "fake"}
"""Annotation by which KWOK knows the nodes that it acts out."""

_LEASES = "kube-node-lease"
_ENDED = {
    "type": "Ready",
    "status": "Unknown",
    "reason": "NodeStatusUnknown",
    "message": "Kubelet stopped posting node status.",
}


def node_name(claim_uid: str, attempt: int = 0) -> str:
    """`ip-10-x-y-z`, by the claim; another for each attempt, since two claims may hash to one address."""
    digest = sha256(f"{claim_uid}/{attempt}".encode()).digest()
    return f"ip-10-{digest[0]}-{digest[1]}-{digest[2]}"


def ready_status(node: Json) -> str:
    """The status of its condition Ready; empty before it has one."""
    return next((condition["status"] for condition in _conditions(node) if condition["type"] == "Ready"), "")


async def deleted(
    store: ObjectStore, kind: str, namespace: str, name: str, obj: Json | None = None, *, grace_s: int | None = None
) -> None:
    """Ask for deletion, of this very `obj` when it is given; done when there is none."""
    uid = obj["metadata"].get("uid", "") if obj is not None else ""
    try:
        await store.delete(kind, namespace, name, uid=uid, grace_s=grace_s)
    except NotFound:
        return


class Nodes:
    """Brings Nodes and takes them away."""

    def __init__(self, store: ObjectStore, clock: Clock, namespace: str) -> None:
        self._store, self._clock, self._namespace = store, clock, namespace

    async def find(self, name: str) -> Json | None:
        """The Node; None when there is none."""
        try:
            return await self._store.get("Node", "", name) if name else None
        except NotFound:
            return None

    async def create(self, record: InstanceRecord) -> str:
        """The name of the instance's Node, made unless our own earlier run has made it."""
        attempt = 0
        while True:
            name = node_name(record.instance.claim_uid, attempt)
            try:
                await self._store.create(self._node(name, record.instance))
                return name
            except AlreadyExists:
                held = await self.find(name)
            if held is not None and held["spec"].get("providerID") == record.instance.provider_id:
                return name
            attempt += 1

    async def bury(self, node: Json) -> None:
        """The machine is gone: its Node is silent, its pods end with it.

        The Node goes as well, as a cloud controller would have it, unless Kerf still drains it. Safe to repeat.
        """
        name, metadata = node["metadata"]["name"], node["metadata"]
        if ready_status(node) != "Unknown":
            await self._silence(name)
        for pod in await self._store.list("Pod", fields=f"spec.nodeName={name}"):
            await deleted(self._store, "Pod", pod["metadata"]["namespace"], pod["metadata"]["name"], pod, grace_s=0)
        if ready_status(node) != "Unknown":
            ended = {**_ENDED, "lastTransitionTime": instant_text(self._clock.now_s())}
            conditions = [*(condition for condition in _conditions(node) if condition["type"] != "Ready"), ended]
            await self._store.patch("Node", "", name, {"status": {"conditions": conditions}}, subresource="status")
        if "deletionTimestamp" not in metadata and TERMINATION_FINALIZER not in (metadata.get("finalizers") or ()):
            await deleted(self._store, "Node", "", name, node)

    async def _silence(self, name: str) -> None:
        lease = {
            "holderIdentity": "kerf-ended-machine",
            "leaseDurationSeconds": 7 * 86400,
            "renewTime": date_text(self._clock.now_s()).replace("Z", "000Z"),
        }
        try:
            await self._store.patch("Lease", _LEASES, name, {"spec": lease})
        except NotFound:
            return

    def _node(self, name: str, instance: Instance) -> Json:
        """The Node as its kubelet registers it: without GPUs, which the device plugin adds."""
        now = instant_text(self._clock.now_s())
        labels = {**dict(sorted(instance.labels.items())), HOSTNAME: name, INSTANCE_LABEL: self._namespace}
        not_ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "lastTransitionTime": now}
        status = {
            "capacity": _shown(instance.capacity),
            "allocatable": _shown(instance.allocatable),
            "conditions": [not_ready],
            "nodeInfo": {
                "architecture": labels.get(ARCH, "amd64"),
                "operatingSystem": labels.get(OS, "linux"),
                **dict.fromkeys(_BLANK_INFO, ""),
            },
        }
        taint = {"key": UNREGISTERED_TAINT.key, "effect": UNREGISTERED_TAINT.effect}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": FAKE_NODE},
            "spec": {"providerID": instance.provider_id, "taints": [taint]},
            "status": status,
        }


# The API takes no NodeInfo without these.
_BLANK_INFO = (
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "osImage",
    "systemUUID",
)


def _conditions(node: Json) -> Sequence[Json]:
    return (node.get("status") or {}).get("conditions") or ()


def _shown(resources: Resources) -> dict[str, str]:
    return {name: quantity_text(name, amount) for name, amount in sorted(resources.items()) if name != NVIDIA_GPU}
