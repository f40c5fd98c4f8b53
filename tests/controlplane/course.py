"""What came of a scenario, in words that a simulated cluster and a real one have in common.

Both tell the same kinds of events about the same kinds of objects, so one reading serves both. Names and times differ,
and among equal pods and equal machines chance decides on a real cluster: what is left are machines by what they are,
pods by their workload, and the order in which nodes were bought and went.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kerf.model.nodeclaim import PLANNED_OFFERING, PLANNED_PODS
from kerf.sharing.hami.records import parse_allocation
from kerf.sim.course.scenario import Scenario
from kerf.sim.course.steps import Apply
from kerf.sim.simulation import run

Json = dict[str, Any]
Load = tuple[tuple[str, tuple[int, ...], int], ...]
"""(workload, indexes of the cards that each pod has, how many such pods), sorted."""

WORKLOADS = ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job", "Pod")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_LABELS = (
    "karpenter.sh/nodepool",
    "node.kubernetes.io/instance-type",
    "karpenter.sh/capacity-type",
    "topology.kubernetes.io/zone",
)


@dataclass(frozen=True, order=True)
class Machine:
    """What an instance was launched as."""

    node_pool: str
    instance_type: str
    capacity_type: str
    zone: str


@dataclass(frozen=True)
class Course:
    """The end of a scenario, and the way there.

    `launches` are machines with the pods they were bought for, in order. `refused` is what the cloud would not launch,
    `removed` the machines that went, in order; `placement` the machines that are there with the pods on them, sorted;
    `unplaced` the workloads of pods that wait, each with what Kerf says about it and how many there are.
    """

    launches: tuple[tuple[Machine, Load], ...]
    refused: frozenset[Machine]
    removed: tuple[Machine, ...]
    placement: tuple[tuple[Machine, Load], ...]
    unplaced: tuple[tuple[str, str, int], ...]

    def __str__(self) -> str:
        """A line for each, so that a test that fails shows which differ."""
        lines = [f"launched {_shown(machine)} for {_contents(load)}" for machine, load in self.launches]
        lines += [f"refused {_shown(machine)}" for machine in sorted(self.refused)]
        lines += [f"removed {_shown(machine)}" for machine in self.removed]
        lines += [f"at the end {_shown(machine)} with {_contents(load)}" for machine, load in self.placement]
        lines += [f"{count} of {workload} wait: {verdict}" for workload, verdict, count in self.unplaced]
        return "\n".join(lines)


class Chronicle:
    """Notes what a watch tells, and says at the end what came of it."""

    def __init__(self, workloads: Iterable[str]) -> None:
        # The longest first: pods of `web-api` are none of `web`.
        self._workloads = sorted(workloads, key=len, reverse=True)
        self.claims: dict[str, Json] = {}
        self.gone: list[str] = []
        self._pods: dict[str, Json] = {}
        self._events: dict[str, Json] = {}

    def note(self, type_: str, obj: Json) -> None:
        """ADDED, MODIFIED or DELETED, and the object as it is then."""
        uid = obj["metadata"]["uid"]
        if obj["kind"] == "NodeClaim":
            self.claims[uid] = obj
            if type_ == "DELETED":
                self.gone.append(uid)
        elif obj["kind"] in ("Pod", "Event"):
            held = self._pods if obj["kind"] == "Pod" else self._events
            held[uid] = obj
            if type_ == "DELETED":
                del held[uid]

    def note_all(self, pods: Iterable[Json], events: Iterable[Json]) -> None:
        """The pods and events that there are, instead of all that were told."""
        self._pods = {pod["metadata"]["uid"]: {"kind": "Pod", **pod} for pod in pods}
        self._events = {event["metadata"]["uid"]: {"kind": "Event", **event} for event in events}

    def course(self) -> Course:
        """What came of it up to now."""
        launched = {uid: claim for uid, claim in self.claims.items() if claim.get("status", {}).get("providerID")}
        there = [claim for uid, claim in launched.items() if uid not in self.gone]
        return Course(
            launches=tuple((_machine(claim), self._planned(claim)) for claim in launched.values()),
            refused=frozenset(_planned_as(self.claims[uid]) for uid in self.gone if uid not in launched),
            removed=tuple(_machine(launched[uid]) for uid in self.gone if uid in launched),
            placement=tuple(sorted((_machine(claim), self._held(claim)) for claim in there)),
            unplaced=self._unplaced(),
        )

    def _planned(self, claim: Json) -> Load:
        planned: Mapping[str, list[int]] = json.loads(claim["metadata"]["annotations"][PLANNED_PODS])
        return _load((self._workload(key), tuple(cards)) for key, cards in planned.items())

    def _held(self, claim: Json) -> Load:
        node = claim["status"].get("nodeName")
        return _load((self._workload(_key(pod)), _cards(pod)) for pod in self._pods.values() if _node(pod) == node)

    def _unplaced(self) -> tuple[tuple[str, str, int], ...]:
        said = verdicts(self._events.values())
        waiting = (_key(pod) for pod in self._pods.values() if not _node(pod))
        counts = Counter((self._workload(key), _INSTANT.sub("T", said.get(key, ""))) for key in waiting)
        return tuple(sorted((*words, count) for words, count in counts.items()))

    def _workload(self, pod: str) -> str:
        return next((name for name in self._workloads if pod == name or pod.startswith(f"{name}-")), pod)


def _shown(machine: Machine) -> str:
    return f"{machine.node_pool}: {machine.instance_type} {machine.capacity_type} in {machine.zone}"


def _contents(load: Load) -> str:
    return ", ".join(f"{count} of {workload} on cards {list(cards)}" for workload, cards, count in load) or "nothing"


def verdicts(events: Iterable[Json]) -> dict[str, str]:
    """By `namespace/name`, the last that Kerf has said about where a pod is to go."""
    said: dict[str, str] = {}
    for event in sorted(events, key=lambda e: int(e["metadata"]["resourceVersion"])):
        about = event["involvedObject"]
        if event["message"].startswith(("Failed to schedule pod, ", "Pod should schedule on: ")):
            said[f"{about.get('namespace')}/{about['name']}"] = event["message"]
    return said


def _load(pods: Iterable[tuple[str, tuple[int, ...]]]) -> Load:
    return tuple(sorted((*pod, count) for pod, count in Counter(pods).items()))


def _machine(claim: Json) -> Machine:
    return Machine(*(claim["metadata"]["labels"][label] for label in _LABELS))


def _planned_as(claim: Json) -> Machine:
    kind, zone, capacity_type = claim["metadata"]["annotations"][PLANNED_OFFERING].split("/")
    return Machine(claim["metadata"]["labels"][_LABELS[0]], kind, capacity_type, zone)


def _key(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _node(pod: Json) -> str | None:
    node: str | None = pod["spec"].get("nodeName")
    return node


def _cards(pod: Json) -> tuple[int, ...]:
    """The indexes of a pod's cards, which their ids end in; none where nobody but kubelet knows."""
    segments = parse_allocation(pod["metadata"].get("annotations") or {}) or ()
    return tuple(sorted(int(share.device_id.rpartition("-")[2]) for shares in segments for share in shares))


def workloads_of(scenario: Scenario) -> set[str]:
    """`namespace/name` of everything in a scenario that makes pods."""
    applied = [obj for step in scenario.timeline if isinstance(step.action, Apply) for obj in step.action.objects]
    return {
        f"{obj['metadata'].get('namespace') or 'default'}/{obj['metadata']['name']}"
        for obj in (*scenario.objects, *applied)
        if obj["kind"] in WORKLOADS
    }


def simulated_course(scenario: Scenario) -> Course:
    """What comes of it in `kerf simulate`."""
    chronicle = Chronicle(workloads_of(scenario))
    run(scenario, watch=chronicle.note)
    return chronicle.course()
