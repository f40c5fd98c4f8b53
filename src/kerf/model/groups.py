"""Groups of pods that are of use only together: who belongs to which, and how many of them it takes.

Four projects say the same in four ways; here they are one value. Kerf's own labels need no object beside the pods.
Names: scheduler-plugins.sigs.k8s.io/docs/plugins/coscheduling, volcano.sh/en/docs/podgroup,
kueue.sigs.k8s.io/docs/tasks/run/plain_pods.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kerf.errors import brief
from kerf.model.pods import Pod

POD_GROUP, POD_GROUP_MIN = "kerf.dev/pod-group", "kerf.dev/pod-group-min"
"""Labels of a pod: its group, and how many pods of the group are of use only together (or an annotation)."""
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
VOLCANO_ANNOTATION = "scheduling.k8s.io/group-name"
KUEUE_LABEL, KUEUE_COUNT = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"
KUEUE_GATES = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology")
"""Gates of pods that Kueue has not let in yet."""
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
"""Label of a workload that Kueue suspends until its queue has quota for it."""
OWN, COSCHEDULING, VOLCANO, KUEUE = "kerf.dev", "scheduling.x-k8s.io", "scheduling.volcano.sh", "kueue.x-k8s.io"


@dataclass(frozen=True, slots=True, order=True)
class GroupKey:
    """A group of one namespace; `api` tells groups of equal names apart that different projects define."""

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


def group_of(pod: Pod) -> GroupKey | None:
    """The group that a pod says it belongs to; None where it says none. Kerf's own label goes before the others."""
    named = (
        (pod.labels, POD_GROUP, OWN),
        (pod.labels, COSCHEDULING_LABEL, COSCHEDULING),
        (pod.annotations, VOLCANO_ANNOTATION, VOLCANO),
        (pod.labels, KUEUE_LABEL, KUEUE),
    )
    return next((GroupKey(pod.namespace, held[key], api) for held, key, api in named if held.get(key)), None)


def stated_min(pod: Pod, api: str) -> tuple[int, str]:
    """How many pods of its group a pod itself says are needed, and what is wrong with what it says (0 then).

    (0, "") for groups whose own object says so. The larger counts where label and annotation differ.
    """
    if api == OWN:
        held = [each for each in (pod.labels, pod.annotations) if POD_GROUP_MIN in each] or [pod.labels]
        stated = [_number(POD_GROUP_MIN, each, POD_GROUP) for each in held]
        return next((each for each in stated if each[1]), max(stated))
    return _number(KUEUE_COUNT, pod.annotations, KUEUE_LABEL) if api == KUEUE else (0, "")


def _number(key: str, held: Mapping[str, str], beside: str) -> tuple[int, str]:
    text = held.get(key)
    if text is None:
        return 0, f"{key}: expected a number of pods beside {beside}, got none"
    if text.isascii() and text.isdecimal() and 0 < len(text) <= 6 and int(text) > 0:
        return int(text), ""
    return 0, f"{key}: expected a number of pods, 1 or more, got {brief(text)}"
