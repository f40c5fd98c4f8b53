"""The rule that replays are compared with: what it buys, when, and for how long it pays."""

from benchmarks.boundcheck import TypeRow
from benchmarks.peerreplay import BATCH_S, BOOT_S, EMPTY_S, PeerReplay
from kerf.model.quantities import MEMORY
from kerf.sim.traces.replay import Arrival
from kerf.sim.traces.timedpods import GPU, PERCENT, PodForm

HOUR_S, DOLLAR = 3600, 1_000_000
SMALL = TypeRow("one", {"cpu": 4000, MEMORY: 2**34, "pods": 10}, DOLLAR, 1)
LARGE = TypeRow("two", {"cpu": 8000, MEMORY: 2**35, "pods": 10}, 3 * DOLLAR, 2)


def comes(name: str, at_s: int, runs_s: int, percent: int = 100, cards: int = 1) -> Arrival:
    """A pod of a core, and of so much of so many cards."""
    limits = {"cpu": "1", "memory": "1Gi", GPU: str(cards), PERCENT: str(percent)}
    return Arrival(at_s, name, runs_s, PodForm(limits, {}))


def replayed(*arrivals: Arrival) -> PeerReplay:
    """What it did with these in a day."""
    found = PeerReplay([LARGE, SMALL])
    found.run(arrivals, 24 * HOUR_S)
    return found


def test_it_pays_from_the_launch_until_the_empty_node_is_given_back() -> None:
    """A batch after the pod has come, of the cheapest type that holds it."""
    found = replayed(comes("a", 0, HOUR_S))
    assert found.cost_micro == DOLLAR * (BOOT_S + HOUR_S + EMPTY_S) / HOUR_S
    assert 1 == found.pod_hours


def test_halves_share_a_card_and_wholes_do_not() -> None:
    """Two halves take one node; two pods with a whole card take the type with two, where one holds both."""
    assert replayed(comes("a", 0, HOUR_S, 50), comes("b", 1, HOUR_S, 50)).cost_micro < 1.1 * DOLLAR
    wholes = replayed(comes("a", 0, HOUR_S), comes("b", 1, HOUR_S))
    assert wholes.cost_micro == 3 * DOLLAR * (BOOT_S + HOUR_S + EMPTY_S) / HOUR_S


def test_a_pod_goes_to_a_ready_node_with_room() -> None:
    """Nothing is bought for it, and it waits for no batch."""
    later_s = BATCH_S + BOOT_S + 60
    found = replayed(comes("a", 0, HOUR_S, 50), comes("b", later_s, 60, 50))
    assert found.cost_micro == DOLLAR * (BOOT_S + HOUR_S + EMPTY_S) / HOUR_S


def test_a_pod_that_no_type_holds_is_counted() -> None:
    """With four cards, where two are the most."""
    found = replayed(comes("a", 0, HOUR_S, cards=4))
    assert (1, 0) == (found.unplaced, found.cost_micro)
