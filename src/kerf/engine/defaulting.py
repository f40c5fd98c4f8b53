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


def with_default_spread(snapshot: ClusterSnapshot, defaults: DefaultSpread) -> ClusterSnapshot:
    """The snapshot with them in the specs of the pods that wait. Cost: these pods, times the Services of a namespace.

    No snapshot has the selectors of ReplicaSets and StatefulSets. All labels of one of their pods select the same pods.
    """
    if not defaults:
        return snapshot
    services: dict[str, list[Service]] = {}
    for service in snapshot.services:
        if service.selector:
            services.setdefault(service.namespace, []).append(service)
    known: dict[tuple[int, _Selected], PodSpec] = {}
    pending = tuple(_spread(pod, defaults, services.get(pod.namespace, ()), known) for pod in snapshot.pending)
    return replace(snapshot, pending=pending)


def _spread(
    pod: Pod,
    defaults: DefaultSpread,
    services: Sequence[Service],
    known: dict[tuple[int, _Selected], PodSpec],
) -> Pod:
    """The pod, whose spec is that of its equals again."""
    if pod.spec.spread:
        return pod
    selected = _selected(pod, services)
    if not selected:
        return pod
    key = id(pod.spec), selected
    if key not in known:
        selector = Requirements.spelt(dict(sorted(selected)))
        spread = tuple(replace(constraint, selector=selector) for constraint in defaults)
        known[key] = replace(pod.spec, spread=spread)
    return replace(pod, spec=known[key])


def _selected(pod: Pod, services: Sequence[Service]) -> _Selected:
    """The labels by which the pods that are to be spread with it are found; empty where it is to be with none."""
    if pod.owner is not None and pod.owner.kind in _SPREAD_OWNERS:
        return frozenset((key, value) for key, value in pod.labels.items() if key not in _OF_ONE_POD)
    found = (each.selector for each in services if each.selector and each.selector.unsatisfied_by(pod.labels) is None)
    return frozenset((key, pod.labels[key]) for selector in found for key in selector)
