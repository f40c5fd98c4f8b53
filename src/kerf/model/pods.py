"""Pods, what they ask of a node, and what they ask of GPUs."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, TypeVar

from kerf.model.causes import FieldRefusal
from kerf.model.constraints import ANYTHING, Requirements, Toleration, all_of
from kerf.model.gpu import SliceRequest
from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.placeholders import VIRTUAL, Placeholder
from kerf.model.preferences import NO_WISH, Wish
from kerf.model.quantities import NOTHING, PODS, Resources
from kerf.model.topology import NO_AFFINITY, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.model.volumes import NO_MOUNTS, ZONES_OF_DRIVERS, ClaimTemplate, Mounts, zone_key

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
READ_DOMAINS = frozenset(
    {
        "autoscaling.x-k8s.io",
        "controller.kubernetes.io",
        "hami.io",
        "karpenter.sh",
        "kerf.dev",
        "kueue.x-k8s.io",
        "nvidia.com",
        "scheduling.k8s.io",
    }
)
"""Domains of the annotations of a pod that some decision reads; no others are kept of a live pod, for want of room."""
_Found = TypeVar("_Found")
_NUMBER = re.compile(r"0*([0-9]+)")
_EVERY_ADDRESS = frozenset(("", "0.0.0.0"))
DEFAULT_SCHEDULER, HAMI_SCHEDULER = "default-scheduler", "hami-scheduler"


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a container takes."""

    port: int
    protocol: str = "TCP"
    ip: str = ""


def port_in_conflict(asked: Sequence[HostPort], taken: Iterable[HostPort]) -> HostPort | None:
    """The first port that cannot be on a node where others are taken; None where all can. Linear in both.

    No address means every address (kube-scheduler's HostPortInfo.CheckConflict, to which `::` is one like others).
    """
    if not asked:
        return None
    addresses: dict[tuple[int, str], set[str]] = {(each.port, each.protocol): set() for each in asked}
    for each in taken:
        key = each.port, each.protocol
        if key in addresses:
            addresses[key].add(each.ip)
    for each in asked:
        held = addresses[each.port, each.protocol]
        if held and (each.ip in held or each.ip in _EVERY_ADDRESS or not held.isdisjoint(_EVERY_ADDRESS)):
            return each
    return None


@dataclass(frozen=True, slots=True)
class Container:
    """A container; `requests` are completed from `limits` and LimitRanges, `limits` are as the user wrote them."""

    name: str
    requests: Resources = NOTHING
    limits: Resources = NOTHING
    is_sidecar: bool = False
    is_privileged: bool = False
    host_ports: tuple[HostPort, ...] = ()


@dataclass(frozen=True)
class PodSpec:
    """What is the same for all pods of a workload; decode interns it, so equal pods share one.

    `affinity` holds the required node affinity terms, of which one must hold (none: no constraint); `preferred` the
    preferred ones with weight. `scheduling_gates` hold a pod back. `not_planned` names what a pod is refused for
    because Kerf does not plan it: resource claims, and resources that stand for one. `claims` are names of
    PersistentVolumeClaims. `active_deadline_s` None: it may run for ever.
    `pod_requests` and `pod_limits` are those of the pod as a whole (`spec.resources`), which count in place of its
    containers' sums.
    `workload_ref` is the group of a native Workload that its pods belong to: `workload/group`, or with a replica's key.
    `claim_templates` are claims that are made for each of its pods. `mounts` is what all its volumes ask of a node; it
    is empty until a decision has looked them up, which takes the place of `claims` and `claim_templates`.
    `spread`, `pod_affinity` and `pod_anti_affinity` say where it runs in relation to other pods. `wish` is what of its
    preferences a decision treats as required; it is empty in every spec that is decoded.
    """

    containers: tuple[Container, ...]
    init_containers: tuple[Container, ...] = ()
    overhead: Resources = NOTHING
    node_selector: Requirements = ANYTHING
    affinity: tuple[Requirements, ...] = ()
    preferred: tuple[tuple[int, Requirements], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    scheduler_name: str = DEFAULT_SCHEDULER
    priority: int = 0
    priority_class: str = ""
    scheduling_gates: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    not_planned: tuple[str, ...] = ()
    termination_grace_s: int = 30
    active_deadline_s: int | None = None
    pod_requests: Resources = NOTHING
    pod_limits: Resources = NOTHING
    workload_ref: str = ""
    claim_templates: tuple[ClaimTemplate, ...] = ()
    runtime_class: str = ""
    mounts: Mounts = NO_MOUNTS
    spread: tuple[TopologySpreadConstraint, ...] = ()
    pod_affinity: PodAffinity = NO_AFFINITY
    pod_anti_affinity: PodAffinity = NO_AFFINITY
    wish: Wish = NO_WISH

    @cached_property
    def requests(self) -> Resources:
        """What kube-scheduler counts: the larger of running containers and any moment of initialisation, plus overhead.

        Sidecars count in both (KEP-753). What the pod asks as a whole goes before both (KEP-2837). One pod is one of
        the node's `pods`.
        """
        return self.requests_of_containers.replaced(self.pod_requests) + self.overhead + {PODS: 1}

    @property
    def requests_of_containers(self) -> Resources:
        """What they request together at most at once, whatever the pod asks as a whole."""
        return self._most_at_once(lambda container: container.requests)

    @property
    def limits_of_containers(self) -> Resources:
        """What they are limited to together, summed up as their requests are."""
        return self._most_at_once(lambda container: container.limits)

    @cached_property
    def limits(self) -> Resources:
        """What it is limited to, summed up as `requests` are, each that is not 0 with overhead (as PodLimits does)."""
        counted = self.limits_of_containers.replaced(self.pod_limits)
        return counted + {name: self.overhead.get(name, 0) for name, amount in counted.items() if amount}

    def _most_at_once(self, amounts: Callable[[Container], Resources]) -> Resources:
        running = NOTHING
        for container in self.containers:
            running = running + amounts(container)
        sidecars, starting = NOTHING, NOTHING
        for container in self.init_containers:
            if container.is_sidecar:
                sidecars = sidecars + amounts(container)
                starting = starting.largest(sidecars)
            else:
                starting = starting.largest(sidecars + amounts(container))
        return (running + sidecars).largest(starting)

    @property
    def lasting(self) -> tuple[Container, ...]:
        """The containers that run as long as the pod does: sidecars among the init containers too, after the others."""
        return (*self.containers, *(each for each in self.init_containers if each.is_sidecar))

    @cached_property
    def host_ports(self) -> tuple[HostPort, ...]:
        """The node's ports that it holds: an init container lets go of its own (kube-scheduler's GetHostPorts)."""
        return tuple(port for container in self.lasting for port in container.host_ports)

    @cached_property
    def alternatives(self) -> tuple[Requirements, ...]:
        """What it asks of a node's labels: one of these must hold of a node that is there; never empty."""
        return self._with(self.mounts.there)

    @cached_property
    def alternatives_new(self) -> tuple[Requirements, ...]:
        """The same of a node to be bought, to which a local volume does not follow it.

        A label in which a CSI driver will write the node's zone is asked for as the zone.
        """
        found = self.alternatives if self.mounts.new == self.mounts.there else self._with(self.mounts.new)
        if all(ZONES_OF_DRIVERS.isdisjoint(each) for each in found):
            return found
        return tuple(all_of(replace(held, key=zone_key(held.key)) for held in each.values()) for each in found)

    @cached_property
    def own_alternatives(self) -> tuple[Requirements, ...]:
        """The same without its volumes."""
        terms = self.affinity or (ANYTHING,)
        found = tuple(dict.fromkeys(all_of((*self.node_selector.values(), *term.values())) for term in terms))
        # One that contradicts itself lets the pod run nowhere, and says nothing where another does.
        return tuple(each for each in found if not each.is_never) or found

    @cached_property
    def required_spread(self) -> tuple[TopologySpreadConstraint, ...]:
        """The spread constraints that keep a pod off a node, without the wishes."""
        return tuple(constraint for constraint in self.spread if constraint.is_required)

    @cached_property
    def has_relations(self) -> bool:
        """Whether it says anything at all of where other pods are, wishes included."""
        is_beside = bool(self.mounts.beside) or self.pod_affinity != NO_AFFINITY
        return bool(self.spread) or is_beside or self.pod_anti_affinity != NO_AFFINITY

    @cached_property
    def is_related(self) -> bool:
        """Whether where it may run, or others may beside it, depends on other pods; a preference that is not treated as
        required is no such thing."""
        return bool(self.required_spread or self._required_terms or self.wish.is_related)

    @cached_property
    def related_preferences(self) -> Wish:
        """All that it prefers of where other pods are."""
        near, away = ((term for _, term in held.preferred) for held in (self.pod_affinity, self.pod_anti_affinity))
        even = tuple(constraint for constraint in self.spread if not constraint.is_required)
        return Wish(near=tuple(near), away=tuple(away), spread=even)

    @cached_property
    def selects_without_labels(self) -> bool:
        """Whether one of these constraints may select a pod that has none of the labels which it reads."""
        return any(selector.unsatisfied_by({}) is None for selector in self._selectors)

    @property
    def _selectors(self) -> tuple[Requirements, ...]:
        return tuple(constraint.selector for constraint in self.constraints())

    def constraints(self) -> Iterator[TopologySpreadConstraint | PodAffinityTerm]:
        """What is required of where other pods are, and what it prefers and is treated as required."""
        yield from self.required_spread
        yield from self._required_terms
        yield from self.wish.constraints()

    @cached_property
    def label_keys_read(self) -> frozenset[str]:
        """The labels of pods that these constraints read."""
        read = [constraint.label_keys for constraint in self.required_spread]
        read += [term.label_keys for term in self._required_terms]
        return self.wish.label_keys.union(*read)

    @property
    def _required_terms(self) -> tuple[PodAffinityTerm, ...]:
        """Those that mean other pods: of affinity, of anti-affinity, and of claims that it shares."""
        of_claims = (shared.pods for shared in self.mounts.beside)
        return (*self.pod_affinity.required, *self.pod_anti_affinity.required, *of_claims)

    def alone(self) -> "PodSpec":
        """The same without what it asks of other pods."""
        mounts = replace(self.mounts, beside=()) if self.mounts.beside else self.mounts
        return replace(self, spread=(), pod_affinity=NO_AFFINITY, pod_anti_affinity=NO_AFFINITY, mounts=mounts)

    @cached_property
    def answers(self) -> dict[Hashable, Any]:
        """What decisions have asked of it, by their questions: it stays the same in many snapshots."""
        return {}

    @cached_property
    def marks(self) -> "dict[tuple[object, ...], _Mark]":
        """The marks of its pods (`Pod.mark`), which fills it."""
        return {}

    def _with(self, terms: tuple[Requirements, ...]) -> tuple[Requirements, ...]:
        """Its own terms with one each of its volumes; in the order of its own."""
        found = self.own_alternatives
        if self.wish.labels:
            found = tuple(all_of((*own.values(), *self.wish.labels.values())) for own in found)
        if terms == NO_MOUNTS.there:
            return found
        return tuple(dict.fromkeys(own.intersect(term) for own in found for term in terms))


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller that made an object; `controller` is its own, where the input names it."""

    kind: str
    name: str
    uid: str = ""
    controller: "Owner | None" = None


_DAEMON_OWNERS = ("DaemonSet", "Node")


class _Mark:
    """Nothing but itself: see `Pod.mark`."""

    __slots__ = ()


def is_daemon(owner: Owner | None) -> bool:
    """Whether the owner of a pod is a DaemonSet or the kubelet itself."""
    return owner is not None and owner.kind in _DAEMON_OWNERS


def natural(name: str) -> str:
    """Sort key that puts `web-2` before `web-10`: before each number stands how many digits it has, below any letter.

    One string, because a decision compares those of all its pods. Pods share most parts of their names with others.
    """
    return "-".join(map(_natural, name.split("-")))


@lru_cache(maxsize=8192)
def _natural(part: str) -> str:
    """That of a part of a name: a number that ends in a dash ends there."""
    if part.isascii() and part.isdigit():
        number = part.lstrip("0") or "0"
        return f"\0{chr(len(number))}{number}"
    return _NUMBER.sub(lambda found: f"\0{chr(len(found[1]))}{found[1]}", part)


_SET: Callable[[object, str | None, object], None] = object.__setattr__  # type: ignore[assignment]


class _Remembered(cached_property[_Found]):
    """What is asked of every pod: without a lock, for two threads find the same, and kept where its fields are."""

    def __get__(self, instance: object, owner: type[Any] | None = None) -> _Found:  # type: ignore[override]
        found = self.func(instance)
        _SET(instance, self.attrname, found)
        return found


@lru_cache(maxsize=4096)
def _turn(queue_priority: int, priority: int, created_s: float, namespace: str) -> tuple[int, int, float, str]:
    """The first part of a pod's place in the queue. Pods of a burst share the one object, so it is compared at once."""
    return -queue_priority, -priority, created_s, namespace


@dataclass(frozen=True)
class Pod:
    """A pod, pending when `node_name` is empty and it has not ended.

    `uid` is empty for a pod that a manifest describes and no API has seen: admission is emulated for those.
    `invalid` says why the API server would refuse it; None when it would not. `initialised` means that its init
    containers have ended, `is_ready` that it serves: its Ready condition says so, or it runs and has none. `source` is
    where its manifest stands (`file:line:col`), for messages. `queue_priority` goes before its priority in Kerf's own
    queue; a decision sets it, no API does. `reserved_for` are the reservations (`model.nodes.reservation`) that it
    tolerates. They say where a plan has put it and not what it is, so they are no part of its spec: pods of one
    workload stay equal. `starting_s` is how long it took from the kubelet's first sight of it to its being ready; None
    where it is not ready, or nothing says when.
    """

    namespace: str
    name: str
    spec: PodSpec
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    uid: str = ""
    resource_version: str = ""
    created_s: float = 0
    deleted_s: float | None = None
    started_s: float | None = None
    node_name: str = ""
    nominated_node: str = ""
    phase: str = PENDING
    owner: Owner | None = None
    unschedulable: str = ""
    invalid: FieldRefusal | None = None
    initialised: bool = False
    source: str = ""
    queue_priority: int = 0
    reserved_for: tuple[str, ...] = ()
    is_ready: bool = False
    starting_s: int | None = None

    @_Remembered
    def key(self) -> str:
        """`namespace/name`. Maps by it share the one string."""
        return f"{self.namespace}/{self.name}"

    @_Remembered
    def queue_order(self) -> tuple[tuple[int, int, float, str], str]:
        """Sort key of the order in which kube-scheduler takes pods: priority, then age; equal ages by name, so it
        is stable.

        Before that comes what only Kerf's own queue knows: the priority of the window that is open for a pod. A
        decision sorts its pods several times.
        """
        return _turn(self.queue_priority, self.spec.priority, self.created_s, self.namespace), natural(self.name)

    @_Remembered
    def mark(self) -> object:
        """The very same for pods that have one spec and namespace, the keys of their labels in common, and that either
        all or none have annotations, a uid, a fault, ended init containers, and a DaemonSet as their owner.

        A decision asks many questions of all pods that wait, and most of them of one pod of each mark (`samples`).
        """
        marks, owner = self.spec.marks, self.owner
        key = (
            self.namespace,
            not self.uid,
            self.initialised,
            not self.annotations,
            self.invalid is None,
            owner is not None and owner.kind in _DAEMON_OWNERS,
            *self.labels,
        )
        return marks.get(key) or marks.setdefault(key, _Mark())

    def ask_ahead(self) -> None:
        """Work out what every decision asks of a pod that waits: its key, its place in the queue and its mark.

        The decision that is due then need not do it for all pods of a burst.
        """
        _ASKED_OF_EACH(self)

    @cached_property
    def demands(self) -> dict[str, tuple[object, object]]:
        """What it asks of a family of sharing, by the family's name, with the family; `sharing.registry` fills it.

        It lies here, because a pod stays the same in many snapshots, and each of them asks it of every pod.
        """
        return {}

    @property
    def kept_for(self) -> Placeholder | None:
        """Whose room it stands for, where it is a placeholder; None for a real pod."""
        return Placeholder.of(self.key) if VIRTUAL in self.namespace else None

    @property
    def nominated_to(self) -> str:
        """The node on which its scheduler keeps room for it until it is bound; empty for none.

        A scheduler nominates a pod for which it evicts others, and since Kubernetes 1.35 one that it is about to bind:
        while a volume is provisioned that takes minutes (KEP-5278).
        """
        is_over = bool(self.node_name) or self.is_ended or self.deleted_s is not None
        return "" if is_over or self.spec.scheduling_gates else self.nominated_node

    @property
    def is_ended(self) -> bool:
        """Whether it holds nothing any more."""
        return self.phase in (SUCCEEDED, FAILED)

    def asks_as(self, other: "Pod") -> bool:
        """Whether it requests what another version of it does; the API lets a pod be resized in place."""
        return self.spec is other.spec or self.spec.requests == other.spec.requests

    @property
    def is_pending(self) -> bool:
        """Whether it waits for a node."""
        return not self.node_name and not self.is_ended and self.deleted_s is None

    @property
    def names_its_node(self) -> bool:
        """Whether its manifest names the node: no scheduler has bound it, and none will look at it."""
        return bool(self.node_name) and not self.uid and self.phase == PENDING

    @property
    def is_opportunistic(self) -> bool:
        """Whether it only takes what others leave idle."""
        return self.labels.get(OPPORTUNISTIC) == "true"

    @property
    def claim_names(self) -> tuple[str, ...]:
        """The PersistentVolumeClaims that it uses, in its namespace; those that are made for it too."""
        return (*self.spec.claims, *(template.claim_of(self.name) for template in self.spec.claim_templates))

    @property
    def is_daemon(self) -> bool:
        """Whether a DaemonSet or the kubelet itself owns it, so no autoscaler acts for it."""
        return is_daemon(self.owner)


def _keep_room_for(first: Pod, *names: str) -> None:
    """Give what is remembered of a pod its place beside its fields.

    CPython keeps the names of attributes once for all objects of a class, if its first object has them; a second name
    that comes later costs each object a table of its own, of more than a kilobyte.
    """
    for name in names:
        object.__setattr__(first, name, None)


_keep_room_for(Pod("", "", PodSpec(())), "key", "queue_order", "demands", "mark")


_MARK, _ASKED_OF_EACH = attrgetter("mark"), attrgetter("key", "queue_order", "mark")


def samples(pods: Iterable[Pod]) -> list[Pod]:
    """One pod of each mark (`Pod.mark`), in the order of the first ones. No step of Python's own for each pod."""
    held = list(pods)
    return list(dict(zip(map(_MARK, held), held, strict=True)).values())


def marked(pods: Iterable[Pod]) -> list[list[Pod]]:
    """The pods by their marks (`Pod.mark`), each in their order."""
    held, found = list(pods), defaultdict[object, list[Pod]](list)
    for mark, pod in zip(map(_MARK, held), held, strict=True):
        found[mark].append(pod)
    return list(found.values())


def specs_of(of_each_mark: Iterable[Pod]) -> dict[int, PodSpec]:
    """The specs of pods of which these are `samples`, each object once, by its identity."""
    return {id(pod.spec): pod.spec for pod in of_each_mark}


def label_keys_of(of_each_mark: Iterable[Pod]) -> frozenset[str]:
    """The keys of all labels of pods of which these are `samples`."""
    return frozenset(key for pod in of_each_mark for key in pod.labels)


@dataclass(frozen=True, slots=True)
class ContainerDemand:
    """What one container asks of GPUs; `request` None: nothing."""

    name: str
    request: SliceRequest | None
    is_init: bool = False
    is_sidecar: bool = False


@dataclass(frozen=True, slots=True)
class PodDemand:
    """What one pod asks of GPUs, in the terms of one sharing family, after its admission was emulated.

    `containers` are in the order of the family's own records (HAMi: init containers first). `options` are the
    family's own, e.g. type filters and policies, hashable and opaque to the engine. `kubelet` are the resources that
    the kubelet counts for it (`nvidia.com/gpu`), already among the pod's requests or added by admission.
    """

    family: str
    containers: tuple[ContainerDemand, ...]
    options: object = None

    @property
    def is_empty(self) -> bool:
        """Whether no container asks for any GPU."""
        return all(container.request is None for container in self.containers)

    @property
    def asking(self) -> tuple[ContainerDemand, ...]:
        """The containers that ask for some."""
        return tuple(container for container in self.containers if container.request is not None)


@dataclass(frozen=True, slots=True)
class PodDisruptionBudget:
    """Which pods may not be evicted just now; `disruptions_allowed` as its status says.

    `is_blocking`: its spec never allows an eviction, however many pods there are. `lets_unready_go`: it holds no pod
    that is not ready (unhealthyPodEvictionPolicy AlwaysAllow); by the default it is for the API to say when it does.
    """

    namespace: str
    name: str
    selector: Requirements
    disruptions_allowed: int = 0
    is_blocking: bool = False
    lets_unready_go: bool = False

    def holds(self, pod: Pod) -> bool:
        """Whether it allows no eviction of `pod` now, which it covers."""
        return self.disruptions_allowed <= 0 and not self._lets_go(pod)

    def always_holds(self, pod: Pod) -> bool:
        """Whether it never allows one."""
        return self.is_blocking and not self._lets_go(pod)

    def _lets_go(self, pod: Pod) -> bool:
        return self.lets_unready_go and not pod.is_ready

    def covers(self, pod: Pod) -> bool:
        """Whether it protects `pod`."""
        return pod.namespace == self.namespace and self.selector.unsatisfied_by(pod.labels) is None
