"""ResourceQuotas as the API server applies them to new pods and claims: those beyond a quota do not come to be.

Only what a manifest describes has it before it. A live pod has passed admission, also one that waits, and counts as
used; only the claim of its ephemeral volume may still be to come. Claims of manifests come first, by name. Pods are
taken by age, then in queue order, each against all quotas of its namespace that select it (kubernetes 1.36,
pkg/quota/v1 and the admission plug-in resourcequota). A quota on cpu or memory also refuses a pod that leaves open how
much of it a container takes. The claims of a StatefulSet are made before each of its pods, which is not made where one
is refused (pkg/controller/statefulset, CreateStatefulPod). The claim of an ephemeral volume is made once its pod is
there.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kerf.engine.decision import Refusal
from kerf.engine.place.shapes import Shape, queue_order
from kerf.engine.place.volumes import Volumes
from kerf.model.causes import Cause, Name, OverResourceQuota, UnstatedForQuota
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Stage
from kerf.model.pods import Pod, PodSpec
from kerf.model.quantities import NOTHING, Resources
from kerf.model.resourcequotas import OBJECTS, exceeded, is_of_claims, unstated
from kerf.model.snapshot import ClusterSnapshot, ResourceQuota
from kerf.model.volumecauses import ClaimOverQuota
from kerf.model.volumes import PersistentVolumeClaim


@dataclass(frozen=True, slots=True)
class NotAdmitted:
    """Why new pods and claims do not come to be, by their keys (`namespace/name`)."""

    pods: Mapping[str, Cause] = field(default_factory=dict)
    claims: Mapping[str, ClaimOverQuota] = field(default_factory=dict)


def not_admitted(pods: Iterable[Pod], snapshot: ClusterSnapshot, volumes: Volumes) -> NotAdmitted:
    """What quotas refuse of these pods, of the others that are pending, and of claims.

    Cost: linear in the pods of namespaces with a quota, where any is new there; where a quota limits claims, in all
    claims.
    """
    if not snapshot.quotas:
        return NotAdmitted()
    coming = _Coming.of(pods, snapshot)
    if not coming.pods and not coming.claims:
        return NotAdmitted()
    quotas = _Quotas(snapshot.quotas)
    for pod in _existing(snapshot, coming.namespaces):
        _take(quotas.of_pod(pod.namespace, pod.spec))
    for claim in coming.old_claims:
        _take(quotas.of_claim(claim, claim.storage_class or ""))
    refused: dict[str, Cause] = {}
    missing: dict[str, ClaimOverQuota] = {}
    made = _Made(quotas, volumes, snapshot.volume_claims, missing)
    for claim in coming.claims:
        made.create(claim)
    for pod in coming.pods:
        spec = volumes.admitted(pod)
        if isinstance(spec, Cause):
            continue
        cause = made.refusal(pod, spec) if is_new(pod, snapshot) else None
        if cause is not None:
            refused[pod.key] = cause
        else:
            made.with_claims(pod, is_ephemeral=True)
    return NotAdmitted(refused, missing)


def admitted(shapes: Sequence[Shape], found: NotAdmitted) -> tuple[tuple[Refusal, ...], tuple[Shape, ...]]:
    """New pods that a quota refuses, and the shapes that are left. Linear in the pods, where any is refused."""
    if not found.pods:
        return (), tuple(shapes)
    refused: dict[tuple[int, Cause], list[Pod]] = {}
    for number, shape in enumerate(shapes):
        for pod in shape.pods:
            if pod.key in found.pods:
                refused.setdefault((number, found.pods[pod.key]), []).append(pod)
    refusals = (Refusal(tuple(pods), Stage.HELD, cause) for (_, cause), pods in refused.items())
    return tuple(refusals), tuple(_without(shapes, found.pods))


def is_new(pod: Pod, snapshot: ClusterSnapshot) -> bool:
    """Whether the pod has admission before it, and would pass all of it but quotas."""
    return not (pod.uid or pod.invalid or is_virtual(pod.key) or pod.key in snapshot.leaving)


def _existing(snapshot: ClusterSnapshot, namespaces: Collection[str]) -> Iterator[Pod]:
    """Pods of the namespaces that have passed admission and have not ended."""
    waiting = {pod.key: pod for pod in (*snapshot.grouped, *snapshot.pending)}
    bound = (pod for node in snapshot.nodes for pod in node.pods)
    there = (*bound, *(pod for pod in waiting.values() if not pod.node_name and not is_new(pod, snapshot)))
    yield from (pod for pod in there if pod.namespace in namespaces and not pod.is_ended and not pod.invalid)


def _without(shapes: Sequence[Shape], out: Collection[str]) -> Iterator[Shape]:
    for shape in shapes:
        left = tuple(pod for pod in shape.pods if pod.key not in out)
        if left:
            yield shape if len(left) == len(shape) else Shape(left)


@dataclass(frozen=True, slots=True)
class _Coming:
    """What is to come in namespaces with a quota, in the order of admission, and the claims that are there."""

    namespaces: frozenset[str]
    pods: tuple[Pod, ...]
    claims: tuple[PersistentVolumeClaim, ...]
    old_claims: tuple[PersistentVolumeClaim, ...]

    @classmethod
    def of(cls, pods: Iterable[Pod], snapshot: ClusterSnapshot) -> "_Coming":
        """These pods and the others that are pending: those not planned for, such as gated ones, come like all."""
        namespaces = frozenset(quota.namespace for quota in snapshot.quotas)
        storing = frozenset(quota.namespace for quota in snapshot.quotas if any(map(is_of_claims, quota.hard)))
        held = {pod.key: pod for pod in (*snapshot.pending, *pods) if pod.namespace in namespaces}
        coming = [
            pod
            for pod in held.values()
            if is_new(pod, snapshot) or (pod.namespace in storing and _awaits_claim(pod, snapshot))
        ]
        everything = snapshot.volume_claims.values() if storing else ()
        claims = sorted((c for c in everything if c.namespace in storing), key=lambda each: each.key)
        return cls(
            namespaces,
            tuple(sorted(coming, key=lambda each: (each.created_s, queue_order(each)))),
            tuple(claim for claim in claims if claim.is_new),
            tuple(claim for claim in claims if not claim.is_new),
        )


def _awaits_claim(pod: Pod, snapshot: ClusterSnapshot) -> bool:
    """Whether it is there, and the claim of an ephemeral volume of it is not."""
    if pod.invalid or is_virtual(pod.key) or pod.key in snapshot.leaving:
        return False
    names = (template.claim_of(pod.name) for template in pod.spec.claim_templates if template.is_ephemeral)
    return any(f"{pod.namespace}/{name}" not in snapshot.volume_claims for name in names)


@dataclass(frozen=True, slots=True)
class _Made:
    """Makes pods and claims within the quotas; `missing` are the claims that are refused."""

    quotas: "_Quotas"
    volumes: Volumes
    there: Mapping[str, PersistentVolumeClaim]
    missing: dict[str, ClaimOverQuota]

    def create(self, claim: PersistentVolumeClaim) -> None:
        """One claim."""
        selecting = self.quotas.of_claim(claim, self.volumes.class_named(claim.storage_class))
        over = _first_over(selecting)
        if over is None:
            _take(selecting)
        else:
            self.missing[claim.key] = ClaimOverQuota(Name(claim.name), over)

    def with_claims(self, pod: Pod, *, is_ephemeral: bool) -> ClaimOverQuota | None:
        """The claims of the pod's templates, of which those that are there stay; why the first refused one is."""
        first = None
        for template in pod.spec.claim_templates:
            if template.is_ephemeral != is_ephemeral:
                continue
            name = template.claim_of(pod.name)
            key = f"{pod.namespace}/{name}"
            if key not in self.there:
                self.create(template.claim(pod.namespace, name))
            first = first or self.missing.get(key)
        return first

    def refusal(self, pod: Pod, spec: PodSpec) -> Cause | None:
        """Why the pod does not come to be; None where it does, which counts from then on."""
        without = self.with_claims(pod, is_ephemeral=False)
        if without is not None:
            return without
        selecting = self.quotas.of_pod(pod.namespace, spec)
        names = (_unstated(tracked.quota, spec) for tracked, _ in selecting)
        cause = next(filter(None, names), None) or _first_over(selecting)
        if cause is None:
            _take(selecting)
        return cause


@dataclass(eq=False)
class _Tracked:
    """A quota and what is used of it. What pods of a spec ask of it is worked out once; None where it selects none."""

    quota: ResourceQuota
    used: Resources = NOTHING
    asked: dict[int, tuple[PodSpec, Resources | None]] = field(default_factory=dict)

    def of_pod(self, spec: PodSpec) -> Resources | None:
        """What such a pod counts, by the names that the quota limits."""
        if id(spec) not in self.asked:
            # The spec is kept beside its answer: an identity is free again once its object is gone.
            self.asked[id(spec)] = spec, self.quota.counted(spec)
        return self.asked[id(spec)][1]


_Selecting = Sequence[tuple[_Tracked, Resources]]
"""Quotas that count something, with what it asks of each."""


class _Quotas:
    """The quotas of some namespaces, each with what is used."""

    def __init__(self, quotas: Iterable[ResourceQuota]) -> None:
        self._by_namespace: dict[str, list[_Tracked]] = {}
        for quota in sorted(quotas, key=lambda each: (each.namespace, each.name)):
            # No scope lets a quota count objects that have ended.
            ended = 0 if quota.scopes else quota.used.get(OBJECTS, 0)
            self._by_namespace.setdefault(quota.namespace, []).append(_Tracked(quota, Resources({OBJECTS: ended})))

    def of_pod(self, namespace: str, spec: PodSpec) -> _Selecting:
        """Those that count such a pod, by name."""
        found = ((tracked, tracked.of_pod(spec)) for tracked in self._by_namespace.get(namespace, ()))
        return [(tracked, asked) for tracked, asked in found if asked is not None]

    def of_claim(self, claim: PersistentVolumeClaim, storage_class: str) -> _Selecting:
        """Those that count the claim, by name."""
        found = (
            (tracked, tracked.quota.counted_claim(claim, storage_class))
            for tracked in self._by_namespace.get(claim.namespace, ())
        )
        return [(tracked, asked) for tracked, asked in found if asked is not None]


def _take(selecting: _Selecting) -> None:
    """It is there from now on."""
    for tracked, asked in selecting:
        tracked.used = tracked.used + asked


def _unstated(quota: ResourceQuota, spec: PodSpec) -> Cause | None:
    names = unstated(spec, quota.hard)
    return UnstatedForQuota(Name(quota.namespace), Name(quota.name), tuple(map(Name, names))) if names else None


def _first_over(selecting: _Selecting) -> OverResourceQuota | None:
    return next(filter(None, (_over(tracked, asked) for tracked, asked in selecting)), None)


def _over(tracked: _Tracked, asked: Mapping[str, int]) -> OverResourceQuota | None:
    quota, used = tracked.quota, tracked.used
    for name in exceeded(quota.hard, used, asked):
        figures = quota.hard[name], used.get(name, 0), asked[name]
        return OverResourceQuota(Name(quota.namespace), Name(quota.name), Name(name), *figures)
    return None
