"""Pods come to the nodes they are planned for as the scheduler lets them: in queue order, and again when refused."""

from kerf.engine.place.queueing import come_in_order, destined
from kerf.engine.place.trial import Trial
from kerf.model.constraints import ZONE, Requirements
from kerf.model.pods import Pod
from kerf.model.topology import TopologySpreadConstraint
from kerf.testing.builders import a_market, a_node, a_pod, a_snapshot

ZONES = [a_node(name, labels={ZONE: zone}) for name, zone in (("a", "za"), ("b", "zb"))]
SPREAD = {"spread": (TopologySpreadConstraint(ZONE, 1, Requirements.of_labels({"tier": "x"})),)}


def left(*planned: tuple[Pod, int]) -> list[str]:
    """The names of the pods that cannot come to the nodes of these numbers."""
    trial = Trial(a_snapshot(nodes=ZONES, pods=[pod for pod, _ in planned]), a_market())
    found = come_in_order(
        destined(planned, trial.ledger), trial.ledger, lambda each: trial.ledger.come(each.node, each.pod)
    )
    return [each.pod.name for each in found]


def of_tier(name: str, **given: object) -> Pod:
    """A pod that counts in the spread."""
    return a_pod(name, labels={"tier": "x"}, **given)  # type: ignore[arg-type]


def test_a_pod_that_only_counts_comes_in_its_turn() -> None:
    """p-1 may come to zone a as long as none is there; p-2, which asks for nothing, comes after it."""
    spread, other = of_tier("p-1", **SPREAD), of_tier("p-2")

    assert [] == left((other, 0), (spread, 0))


def test_one_that_comes_too_early_keeps_others_off() -> None:
    """With a higher priority it is there first, and the skew would be 2."""
    spread, other = of_tier("p-1", **SPREAD), of_tier("p-2", priority=1)

    assert ["p-1"] == left((other, 0), (spread, 0))


def test_a_pod_that_was_refused_is_tried_again() -> None:
    """p-2 waits for p-3 in the other zone."""
    pods = [of_tier(f"p-{number}", **SPREAD) for number in (1, 2, 3)]

    assert [] == left((pods[0], 0), (pods[1], 0), (pods[2], 1))


def test_the_round_of_a_pod_that_comes_later_is_noted() -> None:
    """p-2 is refused until p-3, which is behind it in the queue, is in the other zone; the others come at once."""
    pods = [of_tier(f"p-{number}", **SPREAD) for number in (1, 2, 3)]
    trial, late = Trial(a_snapshot(nodes=ZONES, pods=pods), a_market()), dict[str, int]()
    planned = destined(zip(pods, (0, 0, 1), strict=True), trial.ledger)
    come_in_order(planned, trial.ledger, lambda each: trial.ledger.come(each.node, each.pod), late)

    assert {"default/p-2": 1} == late
