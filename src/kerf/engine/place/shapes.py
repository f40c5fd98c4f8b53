"""Equal pods, grouped once.

A burst of 100,000 pods has a few dozen shapes; everything that costs is done once a shape. Pods are equal when nothing
that a placement may depend on differs: the spec (interned by decode, so most comparisons are of identity), the
annotations a sharing family may read, the labels that some selector reads, and the namespace where a quota or such a
selector counts.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from kerf.model.large import Large
from kerf.model.placeholders import VIRTUAL, Keeper
from kerf.model.pods import Container, Pod, PodSpec, marked
from kerf.model.quantities import CPU, MEMORY, Resources
from kerf.model.snapshot import ClusterSnapshot
from kerf.sharing.shown import Counting

# Written by schedulers, controllers and kubectl on single pods; they say nothing of what a pod needs.
_OWN_OF_A_POD = (
    "hami.io/vgpu-time",
    "hami.io/bind-time",
    "hami.io/bind-phase",
    "kubectl.kubernetes.io/",
    "kerf.dev/run-for",
    "kerf.dev/restart-cost",
    "kerf.dev/admitted-by",
    "kerf.dev/pod-group",
    "kerf.dev/rejected",
    "scheduling.k8s.io/group-name",
    "kueue.x-k8s.io/",
)
_OF_RUNS = f"{Keeper.RUN}{VIRTUAL}"


class Evenness(NamedTuple):
    """At most so many pods on a node of those in a group but in none of `less`, and of those in one of `more`."""

    group: int
    less: tuple[int, ...]
    more: tuple[int, ...]
    most: int

    def means(self, groups: Collection[int]) -> bool:
        """Whether a pod in these groups is one of them."""
        if self.group in groups and not any(each in groups for each in self.less):
            return True
        return any(each in groups for each in self.more)

    def count(self, counts: Mapping[int, int]) -> int:
        """How many of them are there; `counts` are those of groups."""
        found = counts.get(self.group, 0) - sum([counts.get(each, 0) for each in self.less])
        return found + sum([counts.get(each, 0) for each in self.more])


@dataclass(frozen=True)
class Crowding:
    """How pods get on with others on one node to be bought.

    `groups` are numbers of sets of pods that they are in, of some more than once. Where one of them is, a node has at
    most so many pods of each group in `most`, and no pod of a group in `apart` but those that are in one of the groups
    beside it, which are among them. `even` are limits as those of `most` are. `daemons` are the groups that pods of
    DaemonSets are in, by the keys of these: where such a DaemonSet runs, a new node has one of its pods from the start.
    """

    groups: tuple[int, ...] = ()
    most: tuple[tuple[int, int], ...] = ()
    apart: tuple[tuple[int, tuple[int, ...]], ...] = ()
    even: tuple[Evenness, ...] = ()
    daemons: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @cached_property
    def members(self) -> int:
        """The groups as bits of a number: hundreds of them are asked for in one step."""
        return sum(1 << group for group in self.own)

    @cached_property
    def lone(self) -> int:
        """The groups, as bits, of which one pod on a node keeps all of these off."""
        return sum(1 << group for group, most in self.most if most <= (group in self.own))

    @cached_property
    def own(self) -> frozenset[int]:
        """The groups as a set."""
        return frozenset(self.groups)

    @cached_property
    def is_apart_itself(self) -> bool:
        """Whether such pods keep each other off by what is `apart`."""
        own = Counter(self.groups)
        return any(own[group] > sum(own[each] for each in less) for group, less in self.apart)


UNCROWDED = Crowding()


@dataclass(frozen=True, eq=False, repr=False)
class Shape(Large):
    """Pods that are equal for every placement, in queue order; never empty.

    `asked` counts in the place of their spec, where it is known in which domain they are to run, and `crowding` on a
    node to be bought.
    """

    pods: tuple[Pod, ...]
    asked: PodSpec | None = None
    crowding: Crowding = UNCROWDED

    @cached_property
    def pod(self) -> Pod:
        """One of them."""
        pod, spec = self.pods[0], self.spec
        return pod if spec is pod.spec else replace(pod, spec=spec)

    @property
    def spec(self) -> PodSpec:
        """What they ask of a node."""
        return self.pods[0].spec if self.asked is None else self.asked

    @cached_property
    def identity(self) -> Hashable:
        """Equal for shapes of which a node says the same, as far as other pods do not matter; as long as their specs
        live."""
        pod = self.pods[0]
        annotations = _annotations_key(pod.annotations) if pod.annotations else ()
        return id(self.spec), annotations, bool(pod.uid), pod.initialised, pod.invalid, pod.namespace

    @cached_property
    def requests(self) -> Resources:
        """What kube-scheduler counts for one of them."""
        return self.spec.requests

    @cached_property
    def keepers(self) -> tuple[str, ...]:
        """The names of what keeps room for them, in order; empty for pods that exist. Each launch asks."""
        kept = {pod.namespace: pod.kept_for for pod in self.pods if VIRTUAL in pod.namespace}
        return tuple(sorted(each.name for each in kept.values() if each is not None))

    def counted(self, counting: Counting) -> Resources:
        """What a sum over the node decides for one of them, as the node counts it; computed once."""
        if counting not in self._counted:
            self._counted[counting] = counting.of(self.requests)
        return self._counted[counting]

    @cached_property
    def _counted(self) -> dict[Counting, Resources]:
        """The answers of `counted`: every node and type asks, and there are as many as families of sharing."""
        return {}

    def __len__(self) -> int:
        return len(self.pods)


queue_order = attrgetter("queue_order")
"""Sort key of pods: see `Pod.queue_order`."""


def _annotations_key(annotations: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((k, v) for k, v in annotations.items() if not k.startswith(_OWN_OF_A_POD)))


@dataclass(frozen=True)
class Readings:
    """What is read of a cluster's pods beside their specs and annotations.

    `quota_namespaces` have a quota. `labels` are the keys that selectors of spread and affinity read, those of
    preferences too; `is_broad` says that one of them may select a pod that has none of these.
    """

    quota_namespaces: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    is_broad: bool = False

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> "Readings":
        """Those of a snapshot. Linear in pods, once a snapshot."""
        quotas = frozenset(quota.namespace for quota in snapshot.quotas)
        specs, wishes = snapshot.related, snapshot.related_preferences
        read = [*(spec.label_keys_read for spec in specs), *(wish.label_keys for wish in wishes)]
        labels = frozenset[str]().union(*read)
        is_broad = any(spec.selects_without_labels for spec in specs)
        return cls(quotas, labels, is_broad or any(wish.selects_without_labels for wish in wishes))


NOTHING_READ = Readings()


def read_labels(labels: Mapping[str, str], keys: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Those of the labels that are read, sorted. Cost: the labels, however many keys there are."""
    return tuple(sorted((key, value) for key, value in labels.items() if key in keys)) if keys else ()


class Kinds:
    """Finds pods that are equal for every placement by a key. One object's keys are comparable, whenever they are asked
    for; the spec is compared by identity first, because decode interns specs and hashing one is slow.

    Without `are_sized` cpu and memory do not tell pods apart.
    """

    def __init__(self, read: Readings = NOTHING_READ, *, are_sized: bool = True) -> None:
        self._read, self._are_sized = read, are_sized
        # The spec is kept beside its number: an identity is free again once its object is gone.
        self._by_identity: dict[int, tuple[PodSpec, int, bool]] = {}
        self._by_value: dict[PodSpec, int] = {}
        self._usual: dict[tuple[int, str, bool, bool], Hashable] = {}

    @property
    def size(self) -> int:
        """How many specs it keeps."""
        return len(self._by_identity)

    def of(self, pod: Pod, asked: PodSpec | None = None) -> Hashable:
        """The key of the pod's kind; `asked` counts in the place of its spec."""
        spec = pod.spec if asked is None else asked
        usual = self.usual_of(pod, spec)
        if usual is None:
            return self._of(pod, spec)
        found = self._usual.get(usual)
        if found is None:
            found = self._usual[usual] = self._of(pod, spec)
        return found

    def usual_of(self, pod: Pod, spec: PodSpec) -> tuple[int, str, bool, bool] | None:
        """What most pods of a burst differ by alone: those for which it is equal are of one kind, as long as all their
        specs are kept. None where it does not tell the kind."""
        if pod.annotations or pod.invalid is not None or not self._read.labels.isdisjoint(pod.labels):
            return None
        return id(spec), pod.namespace, not pod.uid, pod.initialised

    def _of(self, pod: Pod, spec: PodSpec) -> Hashable:
        held = self._by_identity.get(id(spec))
        if held is None:
            held = self._by_identity[id(spec)] = spec, self._number(spec), spec.has_relations
        read = self._read
        labels = read_labels(pod.labels, read.labels) if read.labels else ()
        # Its own constraints and those that may mean it count pods by namespace.
        is_placed = bool(labels) or read.is_broad or held[2]
        return (
            held[1],
            _annotations_key(pod.annotations) if pod.annotations else (),
            bool(pod.uid),
            pod.initialised,
            pod.invalid,
            self._namespace(pod.namespace, is_placed=is_placed),
            labels,
        )

    def _number(self, spec: PodSpec) -> int:
        asked = spec if self._are_sized else _without_sizes(spec)
        if asked.claims:
            # Each pod of a StatefulSet has claims of its own; what they ask is in `mounts` once it is looked up.
            asked = replace(asked, claims=())
        return self._by_value.setdefault(asked, len(self._by_value))

    def _namespace(self, namespace: str, *, is_placed: bool) -> str:
        """The part of a namespace by which pods differ; those of runs are alike: only their spec places them."""
        if VIRTUAL in namespace:
            return _OF_RUNS if namespace.startswith(_OF_RUNS) else namespace
        return namespace if is_placed or namespace in self._read.quota_namespaces else ""


def _without_sizes(spec: PodSpec) -> PodSpec:
    return replace(
        spec,
        containers=_unsized(spec.containers),
        init_containers=_unsized(spec.init_containers),
        overhead=spec.overhead.without((CPU, MEMORY)),
    )


def _unsized(containers: Iterable[Container]) -> tuple[Container, ...]:
    sizes = (CPU, MEMORY)
    return tuple(
        replace(each, requests=each.requests.without(sizes), limits=each.limits.without(sizes)) for each in containers
    )


def group(pods: Iterable[Pod], read: Readings = NOTHING_READ) -> tuple[Shape, ...]:
    """Shapes of `pods`, in the queue order of their first pods. Linear in the pods."""
    kinds, members = Kinds(read), dict[Hashable, list[Pod]]()
    for held in marked(pods):
        if kinds.usual_of(held[0], held[0].spec) is not None:
            # Pods of one mark have nothing else by which kinds differ.
            members.setdefault(kinds.of(held[0]), []).extend(held)
            continue
        for pod in held:
            members.setdefault(kinds.of(pod), []).append(pod)
    shapes = [Shape(tuple(sorted(equal, key=queue_order))) for equal in members.values()]
    return tuple(sorted(shapes, key=lambda shape: queue_order(shape.pod)))


def group_asking(
    runs: Iterable[tuple[Hashable, Sequence[Pod]]], asked: Callable[[PodSpec], PodSpec]
) -> tuple[Shape, ...]:
    """Shapes of pods that ask what `asked` makes of their specs, each in the order of `runs`.

    A run are pods that are equal, with a mark; those of equal marks are equal, too. `asked` must return one object for
    one object, for specs are compared by identity first. Linear in the runs.
    """
    kinds = Kinds()
    members: dict[Hashable, list[Pod]] = {}
    by_mark: dict[Hashable, list[Pod]] = {}
    for mark, pods in runs:
        held = by_mark.get(mark)
        if held is None:
            held = by_mark[mark] = members.setdefault(kinds.of(pods[0], asked(pods[0].spec)), [])
        held.extend(pods)
    shapes = (Shape(tuple(equal), asked(equal[0].spec)) for equal in members.values())
    return tuple(sorted(shapes, key=lambda shape: queue_order(shape.pod)))


def as_bought(shape: Shape, pod: Pod) -> Shape:
    """The shape for a node that was bought for the pod: its volumes ask no more of it than they did then."""
    mounts = shape.spec.mounts
    if mounts.there == mounts.new:
        return shape
    both = tuple(dict.fromkeys((*mounts.new, *mounts.there)))
    return Shape((replace(pod, spec=replace(shape.spec, mounts=replace(mounts, there=both))),))
