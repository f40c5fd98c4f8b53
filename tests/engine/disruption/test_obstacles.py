"""What forbids to disrupt a node, in Karpenter's words (karpenter disruption rules, v1.14)."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.disruption.obstacles import Obstacles
from kerf.engine.explain.disruption import obstacle_text
from kerf.model.constraints import Requirement, Requirements
from kerf.model.nodeclaim import DISRUPTED_TAINT, DO_NOT_DISRUPT
from kerf.model.pods import Owner, PodDisruptionBudget
from kerf.model.snapshot import ClusterNode
from kerf.model.times import instant_text
from kerf.testing.builders import NOON_S, a_pod
from tests.engine.disruption.clusters import a_cluster, free_pool, on, ours

PROTECTED = {DO_NOT_DISRUPT: "true"}


def why_not(*pods: Any, node: Any = None, **given: Any) -> str:
    """What forbids to disrupt node `a`."""
    held, claim = node or ours("a")
    cause = Obstacles(a_cluster([free_pool()], [(held, claim)], pods, **given)).of(ClusterNode(held, claim, pods))
    return obstacle_text(cause) if cause is not None else ""


def test_a_marked_or_protected_node_stays() -> None:
    """Only the value `true` protects a node."""
    assert "node is deleting or marked for deletion" == why_not(node=ours("a", taints=(DISRUPTED_TAINT,)))
    assert f'disruption is blocked through the "{DO_NOT_DISRUPT}" annotation' == (
        why_not(node=ours("a", annotations=PROTECTED))
    )
    assert "" == why_not(node=ours("a", annotations={DO_NOT_DISRUPT: "1h"}))


def test_a_node_that_a_pending_pod_waits_for_stays() -> None:
    """Its nomination is a promise."""
    assert "node is nominated for a pending pod" == why_not(a_pod("p", nominated_node="a"))


@pytest.mark.parametrize("owner", [None, Owner("DaemonSet", "x"), Owner("Node", "a")], ids=["any", "daemon", "mirror"])
def test_a_protected_pod_holds_its_node(owner: Owner | None) -> None:
    """Also a DaemonSet's and a mirror pod."""
    assert f'pod default/p has "{DO_NOT_DISRUPT}" annotation' == why_not(
        on("a", "p", owner=owner, annotations=PROTECTED)
    )


def test_a_pod_that_is_protected_for_a_time_says_until_when() -> None:
    """From its start, and only as long as that lasts."""
    shielded = on("a", "p", annotations={DO_NOT_DISRUPT: "2h"}, started_s=NOON_S - 3600)
    assert f'pod default/p has "{DO_NOT_DISRUPT}" annotation until {instant_text(NOON_S + 3600)}' == why_not(shielded)
    assert "" == why_not(replace(shielded, started_s=NOON_S - 7200))


@pytest.mark.parametrize("state", [{"phase": "Succeeded"}, {"deleted_s": NOON_S}], ids=["ended", "terminating"])
def test_a_pod_that_is_over_holds_nothing(state: dict[str, Any]) -> None:
    """Terminal and terminating pods never block."""
    assert "" == why_not(replace(on("a", "p", annotations=PROTECTED), **state))


def a_budget(name: str = "web", allowed: int = 0, **labels: str) -> PodDisruptionBudget:
    """A PodDisruptionBudget for pods with these labels."""
    return PodDisruptionBudget("default", name, Requirements.of_labels(labels), allowed)


def test_an_exhausted_budget_holds_the_node() -> None:
    """A PodDisruptionBudget that allows an eviction does not, nor one for other pods."""
    pod = on("a", "p", labels={"app": "web"})

    assert "pdb default/web prevents pod evictions" == why_not(pod, disruption_budgets=(a_budget(app="web"),))
    assert "" == why_not(pod, disruption_budgets=(a_budget(allowed=1, app="web"),))
    assert "" == why_not(pod, disruption_budgets=(a_budget(app="db"),))


@pytest.mark.parametrize(("is_ready", "why"), [(True, "pdb default/web prevents pod evictions"), (False, "")])
def test_a_budget_may_let_pods_go_that_are_not_ready(is_ready: bool, why: str) -> None:
    """unhealthyPodEvictionPolicy AlwaysAllow, as Karpenter reads it (pkg/utils/pdb)."""
    budget = replace(a_budget(app="web"), lets_unready_go=True)
    pod = on("a", "p", labels={"app": "web"}, is_ready=is_ready)

    assert why == why_not(pod, disruption_budgets=(budget,))


def test_budgets_are_found_by_their_rarest_label() -> None:
    """Each of many budgets with a label in common, and one for any value of a label, protects its own pods only."""
    many = tuple(a_budget(f"b{n}", part="all", app=f"app-{n}") for n in range(5))
    any_team = PodDisruptionBudget("default", "teams", Requirements([Requirement.of("team", "Exists")]), 0)

    def why_not_labelled(**labels: str) -> str:
        return why_not(on("a", "p", labels=labels), disruption_budgets=(*many, any_team))

    assert "pdb default/b3 prevents pod evictions" == why_not_labelled(part="all", app="app-3")
    assert "pdb default/teams prevents pod evictions" == why_not_labelled(part="all", team="x")
    assert "eviction does not support multiple PDBs (pod default/p)" == (
        why_not_labelled(part="all", app="app-3", team="x")
    )
    assert "" == why_not_labelled(part="all")


def test_two_budgets_on_one_pod_hold_it_for_ever() -> None:
    """The eviction API refuses such a pod whatever they allow."""
    both = (a_budget("one", 5), a_budget("two", 5))

    assert "eviction does not support multiple PDBs (pod default/p)" == why_not(on("a", "p"), disruption_budgets=both)


def test_a_budget_does_not_hold_a_mirror_pod_and_holds_a_daemon() -> None:
    """The kubelet makes a mirror pod from its file; nobody evicts it."""
    mirror, daemon = (on("a", "p", owner=Owner(kind, "x")) for kind in ("Node", "DaemonSet"))

    assert "" == why_not(mirror, disruption_budgets=(a_budget(),))
    assert "pdb default/web prevents pod evictions" == why_not(daemon, disruption_budgets=(a_budget(),))
