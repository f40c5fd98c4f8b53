"""Groups of pods that are of use only together: who belongs to which, and how many of them it takes.

Five projects say the same in five ways; here they are one value. Kerf's own labels need no object beside the pods.
Names: scheduler-plugins.sigs.k8s.io/docs/plugins/coscheduling, volcano.sh/en/docs/podgroup,
kueue.sigs.k8s.io/docs/tasks/run/plain_pods, kubernetes.io/docs/concepts/workloads/workload-api (v1.35).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kerf.model.causes import Cause, Name, Quoted
from kerf.model.pods import Pod, samples

POD_GROUP, POD_GROUP_MIN = "kerf.dev/pod-group", "kerf.dev/pod-group-min"
"""Labels of a pod: its group, and how many pods of the group are of use only together (or an annotation)."""
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
VOLCANO_ANNOTATION = "scheduling.k8s.io/group-name"
KUEUE_LABEL, KUEUE_COUNT = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"
_LABELS = frozenset((POD_GROUP, COSCHEDULING_LABEL, KUEUE_LABEL))
KUEUE_GATES = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology")
"""Gates of pods that Kueue has not let in yet."""
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
"""Label of a workload that Kueue suspends until its queue has quota for it."""
OWN, COSCHEDULING, VOLCANO, KUEUE = "kerf.dev", "scheduling.x-k8s.io", "scheduling.volcano.sh", "kueue.x-k8s.io"
NATIVE = "scheduling.k8s.io"
"""Kubernetes' own groups: `spec.workloadRef` of a pod names a Workload and a group of it."""


class GroupKind(StrEnum):
    """What makes pods belong together."""

    GROUP = "group"
    REQUEST = "ProvisioningRequest"


@dataclass(frozen=True, slots=True)
class GroupName:
    """A group of pods, or the request that asks for room for them."""

    kind: GroupKind
    name: Name

    def __str__(self) -> str:
        """As people read it: `group train`."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class MinimumUnreadable(Cause):
    """What a pod says of how many pods its group needs: `got` is no number, or None where nothing stands there.

    `key` stands beside the label `beside`.
    """

    key: Name
    beside: Name
    got: Quoted | None


@dataclass(frozen=True, slots=True)
class GroupInvalid(Cause):
    """The pods of a group do not say how many of them it needs, or say it in a way that cannot be read."""

    group: GroupName
    problem: MinimumUnreadable


@dataclass(frozen=True, slots=True)
class GroupIncomplete(Cause):
    """Fewer pods of the group are there than it needs."""

    group: GroupName
    there: int
    least: int


@dataclass(frozen=True, slots=True)
class GroupShort(Cause):
    """Not enough pods of a group have room; `coming` are there that no scheduler has refused yet."""

    group: GroupName
    ready: int
    least: int
    coming: int


@dataclass(frozen=True, slots=True)
class GroupBehind(Cause):
    """The group has room only in the place of groups that go before it."""

    group: GroupName
    ready: int
    least: int


@dataclass(frozen=True, slots=True)
class GroupUntried(Cause):
    """Whether the group has room was not found out: the work for groups that do not fit together is bounded."""

    group: GroupName


@dataclass(frozen=True, slots=True, order=True)
class GroupKey:
    """A group of one namespace; `api` distinguishes groups of equal names that different projects define."""

    namespace: str
    name: str
    api: str = OWN

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class PodGroup:
    """The object that says how many pods of its group are of use only together."""

    namespace: str
    name: str
    min_member: int
    uid: str = ""
    resource_version: str = ""


class CoschedulingGroup(PodGroup):
    """`scheduling.x-k8s.io/v1alpha1` PodGroup, of the coscheduling plugin."""

    __slots__ = ()


class VolcanoGroup(PodGroup):
    """`scheduling.volcano.sh/v1beta1` PodGroup, of Volcano."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class NativeWorkload(PodGroup):
    """`scheduling.k8s.io/v1alpha1` Workload: `gangs` are its groups and their numbers, `min_member` says nothing."""

    gangs: tuple[tuple[str, int], ...] = ()

    def least(self, group: str) -> int:
        """How many pods of a group, `workload/group` or one replica of it, are of use only together; 0 for any."""
        workload, _, rest = group.partition("/")
        return dict(self.gangs).get(rest.partition("/")[0], 0) if workload == self.name else 0


def group_of(pod: Pod) -> GroupKey | None:
    """The group that a pod says it belongs to; None where it says none. Kerf's own label goes before the others."""
    labels = pod.labels
    # Every decision asks it of every pod, and most name no group.
    if name := labels.get(POD_GROUP):
        return GroupKey(pod.namespace, name, OWN)
    if name := labels.get(COSCHEDULING_LABEL):
        return GroupKey(pod.namespace, name, COSCHEDULING)
    if name := pod.annotations.get(VOLCANO_ANNOTATION):
        return GroupKey(pod.namespace, name, VOLCANO)
    if name := labels.get(KUEUE_LABEL):
        return GroupKey(pod.namespace, name, KUEUE)
    return GroupKey(pod.namespace, name, NATIVE) if (name := pod.spec.workload_ref) else None


def naming_groups(pods: Iterable[Pod], of_each_mark: Iterable[Pod] | None = None) -> list[Pod]:
    """Those of the pods that may name a group: few of a burst do, and every decision asks it of all.

    `of_each_mark` are their `samples`, where these are known.
    """
    held = list(pods)
    if not may_name_groups(samples(held) if of_each_mark is None else of_each_mark):
        return []
    return [pod for pod in held if _may_name_group(pod)]


def may_name_groups(of_each_mark: Iterable[Pod]) -> bool:
    """Whether any of the pods of which these are `samples` may name a group."""
    return any(map(_may_name_group, of_each_mark))


def _may_name_group(pod: Pod) -> bool:
    return bool(pod.annotations) or bool(pod.spec.workload_ref) or not _LABELS.isdisjoint(pod.labels)


def stated_min(pod: Pod, api: str) -> int | MinimumUnreadable:
    """How many pods of its group a pod itself says are needed, or what is wrong with what it says.

    0 for groups whose own object says so. The larger counts where label and annotation differ.
    """
    if api == OWN:
        held = [each for each in (pod.labels, pod.annotations) if POD_GROUP_MIN in each] or [pod.labels]
        stated = [_number(POD_GROUP_MIN, each, POD_GROUP) for each in held]
        problem = next((each for each in stated if isinstance(each, MinimumUnreadable)), None)
        return problem or max(each for each in stated if isinstance(each, int))
    return _number(KUEUE_COUNT, pod.annotations, KUEUE_LABEL) if api == KUEUE else 0


def _number(key: str, held: Mapping[str, str], beside: str) -> int | MinimumUnreadable:
    text = held.get(key)
    if text is not None and text.isascii() and text.isdecimal() and 0 < len(text) <= 6 and int(text) > 0:
        return int(text)
    return MinimumUnreadable(Name(key), Name(beside), None if text is None else Quoted(text))
