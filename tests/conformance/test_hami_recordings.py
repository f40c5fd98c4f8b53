"""Every recorded verdict of the real HAMi scheduler (tests/data/hami): admission, fit, reason, cards, books, node."""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kerf.model.gpu import DeviceState
from kerf.model.nodes import Node
from kerf.model.pods import DEFAULT_SCHEDULER, Container, Pod, PodDemand, PodSpec
from kerf.model.quantities import Resources
from kerf.model.snapshot import ResourceQuota
from kerf.sharing.family import Fit, Occupant
from kerf.sharing.hami import records
from kerf.sharing.hami.admission import Admitted, Denied, admit, quota_refusal, requests_of
from kerf.sharing.hami.family import Hami
from kerf.sharing.hami.options import WeightsError, read_options

DATA = Path(__file__).parent.parent / "data" / "hami"
HAMI = Hami()
CHUNKS = 20

Json = dict[str, Any]


def recordings(name: str, start: int = 0, step: int = 1) -> list[Json]:
    """The JSON lines of one file, or every `step`-th of them."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in islice(lines, start, None, step)]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_each_random_case_is_decided_as_hami_decided_it(chunk: int) -> None:
    """10,000 random cases: admission, request, fit, reason, cards, books and node agree (issue 3, part 4)."""
    assert [line for case in recordings("hami-cases-a", chunk, CHUNKS) for line in differences(case)] == []


def test_each_corner_case_is_decided_as_hami_decided_it() -> None:
    """438 systematic cases, one for each oddity (issue 3, part 4)."""
    assert [line for case in recordings("hami-corners") for line in differences(case)] == []


def test_each_sequence_of_pods_is_decided_as_hami_decided_it() -> None:
    """150 sequences of 40 events on a cluster that starts empty, following HAMi's pick on ties (issue 3, part 4)."""
    assert [line for sequence in recordings("hami-sequences") for line in sequence_differences(sequence)] == []


def test_all_recordings_are_there() -> None:
    """None is left out: 10,000 cases, 438 corners, 150 sequences of 40 events."""
    sizes = [len(recordings(name)) for name in ("hami-cases-a", "hami-corners", "hami-sequences")]

    assert sizes == [10_000, 438, 150]
    assert sum(len(sequence["events"]) for sequence in recordings("hami-sequences")) == 6_000


def differences(case: Json) -> Iterator[str]:
    """One line for each point in which we decide otherwise; none when we agree."""
    nodes = [RecordedNode.of(node, bool(case.get("usens"))) for node in case["nodes"]]
    pod = recorded_pod(case["pod"])
    quotas = recorded_quotas(case)
    yield from (f"{case['id']}: {line}" for line in verdict_differences(nodes, pod, quotas, case["want"]))


def sequence_differences(sequence: Json) -> Iterator[str]:
    """The same for a cluster that fills and empties."""
    nodes = {node["name"]: RecordedNode.of(node, False) for node in sequence["nodes"]}
    for number, event in enumerate(sequence["events"]):
        name = event["name"]
        if event["op"] == "del":
            nodes = {key: node.without(name) for key, node in nodes.items()}
        elif event["op"] == "initdone":
            nodes = {key: node.with_init_done(name) for key, node in nodes.items()}
        else:
            pod = replace(recorded_pod(event["pod"]), name=name)
            found = verdict_differences(list(nodes.values()), pod, (), event["want"])
            yield from (f"{sequence['id']}[{number}]: {line}" for line in found)
            if "pick" in event:
                nodes[event["pick"]] = nodes[event["pick"]].with_pod(pod)


@dataclass(frozen=True)
class RecordedNode:
    """A node of a recording, read through its annotations as Kerf reads a real one."""

    node: Node
    occupants: tuple[Occupant, ...]

    @classmethod
    def of(cls, recorded: Json, same_namespace: bool) -> "RecordedNode":
        """With one running pod for each recorded use."""
        namespace = "own" if same_namespace else "other"
        users = (user(recorded, use, namespace) for use in recorded["use"])
        return cls(Node(recorded["name"], annotations=node_annotations(recorded)), tuple(users))

    @property
    def devices(self) -> tuple[DeviceState, ...] | None:
        """The cards with what is used of them; None without registration."""
        idle = HAMI.inventory(self.node)
        return None if idle is None else HAMI.occupied(idle, self.occupants)

    def with_pod(self, pod: Pod) -> "RecordedNode":
        """After HAMi has put the pod here and written its annotations."""
        demand = lenient_demand(pod)
        fit = HAMI.fit(self.devices or (), demand, pod, self.node, ())
        assert isinstance(fit, Fit)
        written = records.allocation_annotations(fit, demand, self.node.name, 0)
        placed = replace(pod, annotations=written, node_name=self.node.name)
        return replace(self, occupants=(*self.occupants, Occupant(placed, None)))

    def without(self, name: str) -> "RecordedNode":
        """After the pod of that name is gone."""
        return replace(self, occupants=tuple(o for o in self.occupants if o.pod.name != name))

    def with_init_done(self, name: str) -> "RecordedNode":
        """After the init containers of that pod have ended."""
        pods = (replace(o.pod, initialised=True) if o.pod.name == name else o.pod for o in self.occupants)
        return replace(self, occupants=tuple(Occupant(pod, None) for pod in pods))


def node_annotations(recorded: Json) -> dict[str, str]:
    """What plugin and operator wrote on the node."""
    if recorded.get("unreg"):
        return {}
    keys = ("id", "index", "type", "physical", "devmem", "numa", "health")
    cards = [dict(zip(keys, row, strict=True)) for row in recorded["dev"]]
    profiles = [
        {"name": name, "memoryMB": mib, "core": cores, "sliceCount": slices, "placements": places(starts)}
        for name, mib, cores, slices, starts in recorded.get("mig", [])
    ]
    common = {"count": recorded["count"], "devcore": recorded["devcore"], "mode": recorded["mode"]}
    register = [{**card, "health": card["health"] == 1, "migProfiles": profiles, **common} for card in cards]
    annotations = {records.REGISTER: json.dumps(register), records.CORDON: recorded.get("cordon", "")}
    if "pair" in recorded:
        ids = [card["id"] for card in cards]
        rows = [
            {"uuid": i, "score": dict(zip(ids, row, strict=True))} for i, row in zip(ids, recorded["pair"], strict=True)
        ]
        annotations[records.PAIR_SCORES] = json.dumps(rows)
    return annotations


def places(starts: Sequence[Sequence[int]]) -> list[dict[str, int]]:
    """MIG placements as the register spells them."""
    return [{"start": start, "size": size} for start, size in starts]


def user(recorded: Json, use: list[Any], namespace: str) -> Occupant:
    """A running pod with one share."""
    position, mib, cores, *instance = use
    uuid = recorded["dev"][position][0]
    annotations = {records.ALLOCATED: f"{uuid},NVIDIA,{mib},{cores}:;"}
    if instance:
        placement = {"start": instance[1], "size": instance[2]}
        entry = {"gpuUUID": uuid, "profile": instance[0], "placement": placement}
        annotations[records.MIG_ALLOCATIONS] = json.dumps([entry])
    return Occupant(Pod(namespace, "user", PodSpec((Container("c"),)), annotations=annotations), None)


def recorded_pod(recorded: Json) -> Pod:
    """The pod as its user wrote it."""
    spec = PodSpec(
        tuple(recorded_container(f"c{i}", c) for i, c in enumerate(recorded["ctr"])),
        tuple(recorded_container(f"i{i}", c) for i, c in enumerate(recorded.get("init", []))),
        scheduler_name=recorded.get("schedulerName", DEFAULT_SCHEDULER),
    )
    return Pod("own", "p", spec, annotations=recorded.get("ann", {}), node_name=recorded.get("nodeName", ""))


def recorded_container(name: str, recorded: Json) -> Container:
    """A container with requests completed from its limits, as the API server does."""
    limits = Resources.parse(recorded.get("limits", {}))
    sidecar = recorded.get("restartPolicy") == "Always"
    return Container(name, limits, limits, is_sidecar=sidecar, is_privileged=recorded.get("privileged", False))


def recorded_quotas(case: Json) -> tuple[ResourceQuota, ...]:
    """The quota of the pod's namespace, with what the running pods hold of it."""
    if "quota" not in case:
        return ()
    nodes = [RecordedNode.of(node, True) for node in case["nodes"]] if case.get("usens") else []
    used = HAMI.quota_used([occupant for node in nodes for occupant in node.occupants])
    return (ResourceQuota("own", "quota", Resources.parse(case["quota"]), used),)


def admission(pod: Pod, quotas: Sequence[ResourceQuota]) -> Admitted | Denied:
    """The webhook's answer."""
    spec = pod.spec
    node = bool(pod.node_name)
    admitted = admit(spec.init_containers, spec.containers, spec.scheduler_name, HAMI.config, has_node=node)
    if isinstance(admitted, Denied):
        return admitted
    return quota_refusal(admitted, HAMI.config, quotas) or admitted


def lenient_demand(pod: Pod) -> PodDemand:
    """What HAMi's scheduler reads, without Kerf's judgement on it. Raises WeightsError."""
    admitted = admission(replace(pod, node_name=""), ())
    assert isinstance(admitted, Admitted)
    containers = requests_of(admitted.init, admitted.apps, HAMI.config)
    return PodDemand("hami", containers, read_options(pod.annotations, HAMI.config))


def verdict_differences(
    nodes: Sequence[RecordedNode], pod: Pod, quotas: Sequence[ResourceQuota], want: Json
) -> Iterator[str]:
    """Where our verdict on one pod is another than HAMi's."""
    admitted = admission(pod, quotas)
    yield from unequal("admission", admission_record(pod, admitted), {"msg": "", "code": 0, **want["adm"]})
    if isinstance(admitted, Denied) or not want["adm"]["ok"]:
        return
    containers = requests_of(admitted.init, admitted.apps, HAMI.config)
    yield from unequal("request", [request_record(c.request) for c in containers], [normal(r) for r in want["req"]])
    passes = all(c.request is None for c in containers)
    yield from unequal("pass", passes, want.get("pass", False))
    if passes:
        return
    try:
        demand = PodDemand("hami", containers, read_options(pod.annotations, HAMI.config))
    except WeightsError as error:
        yield from unequal("error", f"calcScore failed {error} for pod {pod.name}", want.get("err", ""))
        return
    yield from unequal("error", "", want.get("err", ""))
    yield from placement_differences(nodes, demand, pod, quotas, want)


def admission_record(pod: Pod, admitted: Admitted | Denied) -> Json:
    """The webhook's answer in the recording's form."""
    if isinstance(admitted, Denied):
        return {"ok": False, "code": admitted.code, "msg": admitted.message}
    record: Json = {"ok": True, "code": 0, "msg": ""}
    if admitted.scheduler_name != pod.spec.scheduler_name:
        record["sched"] = admitted.scheduler_name
    if pod.spec.scheduler_name == "other":
        record |= {"code": 200, "msg": "pod already has different scheduler assigned"}
    if admitted.changes:
        record["set"] = [[container, name, str(value)] for container, name, value in admitted.changes]
    if admitted.environment:
        record["env"] = [list(variable) for variable in admitted.environment]
    return record


def request_record(request: Any) -> list[int] | None:
    """GPUs, MiB, percent, cores."""
    return request and [request.count, request.memory_mib, request.memory_percent, request.cores]


def normal(recorded: list[int] | None) -> list[int] | None:
    """HAMi writes 101 for `no percentage`; ours is then the default 100, which its memory overrides."""
    return recorded and [recorded[0], recorded[1], min(recorded[2], 100), recorded[3]]


def placement_differences(
    nodes: Sequence[RecordedNode], demand: PodDemand, pod: Pod, quotas: Sequence[ResourceQuota], want: Json
) -> Iterator[str]:
    """Where the verdict on a node, or the choice of the node, is another than HAMi's."""
    fits: dict[str, Fit] = {}
    reasons: dict[str, str] = {}
    for recorded in nodes:
        name, devices = recorded.node.name, recorded.devices
        if devices is None:
            reasons[name] = "node unregistered"
            continue
        fit = HAMI.decide(devices, demand, pod, recorded.node, quotas)
        if isinstance(fit, Fit):
            fits[name] = fit
            yield from fit_differences(recorded, fit, demand, pod, want.get("fit", {}).get(name, {}))
        else:
            reasons[name] = fit.reason
    yield from unequal("reasons", reasons, want.get("fail", {}))
    yield from unequal("fitting nodes", sorted(fits), sorted(want.get("fit", {})))
    order = {name: HAMI.node_score_order(demand, fit.score) for name, fit in fits.items()}
    best = [name for name in sorted(order) if order[name] == min(order.values())]
    yield from unequal("best nodes", best, sorted(want.get("best", [])))


def fit_differences(recorded: RecordedNode, fit: Fit, demand: PodDemand, pod: Pod, want: Json) -> Iterator[str]:
    """Where the cards on one node, or what is booked of them, are others than HAMi's."""
    if abs(fit.score - want.get("s", -1)) > 1e-7 * max(1, fit.score):
        yield f"score: ours {fit.score}, HAMi's {want.get('s')}"
    yield from unequal("cards", records.allocation_text(fit, demand), want.get("d"))
    yield from unequal("MIG", records.mig_text(fit, demand), want.get("mig", ""))
    if pod.spec.init_containers:
        yield from unequal("held", booked(recorded, fit, demand, pod), want.get("held", []))
        yield from unequal(
            "later", booked(recorded, fit, demand, replace(pod, initialised=True)), want.get("later", [])
        )


def booked(recorded: RecordedNode, fit: Fit, demand: PodDemand, pod: Pod) -> list[list[Any]]:
    """What the pod's own annotations book of the idle cards, by UUID."""
    written = records.allocation_annotations(fit, demand, recorded.node.name, 0)
    idle = HAMI.inventory(recorded.node) or ()
    after = HAMI.occupied(idle, [Occupant(replace(pod, annotations=written), None)])
    return sorted([d.id, d.used_memory_mib, d.used_cores, d.used_slots] for d in after if d.used_slots)


def unequal(what: str, ours: object, theirs: object) -> Iterator[str]:
    """One line when they differ."""
    if ours != theirs:
        yield f"{what}: ours {ours}, HAMi's {theirs}"
