"""Pods with the spread constraints that their scheduler gives those without any: `podTopologySpread`'s defaults.

As kube-scheduler builds them (podtopologyspread/common.go, `buildDefaultConstraints`, and plugins/helper/spread.go,
`DefaultSelector`): only for a pod that states no constraint, and that a Service selects or a ReplicaSet or StatefulSet
made. Karpenter follows the constraints of the scheduler's configuration where it is given one, and without it none, not
even the built-in ones: these would open a node for every three replicas of a Deployment.
"""

from collections.abc import Sequence
from dataclasses import replace

from kerf.model.constraints import Requirements
from kerf.model.defaultspread import DefaultSpread
from kerf.model.namespaces import Service
from kerf.model.pods import Pod, PodSpec
from kerf.model.snapshot import ClusterSnapshot

_SPREAD_OWNERS = ("ReplicaSet", "StatefulSet")
_OF_ONE_POD = ("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index")
"""Labels that a StatefulSet writes on single pods, which its selector does not read."""
_Selected = frozenset[tuple[str, str]]


class SpreadDefaults:
    """The constraints that pods of one snapshot get. Cost of a question: the Services of the pod's namespace.

    No snapshot has the selectors of ReplicaSets and StatefulSets. All labels of one of their pods select the same pods.
    """

    def __init__(self, snapshot: ClusterSnapshot, defaults: DefaultSpread) -> None:
        self._defaults = defaults
        self._services: dict[str, list[Service]] = {}
        for service in snapshot.services if defaults else ():
            if service.selector:
                self._services.setdefault(service.namespace, []).append(service)
        self._known: dict[tuple[int, _Selected], tuple[PodSpec, PodSpec]] = {}

    @property
    def are_any(self) -> bool:
        """Whether any pod may get one."""
        return bool(self._defaults)

    def given(self, pod: Pod) -> Pod:
        """The pod, whose spec is that of its equals again; itself where it gets none."""
        if not self._defaults or pod.spec.spread:
            return pod
        selected = _selected(pod, self._services.get(pod.namespace, ()))
        if not selected:
            return pod
        key = id(pod.spec), selected
        if key not in self._known:
            selector = Requirements.spelt(dict(sorted(selected)))
            spread = tuple(replace(constraint, selector=selector) for constraint in self._defaults)
            # The pod's own spec is kept, too: an identity is free again once its object is gone.
            self._known[key] = pod.spec, replace(pod.spec, spread=spread)
        return replace(pod, spec=self._known[key][1])


def with_default_spread(snapshot: ClusterSnapshot, defaults: DefaultSpread) -> ClusterSnapshot:
    """The snapshot with them in the specs of the pods that wait. Cost: see `SpreadDefaults`, for each of these pods."""
    if not defaults:
        return snapshot
    found = SpreadDefaults(snapshot, defaults)
    return replace(snapshot, pending=tuple(map(found.given, snapshot.pending)))


def _selected(pod: Pod, services: Sequence[Service]) -> _Selected:
    """The labels by which the pods that are to be spread with it are found; empty where it is to be with none."""
    if pod.owner is not None and pod.owner.kind in _SPREAD_OWNERS:
        return frozenset((key, value) for key, value in pod.labels.items() if key not in _OF_ONE_POD)
    found = (each.selector for each in services if each.selector and each.selector.unsatisfied_by(pod.labels) is None)
    return frozenset((key, pod.labels[key]) for selector in found for key in selector)
