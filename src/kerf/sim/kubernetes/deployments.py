"""Deployments: a ReplicaSet for each template, and the way from the old one to the new one.

A rollout needs room for `maxSurge` pods more, or gives up `maxUnavailable`; both change what an autoscaler sees, so
the arithmetic is the deployment controller's. Left out: pausing, progress deadlines, minReadySeconds, and the
proportional growth of old ReplicaSets in the middle of a rollout.
"""

from collections.abc import Iterable

from kerf.sim.kubernetes.api import DELETED, Change
from kerf.sim.kubernetes.budgets import scaled
from kerf.sim.kubernetes.reconcilers import Key, Watcher, template_hash
from kerf.sim.kubernetes.replicas import HASH_LABEL
from kerf.sim.objects import (
    Json,
    JsonList,
    controller_of,
    copied,
    is_active,
    is_deleting,
    is_ended,
    is_ready,
    labels_of,
    name_of,
    owner_reference,
)


class Deployments(Watcher):
    """Deployments with RollingUpdate or Recreate."""

    kind = "Deployment"

    def notice(self, change: Change) -> Iterable[Key]:
        """A pod that is gone: `Recreate` waits for it, and no count of its ReplicaSet changes any more."""
        owner = controller_of(change.obj) if change.type == DELETED and change.obj["kind"] == "Pod" else None
        namespace = change.obj["metadata"].get("namespace", "")
        if owner is None or owner["kind"] != "ReplicaSet":
            return ()
        held = self.api.get("ReplicaSet", namespace, owner["name"])
        above = controller_of(held) if held is not None else None
        return () if above is None else ((namespace, above["name"]),)

    def reconcile(self, obj: Json) -> None:
        """Make the ReplicaSet of the present template, and shift replicas to it."""
        if is_deleting(obj):
            return
        revision = template_hash(obj["spec"]["template"])
        sets = self.controlled(obj, "ReplicaSet")
        old = [held for held in sets if labels_of(held).get(HASH_LABEL) != revision]
        new = next((held for held in sets if labels_of(held).get(HASH_LABEL) == revision), None)
        if new is None:
            new = self.api.create(_replica_set(obj, revision))
        self._shift(obj, new, [held for held in old if _size(held) or self._live(held)])
        self._report(obj, name_of(new))

    def _shift(self, obj: Json, new: Json, old: JsonList) -> None:
        wanted = obj["spec"].get("replicas", 1)
        strategy = obj["spec"].get("strategy") or {}
        if not old:
            self._scale(new, wanted)
        elif strategy.get("type") == "Recreate":
            for held in old:
                self._scale(held, 0)
            if not any(self._live(held) for held in old):
                self._scale(new, wanted)
        elif not self._grow(new, old, wanted, _surge(strategy, wanted)):
            self._shrink(new, old, wanted - _unavailable(strategy, wanted))

    def _grow(self, new: Json, old: JsonList, wanted: int, surge: int) -> bool:
        """Take the new one as far as the surge allows; whether that changed anything."""
        room = wanted + surge - _size(new) - sum(_size(held) for held in old)
        size = wanted if _size(new) > wanted else min(wanted, _size(new) + max(0, room))
        return self._scale(new, size)

    def _shrink(self, new: Json, old: JsonList, least: int) -> None:
        """Take old pods away, first those that are not ready, while `least` remain available."""
        sizes = {name_of(held): _size(held) for held in old}
        ready = {name_of(held): self._ready(held) for held in old}
        missing = _size(new) - self._ready(new)
        room = _size(new) + sum(sizes.values()) - least - missing
        for name in sizes:
            unready = max(0, min(room, sizes[name] - ready[name]))
            sizes[name] -= unready
            room -= unready
        room = min(room, self._ready(new) + sum(ready.values()) - least)
        for name in sizes:
            taken = max(0, min(room, sizes[name]))
            sizes[name] -= taken
            room -= taken
        for held in old:
            self._scale(held, sizes[name_of(held)])

    def _scale(self, held: Json, size: int) -> bool:
        if _size(held) == size:
            return False
        patch = {"spec": {"replicas": size}}
        self.api.patch("ReplicaSet", held["metadata"]["namespace"], name_of(held), patch)
        return True

    def _ready(self, held: Json) -> int:
        return sum(1 for pod in self.controlled(held) if is_active(pod) and is_ready(pod))

    def _live(self, held: Json) -> int:
        return sum(1 for pod in self.controlled(held) if not is_ended(pod))

    def _report(self, obj: Json, newest: str) -> None:
        sets = self.controlled(obj, "ReplicaSet")
        pods = {name_of(held): [pod for pod in self.controlled(held) if is_active(pod)] for held in sets}
        total = sum(len(held) for held in pods.values())
        ready = sum(1 for held in pods.values() for pod in held if is_ready(pod))
        self.set_status(
            obj,
            replicas=total,
            updatedReplicas=len(pods.get(newest, ())),
            readyReplicas=ready,
            availableReplicas=ready,
            unavailableReplicas=max(0, obj["spec"].get("replicas", 1) - ready),
        )


def _size(held: Json) -> int:
    size: int = held["spec"].get("replicas", 1)
    return size


def _surge(strategy: Json, wanted: int) -> int:
    return scaled((strategy.get("rollingUpdate") or {}).get("maxSurge", "25%"), wanted)


def _unavailable(strategy: Json, wanted: int) -> int:
    most = scaled((strategy.get("rollingUpdate") or {}).get("maxUnavailable", "25%"), wanted, round_up=False)
    # Both zero would never get anywhere: the controller then lets one go.
    return most or (0 if _surge(strategy, wanted) else 1)


def _replica_set(obj: Json, revision: str) -> Json:
    template = copied(obj["spec"]["template"])
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), HASH_LABEL: revision}
    selector = copied(obj["spec"].get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: revision}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name_of(obj)}-{revision}",
            "namespace": obj["metadata"]["namespace"],
            "labels": metadata["labels"],
            "ownerReferences": [owner_reference(obj)],
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
    }
