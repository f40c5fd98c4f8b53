"""Stand-in for the controller of volumes and for a provisioner: a claim gets its volume at once.

A claim whose class waits for its first consumer is bound when its pod is, to a volume of the node's zone; any other as
soon as it is there. Real provisioners take seconds, in which no pod that mounts the claim can be placed.
"""

from collections.abc import Iterable, Iterator

from kerf.model.volumes import BIND_COMPLETED
from kerf.sim.kubernetes.api import ADDED, Change, InMemoryApi
from kerf.sim.kubernetes.reconcilers import Key, Reconciler, Watcher
from kerf.sim.kubernetes.rooms import NodePods
from kerf.sim.kubernetes.volumes import (
    CLAIM,
    CLASS,
    VOLUME,
    VolumeBinding,
    capacity_of,
    class_of,
    fits,
    is_by_hand,
    may_hold,
    waits,
)
from kerf.sim.objects import Json, JsonList, is_deleting, name_of, owner_reference, uid_of

_ZONE = "topology.kubernetes.io/zone"


class EphemeralClaims(Watcher):
    """Makes the claims of a pod's ephemeral volumes, which end with it; one that is refused is tried again later."""

    kind = "Pod"

    def notice(self, change: Change) -> Iterable[Key]:
        """A pod that has such volumes."""
        pod = change.obj
        if pod["kind"] == "Pod" and change.type == ADDED and any(_claims_of(pod)):
            yield pod["metadata"]["namespace"], name_of(pod)

    def reconcile(self, obj: Json) -> None:
        """Make those that are missing. Raises ApiError."""
        for name, spec in _claims_of(obj):
            namespace = obj["metadata"]["namespace"]
            if not is_deleting(obj) and self.api.get(CLAIM, namespace, name) is None:
                metadata = {"namespace": namespace, "name": name, "ownerReferences": [owner_reference(obj)]}
                self.api.create({"apiVersion": "v1", "kind": CLAIM, "metadata": metadata, "spec": spec})


def _claims_of(pod: Json) -> Iterator[tuple[str, Json]]:
    """Names and specs of the claims of a pod's ephemeral volumes."""
    for volume in pod["spec"].get("volumes") or ():
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template:
            yield f"{name_of(pod)}-{volume['name']}", template["spec"]


class VolumeClaims(Reconciler):
    """Binds the claims that wait for no consumer."""

    kind = CLAIM

    def reconcile(self, obj: Json) -> None:
        """Give it the volume that is kept for it, else the smallest that fits, else one that its class makes."""
        claim = obj if "spec" in obj else {**obj, "spec": {}}
        if claim["spec"].get("volumeName") or waits(claim, self.api):
            return
        volumes = [each for each in self.api.list(VOLUME) if class_of(each) == class_of(claim)]
        free = [each for each in volumes if may_hold(each, claim)]
        kept = [each for each in free if each["spec"].get("claimRef")]
        fitting = kept or sorted((each for each in free if fits(each, claim)), key=capacity_of)
        storage = self.api.get(CLASS, "", class_of(claim))
        # A class that the scenario leaves out is taken for one that makes volumes.
        if fitting or storage is None or not is_by_hand(storage):
            bind_claim(self.api, claim, fitting[0] if fitting else _made(self.api, claim, []))


def bind_volumes(api: InMemoryApi, binding: VolumeBinding, room: NodePods) -> None:
    """What the scheduler does for the claims that waited for their pod, before it is bound."""
    zone = room.labels.get(_ZONE)
    wanted = [{"key": _ZONE, "operator": "In", "values": [zone]}] if zone else []
    for claim, volume in binding.chosen(room) or ():
        bind_claim(api, claim, volume or _made(api, claim, wanted))


def _made(api: InMemoryApi, claim: Json, wanted: JsonList) -> Json:
    """A new volume for a claim, for nodes with these labels."""
    asked = claim["spec"].get("resources") or {}
    spec: Json = {
        "accessModes": claim["spec"].get("accessModes") or [],
        "capacity": asked.get("requests") or {},
        "storageClassName": class_of(claim),
    }
    if wanted:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}}
    metadata = {"name": f"pvc-{uid_of(claim)}"}
    return api.create({"apiVersion": "v1", "kind": VOLUME, "metadata": metadata, "spec": spec})


def bind_claim(api: InMemoryApi, claim: Json, volume: Json) -> None:
    """Make the two each other's."""
    namespace, name = claim["metadata"]["namespace"], name_of(claim)
    kept = {"namespace": namespace, "name": name, "uid": uid_of(claim)}
    api.patch(VOLUME, "", name_of(volume), {"spec": {"claimRef": kept}})
    done = {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": name_of(volume)}}
    api.patch(CLAIM, namespace, name, done)
    for kind, within, each in ((VOLUME, "", name_of(volume)), (CLAIM, namespace, name)):
        api.patch(kind, within, each, {"status": {"phase": "Bound"}}, subresource="status")
