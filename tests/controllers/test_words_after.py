"""Controllers act on decisions and commands; the words of a plan are made of them afterwards, and steer nothing."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import kerf.controllers
from kerf.controllers.disruption import DisruptionController
from kerf.controllers.provisioning import Provisioning
from kerf.model.market import Market
from kerf.model.plan import Launch, Plan
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.violations import Violation
from tests.controllers.cluster import STAGES, Cluster, pod, pool

_ROOM = Path(kerf.controllers.__file__).parent
_TELLS = {("provisioning", "_tell")}
"""The only functions of controllers that read a Plan: they post its events."""
_WORDED = {("provisioning", "_explain"), ("disruption", "_explain")}
"""The only ones that have a Plan made: each is a key of its own, after the one that acts."""


class Watching:
    """A feed that notes what was done by the time at which a plan is published."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.seen: list[tuple[int, int]] = []

    def launching(self, launches: Sequence[Launch]) -> None:
        """See PlanFeed."""

    def publish(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        """Claims that are there, and those of them that go."""
        claims = [obj["metadata"] for obj in self._cluster.api.list("NodeClaim")]
        self.seen.append((len(claims), sum("deletionTimestamp" in each for each in claims)))

    def refuse(self, snapshot: ClusterSnapshot, market: Market, breaches: Sequence[Violation]) -> None:
        """See PlanFeed."""


def _functions() -> Iterator[tuple[tuple[str, str], ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in sorted(_ROOM.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (path.stem, node.name), node


def _names(node: ast.AST | None) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} if node is not None else set()


@pytest.fixture
def watching(cluster: Cluster) -> Watching:
    """The feed of the cluster's controllers."""
    feed = Watching(cluster)
    cluster.ports = replace(cluster.ports, feed=feed)
    cluster.use(cluster.cloud)
    return feed


def test_a_node_goes_before_its_plan_has_words(cluster: Cluster, watching: Watching) -> None:
    """The claim is being deleted by the time at which the plan is published."""
    cluster.put(pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}))
    cluster.running(1, reached=(*STAGES, "Consolidatable"))
    cluster.start(DisruptionController(cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings))
    cluster.at(20)

    assert [(1, 1)] == watching.seen


def test_a_node_is_bought_before_its_plan_has_words(cluster: Cluster, watching: Watching) -> None:
    """The claim is there by the time at which the plan is published."""
    cluster.put(pool(), pod("a"))
    cluster.start(Provisioning(cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings))
    cluster.at(5)

    assert (1, 0) == watching.seen[0]


def test_no_controller_takes_a_plan_but_to_tell_it() -> None:
    """Whoever acts on a Plan acts on words that were made for people; a Decision or a Command has none."""
    taking = {
        where
        for where, function in _functions()
        for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        if "Plan" in _names(argument.annotation)
    }

    assert _TELLS == taking


def test_plans_are_made_after_acting() -> None:
    """`explain` and `explained` are asked for where nothing is decided or written any more."""
    asking = {where for where, function in _functions() if {"explain", "explained"} & _names(function)}

    assert _WORDED == asking
