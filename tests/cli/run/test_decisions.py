"""What a leader tells who asks: small values of its last decisions, only to who may have them, only while it leads."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
import pytest

from kerf.cli.inputs.leader import NoLeader, answer_of, ask_leader
from kerf.cli.inputs.leaderflags import LeaderFlags
from kerf.cli.run.decisions import Decisions
from kerf.cli.run.serving import Asking, Serving
from kerf.engine.disruption.causes import EmptyFor
from kerf.errors import InputError
from kerf.kube.decisions import AccessRefusal
from kerf.model.constraints import Requirements
from kerf.model.dump import MOST_DECISIONS
from kerf.model.instancetypes import OfferingKey
from kerf.model.market import Market
from kerf.model.plan import Cost, Deletion, Launch, PlacedPod, Plan, Stage, Unplaced
from kerf.model.snapshot import ClusterSnapshot, Upserted
from kerf.model.violations import Violation
from kerf.state import ClusterState
from kerf.testing.builders import a_pod

OFFERING = OfferingKey("g5.xlarge", "us-east-1a", "spot")


class Silent:
    """A feed that keeps nothing."""

    def launching(self, launches: Sequence[Launch]) -> None:
        """See PlanFeed."""

    def publish(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        """See PlanFeed."""

    def refuse(self, snapshot: ClusterSnapshot, market: Market, breaches: Sequence[Violation]) -> None:
        """See PlanFeed."""


def launch(pods: int, pool: str = "g5") -> Launch:
    """A node for so many pods."""
    return Launch("a", pool, OFFERING, 1, tuple(PlacedPod(f"default/{n}") for n in range(pods)), Requirements())


def plan(*launches: Launch, deletions: tuple[Deletion, ...] = (), unplaced: tuple[Unplaced, ...] = ()) -> Plan:
    """A plan that does this."""
    return Plan("cost", Cost("USD", 0, 0), launches=launches, deletions=deletions, unplaced=unplaced)


def test_a_decision_is_kept_as_small_values() -> None:
    """What was decided, when, and from which state: no pod by name, no spec."""
    ring = Decisions(Silent())
    gone = Deletion("node-1", "claim-1", "t4", 5, "Empty", EmptyFor(600))
    left = tuple(Unplaced(f"default/{name}", Stage.LIMITS, "limit cpu 10") for name in "ab")
    ring.publish(ClusterSnapshot(1_800_000_000.5, version=7), plan(launch(3), deletions=(gone,), unplaced=left))

    (kept,) = ring.last()
    assert {
        "at": "2027-01-15T08:00:00.500000Z",
        "stateVersion": 7,
        "launches": [
            {"nodePool": "g5", "instanceType": "g5.xlarge", "zone": "us-east-1a", "capacityType": "spot", "pods": 3}
        ],
        "launchesCount": 1,
        "deletions": [{"node": "node-1", "nodePool": "t4", "reason": "Empty"}],
        "deletionsCount": 1,
        "relabels": 0,
        "placedOnNodes": 0,
        "unplaced": {"limits": 2},
    } == kept


def test_a_decision_names_the_state_that_it_was_made_from() -> None:
    """Events that come while it is made do not count."""
    ring, state = Decisions(Silent()), ClusterState()
    state.apply(Upserted(a_pod("a")))
    snapshot = state.snapshot(0)
    state.apply(Upserted(a_pod("b")))
    ring.publish(snapshot, plan(launch(1)))

    assert (1, 2) == (ring.last()[0]["stateVersion"], state.version)


def test_only_the_last_twenty_are_kept_and_each_is_bounded() -> None:
    """However large the plans were, and however long names are; a plan that does nothing is none of them."""
    ring = Decisions(Silent())
    for second in range(30):
        ring.publish(ClusterSnapshot(second), plan(*[launch(1, "x" * 10_000)] * 5_000))
        ring.publish(ClusterSnapshot(second), plan())
    kept = ring.last()

    assert (MOST_DECISIONS, 5_000) == (len(kept), kept[-1]["launchesCount"])
    assert kept[-1]["at"].startswith("1970-01-01T00:00:29")
    assert len(json.dumps(kept)) < 400_000


def served(asking: Asking | None, headers: Mapping[str, str]) -> tuple[int, Any]:
    """Status and body of `/debug/decisions`."""

    async def asked() -> tuple[int, Any]:
        serving = Serving(list, lambda: None, asking)
        try:
            _, metrics = await serving.start("", "127.0.0.1:0")
            url = f"http://{metrics}/debug/decisions"
            async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
                return response.status, await response.json(content_type=None) if asking else None
        finally:
            await serving.stop()

    return asyncio.run(asked())


async def _by_name(authorization: str) -> AccessRefusal | None:
    return None if authorization == "Bearer good" else AccessRefusal(403, f"not {authorization}")


@pytest.mark.parametrize("header", ["Authorization", "X-Kerf-Authorization"])
def test_a_leader_answers_who_may_ask(header: str) -> None:
    """Directly, or through the API server's proxy."""
    assert (200, {"a": 1}) == served(Asking(_by_name, lambda: {"a": 1}), {header: "Bearer good"})


def test_who_may_not_ask_learns_nothing() -> None:
    """Not even whether this replica leads."""
    found = served(Asking(_by_name, lambda: None), {"Authorization": "Bearer bad"})

    assert (403, {"message": "not Bearer bad"}) == found


def test_a_follower_says_that_it_does_not_lead() -> None:
    """What it remembers of an earlier lead is over."""
    found = served(Asking(_by_name, lambda: None), {"Authorization": "Bearer good"})

    assert (503, {"message": "this replica does not lead"}) == found


def test_without_a_doorkeeper_there_is_no_such_page() -> None:
    """Nobody is answered whom nobody has looked at."""
    assert (404, None) == served(None, {})


@pytest.mark.parametrize("body", [b"", b"[]", b'{"market": {"soldOut": [{}]}}', b'{"settings": {"follow": "x"}}'])
def test_an_answer_that_is_none_is_refused(body: bytes) -> None:
    """A pod of somebody else may listen there."""
    with pytest.raises(Exception, match="the leader's answer"):
        answer_of(body)


@pytest.mark.parametrize("flags", [LeaderFlags(url="http://a"), LeaderFlags(token_file="a")])
def test_a_url_needs_a_token(flags: LeaderFlags) -> None:
    """And a token is sent nowhere but to the URL that was given."""
    with pytest.raises(InputError, match="expected both or none of them"):
        ask_leader(None, None, flags)


def test_a_leader_that_does_not_answer_is_no_leader(tmp_path: Any) -> None:
    """The reason is one line."""
    token = tmp_path / "token"
    token.write_text("t")
    with pytest.raises(NoLeader, match=r"^http://127\.0\.0\.1:1: "):
        ask_leader(None, None, LeaderFlags(url="http://127.0.0.1:1", token_file=str(token)))
