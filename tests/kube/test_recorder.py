"""Events for people: posted once, in order, and never at the cost of whoever tells them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from kerf.kube.recorder import KubeRecorder, Limits
from kerf.model import events
from kerf.model.causes import NotBought
from kerf.model.events import Occurrence
from kerf.ports import Recorder
from kerf.sim.objects import Json
from kerf.testing.builders import a_pool
from tests.kube.fake_objects import FakeObjects, Seen, refusal

POD = "default/web-0"
UIDS = {("Pod", POD): "uid-of-web-0"}


class Desk:
    """A server, and recorders that post to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.fake = FakeObjects()

    def run(self, act: Callable[[KubeRecorder], Awaitable[None]], limits: Limits | None = None) -> KubeRecorder:
        """A recorder that was started, with which `act` was done, and that was closed."""

        async def connected() -> KubeRecorder:
            async with self.fake.client(self._folder) as client:
                recorder = KubeRecorder(client, self.fake.clock, lambda *key: UIDS.get(key), limits)
                recorder.start()
                await act(recorder)
                await recorder.close()
                return recorder

        return asyncio.run(connected())

    def tell(self, *told: Occurrence, limits: Limits | None = None) -> KubeRecorder:
        """The same, for events told one after another in one turn."""

        async def act(recorder: KubeRecorder) -> None:
            for occurrence in told:
                recorder.record(occurrence)

        return self.run(act, limits)

    @property
    def posted(self) -> list[Json]:
        """The Event objects in the order of their coming."""
        return sorted(self.fake.api.list("Event"), key=lambda obj: int(obj["metadata"]["resourceVersion"]))

    def answer(self, *answers: web.Response | None) -> None:
        """Answer the first posts so; None, and all further ones, are taken."""
        left = list(answers)

        async def before(seen: Seen) -> web.Response | None:
            return left.pop(0) if left else None

        self.fake.before = before


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A fresh one."""
    return Desk(tmp_path)


def why(text: str) -> Occurrence:
    """An event that differs by its text."""
    return events.failed_scheduling(POD, text, NotBought())


def unready() -> web.Response:
    """What a server says that is starting."""
    return refusal(503, "ServiceUnavailable", "starting")


def test_the_recorder_fits_the_port(desk: Desk) -> None:
    """The type checker holds the class to its Protocol."""
    recorder: Recorder = desk.tell()

    assert recorder


def test_events_are_posted_in_order_about_that_very_object(desk: Desk) -> None:
    """With the uid where it is known; what is cluster-wide is told in `default`."""
    desk.tell(events.nominated(POD, "node/a"), events.stage_reached("g5-a", "Launched", "launched"))

    pod, claim = desk.posted
    assert ("Nominated", "Launched") == (pod["reason"], claim["reason"])
    assert {"apiVersion": "v1", "kind": "Pod", "name": "web-0", "namespace": "default", "uid": "uid-of-web-0"} == pod[
        "involvedObject"
    ]
    assert {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "g5-a"} == claim["involvedObject"]
    assert ("default", "default") == (pod["metadata"]["namespace"], claim["metadata"]["namespace"])


def test_an_event_is_posted_once_within_its_period(desk: Desk) -> None:
    """Equal ones are dropped for five minutes here, or for ever; another text is another event."""
    scale_up = events.triggered_scale_up(POD, "g5-a", a_pool("g5"), 0, 1)

    async def act(recorder: KubeRecorder) -> None:
        for after_s in (0, 299, 300):
            desk.fake.clock.at_s += after_s
            for occurrence in (why("no pool"), scale_up):
                recorder.record(occurrence)
        recorder.record(why("limit"))

    recorder = desk.run(act)
    reasons = [event["reason"] for event in desk.posted]
    assert (["FailedScheduling", "TriggeredScaleUp", "FailedScheduling", "FailedScheduling"], 0) == (
        reasons,
        recorder.dropped,
    )


def test_two_lives_in_one_second_make_one_event(desk: Desk) -> None:
    """After a restart things are said again; an answer that was lost makes no second one either."""
    assert 0 == desk.tell(why("no pool")).dropped
    assert 0 == desk.tell(why("no pool")).dropped

    assert 1 == len(desk.posted)


def test_what_the_server_cannot_take_now_is_reported_later(desk: Desk) -> None:
    """Starting, busy or gone for a while: in order, and nothing is lost."""
    desk.answer(unready(), refusal(429, "TooManyRequests", "busy", retry_after="0"), unready())

    recorder = desk.tell(why("first"), why("second"), limits=Limits(first_retry_s=0))

    told = [event["message"].rpartition(" ")[2] for event in desk.posted]
    assert (["first", "second"], 0) == (told, recorder.dropped)


def test_what_the_server_refuses_holds_up_nothing(desk: Desk) -> None:
    """A namespace that ends takes no events; nor is an event of a kind that nobody knows the end of all others."""
    desk.answer(refusal(403, "Forbidden", "namespace is being terminated"))
    unknown = Occurrence(("Unheard", "x"), "Normal", "R", "m", ("x",))

    recorder = desk.tell(why("refused"), unknown, why("taken"))

    assert ["m", "Failed to schedule pod, taken"] == [event["message"] for event in desk.posted]
    assert 1 == recorder.dropped


def test_news_that_are_old_are_no_news(desk: Desk) -> None:
    """After ten minutes without a server an event is given up, and the next one gets its own try."""
    desk.answer(unready(), unready())

    async def act(recorder: KubeRecorder) -> None:
        recorder.record(why("old"))
        desk.fake.clock.at_s += 600
        recorder.record(why("new"))

    recorder = desk.run(act, Limits(first_retry_s=0))
    assert ["Failed to schedule pod, new"] == [event["message"] for event in desk.posted]
    assert 1 == recorder.dropped


def test_an_event_without_room_is_lost_and_may_be_reported_again(desk: Desk) -> None:
    """Whoever tells it never waits; since it was not said, its period has not begun."""

    async def act(recorder: KubeRecorder) -> None:
        for text in ("1", "2", "3"):
            recorder.record(why(text))
        while not desk.posted:
            await asyncio.sleep(0)
        recorder.record(why("3"))

    recorder = desk.run(act, Limits(room=2))
    assert ["1", "2", "3"] == [event["message"][-1] for event in desk.posted]
    assert 1 == recorder.dropped


def test_what_was_reported_longest_ago_is_forgotten_first(desk: Desk) -> None:
    """The memory is bounded: here two, of which the newest were told last."""

    async def act(recorder: KubeRecorder) -> None:
        for text in ("1", "2", "3", "2", "1"):
            desk.fake.clock.at_s += 1
            recorder.record(why(text))

    desk.run(act, Limits(remembered=2))
    assert ["1", "2", "3", "1"] == [event["message"][-1] for event in desk.posted]


def test_closing_waits_no_longer_than_its_deadline(desk: Desk) -> None:
    """A server that never answers: what waits is lost and counted, what comes later as well."""

    async def before(seen: Seen) -> None:
        await asyncio.Event().wait()

    async def act(recorder: KubeRecorder) -> None:
        desk.fake.before = before
        recorder.record(why("1"))
        recorder.record(why("2"))
        await recorder.close(deadline_s=0.05)
        recorder.record(why("3"))

    assert 3 == desk.run(act).dropped
    assert [] == desk.posted


def test_a_text_without_end_is_cut(desk: Desk) -> None:
    """It may quote an annotation of a megabyte."""
    desk.tell(why("x" * 1_000_000))

    message = desk.posted[0]["message"]
    assert (1024, "xxx...") == (len(message), message[-6:])


def about(namespace: str, number: int) -> Occurrence:
    """An event on a pod of a namespace."""
    return events.failed_scheduling(f"{namespace}/p-{number}", "no pool", NotBought())


def test_namespaces_are_posted_in_turn(desk: Desk) -> None:
    """A flood of one keeps the event of another waiting for one event."""
    desk.tell(*(about("mean", n) for n in range(50)), about("web", 0), about("web", 1))
    namespaces = [event["metadata"]["namespace"] for event in desk.posted]

    assert ["mean", "web", "mean", "web"] == namespaces[:4]
    assert [f"p-{n}" for n in range(50)] == [
        event["involvedObject"]["name"] for event in desk.posted if event["metadata"]["namespace"] == "mean"
    ]


def test_who_floods_the_queue_loses_its_own_events(desk: Desk) -> None:
    """The last ones of the namespace with the most: none of another is lost, whether it comes before or after."""
    flood = [about("mean", n) for n in range(100)]
    recorder = desk.tell(about("ops", 0), *flood, about("web", 0), limits=Limits(room=10))
    named = sorted((event["metadata"]["namespace"], event["involvedObject"]["name"]) for event in desk.posted)

    assert [*(("mean", f"p-{n}") for n in range(8)), ("ops", "p-0"), ("web", "p-0")] == named
    assert 92 == recorder.dropped
