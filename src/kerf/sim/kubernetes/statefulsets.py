"""StatefulSets: pods with fixed names, made from the lowest number up and taken from the highest down.

In the default order (OrderedReady) one pod that cannot be scheduled keeps all later ones from existing at all, so an
autoscaler sees its demand one pod at a time; a plan from manifests has all of them, as they are in the end. Source:
Kubernetes 1.36, pkg/controller/statefulset, updateStatefulSet. Left out: `maxUnavailable`, claim retention policies.
"""

from kerf.errors import ApiError
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
    phase_of,
    ready_since_s,
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
            if self._fill(obj, pods, names, in_order) and self._trim(obj, pods, names, in_order):
                self._renew(obj, pods, names)
        self._report(obj)

    def _fill(self, obj: Json, pods: dict[str, Json], names: list[str], in_order: bool) -> bool:
        """Make what is missing; False when a step in order has to wait for the one before."""
        for name in names:
            pod = pods.get(name)
            if pod is not None and is_ended(pod) and not is_deleting(pod):
                self.delete(pod)
                pod = None
            if pod is None:
                self._make(obj, name)
            elif phase_of(pod) == "Pending":
                self._make_claims(obj, name)
            if in_order and (pod is None or not self._is_available(obj, pod)):
                return False
        return True

    def _is_available(self, obj: Json, pod: Json) -> bool:
        """Whether it has been ready for `minReadySeconds` and stays; until then it is looked at again."""
        if is_deleting(pod) or not is_ready(pod):
            return False
        available_s = ready_since_s(pod) + obj["spec"].get("minReadySeconds", 0)
        if available_s > self.clock.now_s():
            self.look_again(obj, available_s)
            return False
        return True

    def _make(self, obj: Json, name: str) -> None:
        """The pod, after its claims: where one is refused, there is no pod either."""
        self._make_claims(obj, name)
        template = copied(obj["spec"]["template"])
        for claim in obj["spec"].get("volumeClaimTemplates") or ():
            volumes = [v for v in template["spec"].get("volumes") or () if v["name"] != name_of(claim)]
            own = {"name": name_of(claim), "persistentVolumeClaim": {"claimName": f"{name_of(claim)}-{name}"}}
            template["spec"]["volumes"] = [*volumes, own]
        labels = {
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(_number(name)),
            REVISION_LABEL: template_hash(obj["spec"]["template"]),
        }
        self.api.create(self.pods.make(obj, template, name, labels))

    def _make_claims(self, obj: Json, pod: str) -> None:
        """Those of the pod that are missing. Raises the first ApiError, once all were tried."""
        refused: ApiError | None = None
        for claim in obj["spec"].get("volumeClaimTemplates") or ():
            name, namespace = f"{name_of(claim)}-{pod}", obj["metadata"]["namespace"]
            if self.api.get("PersistentVolumeClaim", namespace, name) is None:
                kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
                metadata = {**claim["metadata"], "name": name, "namespace": namespace}
                try:
                    self.api.create({**claim, **kind, "metadata": metadata})
                except ApiError as error:
                    refused = refused or error
        if refused is not None:
            raise refused

    def _trim(self, obj: Json, pods: dict[str, Json], names: list[str], in_order: bool) -> bool:
        """Delete what is too much, the highest number first; False while one in order is still going.

        In order one that is not available goes only where all of lower numbers are.
        """
        surplus = sorted((name for name in pods if name not in names), key=_number, reverse=True)
        for place, name in enumerate(surplus):
            if in_order and (is_deleting(pods[name]) or self._must_wait(obj, pods, surplus[place:])):
                return False
            if not is_deleting(pods[name]):
                self.delete(pods[name])
            if in_order:
                return False
        return True

    def _must_wait(self, obj: Json, pods: dict[str, Json], surplus: list[str]) -> bool:
        """Whether the first of these, of falling numbers, is not available, nor is a later one."""
        first, *lower = (self._is_available(obj, pods[name]) for name in surplus)
        return not first and not all(lower)

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
            if not self._is_available(obj, pod):
                return

    def _report(self, obj: Json) -> None:
        active = [pod for pod in self.controlled(obj) if is_active(pod)]
        ready = sum(1 for pod in active if is_ready(pod))
        available = sum(1 for pod in active if self._is_available(obj, pod))
        self.set_status(obj, replicas=len(active), readyReplicas=ready, availableReplicas=available)


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
