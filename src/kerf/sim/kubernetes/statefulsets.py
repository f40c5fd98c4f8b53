"""StatefulSets: pods with fixed names, made from the lowest number up and taken from the highest down.

In the default order one pod that cannot be scheduled keeps all later ones from existing at all, so an autoscaler sees
its demand one pod at a time. Left out: `minReadySeconds`, `maxUnavailable`, claim retention policies.
"""

from kerf.sim.kubernetes.reconcilers import Reconciler, template_hash
from kerf.sim.objects import (
    Json,
    copied,
    is_active,
    is_deleting,
    is_ended,
    is_ready,
    labels_of,
    name_of,
)

REVISION_LABEL = "controller-revision-hash"


class StatefulSets(Reconciler):
    """StatefulSets, ordered or parallel."""

    kind = "StatefulSet"

    def reconcile(self, obj: Json) -> None:
        """Take the next step towards the wanted pods; in order, only one step at a time."""
        pods = {name_of(pod): pod for pod in self.controlled(obj)}
        if not is_deleting(obj):
            first = (obj["spec"].get("ordinals") or {}).get("start", 0)
            wanted = range(first, first + obj["spec"].get("replicas", 1))
            names = [f"{name_of(obj)}-{number}" for number in wanted]
            in_order = obj["spec"].get("podManagementPolicy") != "Parallel"
            if self._fill(obj, pods, names, in_order) and self._trim(pods, names, in_order):
                self._renew(obj, pods, names)
        self._report(obj)

    def _fill(self, obj: Json, pods: dict[str, Json], names: list[str], in_order: bool) -> bool:
        """Make what is missing; False when a step in order has to wait for the one before."""
        for number, name in enumerate(names):
            pod = pods.get(name)
            if pod is not None and is_ended(pod) and not is_deleting(pod):
                self.delete(pod)
                pod = None
            if pod is None:
                self._make(obj, name, number)
            if in_order and (pod is None or is_deleting(pod) or not is_ready(pod)):
                return False
        return True

    def _make(self, obj: Json, name: str, number: int) -> None:
        template = copied(obj["spec"]["template"])
        for claim in obj["spec"].get("volumeClaimTemplates") or ():
            claim_name = f"{name_of(claim)}-{name}"
            volumes = [v for v in template["spec"].get("volumes") or () if v["name"] != name_of(claim)]
            own = {"name": name_of(claim), "persistentVolumeClaim": {"claimName": claim_name}}
            template["spec"]["volumes"] = [*volumes, own]
            self._make_claim(obj, claim, claim_name)
        labels = {
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(number),
            REVISION_LABEL: template_hash(obj["spec"]["template"]),
        }
        self.api.create(self.pods.make(obj, template, name, labels))

    def _make_claim(self, obj: Json, claim: Json, name: str) -> None:
        metadata = {**claim["metadata"], "name": name, "namespace": obj["metadata"]["namespace"]}
        if self.api.get("PersistentVolumeClaim", metadata["namespace"], name) is None:
            kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
            self.api.create({**claim, **kind, "metadata": metadata})

    def _trim(self, pods: dict[str, Json], names: list[str], in_order: bool) -> bool:
        """Delete what is too much, the highest number first; False while one in order is still going."""
        surplus = [name for name in pods if name not in names]
        for name in sorted(surplus, key=_number, reverse=True):
            if not is_deleting(pods[name]):
                self.delete(pods[name])
            if in_order:
                return False
        return True

    def _renew(self, obj: Json, pods: dict[str, Json], names: list[str]) -> None:
        """Replace the highest pod of an older template, once those above it are ready."""
        strategy = obj["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        revision = template_hash(obj["spec"]["template"])
        partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        for name in reversed(names[partition:]):
            pod = pods.get(name)
            if pod is None or is_deleting(pod):
                return
            if labels_of(pod).get(REVISION_LABEL) != revision:
                self.delete(pod)
                return
            if not is_ready(pod):
                return

    def _report(self, obj: Json) -> None:
        active = [pod for pod in self.controlled(obj) if is_active(pod)]
        ready = sum(1 for pod in active if is_ready(pod))
        self.set_status(obj, replicas=len(active), readyReplicas=ready, availableReplicas=ready)


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
