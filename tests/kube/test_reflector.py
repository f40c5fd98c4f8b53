"""A reflector tells what is there and what changes: no gap, no phantom, whatever happens to its connection."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from msgspec import Raw

from kerf.errors import DecodeError
from kerf.kube.client import KubeClient
from kerf.kube.reader import follow
from kerf.kube.reflector import Backoff, Lines, Mirror, Pace, Reflector
from kerf.kube.resources import NODES, Resource
from kerf.manifests.live import decode_live
from kerf.model.nodes import Node
from kerf.model.snapshot import Deleted, Event, Relisted, Report, Synced, Upserted
from tests.kube.fake_server import PACE, FakeServer, Refusal, on_loop, serving, until

BROKEN: dict[str, Any] = {"spec": 5}
"""Parts of a node that no decoder takes."""


def told(events: Sequence[Event]) -> list[str]:
    """The events in short: `+n1@7` for a node told as of version 7, `-n1@7` for its deletion."""
    assert not any(isinstance(event, Synced) for event in events)
    return [_short(event) for event in events]


def _short(event: Event) -> str:
    assert isinstance(event, Upserted | Deleted)
    assert isinstance(event.value, Node)
    return f"{'+' if isinstance(event, Upserted) else '-'}{event.value.name}@{event.value.resource_version}"


def a_node(name: str, version: int, *, uid: str = "u", **parts: Any) -> Raw:
    """A node as it stands in a list."""
    meta = {"name": name, "uid": uid, "resourceVersion": str(version)}
    return Raw(json.dumps({"metadata": meta, **parts}).encode())


@dataclass
class Complaints:
    """What was reported as undecodable."""

    made: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, resource: Resource, namespace: str, name: str, uid: str, error: Exception) -> None:
        self.made.append((name, str(error)))


def a_mirror() -> tuple[Mirror, Complaints]:
    """A mirror of nodes, and what it complains of."""
    complaints = Complaints()
    return Mirror(NODES, decode_live, complaints), complaints


class Following:
    """A reflector of nodes, and all that it has told."""

    def __init__(self, client: KubeClient, pace: Pace) -> None:
        self.events: list[Event] = []
        self.lists: list[tuple[Relisted, int]] = []
        """Each whole list but the first, and how many events were told before."""
        self.settled = 0
        followed, mirror = follow(NODES, is_required=True), a_mirror()[0]
        self.reflector = Reflector(client, followed, mirror, self._tell, self._settle, pace)

    async def _tell(self, events: Sequence[Report]) -> None:
        for event in events:
            if isinstance(event, Relisted):
                self.lists.append((event, len(self.events)))
            else:
                self.events.append(event)

    async def _settle(self) -> None:
        self.settled += 1

    @property
    def told(self) -> list[str]:
        return told(self.events)

    async def until_told(self, *expected: str) -> None:
        """Wait until exactly this was told, in this order."""
        try:
            await until(lambda: len(self.told) >= len(expected))
        finally:
            assert list(expected) == self.told


@asynccontextmanager
async def following(server: FakeServer, pace: Pace = PACE) -> AsyncIterator[Following]:
    """Follow the nodes of a server."""
    async with serving(server) as client:
        made = Following(client, pace)
        task = asyncio.create_task(made.reflector.run())
        try:
            yield made
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


# Lines and waits.


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100])
def test_lines_are_whole_wherever_chunks_are_cut(size: int) -> None:
    """Several lines in a chunk and several chunks in a line; blank lines are nothing."""
    text, lines = b"one\n\ntwo\nthree\nfour\n", Lines()

    got = [line for at in range(0, len(text), size) for line in lines.feed(text[at : at + size])]

    assert [b"one", b"two", b"three", b"four"] == got


def test_a_line_that_is_never_completed_is_never_given() -> None:
    """A connection was cut inside an object."""
    lines = Lines()

    assert [b"one"] == lines.feed(b"one\ntw")
    assert [] == lines.feed(b"o")


def test_waits_double_up_to_half_a_minute_and_begin_again_after_success() -> None:
    """From 0.2 s to 30 s, in the worst case of chance."""
    backoff = Backoff(Pace(chance=lambda: 1.0))

    assert [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30] == [backoff.next_s() for _ in range(10)]
    backoff.reset()
    assert 0.2 == backoff.next_s()


def test_chance_takes_up_to_half_of_a_wait() -> None:
    """So that those who failed together do not return together."""
    assert 5.0 == Pace(chance=lambda: 0.0).spread(10)


# The mirror.


def test_a_version_is_reported_once() -> None:
    """However often a list or a resumed watch shows it."""
    mirror, _ = a_mirror()

    assert ["+n1@7"] == told(mirror.seen(a_node("n1", 7)))
    assert [] == told(mirror.seen(a_node("n1", 7)))
    assert ["+n1@6"] == told(mirror.seen(a_node("n1", 6)))


def test_an_object_made_again_under_its_name_is_deleted_first() -> None:
    """Even when nobody saw the deletion: its uid tells."""
    mirror, _ = a_mirror()
    mirror.seen(a_node("n1", 7, uid="old"))

    assert ["-n1@7", "+n1@9"] == told(mirror.seen(a_node("n1", 9, uid="new")))


def test_what_a_list_does_not_show_has_vanished() -> None:
    """It is told as deleted in its last told form, once."""
    mirror, _ = a_mirror()
    mirror.seen(a_node("n1", 7))
    mirror.seen(a_node("n2", 8))
    mirror.begin()

    assert [] == told(mirror.seen(a_node("n2", 8)))
    assert ["-n1@7"] == told(mirror.vanished())
    assert [] == told(mirror.vanished())


def test_an_undecodable_form_leaves_the_last_good_one_and_is_reported_once() -> None:
    """No event, no deletion, and no second report of the same version."""
    mirror, complaints = a_mirror()
    mirror.seen(a_node("n1", 7))

    assert [] == told(mirror.seen(a_node("n1", 8, **BROKEN)))
    assert [] == told(mirror.seen(a_node("n1", 8, **BROKEN)))
    assert [("n1", "Node n1: spec: expected a mapping, got 5")] == complaints.made
    assert ["+n1@9"] == told(mirror.seen(a_node("n1", 9)))


def test_the_deletion_of_an_undecodable_object_is_reported_if_a_good_form_was() -> None:
    """With the form told last, though the last of all cannot be read."""
    mirror, _ = a_mirror()
    mirror.seen(a_node("n1", 7))
    for name in ("n1", "never-good"):
        mirror.seen(a_node(name, 8, **BROKEN))

    assert ["-n1@7"] == told(mirror.gone(a_node("n1", 9, **BROKEN)))
    assert [] == told(mirror.gone(a_node("never-good", 10, **BROKEN)))


def test_an_undecodable_successor_ends_its_predecessor() -> None:
    """The old object is gone for certain, the new one has no form yet."""
    mirror, _ = a_mirror()
    mirror.seen(a_node("n1", 7, uid="old"))

    assert ["-n1@7"] == told(mirror.seen(a_node("n1", 9, uid="new", **BROKEN)))
    assert ["+n1@10"] == told(mirror.seen(a_node("n1", 10, uid="new")))


def test_a_decoder_that_breaks_down_is_only_a_complaint() -> None:
    """Whatever it raises: one object must not hide the others."""
    complaints = Complaints()

    def breaks(_raw: Raw, _kind: str, _api_version: str) -> None:
        raise RecursionError("too deep")

    assert () == Mirror(NODES, breaks, complaints).seen(a_node("n1", 7))
    assert [("n1", "too deep")] == complaints.made


def test_an_object_without_metadata_is_only_a_complaint() -> None:
    """It has no name to be known by."""
    mirror, complaints = a_mirror()

    assert () == mirror.seen(Raw(b"5"))
    assert () == mirror.gone(Raw(b"5"))
    assert ["", ""] == [name for name, _ in complaints.made]


def test_forgotten_versions_are_reported_again_and_what_vanished_is_not_forgotten() -> None:
    """For a listener who begins anew with a state that outlived the last one."""
    mirror, _ = a_mirror()
    mirror.seen(a_node("n1", 7))
    mirror.seen(a_node("n2", 8))
    mirror.forget_versions()
    mirror.begin()

    assert ["+n2@8"] == told(mirror.seen(a_node("n2", 8)))
    assert ["-n1@7"] == told(mirror.vanished())


# The loop.


@on_loop
async def test_a_list_is_read_in_pages_and_a_watch_goes_on_from_it() -> None:
    """Everything once, and then what changes."""
    server = FakeServer()
    for name in ("n1", "n2", "n3", "n4"):
        server.put(NODES, name)
    async with following(server) as made:
        await until(lambda: server.watches)
        server.put(NODES, "n1")
        server.remove(NODES, "n4")
        await made.until_told("+n1@101", "+n2@102", "+n3@103", "+n4@104", "+n1@105", "-n4@104")
    assert ["3", "3"] == [query["limit"] for query in server.asked("list", NODES)]


@on_loop
async def test_a_watch_asks_for_bookmarks_and_ends_within_five_minutes() -> None:
    """So that an idle one can be told from a dead one, and all connections move now and then."""
    server = FakeServer()
    async with following(server, Pace(chance=lambda: 0.5)):
        await until(lambda: server.watches)
    asked = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "100", "timeoutSeconds": "270"}
    assert [asked] == server.asked("watch", NODES)


@pytest.mark.parametrize(("expired", "limits"), [(1, ["3", "3", "3", "3"]), (2, ["3", "3", "3", "3", None])])
@on_loop
async def test_a_list_whose_pages_expire_is_read_again_and_at_last_in_one_piece(
    expired: int, limits: list[str | None]
) -> None:
    """What the first attempt has told is not told again."""
    server = FakeServer()
    for name in ("n1", "n2", "n3", "n4"):
        server.put(NODES, name)
    gone = Refusal(410)
    server.script("list", NODES, *([None, gone] * expired))
    async with following(server) as made:
        await made.until_told("+n1@101", "+n2@102", "+n3@103", "+n4@104")
        assert limits == [query.get("limit") for query in server.asked("list", NODES)]


@on_loop
async def test_a_watch_that_is_cut_inside_an_object_goes_on_where_it_was() -> None:
    """The half object is dropped, nothing is listed again."""
    server = FakeServer()
    server.put(NODES, "n1")
    async with following(server) as made:
        await until(lambda: server.watches)
        server.put(NODES, "n2")
        await made.until_told("+n1@101", "+n2@102")
        server.cut()
        server.put(NODES, "n3")
        await made.until_told("+n1@101", "+n2@102", "+n3@103")
    assert 1 == len(server.asked("list", NODES))
    assert "102" == server.asked("watch", NODES)[1]["resourceVersion"]


@on_loop
async def test_a_decoded_event_ends_the_growth_of_waits() -> None:
    """A connection that is cut again and again, and works in between, is taken up again at once each time."""
    server = FakeServer()

    async def cut(times: int) -> None:
        await until(lambda: len(server.asked("watch", NODES)) > times and server.watches)
        server.put(NODES, "n1")
        await until(lambda: len(made.events) > times)
        server.cut()

    async with following(server, replace(PACE, most_backoff_s=3600)) as made:
        for times in range(16):
            await cut(times)


@pytest.mark.parametrize("in_stream", [True, False])
@on_loop
async def test_a_version_that_is_compacted_away_is_no_gap_and_no_phantom(in_stream: bool) -> None:
    """410 as a status or as an ERROR event in a 200: the list tells what differs, and only that."""
    server = FakeServer(tells_gone_in_stream=in_stream, is_silent=True)
    for name in ("stays", "changes", "goes", "returns"):
        server.put(NODES, name)
    async with following(server) as made:
        await until(lambda: server.watches)
        made.events.clear()
        server.put(NODES, "changes")
        server.remove(NODES, "goes")
        server.remove(NODES, "returns")
        server.put(NODES, "returns")
        server.compact()
        server.cut()
        await made.until_told("+changes@105", "-returns@104", "+returns@108", "-goes@103")
        assert 1 == made.reflector.health().relists


@on_loop
async def test_a_silent_stream_is_given_up_and_taken_up_again() -> None:
    """A connection that a router has forgotten looks like a cluster in which nothing happens."""
    server = FakeServer(is_silent=True)
    server.put(NODES, "n1")
    async with following(server) as made:
        await until(lambda: server.watches)
        server.put(NODES, "n2")
        await until(lambda: len(server.asked("watch", NODES)) > 1)
        server.is_silent = False
        await made.until_told("+n1@101", "+n2@102")
        assert ("", 0) == (made.reflector.health().last_error, made.reflector.health().relists)


@on_loop
async def test_bookmarks_keep_the_version_fresh_and_the_stream_alive() -> None:
    """While others change, so that a compaction later costs no list."""
    server = FakeServer()
    async with following(server) as made:
        await until(lambda: server.watches)
        server.version = 500
        await until(lambda: len(server.asked("watch", NODES)) > 1)
        assert "500" == server.asked("watch", NODES)[1]["resourceVersion"]
        assert "" == made.reflector.health().last_error


@on_loop
async def test_objects_of_more_than_a_megabyte_pass_in_small_pieces() -> None:
    """An event line may be as long as etcd allows."""
    server = FakeServer(chunk=10_007)
    async with following(server) as made:
        await until(lambda: server.watches)
        server.put(NODES, "n1", padding="x" * 1_500_000)
        server.put(NODES, "n2")
        await made.until_told("+n1@101", "+n2@102")


@on_loop
async def test_a_busy_server_is_left_alone_for_as_long_as_it_asks() -> None:
    """429 with Retry-After, on a list and on a watch."""
    server = FakeServer()
    server.put(NODES, "n1")
    server.script("list", NODES, Refusal(429, retry_after="0.05"))
    server.script("watch", NODES, Refusal(429, retry_after="0.2"))
    async with following(server):
        await until(lambda: server.watches)
        assert ["list", "list", "watch", "watch"] == [verb for verb, _, _ in server.requests]
        assert 0 == server.impatient


@pytest.mark.parametrize("status", [403, 404])
@on_loop
async def test_a_resource_that_cannot_be_had_is_asked_for_again_and_keeps_what_was_reported(status: int) -> None:
    """An API server that starts, or a role being mended, must not look like everything deleted."""
    server = FakeServer()
    server.put(NODES, "n1")
    async with following(server) as made:
        await made.until_told("+n1@101")
        server.standing[NODES.path()] = Refusal(status, "not for you")
        server.cut()
        await until(lambda: made.reflector.health().missing)
        assert "not for you" in made.reflector.health().problem(60)
        del server.standing[NODES.path()]
        server.put(NODES, "n2")
        await made.until_told("+n1@101", "+n2@102")
        await until(lambda: not made.reflector.health().missing)


@on_loop
async def test_an_error_in_a_stream_ends_that_stream_only() -> None:
    """An ERROR event that is no 410: the watch goes on from where it was."""
    server = FakeServer()
    server.script("watch", NODES, Refusal(500, in_stream=True))
    async with following(server) as made:
        await until(lambda: server.watches)
        server.put(NODES, "n1")
        await made.until_told("+n1@101")
    assert 1 == len(server.asked("list", NODES))


@on_loop
async def test_an_answer_that_is_no_kubernetes_is_followed_by_a_list() -> None:
    """A proxy says 200 and sends a page of its own."""
    server = FakeServer()
    page = Refusal(200, "")
    server.script("list", NODES, page)
    server.script("watch", NODES, page)
    async with following(server) as made:
        await until(lambda: server.watches)
        server.put(NODES, "n1")
        await made.until_told("+n1@101")
    assert 3 == len(server.asked("list", NODES))


@on_loop
async def test_json_that_is_no_list_is_not_taken_for_an_empty_one() -> None:
    """Else everything that was told would be told as deleted."""
    server = FakeServer()
    server.put(NODES, "n1")
    async with following(server) as made:
        await until(lambda: server.watches)
        server.script("watch", NODES, Refusal(410))
        server.script("list", NODES, Refusal(500, in_stream=True))
        server.cut()
        await until(lambda: server.watches)
        server.put(NODES, "n2")
        await made.until_told("+n1@101", "+n2@102")
    assert 3 == len(server.asked("list", NODES))


@on_loop
async def test_a_version_that_never_works_again_is_given_up() -> None:
    """A server restored from an older backup waits for a version it will not reach: list after five failures."""
    server = FakeServer()
    server.script("watch", NODES, *[Refusal(504, "Too large resource version")] * 5)
    async with following(server):
        await until(lambda: server.watches)
    assert [*["watch"] * 5, "list", "watch"] == [verb for verb, _, _ in server.requests][1:]


@on_loop
async def test_silence_is_measured_from_the_last_that_was_heard() -> None:
    """On the clock that the reflector was given; readiness can say so."""
    server, passed = FakeServer(is_silent=True), [0.0]
    async with following(server, replace(PACE, silence_s=600, now_s=lambda: passed[0])) as made:
        await until(lambda: server.watches)
        # The server has the watch a moment before the reflector has its answer; until then the watch is lost.
        passed[0] = 1.0
        await until(lambda: 0 == made.reflector.health().lost_s)
        passed[0] += 90 - made.reflector.health().silent_s
        assert 90.0 == made.reflector.health().silent_s
        assert "nodes: silent for 90 s" == made.reflector.health().problem(80)
        assert "" == made.reflector.health().problem(100)


@on_loop
async def test_the_first_list_settles_once() -> None:
    """Later lists are ordinary events."""
    server = FakeServer()
    async with following(server) as made:
        await until(lambda: server.watches)
        assert made.reflector.is_synced
        assert 1 == made.settled


def test_a_decode_error_names_the_object() -> None:
    """The text is made for an event on that object."""
    with pytest.raises(DecodeError, match="Node n1: spec: expected a mapping, got 5"):
        decode_live(a_node("n1", 1, **BROKEN), "Node", "v1")


@on_loop
async def test_a_list_after_a_cut_watch_says_that_it_was_whole() -> None:
    """Last of all that it shows, and of which version it is; of the first list nothing is said."""
    server = FakeServer(is_silent=True)
    server.put(NODES, "n1")
    async with following(server) as made:
        await until(lambda: server.watches)
        assert [] == made.lists
        server.remove(NODES, "n1")
        server.compact()
        server.cut()
        await until(lambda: made.lists)
        assert [(Relisted("Node", "102"), 2)] == made.lists
