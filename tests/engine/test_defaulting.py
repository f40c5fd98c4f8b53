"""Default spread constraints of the scheduler: who has them, and which pods they count."""

from typing import Any

import pytest

from kerf.engine.defaulting import with_default_spread
from kerf.model.constraints import HOSTNAME, ZONE, Requirements
from kerf.model.defaultspread import default_spread_of
from kerf.model.namespaces import Service
from kerf.model.pods import Owner
from kerf.model.topology import TopologySpreadConstraint
from kerf.testing.builders import a_pod, a_snapshot

WEB = Requirements.of_labels({"app": "web"})
OWN = (TopologySpreadConstraint(HOSTNAME, 1, WEB),)
WEB_POD: dict[str, Any] = {"labels": {"app": "web"}}


def spread_of(services: tuple[Service, ...] = (), **given: Any) -> tuple[TopologySpreadConstraint, ...]:
    """The constraints that a web pod has then, where the default is one over zones."""
    snapshot = a_snapshot(pods=[a_pod(**{**WEB_POD, **given})], services=services)
    return with_default_spread(snapshot, default_spread_of(f"{ZONE}=2") or ()).pending[0].spec.spread


@pytest.mark.parametrize("kind, count", [("ReplicaSet", 1), ("StatefulSet", 1), ("Job", 0), ("DaemonSet", 0)])
def test_pods_of_some_owners_have_them(kind: str, count: int) -> None:
    """As kube-scheduler looks for selectors: in ReplicaSets and StatefulSets, and in no others."""
    assert (TopologySpreadConstraint(ZONE, 2, WEB, is_required=False),) * count == spread_of(owner=Owner(kind, "web"))


def test_pods_behind_a_service_have_them() -> None:
    """The Services that select the pod say which pods count; one of another namespace does not."""
    assert [WEB] == [each.selector for each in spread_of((Service("default", "web", WEB),))]
    assert () == spread_of((Service("other", "web", WEB), Service("default", "none", Requirements()))) == spread_of()


def test_pods_with_a_constraint_of_their_own_have_no_other() -> None:
    """One is enough, over whatever key."""
    assert OWN == spread_of(owner=Owner("ReplicaSet", "web"), spread=OWN)


def test_labels_of_single_pods_say_nothing_of_their_equals() -> None:
    """A StatefulSet numbers its pods in their labels: all of them count, and stay one shape."""
    labels = {"app": "web", "statefulset.kubernetes.io/pod-name": "web-0", "apps.kubernetes.io/pod-index": "0"}

    assert [WEB] == [each.selector for each in spread_of(owner=Owner("StatefulSet", "web"), labels=labels)]


def test_what_is_no_list_of_constraints_is_refused() -> None:
    """None, the built-in ones, or keys with maxSkew and what happens where it cannot hold."""
    hard = TopologySpreadConstraint("rack", 2, Requirements())

    assert [(), (hard,)] == [default_spread_of("none"), default_spread_of("rack=2:DoNotSchedule")]
    assert [(HOSTNAME, 3), (ZONE, 5)] == [(each.key, each.max_skew) for each in default_spread_of("System") or ()]
    assert [None] * 4 == [default_spread_of(text) for text in ("", "rack", "rack=0", "rack=1:Never")]
