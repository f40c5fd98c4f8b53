"""NodeClaims that Kerf deletes are counted in the words of Karpenter's metrics."""

from dataclasses import replace

import pytest

from kerf.controllers.disrupted import count_disrupted, snake_case, termination_mode
from kerf.model.constraints import CAPACITY_TYPE
from kerf.model.nodepool import DRIFTED, EMPTY, NodePool
from kerf.telemetry import REGISTRY
from kerf.testing.builders import a_claim, a_pool


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("Empty", "empty"),
        ("WhenEmptyOrUnderutilized", "when_empty_or_underutilized"),
        ("ScaledDown", "scaled_down"),
        ("", ""),
    ],
)
def test_words_are_in_snake_case(word: str, said: str) -> None:
    """As Prometheus has it."""
    assert said == snake_case(word)


@pytest.mark.parametrize(("grace_s", "mode"), [(None, "graceful"), (600, "eventual"), (0, "forceful")])
def test_the_termination_mode_is_how_long_pods_may_hold_the_end(grace_s: int | None, mode: str) -> None:
    """By the claim's terminationGracePeriod."""
    assert mode == termination_mode(replace(a_claim("a"), termination_grace_period_s=grace_s))


@pytest.mark.parametrize(
    ("reason", "pool", "policy"),
    [(EMPTY, a_pool(), "when_empty_or_underutilized"), (DRIFTED, a_pool(), ""), (EMPTY, None, "")],
    ids=["consolidation", "drift", "no pool"],
)
def test_the_policy_is_counted_with_a_consolidation(reason: str, pool: NodePool | None, policy: str) -> None:
    """With any other reason it has no part in the end."""
    claim = a_claim("a")
    labels = {
        "reason": snake_case(reason),
        "nodepool": claim.node_pool,
        "capacity_type": claim.labels.get(CAPACITY_TYPE, ""),
        "consolidation_policy": policy,
        "termination_mode": "graceful",
    }
    before = REGISTRY.get_sample_value("karpenter_nodeclaims_disrupted_total", labels) or 0
    count_disrupted(claim, reason, snake_case(reason), pool)

    assert before + 1 == REGISTRY.get_sample_value("karpenter_nodeclaims_disrupted_total", labels)
