"""A scenario of `kerf simulate`, lived through on a real control plane.

A scenario says when things happen; here each waits until what came before has come to rest, because a real cluster
takes its own time, and what is compared with the simulation is what was decided and not when. To rest means that all
that was bought works, nothing is on its way out, and neither has changed for some seconds.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from kerf.clouds.kwok.machines import INTERRUPT
from kerf.model.constraints import NODE_POOL
from kerf.model.nodeclaim import CONSOLIDATABLE, INITIALIZED
from kerf.sim.course.scenario import Scenario
from kerf.sim.course.steps import Apply, Delete, Fault, Interrupt, Scale, Step, StockOut
from tests.controlplane.cluster import LATENCIES, Cluster
from tests.controlplane.course import Chronicle, Course, verdicts, workloads_of
from tools.controlplane.installation import FAULTS, NAMESPACE
from tools.controlplane.server import ControlPlaneError

Json = dict[str, Any]

CLOUD = {**LATENCIES, "interruptionNotice": "8s"}
_RESTS_AFTER_S, _RESTS_WITH_PENDING_S, _SETTLES_WITHIN_S = 3.0, 8.0, 120.0
_CONSOLIDATE_AFTER = "3s"
_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
_FLAGS = (
    # The pods of a step come over a second or two, and are one batch all the same.
    "--batch-idle=2500ms",
    "--batch-max=15s",
    "--devices-deadline=8s",
    "--registration-deadline=8s",
    # A type that failed is tried again before the cluster is taken to be at rest; one that is sold out, after.
    "--back-off=2s",
    "--back-off-most=2s",
    "--sold-out=6s",
    "--sold-out-most=14s",
)


def hastened(scenario: Scenario) -> Scenario:
    """The scenario with pools that wait only shortly before they consolidate, for a simulation and a real run alike."""

    def changed(obj: Json) -> Json:
        disruption = obj.get("spec", {}).get("disruption") or {}
        if obj["kind"] != "NodePool" or disruption.get("consolidateAfter") == "Never":
            return obj
        return {**obj, "spec": {**obj["spec"], "disruption": {**disruption, "consolidateAfter": _CONSOLIDATE_AFTER}}}

    def step(held: Step) -> Step:
        action = held.action
        return replace(held, action=Apply(tuple(map(changed, action.objects)))) if isinstance(action, Apply) else held

    timeline = tuple(map(step, scenario.timeline))
    return replace(scenario, objects=tuple(map(changed, scenario.objects)), timeline=timeline)


def real_course(cluster: Cluster, scenario: Scenario) -> Course:
    """What comes of it on a cluster that is new. Raises ControlPlaneError where it does not come to rest."""
    return _RealScenario(cluster, scenario).run()


class _RealScenario:
    """One run."""

    def __init__(self, cluster: Cluster, scenario: Scenario) -> None:
        self._cluster, self._plane, self._scenario = cluster, cluster.plane, scenario
        self._chronicle = Chronicle(workloads_of(scenario))
        self._stock_outs: list[StockOut] = []
        self._faults: list[Fault] = []
        self._version = ""

    def run(self) -> Course:
        cloud = self._scenario.cloud
        catalogue = cloud.catalog or ":".join(filter(None, (cloud.provider, cloud.region)))
        self._cluster.start(*_FLAGS, f"--catalog={catalogue}")
        self._version = self._plane.request("GET", _CLAIMS).good(_CLAIMS)["metadata"]["resourceVersion"]
        # At the very start the cloud is told before anybody can ask it for anything.
        steps = sorted(self._steps(), key=lambda step: step[0])
        for at_s, batch in groupby(steps, key=lambda step: step[0]):
            if at_s == 0:
                self._apply(self._scenario.objects)
            if at_s >= 0:
                self._settle()
            for _, act in batch:
                act()
        self._settle()
        self._chronicle.note_all(self._pods(), self._plane.list("events"))
        self._check_order()
        return self._chronicle.course()

    def _check_order(self) -> None:
        """What the watch has told is what the server has done."""
        created = [event["objectRef"]["name"] for event in self._cluster.created_claims()]
        assert created == [claim["metadata"]["name"] for claim in self._chronicle.claims.values()]

    # What happens.

    def _steps(self) -> Iterator[tuple[float, Callable[[], None]]]:
        yield 0, lambda: None
        for step in self._scenario.timeline:
            at_s, action = step.at_s, step.action
            match action:
                case StockOut():
                    yield at_s or -1, partial(self._sell_out, action)
                    if action.for_s is not None and at_s + action.for_s <= self._scenario.duration_s:
                        yield at_s + action.for_s, partial(self._restock, action)
                case Fault():
                    yield at_s or -1, partial(self._break, action)
                case Scale():
                    yield at_s, partial(self._scale, action)
                case Apply():
                    yield at_s, partial(self._apply, action.objects)
                case Delete():
                    yield at_s, partial(self._delete, action)
                case Interrupt():
                    yield at_s, partial(self._interrupt, action)
                case _:
                    raise AssertionError(f"{step.place}: nobody does this to a real cluster")

    def _apply(self, objects: Iterable[Json]) -> None:
        listed = list(objects)
        named = {obj["metadata"].get("namespace", "default") for obj in listed} - {"default"}
        spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(named)]
        self._plane.apply([*spaces, *listed])

    def _scale(self, scale: Scale) -> None:
        what = f"{scale.kind.lower()}/{scale.name}"
        self._plane.kubectl("scale", what, f"--namespace={scale.namespace}", f"--replicas={scale.replicas}")

    def _delete(self, delete: Delete) -> None:
        name = self._node(delete.name) if delete.kind == "Node" else delete.name
        assert self._plane.delete(delete.kind, name, delete.namespace), f"{delete.kind} {name} is not there"

    def _node(self, name: str) -> str:
        """The node that the simulation calls `ip-10-0-x-y`, by the order in which they came."""
        high, low = map(int, name.split("-")[-2:])
        claims = [claim for claim in self._chronicle.claims.values() if claim["status"].get("nodeName")]
        found: str = claims[high * 256 + low - 1]["status"]["nodeName"]
        return found

    def _interrupt(self, interrupt: Interrupt) -> None:
        pool = interrupt.node_pool
        running = [claim for claim in self._living() if pool in ("", claim["metadata"]["labels"][NODE_POOL])]
        for claim in running[: interrupt.nodes]:
            self._plane.kubectl("annotate", "node", claim["status"]["nodeName"], f"{INTERRUPT}=true")

    def _sell_out(self, stock_out: StockOut) -> None:
        self._stock_outs.append(stock_out)
        self._tell_cloud()

    def _restock(self, stock_out: StockOut) -> None:
        self._stock_outs.remove(stock_out)
        self._tell_cloud()

    def _break(self, fault: Fault) -> None:
        self._faults.append(fault)
        self._tell_cloud()

    def _tell_cloud(self) -> None:
        outs = [
            {"instanceType": out.instance_type, "zone": out.zone, "capacityType": out.capacity_type}
            for out in self._stock_outs
        ]
        stock_outs = [{name: value for name, value in out.items() if value} for out in outs]
        faults = [
            {"kind": f.kind, "nodePool": f.node_pool, "nodes": str(f.nodes), "memoryPercent": str(f.memory_percent)}
            for f in self._faults
        ]
        data = {"stockouts": json.dumps(stock_outs), "deviceFaults": json.dumps(faults)}
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{FAULTS}"
        self._plane.request("PATCH", path, {"data": data}, content_type="application/merge-patch+json").good(path)

    # Coming to rest.

    def _settle(self) -> None:
        began_s = still_s = time.monotonic()
        before: object = None
        while True:
            self._watch()
            bindings = self._bindings()
            unrest, now = self._unrest(), (list(self._chronicle.claims), self._chronicle.gone[:], bindings)
            now_s = time.monotonic()
            if unrest or now != before:
                still_s, before = now_s, now
            if not unrest and now_s - still_s >= self._rests_after_s(bindings):
                return
            if now_s - began_s > _SETTLES_WITHIN_S:
                raise ControlPlaneError(f"{'; '.join(unrest) or 'something'} goes on and on\n{self._plane.tails()}")

    def _rests_after_s(self, bindings: Mapping[str, str]) -> float:
        """How long nothing may change: a pod that waits may be given a place later than a node is found to be empty."""
        if not bindings and not self._living():
            return 0
        return _RESTS_AFTER_S if all(bindings.values()) else _RESTS_WITH_PENDING_S

    def _watch(self) -> None:
        """Note what has happened to claims up to a second from now."""
        path = f"{_CLAIMS}?watch=true&timeoutSeconds=1&resourceVersion={self._version}"
        for event in self._plane.request("GET", path).good(path):
            if event["type"] == "ERROR":
                raise ControlPlaneError(f"{path}: {event['object']}")
            self._chronicle.note(event["type"], event["object"])
            self._version = event["object"]["metadata"]["resourceVersion"]

    def _unrest(self) -> list[str]:
        """What is still to come to its end."""
        claims, pods = self._living(), self._pods()
        found = [
            f"NodeClaim {_name(c)} is not {t}{_why(c, t)}"
            for c in claims
            for t in self._wanted(c)
            if not _is_true(c, t)
        ]
        found += [f"{kind} {_name(o)} goes" for kind, o in self._all(claims, pods) if _is_going(o)]
        found += [f"Pod {_name(p)} starts" for p in pods if p["spec"].get("nodeName") and not _has_begun(p)]
        found += self._hopeful(pods)
        for kind in ("Deployment", "DaemonSet"):
            found += [f"{kind} {_name(obj)} lacks pods" for obj in self._plane.list(kind) if not _has_its_pods(obj)]
        return found

    def _hopeful(self, pods: Iterable[Json]) -> list[str]:
        """Pods that may still be bound: kube-scheduler has not tried them, or Kerf sees a place for them."""
        waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
        said = verdicts(self._plane.list("events")) if waiting else {}
        words = {_name(p): said.get(f"{p['metadata']['namespace']}/{_name(p)}", "no verdict") for p in waiting}
        found = [f"Pod {_name(pod)} was not tried" for pod in waiting if _status(pod, "PodScheduled") != "False"]
        return found + [f"Pod {name}: {text}" for name, text in words.items() if not text.startswith("Failed")]

    def _all(self, claims: Iterable[Json], pods: Iterable[Json]) -> Iterator[tuple[str, Json]]:
        yield from (("NodeClaim", claim) for claim in claims)
        yield from (("Pod", pod) for pod in pods)
        yield from (("Node", node) for node in self._plane.list("nodes"))

    def _wanted(self, claim: Json) -> tuple[str, ...]:
        """The conditions of a claim at rest."""
        pool = self._plane.get("NodePool", claim["metadata"]["labels"][NODE_POOL])
        is_kept = pool is None or pool["spec"]["disruption"]["consolidateAfter"] == "Never"
        return (INITIALIZED,) if is_kept else (INITIALIZED, CONSOLIDATABLE)

    def _living(self) -> list[Json]:
        chronicle = self._chronicle
        return [claim for uid, claim in chronicle.claims.items() if uid not in chronicle.gone]

    def _pods(self) -> list[Json]:
        return [pod for pod in self._plane.list("pods") if pod["metadata"]["namespace"] != NAMESPACE]

    def _bindings(self) -> dict[str, str]:
        return {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in self._pods()}


def _name(obj: Json) -> str:
    name: str = obj["metadata"]["name"]
    return name


def _is_true(obj: Json, kind: str) -> bool:
    return _status(obj, kind) == "True"


def _status(obj: Json, kind: str) -> str:
    conditions = obj.get("status", {}).get("conditions", ())
    return next((each["status"] for each in conditions if each["type"] == kind), "")


def _why(obj: Json, kind: str) -> str:
    """What the object's condition says of it, after a colon."""
    conditions = obj.get("status", {}).get("conditions", ())
    return next((f": {c.get('reason')} {c.get('message', '')}" for c in conditions if c["type"] == kind), "")


def _is_going(obj: Json) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def _has_begun(pod: Json) -> bool:
    return bool(pod["status"].get("phase") != "Pending")


def _has_its_pods(workload: Json) -> bool:
    status = workload.get("status", {})
    wanted, has = (
        (status.get("desiredNumberScheduled"), status.get("currentNumberScheduled"))
        if "replicas" not in workload["spec"]
        else (workload["spec"]["replicas"], status.get("replicas", 0))
    )
    return bool(status.get("observedGeneration") == workload["metadata"]["generation"] and wanted == has)
