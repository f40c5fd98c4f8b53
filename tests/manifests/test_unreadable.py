"""One object that cannot be read: what is said, and what becomes of the others."""

import pytest

from kerf.errors import InputError
from kerf.testing.builders import a_pod
from tests.manifests.texts import decoded, left_out, pool_text

BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: team}
spec: {maxUnavailable: 1, selector: {matchExpressions: [{key: app, operator: Foo, values: [a]}]}}
"""
OVERLAY = """\
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: cheaper%s}
spec: {requirements: [], priceAdjustment: abc}
"""
POLICY = """\
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: gpus%s}
spec: 3
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n, uid: u}
status: 3
"""
LIVE_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p, uid: u}
spec: {nodeName: n, containers: 3}
"""


@pytest.mark.parametrize("broken", [BUDGET, BUDGET.replace("maxUnavailable: 1", "maxUnavailable: [1]")])
def test_a_budget_that_cannot_be_read_lets_no_pod_of_its_namespace_go(broken: str) -> None:
    """It is not known which it is for, and that is said."""
    found = decoded(broken)
    (budget,) = found.disruption_budgets

    assert budget.covers(a_pod("any", namespace="team", labels={"app": "b"}))
    assert budget.holds(a_pod("any", namespace="team"))
    assert not budget.covers(a_pod("any", namespace="other"))
    assert any("it is taken to let no pod of team go" in each for each in found.warnings)


@pytest.mark.parametrize("broken", [OVERLAY, POLICY], ids=["NodeOverlay", "ClusterPolicy"])
def test_an_object_that_a_server_has_taken_and_that_cannot_be_read_is_left_out(broken: str) -> None:
    """As of a cluster, and it is said; the same in a file of one's own is an error, before it is applied."""
    live = broken % ", uid: u"

    assert "expected" in left_out(live)
    assert ["pool"] == [each.name for each in decoded(pool_text(), live).node_pools]
    with pytest.raises(InputError):
        decoded(broken % "")


@pytest.mark.parametrize("broken", [NODE, LIVE_POD], ids=["Node", "Pod"])
def test_what_takes_room_and_cannot_be_read_ends_the_plan(broken: str) -> None:
    """Its room would seem free."""
    with pytest.raises(InputError):
        decoded(broken)
