"""Every recorded verdict of the real HAMi (tests/data/hami), asked of our stand-in over HTTP, as HAMi is asked."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from kerf.manifests.decode import decode_object
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.quantities import Resources
from kerf.model.snapshot import Deleted, ResourceQuota, Upserted
from kerf.sharing.hami import records
from kerf.sim.hami.extender import Extender, ExtenderCache
from kerf.sim.hami.server import application
from tests.conformance.test_hami_recordings import CHUNKS, RecordedNode, node_annotations, recordings, unequal

Json = dict[str, Any]
SCHEDULER = "default-scheduler"


# `test_hami_recordings.py` asks all of them of the same rules without HTTP.
CHUNKS_IN_THE_GATE, SEQUENCES_IN_THE_GATE = 3, 1


def chunks(count: int, in_the_gate: int) -> list[Any]:
    """The numbers of so many chunks, of which the gate runs the first."""
    return [pytest.param(n, marks=pytest.mark.long if n >= in_the_gate else ()) for n in range(count)]


@pytest.mark.parametrize("chunk", chunks(CHUNKS, CHUNKS_IN_THE_GATE))
def test_each_random_case_is_answered_over_http_as_hami_answered_it(chunk: int) -> None:
    """10,000 random cases through /webhook and /filter (issue 4, part 7)."""
    assert [] == answered(recordings("hami-cases-a", chunk, CHUNKS), case_differences)


def test_each_corner_case_is_answered_over_http_as_hami_answered_it() -> None:
    """438 systematic cases, one for each oddity (issue 4, part 7)."""
    assert [] == answered(recordings("hami-corners"), case_differences)


@pytest.mark.parametrize("chunk", chunks(5, SEQUENCES_IN_THE_GATE))
def test_each_sequence_is_answered_over_http_as_hami_answered_it(chunk: int) -> None:
    """150 sequences of 40 events: bookings hold from the answer on, and end with the pod (issue 4, part 7)."""
    assert [] == answered(recordings("hami-sequences", chunk, 5), sequence_differences)


@dataclass
class Written:
    """The API as far as the filter needs it: keeps what was last written on the pod."""

    patch: Json = field(default_factory=dict)

    async def patch_pod(self, namespace: str, name: str, patch: Json) -> None:
        """Keep it."""
        self.patch = patch

    async def get_pod(self, namespace: str, name: str) -> Json:
        """Of bind alone."""
        raise AssertionError(name)

    async def get_node(self, name: str) -> Json:
        """Of bind alone."""
        raise AssertionError(name)

    async def patch_node(self, name: str, patch: Json) -> None:
        """Of bind alone."""
        raise AssertionError(name)

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Of bind alone."""
        raise AssertionError(name)


@dataclass
class Served:
    """The server, and what it knows and writes."""

    client: TestClient[Any, Any]
    extender: Extender
    api: Written

    async def post(self, path: str, body: Json) -> Json:
        """The answer, which is 200 whatever the verdict."""
        async with self.client.post(path, json=body) as response:
            assert 200 == response.status
            answer: Json = await response.json()
            return answer

    async def admitted(self, pod: Json) -> tuple[Json, Json]:
        """The webhook's answer in the recording's form, and the pod that the API server then stores."""
        # The API server gives a pod its uid after the webhook.
        new = {**pod, "metadata": {**pod["metadata"], "uid": None}}
        request = {"uid": "u", "namespace": "own", "object": new}
        answer = (await self.post("/webhook", {"request": request}))["response"]
        patch = json.loads(base64.b64decode(answer.get("patch", "W10=")))
        after = patched(pod, patch)
        status = answer.get("status", {})
        record = {"ok": answer["allowed"], "code": status.get("code", 0), "msg": status.get("message", "")}
        if after["spec"]["schedulerName"] != pod["spec"]["schedulerName"]:
            record["sched"] = after["spec"]["schedulerName"]
        pairs = list(zip(containers_of(pod), containers_of(after), strict=True))
        record["set"] = [[a["name"], key, value] for b, a in pairs for key, value in added_limits(b, a)]
        record["env"] = [[a["name"], v["name"], v["value"]] for _, a in pairs for v in a.get("env", ())]
        for container in containers_of(after):
            container["resources"]["requests"] = container["resources"]["limits"]
        return record, after

    async def filtered(self, pod: Json, names: Sequence[str]) -> Json:
        """The extender's answer, with what it has written as `annotations` and `labels`."""
        self.api.patch = {}
        answer = await self.post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": list(names)})
        return {**answer, **self.api.patch.get("metadata", {})}


Differences = Callable[[Served, Json], Awaitable[list[str]]]


def answered(lines: Sequence[Json], differences: Differences) -> list[str]:
    """Where one server answers these recordings otherwise than HAMi."""

    async def ask() -> list[str]:
        async with serving() as served:
            return [f"{line['id']}: {text}" for line in lines for text in await differences(served, line)]

    return asyncio.run(ask())


@asynccontextmanager
async def serving() -> AsyncIterator[Served]:
    """The server on a loopback port."""
    api = Written()
    extender = Extender(ExtenderCache(lambda: 0), api, lambda: 0)
    async with TestClient(TestServer(application(extender))) as client:
        yield Served(client, extender, api)


async def case_differences(served: Served, case: Json) -> list[str]:
    """One pod, asked about on all nodes at once and then on each node alone."""
    served.extender.cache = books_of(case)
    found, pod = await admission_differences(served, raw_pod(case["pod"], "p"), case["want"])
    if found or not case["want"]["adm"]["ok"]:
        return found
    names = [node["name"] for node in case["nodes"]]
    found += await filter_differences(served, pod, names, case["want"])
    if len(names) > 1 and "best" in case["want"]:
        for name in names:
            found += await filter_differences(served, pod, [name], alone(case["want"], name))
    return found


async def sequence_differences(served: Served, sequence: Json) -> list[str]:
    """Pods that come and go; where HAMi drew lots, its pick is asked for by name."""
    served.extender.cache = books_of(sequence)
    names, found, pods = [node["name"] for node in sequence["nodes"]], list[str](), dict[str, Pod]()
    for event in sequence["events"]:
        name = event["name"]
        if event["op"] == "add":
            lines, pod = await admission_differences(served, raw_pod(event["pod"], name), event["want"])
            found += lines
            if event["want"]["adm"]["ok"]:
                found += await filter_differences(served, pod, names, event["want"])
            if "pick" in event:
                answer = await served.filtered(pod, [event["pick"]])
                pod["metadata"]["annotations"] |= answer["annotations"]
                pods[name] = decoded(pod)
        elif name in pods:
            # What a watch tells: first the record, which until now was only in the extender's own cache.
            served.extender.cache.apply(Upserted(pods[name]))
            if event["op"] == "del":
                served.extender.cache.apply(Deleted(pods.pop(name)))
            else:
                served.extender.cache.apply(Upserted(replace(pods[name], initialised=True)))
    return found


async def admission_differences(served: Served, pod: Json, want: Json) -> tuple[list[str], Json]:
    """Where the webhook answers otherwise, and the pod as it leaves it."""
    record, after = await served.admitted(pod)
    return list(unequal("admission", record, {"msg": "", "code": 0, "set": [], "env": [], **want["adm"]})), after


async def filter_differences(served: Served, pod: Json, names: Sequence[str], want: Json) -> list[str]:
    """Where the filter answers otherwise."""
    answer = await served.filtered(pod, names)
    return list(unequal("filter", answer, expected_answer(names, want)))


def expected_answer(names: Sequence[str], want: Json) -> Json:
    """HAMi's answer to the question about these nodes, and what it writes on the pod."""
    answer: Json = {"Nodes": None, "NodeNames": None, "FailedNodes": None, "FailedAndUnresolvableNodes": None}
    if want.get("pass"):
        return {**answer, "NodeNames": list(names), "Error": ""}
    if "err" in want:
        return {**answer, "Error": want["err"]}
    if not want.get("best"):
        return {**answer, "FailedNodes": want["fail"], "Error": ""}
    chosen = min(want["best"])
    fit = want["fit"][chosen]
    written = {records.NODE: chosen, records.TIME: "0", records.TO_ALLOCATE: fit["d"], records.ALLOCATED: fit["d"]}
    if fit.get("mig"):
        written[records.MIG_ALLOCATIONS] = fit["mig"]
    return {
        **answer,
        "NodeNames": [chosen],
        "Error": "",
        "annotations": written,
        "labels": {records.NODE: chosen},
        "uid": "uid",
    }


def alone(want: Json, name: str) -> Json:
    """The verdict if that node were the only one."""
    if name in want["fit"]:
        return {"best": [name], "fit": want["fit"]}
    return {"fail": {name: want["fail"][name]}}


def books_of(case: Json) -> ExtenderCache:
    """What HAMi knew when it was asked."""
    cache = ExtenderCache(lambda: 0)
    for recorded in case["nodes"]:
        name = recorded["name"]
        cache.apply(Upserted(Node(name, annotations=node_annotations(recorded))))
        users = RecordedNode.of({"use": (), **recorded}, bool(case.get("usens"))).occupants
        for number, user in enumerate(users):
            annotations = {**user.pod.annotations, records.NODE: name}
            cache.apply(Upserted(replace(user.pod, name=f"user-{name}-{number}", annotations=annotations)))
    if "quota" in case:
        cache.apply(Upserted(ResourceQuota("own", "quota", Resources.parse(case["quota"]))))
    return cache


def raw_pod(recorded: Json, name: str) -> Json:
    """The pod as the API server hands it to the webhook."""
    spec: Json = {
        "containers": [raw_container(f"c{i}", c) for i, c in enumerate(recorded["ctr"])],
        "initContainers": [raw_container(f"i{i}", c) for i, c in enumerate(recorded.get("init", ()))],
        "schedulerName": recorded.get("schedulerName", SCHEDULER),
    }
    if "nodeName" in recorded:
        spec["nodeName"] = recorded["nodeName"]
    metadata = {"name": name, "namespace": "own", "uid": "uid", "annotations": dict(recorded.get("ann", {}))}
    return {"metadata": metadata, "spec": spec}


def raw_container(name: str, recorded: Json) -> Json:
    """A container whose requests have been completed from its limits."""
    limits = recorded.get("limits", {})
    container: Json = {"name": name, "resources": {"limits": dict(limits), "requests": dict(limits)}}
    if "restartPolicy" in recorded:
        container["restartPolicy"] = recorded["restartPolicy"]
    if recorded.get("privileged"):
        container["securityContext"] = {"privileged": True}
    return container


def containers_of(pod: Json) -> list[Json]:
    """All of them, init containers first."""
    return [*pod["spec"]["initContainers"], *pod["spec"]["containers"]]


def added_limits(before: Json, after: Json) -> Iterator[tuple[str, str]]:
    """Limits that the webhook has set."""
    held = before["resources"]["limits"]
    return ((key, value) for key, value in after["resources"]["limits"].items() if key not in held)


def patched(pod: Json, operations: Sequence[Json]) -> Json:
    """The pod after a JSON patch of `add`s."""
    after: Json = json.loads(json.dumps(pod))
    for operation in operations:
        assert "add" == operation["op"]
        *path, last = [part.replace("~1", "/") for part in operation["path"].split("/")[1:]]
        at: Any = after
        for part in path:
            at = at[int(part)] if isinstance(at, list) else at[part]
        at[last] = operation["value"]
    return after


def decoded(pod: Json) -> Pod:
    """As a reader tells of it."""
    value = decode_object({"apiVersion": "v1", "kind": "Pod", **pod})
    assert isinstance(value, Pod)
    return value
