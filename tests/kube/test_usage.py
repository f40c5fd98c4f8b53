"""Usage over HTTP: why there is none in one line, and checkpoints that are written for one version."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from kerf.errors import ApiError
from kerf.kube.resources import NODE_METRICS, POD_METRICS
from kerf.kube.usage import KubeUsage
from kerf.model.usage import SHARD_LABEL, Usage
from kerf.ports import Conflict
from kerf.sim.objects import Json
from tests.kube.fake_objects import FakeObjects, Seen
from tests.kube.fake_server import FakeServer, Refusal, connected, serving

SAMPLE = {"timestamp": "2026-01-05T07:00:00Z", "window": "15s"}
USED = {"cpu": "250m", "memory": "1Mi"}


def read(server: FakeServer) -> tuple[Usage, tuple[str, ...]]:
    """One look."""

    async def act() -> tuple[Usage, tuple[str, ...]]:
        async with serving(server) as client:
            return await KubeUsage(client, "kerf-system").read()

    return asyncio.run(act())


def test_pods_and_nodes_are_listed_and_wrong_samples_are_reported_with_their_place() -> None:
    """What is true beside them counts."""
    server = FakeServer()
    server.put(POD_METRICS, "good", **SAMPLE, containers=[{"name": "main", "usage": USED}])
    server.put(POD_METRICS, "bad", **SAMPLE, containers=[{"name": "main", "usage": {**USED, "cpu": "-1"}}])
    server.put(NODE_METRICS, "n", **SAMPLE, usage=USED)

    usage, doubts = read(server)

    assert (["default/good"], ["n"]) == (list(usage.pods), list(usage.nodes))
    assert 250 == usage.pods["default/good"].cpu_millis
    expected = "PodMetrics default/bad: containers[0].usage.cpu: expected a quantity that is not negative, got '-1'"
    assert (expected,) == doubts


@pytest.mark.parametrize(
    "refusal, told",
    [
        (Refusal(404), "the cluster has no metrics.k8s.io (hint: install metrics-server)"),
        (Refusal(503, "service unavailable"), "metrics.k8s.io does not answer: HTTP 503: service unavailable"),
        (Refusal(403), 'forbidden: refused (hint: grant {apiGroups: ["metrics.k8s.io"], resources: ["pods"]'),
    ],
)
def test_why_there_is_none_is_one_line(refusal: Refusal, told: str) -> None:
    """Absent, down, or closed to us."""
    server = FakeServer(standing={each.path(): refusal for each in (POD_METRICS, NODE_METRICS)})

    with pytest.raises(ApiError) as error:
        read(server)

    assert str(error.value).startswith(told)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("body", ["[]", '{"items": [{"timestamp": NaN}]}', '{"items": 7}'])
def test_an_answer_that_is_no_list_is_one_line_too(body: str) -> None:
    """Whatever stands where a metrics server should."""

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text=body, content_type="application/json")

    async def act() -> None:
        async with connected(answer) as client:
            await KubeUsage(client, "kerf-system").read()

    with pytest.raises(ApiError, match=r"^metrics.k8s.io: PodMetrics: expected a Kubernetes list"):
        asyncio.run(act())


def test_pods_are_seen_where_nodes_may_not_be() -> None:
    """Half of it is better than none, and the other half is told."""
    server = FakeServer(standing={NODE_METRICS.path(): Refusal(403)})
    server.put(POD_METRICS, "good", **SAMPLE, containers=[{"name": "main", "usage": USED}])

    usage, (told,) = read(server)

    assert (["default/good"], {}) == (list(usage.pods), usage.nodes)
    assert told.startswith("forbidden: refused")


def checkpoint(fake: FakeObjects) -> Json:
    """The ConfigMap as it is."""
    found = fake.api.get("ConfigMap", "kerf-system", "kerf-usage-00")
    assert found is not None
    return found


def test_a_checkpoint_is_made_and_then_changed_entry_by_entry(tmp_path: Path) -> None:
    """The label is how it is found again; entries of which nothing is said stay."""
    fake = FakeObjects()

    async def act() -> None:
        async with fake.client(tmp_path) as client:
            usage = KubeUsage(client, "kerf-system")
            await usage.write("kerf-usage-00", {"a": "1", "b": "2", "c": None})
            await usage.write("kerf-usage-00", {"b": None, "d": "4"})

    asyncio.run(act())

    assert ({"a": "1", "d": "4"}, {SHARD_LABEL: "v1"}) == (
        checkpoint(fake)["data"],
        checkpoint(fake)["metadata"]["labels"],
    )
    assert ["POST configmaps", "PATCH configmaps/kerf-usage-00"] == fake.writes()


def test_a_checkpoint_that_another_writes_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    """Two leaders at once must not mix their histories unseen."""
    fake = FakeObjects()

    async def meddle(seen: Seen) -> web.Response | None:
        if seen.method == "PATCH":
            fake.api.patch("ConfigMap", "kerf-system", "kerf-usage-00", {"data": {"x": "y"}})
        return None

    async def act() -> None:
        async with fake.client(tmp_path) as client:
            usage = KubeUsage(client, "kerf-system")
            await usage.write("kerf-usage-00", {"a": "1"})
            fake.before = meddle
            await usage.write("kerf-usage-00", {"a": "2"})

    with pytest.raises(Conflict):
        asyncio.run(act())
    assert {"a": "1", "x": "y"} == checkpoint(fake)["data"]
