"""ResourceQuotas as the API server applies them to new pods: those beyond a quota do not come to be.

Only pods that a manifest describes have it before them. A live pod has passed admission, also one that waits, and
counts as used. Pods are taken by age, then in queue order, each against all quotas of its namespace that select it
(kubernetes 1.36, pkg/quota/v1 and the admission plug-in resourcequota). A quota on cpu or memory also refuses a pod
that leaves open how much of it a container takes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kerf.engine.decision import Refusal
from kerf.engine.place.shapes import Shape, queue_order
from kerf.model.causes import Cause, Name, OverResourceQuota, UnstatedForQuota
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Stage
from kerf.model.pods import Pod, PodSpec
from kerf.model.quantities import NOTHING, Resources
from kerf.model.resourcequotas import counted, unstated
from kerf.model.snapshot import ClusterSnapshot, ResourceQuota


def admitted(shapes: Sequence[Shape], snapshot: ClusterSnapshot) -> tuple[tuple[Refusal, ...], tuple[Shape, ...]]:
    """New pods that a quota refuses, and the shapes that are left.

    Cost: linear in the pods of namespaces with a quota, where any is new there.
    """
    namespaces = {quota.namespace for quota in snapshot.quotas}
    numbered = ((pod, number) for number, shape in enumerate(shapes) for pod in shape.pods)
    planned = [each for each in numbered if each[0].namespace in namespaces]
    coming = [each for each in planned if _is_new(each[0], snapshot)]
    if not coming:
        return (), tuple(shapes)
    known = {pod.key for pod, _ in planned}
    # Those that are not planned for, such as gated ones, come to be like all others.
    coming += ((pod, -1) for pod in snapshot.pending if pod.key not in known and _is_new(pod, snapshot))
    quotas = _Quotas(snapshot.quotas)
    for pod in _existing(snapshot, namespaces):
        quotas.take(pod)
    refused: dict[tuple[int, Cause], list[Pod]] = {}
    for pod, number in sorted(coming, key=lambda each: (each[0].created_s, queue_order(each[0]))):
        cause = quotas.refusal(pod)
        if cause is None:
            quotas.take(pod)
        elif number >= 0:
            refused.setdefault((number, cause), []).append(pod)
    out = {pod.key for pods in refused.values() for pod in pods}
    refusals = (Refusal(tuple(pods), Stage.HELD, cause) for (_, cause), pods in refused.items())
    return tuple(refusals), tuple(_without(shapes, out))


def _is_new(pod: Pod, snapshot: ClusterSnapshot) -> bool:
    return not (pod.uid or pod.invalid or is_virtual(pod.key) or pod.key in snapshot.leaving)


def _existing(snapshot: ClusterSnapshot, namespaces: Iterable[str]) -> Iterator[Pod]:
    """Pods of the namespaces that have passed admission and have not ended."""
    wanted = frozenset(namespaces)
    waiting = {pod.key: pod for pod in (*snapshot.grouped, *snapshot.pending)}
    bound = (pod for node in snapshot.nodes for pod in node.pods)
    there = (*bound, *(pod for pod in waiting.values() if not pod.node_name and not _is_new(pod, snapshot)))
    yield from (pod for pod in there if pod.namespace in wanted and not pod.is_ended and not pod.invalid)


def _without(shapes: Sequence[Shape], out: Iterable[str]) -> Iterator[Shape]:
    gone = frozenset(out)
    for shape in shapes:
        left = tuple(pod for pod in shape.pods if pod.key not in gone) if gone else shape.pods
        if left:
            yield shape if len(left) == len(shape) else Shape(left)


@dataclass(eq=False)
class _Tracked:
    """A quota and what is used of it. What pods of a spec ask of it is worked out once; None where it selects none."""

    quota: ResourceQuota
    used: Resources = NOTHING
    asked: dict[int, tuple[PodSpec, Resources | None]] = field(default_factory=dict)

    def of(self, spec: PodSpec) -> Resources | None:
        """What such a pod counts, by the names that the quota limits."""
        if id(spec) not in self.asked:
            found = None
            if all(scope.selects(spec) for scope in self.quota.scopes):
                found = Resources({name: amount for name, amount in counted(spec).items() if name in self.quota.hard})
            # The spec is kept beside its answer: an identity is free again once its object is gone.
            self.asked[id(spec)] = spec, found
        return self.asked[id(spec)][1]


class _Quotas:
    """The quotas of some namespaces, each with what is used."""

    def __init__(self, quotas: Iterable[ResourceQuota]) -> None:
        self._by_namespace: dict[str, list[_Tracked]] = {}
        for quota in sorted(quotas, key=lambda each: (each.namespace, each.name)):
            self._by_namespace.setdefault(quota.namespace, []).append(_Tracked(quota))

    def take(self, pod: Pod) -> None:
        """The pod is there from now on."""
        for tracked, asked in self._selecting(pod):
            tracked.used = tracked.used + asked

    def refusal(self, pod: Pod) -> Cause | None:
        """Why the pod does not come to be; None where it does."""
        selecting = tuple(self._selecting(pod))
        found = (_unstated(tracked.quota, pod.spec) for tracked, _ in selecting)
        over = (_over(tracked, asked) for tracked, asked in selecting)
        return next(filter(None, found), None) or next(filter(None, over), None)

    def _selecting(self, pod: Pod) -> Iterator[tuple[_Tracked, Mapping[str, int]]]:
        for tracked in self._by_namespace.get(pod.namespace, ()):
            asked = tracked.of(pod.spec)
            if asked is not None:
                yield tracked, asked


def _unstated(quota: ResourceQuota, spec: PodSpec) -> Cause | None:
    names = unstated(spec, quota.hard)
    return UnstatedForQuota(Name(quota.namespace), Name(quota.name), tuple(map(Name, names))) if names else None


def _over(tracked: _Tracked, asked: Mapping[str, int]) -> Cause | None:
    quota, used = tracked.quota, tracked.used
    for name in sorted(asked):
        if asked[name] > 0 and used.get(name, 0) + asked[name] > quota.hard[name]:
            figures = quota.hard[name], used.get(name, 0), asked[name]
            return OverResourceQuota(Name(quota.namespace), Name(quota.name), Name(name), *figures)
    return None
