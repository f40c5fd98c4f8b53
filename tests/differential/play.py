"""Plays a random cluster: pods come one by one, each is asked about everywhere, and the answers are compared."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

import yaml

from tests.differential.clusters import ONLY_ASKED, Json, RandomCluster
from tests.differential.fit import Fit
from tests.differential.memory import Answer, Memory
from tools.controlplane.recording import Answer as RealAnswer

PLUGINS = {
    "InterPodAffinity",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "NodeVolumeLimits",
    "PodTopologySpread",
    "TaintToleration",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
}
"""The filters of which each has to be the only one that refuses some pair, or the clusters try too little."""
_MOST_TRIES = 120
_ADDED = re.compile(r" ((no new claims to deallocate, )?preemption: .*|not found)$")
"""What the plugins add that come after the filters."""


class Real(Protocol):
    """A cluster with a real scheduler, to which the same objects and pods come."""

    def begin(self, pod: Json) -> Json:
        """Create a pod; the server's form of it."""

    def end(self, made: Json) -> RealAnswer:
        """What the scheduler says of it; it stays where it is bound."""

    def ask_again(self, pod: Json, answer: RealAnswer) -> RealAnswer:
        """The same, after the pod was taken away: a watch may have been late the first time."""


@dataclass(frozen=True)
class Disagreement:
    """Two who judge a pod differently, what each says, and the state: objects, and pods that are bound."""

    seed: int
    pod: Json
    first: str
    second: str
    said: str
    objects: list[Json]

    def text(self, objects: Sequence[Json] | None = None) -> str:
        """For people, with the smallest state that is known to show it."""
        shown = [*(self.objects if objects is None else objects), self.pod]
        documents = yaml.safe_dump_all(shown, sort_keys=False, default_flow_style=None, width=110)
        who = f"{self.first} and {self.second} disagree on {self.pod['metadata']['name']} (seed {self.seed})"
        return f"{who}\n{self.said}\n{documents}"


@dataclass
class Played:
    """What came of it. `alone` counts by plugin the pairs of pod and node that nothing else kept apart."""

    pods: int = 0
    bound: int = 0
    alone: Counter[str] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)

    def add(self, other: "Played") -> None:
        """Count another one too."""
        self.pods, self.bound = self.pods + other.pods, self.bound + other.bound
        self.alone += other.alone
        self.disagreements += other.disagreements


def play(cluster: RandomCluster, *, real: Real | None = None, with_fit: bool = False, most: int = 3) -> Played:
    """Ask about each pod until `most` disagreements are found. Without a real scheduler chance chooses a node."""
    played, draw = Played(), Random(cluster.seed)
    cordoned = {o["metadata"]["name"] for o in cluster.objects if o.get("spec", {}).get("unschedulable")}
    memory, placed = Memory(cluster.objects), list[Json]()
    fit = Fit(memory.objects()) if with_fit else None
    for pod in cluster.pods:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        # The real one works while the others do.
        made = real.begin(pod) if real is not None else {}
        answer = memory.ask(pod)
        ours = fit.feasible(memory.pod(namespace, name)) - cordoned if fit is not None else None
        checked = _chosen(pod, answer, draw) if real is None else _checked(pod, answer, real, made)
        judged, node, differs = checked
        found = [differs] if differs else []
        if ours is not None and ours != judged - cordoned:
            found.append(("Kerf's fit", "the scheduler", _difference(ours, judged - cordoned)))
        played.disagreements += [Disagreement(cluster.seed, pod, *each, [*cluster.objects, *placed]) for each in found]
        played.pods += 1
        played.alone += answer.alone
        if node:
            played.bound += 1
            memory.bind(namespace, name, node)
            placed.append({**pod, "spec": {**pod["spec"], "nodeName": node}})
            if fit is not None:
                fit.apply(memory.pod(namespace, name))
        else:
            memory.drop(namespace, name)
        if len(played.disagreements) >= most:
            break
    memory.close()
    return played


_Judged = tuple[frozenset[str], str, tuple[str, str, str] | None]
"""The nodes that are right, the node that the pod takes, and how the in-memory scheduler differs from a real one."""


def _chosen(pod: Json, answer: Answer, draw: Random) -> _Judged:
    """Without a real scheduler the in-memory one is right, and chance takes one of its nodes."""
    is_bound = answer.feasible and ONLY_ASKED not in pod["metadata"]["labels"]
    return answer.feasible, draw.choice(sorted(answer.feasible)) if is_bound else "", None


def _checked(pod: Json, answer: Answer, real: Real, made: Json) -> _Judged:
    """What a real scheduler says of a pod that was created."""
    said = real.end(made)
    if _differ(answer, said):
        said = real.ask_again(pod, said)
    if not _differ(answer, said):
        return said.feasible, said.node, None
    text = _difference(answer.feasible, said.feasible)
    both = f"{text}\nin memory: {answer.message}\nreal:      {said.message}"
    return said.feasible, said.node, ("the in-memory scheduler", "kube-scheduler", both)


def _differ(answer: Answer, said: RealAnswer) -> bool:
    if answer.feasible != said.feasible:
        return True
    return bool(answer.message) and _ADDED.sub("", said.message) != answer.message


def _difference(first: frozenset[str], second: frozenset[str]) -> str:
    return f"only the first: {sorted(first - second)}; only the second: {sorted(second - first)}"


def shrunk(objects: Sequence[Json], differs: Callable[[Sequence[Json]], bool]) -> list[Json]:
    """Objects without those that are not needed for a difference, as far as few tries show it.

    Parts of half the size are left out, then of a quarter, and so on. A pod goes with its node.
    """
    kept, size, tries = list(objects), max(1, len(objects) // 2), 0
    while tries < _MOST_TRIES:
        at = 0
        while at < len(kept) and tries < _MOST_TRIES:
            candidate = _consistent([*kept[:at], *kept[at + size :]])
            tries += 1
            if differs(candidate):
                kept = candidate
            else:
                at += size
        if size == 1:
            break
        size = max(1, size // 2)
    return kept


def _consistent(objects: Sequence[Json]) -> list[Json]:
    nodes = {obj["metadata"]["name"] for obj in objects if obj["kind"] == "Node"}
    return [obj for obj in objects if obj["kind"] != "Pod" or obj["spec"]["nodeName"] in nodes]


def fit_differs(objects: Sequence[Json], pod: Json) -> bool:
    """Whether Kerf's fit and the in-memory scheduler judge the pod differently on this state."""
    memory = Memory(objects)
    try:
        answer, fit = memory.ask(pod), Fit(memory.objects())
        raw = memory.api.get("Pod", pod["metadata"]["namespace"], pod["metadata"]["name"])
        cordoned = {o["metadata"]["name"] for o in objects if o.get("spec", {}).get("unschedulable")}
        return raw is not None and fit.feasible(raw) - cordoned != answer.feasible - cordoned
    finally:
        memory.close()
