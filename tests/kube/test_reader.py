"""The reader: all resources in one stream, one Synced, and no trouble of one resource with another."""

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest
from msgspec import Raw

from kerf.kube.reader import WATCHED, KubeReader, follow, of_plugins
from kerf.kube.reflector import FollowedResource, Pace
from kerf.kube.resources import CONFIG_MAPS, DAEMON_SETS, NODES, PODS, RUN, Resource, declared
from kerf.manifests.live import decode_live
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.snapshot import Deleted, Relisted, Report, Synced, Upserted, Watched, key_of
from kerf.sharing.hami.config import CONFIG_MAP
from tests.kube.fake_server import PACE, SOON_S, FakeServer, Refusal, on_loop, serving, until

BOTH = (follow(NODES, is_required=True), follow(DAEMON_SETS))
POD_SPEC = {"containers": [{"name": "main"}]}


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    """The reader takes what lives from the collector's sight; a test run has more to come."""
    yield
    gc.unfreeze()


@dataclass
class Reading:
    """What somebody who reads holds for true."""

    reader: KubeReader
    events: list[Report] = field(default_factory=list)
    state: dict[tuple[str, str], Watched] = field(default_factory=dict)
    deletions: list[Watched] = field(default_factory=list)

    async def read(self) -> None:
        async for event in self.reader.events():
            self.events.append(event)
            if isinstance(event, Synced | Relisted):
                continue
            if isinstance(event, Upserted):
                self.state[key_of(event.value)] = event.value
            else:
                self.deletions.append(self.state.pop(key_of(event.value)))

    @property
    def is_synced(self) -> bool:
        return Synced() in self.events

    @property
    def names(self) -> list[str]:
        return sorted(name for _, name in self.state)


@asynccontextmanager
async def reading(
    server: FakeServer, watched: tuple[FollowedResource, ...] = BOTH, pace: Pace = PACE
) -> AsyncIterator[Reading]:
    """Read what a server has."""
    async with serving(server) as client:
        made = Reading(KubeReader(client, watched, pace=pace))
        task = asyncio.create_task(made.read())
        try:
            yield made
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def problems(reader: KubeReader) -> list[str]:
    """What readiness would say."""
    return [said for health in reader.health() if (said := health.problem(60))]


@on_loop
async def test_synced_comes_once_after_everything_that_existed() -> None:
    """However many resources and pages there are, and whatever is listed again later."""
    server = FakeServer()
    for number in range(8):
        server.put(NODES, f"n{number}")
    server.put(DAEMON_SETS, "d", spec={"template": {"spec": POD_SPEC}})
    async with reading(server) as made:
        await until(lambda: server.watches == 2)
        server.put(NODES, "n8")
        server.compact()
        await until(lambda: made.reader.health()[0].relists)
    assert [9] == [at for at, event in enumerate(made.events) if event == Synced()]


@pytest.mark.parametrize("refusal", [Refusal(404), Refusal(403), Refusal(500), Refusal(502, "")])
@on_loop
async def test_an_optional_resource_that_cannot_be_had_is_not_waited_for(refusal: Refusal) -> None:
    """Not installed, not permitted, or broken for good: health says it, readiness does not mind."""
    server = FakeServer(standing={DAEMON_SETS.path(): refusal})
    async with reading(server) as made:
        await until(lambda: made.is_synced)
        assert ["", True] == [made.reader.health()[0].missing, bool(made.reader.health()[1].missing)]
        assert [] == problems(made.reader)


@on_loop
async def test_a_resource_that_comes_later_is_reported_later() -> None:
    """A CRD that is installed while Kerf runs."""
    server = FakeServer(standing={DAEMON_SETS.path(): Refusal(404)})
    async with reading(server) as made:
        await until(lambda: made.is_synced)
        del server.standing[DAEMON_SETS.path()]
        server.put(DAEMON_SETS, "d", spec={"template": {"spec": POD_SPEC}})
        await until(lambda: made.names == ["default/d"])
        assert 1 == made.events.count(Synced())


@on_loop
async def test_without_a_required_resource_nothing_is_synced_and_the_reason_is_reported() -> None:
    """Nobody may decide without nodes; the role line that helps is in the reason."""
    server = FakeServer(standing={NODES.path(): Refusal(403, "no nodes for you")})
    async with reading(server) as made:
        await until(lambda: len(server.asked("list", NODES)) > 3)
        assert not made.is_synced
        rule = '{apiGroups: [""], resources: ["nodes"], verbs: ["list"]}'
        assert [f"nodes: forbidden: no nodes for you (hint: grant {rule})"] == problems(made.reader)
        server.standing.clear()
        await until(lambda: made.is_synced)
        await until(lambda: problems(made.reader) == [])


@on_loop
async def test_trouble_with_one_resource_does_not_stop_the_others() -> None:
    """Nodes go on while pods are refused again and again."""
    server = FakeServer(standing={PODS.path(): Refusal(500)})
    async with reading(server, (follow(PODS, is_required=True), *BOTH)) as made:
        await until(lambda: len(server.asked("list", PODS)) > 6)
        server.put(NODES, "n1")
        await until(lambda: made.names == ["n1"])
        assert not made.is_synced


@on_loop
async def test_only_the_config_map_that_is_named_is_asked_for() -> None:
    """Its role names it too, and others in the cluster are none of our business."""
    server = FakeServer()
    server.put(CONFIG_MAPS, "others", data={})
    server.put(CONFIG_MAPS, CONFIG_MAP, data={"a": "b"})
    followed = follow(CONFIG_MAPS, name=CONFIG_MAP)
    async with reading(server, (followed,)) as made:
        await until(lambda: server.watches)
        assert [f"default/{CONFIG_MAP}"] == made.names
    asked = [query["fieldSelector"] for _, _, query in server.requests]
    assert [f"metadata.name={CONFIG_MAP}"] * 2 == asked
    assert (CONFIG_MAP,) == followed.watching.names


@on_loop
async def test_a_config_map_outside_the_namespaces_of_plugins_is_passed_over() -> None:
    """It is not even kept: its author says how large it is."""
    server = FakeServer()
    server.put(CONFIG_MAPS, CONFIG_MAP, data={"a": "b"})
    async with serving(server) as client:
        followed = (follow(CONFIG_MAPS, name=CONFIG_MAP),)
        for namespaces, expected in ((("kube-system",), 0), (("default",), 1)):
            reader = KubeReader(client, followed, decode=of_plugins(namespaces), pace=PACE)
            async with aclosing(reader.events()) as events:
                told = [await anext(events)]
            assert expected == sum(isinstance(event, Upserted) for event in told)


@on_loop
async def test_cancelling_ends_every_task_and_every_connection() -> None:
    """Nothing is left behind but the session, which is the caller's."""

    def ours(tasks: set[asyncio.Task[object]]) -> list[str]:
        return [task.get_name() for task in tasks if task.get_name().startswith("reflector")]

    server = FakeServer()
    async with serving(server) as client:
        before = asyncio.all_tasks()
        async with aclosing(KubeReader(client, BOTH, pace=PACE).events()) as events:
            assert Synced() == await anext(events)
            assert [] != ours(asyncio.all_tasks() - before)
        assert [] == ours(asyncio.all_tasks() - before)
        await until(lambda: not server.watches)


@on_loop
async def test_a_new_reading_reports_everything_again_and_what_is_gone_since() -> None:
    """The state of whoever reads outlives a reading that has failed, and stays right."""
    server = FakeServer()
    for name in ("n1", "n2", "n3"):
        server.put(NODES, name)
    async with reading(server) as made:
        await until(lambda: server.watches == 2)
        second = asyncio.create_task(made.read())
        server.remove(NODES, "n2")
        await until(lambda: made.events.count(Synced()) == 2 and made.names == ["n1", "n3"])
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)


@on_loop
async def test_a_reader_that_fails_on_an_event_loses_no_other() -> None:
    """Events that were read ahead and never taken, deletions among them, are told by the next reading."""
    server = FakeServer()
    for name in ("n1", "n2", "n3"):
        server.put(NODES, name)
    async with serving(server) as client:
        made = Reading(KubeReader(client, BOTH, pace=PACE))
        async with aclosing(made.reader.events()) as events:
            await anext(events)
            await until(lambda: server.watches == 2)
            server.remove(NODES, "n2")
            await asyncio.sleep(0.05)
        async with aclosing(made.reader.events()) as events:
            again = [await anext(events) for _ in range(5)]
    assert ["n2", "n3", "n2", "n1", "n3"] == [e.value.name for e in again if isinstance(e, Upserted | Deleted)]
    assert [2] == [at for at, event in enumerate(again) if isinstance(event, Deleted)]


@on_loop
async def test_a_slow_reader_holds_the_reflectors_back() -> None:
    """What waits is bounded, and all of it comes in the end."""
    server = FakeServer()
    for number in range(4_000):
        server.put(NODES, f"n{number}")
    async with serving(server) as client:
        reader = KubeReader(client, BOTH, pace=Pace(page=100))
        async with aclosing(reader.events()) as events, asyncio.timeout(SOON_S):
            await anext(events)
            await until(lambda: len(server.asked("list", NODES)) == 21)
            await asyncio.sleep(0.05)
            assert 21 == len(server.asked("list", NODES))
            seen = 1
            while not isinstance(await anext(events), Synced):
                seen += 1
            assert 4_000 == seen


@on_loop
async def test_what_cannot_be_decoded_is_reported_and_leaves_the_others() -> None:
    """So that whoever runs Kerf can say it on that object."""
    reports: list[tuple[str, ...]] = []

    def report(resource: Resource, namespace: str, name: str, uid: str, error: Exception) -> None:
        reports.append((str(resource), namespace, name, uid, str(error)))

    server = FakeServer()
    server.put(NODES, "bad", spec=5)
    server.put(NODES, "good")
    async with serving(server) as client:
        reader = KubeReader(client, BOTH, pace=PACE, on_undecodable=report)
        made = Reading(reader)
        async with aclosing(reader.events()) as events:
            made.events += [await anext(events), await anext(events)]
    assert [True, False] == [event == Synced() for event in reversed(made.events)]
    assert [("nodes", "", "bad", "bad-101", "Node bad: spec: expected a mapping, got 5")] == reports


def test_every_resource_that_is_watched_may_be_listed_and_watched() -> None:
    """The role follows from the code."""
    granted = {(access.verb, access.resource.plural) for access in declared(RUN)}

    assert set() == {(verb, f.resource.plural) for f in WATCHED for verb in ("list", "watch")} - granted
    assert ["pods", "nodes", "nodepools", "nodeclaims"] == [f.resource.plural for f in WATCHED if f.is_required]


@on_loop
async def test_the_collector_does_not_look_at_what_is_read() -> None:
    """Not while a page is decoded, and later at nothing of it: it stays for long, and looking costs a second."""
    was_on: list[bool] = []

    def noting(raw: bytes | Raw, kind: str, api_version: str) -> Watched | None:
        was_on.append(gc.isenabled())
        return decode_live(raw, kind, api_version)

    server = FakeServer()
    server.put(NODES, "n1")
    async with serving(server) as client:
        reader = KubeReader(client, BOTH, decode=noting, pace=PACE)
        async with aclosing(reader.events()) as events:
            assert [True, False] == [isinstance(await anext(events), Upserted) for _ in range(2)]
            assert gc.get_freeze_count() > 0
            server.put(NODES, "n2")
            await anext(events)
    assert [False, True] == was_on


# The law: whatever happens, what was told is in the end what is there, and nothing was told deleted that was not.


class Weather:
    """What happens to a cluster and to the connection, from a seed."""

    def __init__(self, server: FakeServer, seed: int) -> None:
        self._server, self._dice = server, random.Random(seed)

    async def storm(self, steps: int) -> None:
        """Things happen."""
        for _ in range(steps):
            self._happen()
            await asyncio.sleep(self._dice.choice((0, 0, 0.001, 0.02)))

    def clear(self) -> None:
        """Nothing is wrong any more."""
        self._server.is_silent, self._server.chunk = False, 1 << 16
        self._server.scripts.clear()
        self._server.standing.clear()

    def _happen(self) -> None:
        dice, server = self._dice, self._server
        resource = dice.choice((NODES, PODS))
        name = f"o{dice.randrange(12)}"
        what = dice.choices(
            ("put", "break", "remove", "compact", "cut", "refuse", "silence", "chunk", "forbid"),
            (40, 4, 20, 4, 4, 6, 2, 4, 1),
        )[0]
        if what == "put":
            server.put(resource, name, labels={"v": str(server.version)}, **_parts(resource))
        elif what == "break":
            server.put(resource, name, spec=5)
        elif what == "remove" and name in server.objects.get(resource.path(), {}):
            server.remove(resource, name)
        elif what == "compact":
            server.compact()
        elif what == "cut":
            server.cut()
        elif what == "refuse":
            answer = dice.choice(
                (Refusal(429, retry_after="0.02"), Refusal(503), Refusal(410), Refusal(500, in_stream=True))
            )
            server.script(dice.choice(("list", "watch")), resource, answer)
        elif what == "silence":
            server.is_silent = not server.is_silent
        elif what == "chunk":
            server.chunk = dice.choice((1, 7, 100, 1 << 16))
        elif what == "forbid" and server.standing.pop(resource.path(), None) is None:
            server.standing[resource.path()] = Refusal(dice.choice((403, 404)))


def _parts(resource: Resource) -> dict[str, object]:
    return {"spec": POD_SPEC} if resource is PODS else {}


@pytest.mark.parametrize("seed", range(5))
@on_loop
async def test_what_was_reported_is_in_the_end_what_is_there(seed: int) -> None:
    """Through creations, changes, broken forms, deletions, compactions, cuts, refusals and silence."""
    server = FakeServer(tells_gone_in_stream=seed % 2 == 0)
    weather = Weather(server, seed)
    watched = (follow(NODES, is_required=True), follow(PODS, is_required=True))
    async with reading(server, watched) as made:
        await weather.storm(300)
        weather.clear()
        with suppress(TimeoutError):
            await until(lambda: not differences(server, made))
        assert [] == differences(server, made)
        assert set() == uids(made.deletions) - server.uids_deleted
        assert [] == repeated(made.events)
        assert 0 == server.impatient


def differences(server: FakeServer, made: Reading) -> list[str]:
    """Where what was told is not what is there; of a broken form only the last good one of that object may be told."""
    versions = dict(_identity(value) for value in made.state.values())
    there = {
        obj["metadata"]["uid"]: obj for resource in (NODES, PODS) for obj in server.objects[resource.path()].values()
    }
    return [
        *(f"{uid} is gone" for uid in versions if uid not in there),
        *(
            f"{uid}: {versions.get(uid)}"
            for uid, obj in there.items()
            if obj.get("spec") != 5 and versions.get(uid) != obj["metadata"]["resourceVersion"]
        ),
    ]


def _identity(value: Watched) -> tuple[str, str]:
    assert isinstance(value, Node | Pod)
    return value.uid, value.resource_version


def repeated(events: Iterable[Report]) -> list[str]:
    """Objects of which a version was told that was not newer than the one told before."""
    newest: dict[str, int] = {}
    found = []
    for uid, version in (_identity(event.value) for event in events if isinstance(event, Upserted)):
        if int(version) <= newest.get(uid, 0):
            found.append(f"{uid} {version}")
        newest[uid] = int(version)
    return found


def uids(values: Iterable[Watched]) -> set[str]:
    """Which objects they are."""
    return {_identity(value)[0] for value in values}
