"""Rejections: a scheduler refused a pod on the very node that the plan had for it.

Kerf plans without some constraints (pod affinity, volumes, `matchFields`), so its plan can be wrong about one pod. The
scheduler has the last word then. What it said is noted on the pod, so a restart plans as before and buys nothing twice.
So is a node that was bought for the pod and turned out to be another than was planned.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from kerf.model.causes import Cause, Name, Quoted
from kerf.model.pods import Pod
from kerf.model.printable import printable

REJECTED = "kerf.dev/rejected"
"""Annotation of a pod: what its scheduler said of the node that was planned for it, and when Kerf tries again; JSON."""
FREE_TRIES = 4
"""So often a workload is tried again for a change alone; after that each try waits for the pause."""
_MOST_SAID, _MOST_NODES = 300, 50
_COUNT = re.compile(r"0/[0-9]+ nodes are available: ", re.ASCII)
_NUMBERED = re.compile(r"[0-9]+ ", re.ASCII)
_TEMPLATE_HASH = "pod-template-hash"
_RUN = re.compile(r"-[0-9]{8,}", re.ASCII)
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
Workload = tuple[str, str, str]
"""Namespace, kind and name of what makes equal pods again and again."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """What a scheduler said of one pod, in the state in which pod and pool were then.

    `nodes` are the nodes that it refused, by name. `pools` are their NodePools with the generation of each. `times` is
    how often its workload was rejected. Nothing is planned for the pod from `at_s` to `again_s`. `lacks` is what Kerf
    itself misses on the node, in words; empty where the plan has room for the pod there.
    """

    uid: str
    asked: str
    said: str
    nodes: tuple[str, ...]
    pools: tuple[tuple[str, int], ...]
    times: int
    at_s: float
    again_s: float
    lacks: str = ""

    def is_of(self, pod: Pod) -> bool:
        """Whether it speaks of this pod as it is: not of one made again, nor of what a person copied or changed."""
        return (self.uid, self.asked) == (pod.uid, asked_by(pod))

    def is_in_force(self, pod: Pod, generations: Mapping[str, int], now_s: float) -> bool:
        """Whether nothing may be planned for the pod now; `generations` are those of the pools that there are.

        It ends with each change that the API shows of what was refused: the pod's or a pool's. Where the scheduler
        names what the pod itself lacks, such as a claim of a volume, no node helps: it ends once that is named no more.
        Else it ends with time.
        """
        if not self.is_of(pod) or any(generations.get(name) != generation for name, generation in self.pools):
            return False
        if self._goes_by_words(pod):
            return self.is_named(pod)
        return now_s < self.again_s

    def retry_s(self, pod: Pod) -> float | None:
        """When a node is planned for the pod whatever is said; None where only a change ends it."""
        return None if self._goes_by_words(pod) else self.again_s

    def is_named(self, pod: Pod) -> bool:
        """Whether the scheduler still says that the pod itself lacks what it lacked then."""
        return not _own_reasons(self.said).isdisjoint(_own_reasons(pod.unschedulable))

    def _goes_by_words(self, pod: Pod) -> bool:
        """Whether what the scheduler says now decides. Without any node it says nothing else, and looks at no pod.

        After a few times it is time alone: a scheduler could word what the pod lacks differently each time.
        """
        return bool(_own_reasons(self.said) and _COUNT.match(pod.unschedulable)) and self.times <= FREE_TRIES


@dataclass(frozen=True, slots=True)
class RejectedByScheduler(Cause):
    """The scheduler refused the pod on nodes that have room for it; tried again at `retry_s`, on other nodes.

    Where `lacks` is not empty it is known why: the node is not what was planned.
    """

    scheduler: Name
    nodes: tuple[Name, ...]
    said: Quoted
    retry_s: float | None
    lacks: Quoted


@dataclass(frozen=True, slots=True)
class BoughtInVain(Cause):
    """A node was bought for the pod, or one equal to it, and cannot hold it, even empty: what it lacks."""

    node: Name
    lacks: Cause
    scheduler: Name
    said: Quoted


@dataclass(frozen=True, slots=True)
class AnotherIsTried(Cause):
    """The scheduler refused the pod before; of its workload one pod is tried at a time, now `pod`."""

    scheduler: Name
    pod: Name
    said: Quoted


def rejection_of(pod: Pod) -> Rejection | None:
    """What is noted on the pod and speaks of it as it is; None for nothing, or nothing that can be read."""
    text = pod.annotations.get(REJECTED)
    if not text:
        return None
    try:
        held = json.loads(text)
        found = Rejection(
            uid=str(held["uid"]),
            asked=str(held["asked"]),
            said=printable(str(held["said"]))[:_MOST_SAID],
            nodes=tuple(str(name) for name in held["nodes"])[:_MOST_NODES],
            pools=tuple((str(name), int(number)) for name, number in sorted(held["pools"].items())),
            times=min(max(1, int(held["times"])), 10_000),
            at_s=float(held["at"]),
            again_s=float(held["again"]),
            lacks=printable(str(held.get("lacks", "")))[:_MOST_SAID],
        )
    except _UNREADABLE:
        return None
    return found if found.is_of(pod) else None


def written(rejection: Rejection) -> Mapping[str, str | None]:
    """The annotation that `rejection_of` reads."""
    held = {
        "uid": rejection.uid,
        "asked": rejection.asked,
        "said": rejection.said[:_MOST_SAID],
        "nodes": list(rejection.nodes[-_MOST_NODES:]),
        "pools": dict(rejection.pools),
        "times": rejection.times,
        "at": int(rejection.at_s),
        "again": int(rejection.again_s),
        **({"lacks": rejection.lacks[:_MOST_SAID]} if rejection.lacks else {}),
    }
    return {REJECTED: json.dumps(held, sort_keys=True)}


def asked_by(pod: Pod) -> str:
    """A digest of what a pod asks and may still change while it waits: labels, tolerations, resources, gates."""
    spec = pod.spec
    tolerations = sorted((each.key, each.operator, each.value, each.effect) for each in spec.tolerations)
    parts = (sorted(pod.labels.items()), sorted(spec.requests.items()), tolerations, spec.scheduling_gates)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def workload_of(pod: Pod) -> Workload:
    """What makes the pod again: its Deployment or CronJob as far as names show it, else its controller, else itself."""
    owner = pod.owner
    if owner is None:
        return pod.namespace, "Pod", pod.name
    revision = pod.labels.get(_TEMPLATE_HASH, "")
    if owner.kind == "ReplicaSet" and revision and owner.name.endswith(f"-{revision}"):
        return pod.namespace, "Deployment", owner.name.removesuffix(f"-{revision}")
    name, _, number = owner.name.rpartition("-")
    if owner.kind == "Job" and name and _RUN.fullmatch(f"-{number}"):
        # A CronJob names its Jobs by the minute; each would be a workload of its own.
        return pod.namespace, "CronJob", name
    return pod.namespace, owner.kind, owner.name


def _own_reasons(message: str) -> frozenset[str]:
    """What kube-scheduler says of the pod and of no node: the parts without a number of nodes before them."""
    counted = _COUNT.match(message)
    if counted is None:
        return frozenset()
    listed = message[counted.end() :].partition(" preemption:")[0].rstrip(". ")
    return frozenset(part for part in listed.split(", ") if part and not _NUMBERED.match(part))
