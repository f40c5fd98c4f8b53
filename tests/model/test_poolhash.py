"""The digest of a NodePool's template: what changes it, and what does not."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.model.constraints import Requirement, Requirements, Taint
from kerf.model.nodepool import Budget, Disruption
from kerf.model.poolhash import HASH, HASH_VERSION, has_drifted, is_stamped, stamp
from kerf.testing.builders import a_claim, a_pool

ONE, TWO = Taint("a", "", "NoSchedule"), Taint("b", "", "NoSchedule")


@pytest.mark.parametrize(
    "changed",
    [
        {"labels": {"team": "ml"}},
        {"annotations": {"note": "x"}},
        {"taints": (ONE,)},
        {"startup_taints": (ONE,)},
        {"expire_after_s": None},
        {"expire_after_s": 60},
        {"termination_grace_period_s": 60},
        {"node_class": replace(a_pool().node_class, name="other")},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_a_node_is_made_of_counts(changed: dict[str, Any]) -> None:
    """Each field of the template by itself."""
    pool = a_pool()
    claim = a_claim(annotations=dict(stamp(pool)))

    assert not has_drifted(claim, pool)
    assert has_drifted(claim, replace(pool, **changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"requirements": Requirements([Requirement.of("a", "Exists")])},
        {"weight": 10},
        {"limits": None},
        {"disruption": Disruption(60, budgets=(Budget("1"),))},
        {"own_labels": {"a": "b"}},
        {"own_annotations": {"a": "b"}},
        {"generation": 7},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_no_node_is_made_of_does_not(changed: dict[str, Any]) -> None:
    """Requirements are compared with the node's labels instead."""
    pool = a_pool(taints=(ONE, TWO))

    assert stamp(pool) == stamp(replace(pool, **changed)) == stamp(replace(pool, taints=(TWO, ONE)))


@pytest.mark.parametrize("noted", [{}, {HASH: "x"}, {HASH: "123", HASH_VERSION: "v3"}, {HASH_VERSION: "kerf-v1"}])
def test_a_digest_of_another_version_says_nothing(noted: dict[str, str]) -> None:
    """Karpenter's, none, or half of one."""
    claim = a_claim(annotations=noted)

    assert not is_stamped(claim.annotations)
    assert not has_drifted(claim, a_pool())
