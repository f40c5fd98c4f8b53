"""New pods are planned within the ResourceQuotas of their namespace, as the API server admits them."""

from typing import Any

import pytest

from kerf.engine.explain.plan import plan
from kerf.model.causes import Name, OverResourceQuota, UnstatedForQuota
from kerf.model.constraints import ZONE
from kerf.model.plan import Plan, Stage
from kerf.model.pods import RUNNING, Container, Pod
from kerf.model.quantities import Resources
from kerf.model.resourcequotas import QuotaScope
from kerf.model.snapshot import ResourceQuota
from kerf.model.topology import PodAffinity, PodAffinityTerm
from kerf.testing.builders import a_container, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type, resources
from tests.engine.worlds import some

MARKET = a_market(an_instance_type("m5.xlarge"))
CPU_ONE = {"requests.cpu": 1000}
GIB = 1 << 30


def quota(hard: dict[str, int], *scopes: QuotaScope, **given: str) -> ResourceQuota:
    """A quota of the pods' namespace."""
    return ResourceQuota(given.get("namespace", "default"), given.get("name", "team"), hard, scopes=scopes)


def made(pods: list[Pod], *quotas: ResourceQuota, **given: Any) -> Plan:
    """The plan for these pods."""
    return plan(a_snapshot(pools=[a_pool()], pods=pods, quotas=quotas, **given), MARKET)


def refused(plan: Plan) -> list[str]:
    """The names of pods that have no place."""
    return [each.pod.partition("/")[2] for each in plan.unplaced]


@pytest.mark.parametrize(
    ("hard", "left"),
    [
        ({"requests.cpu": 1000}, 1),
        ({"cpu": 1800}, 2),
        ({"requests.memory": 2 * GIB}, 2),
        ({"memory": GIB}, 1),
        ({"limits.cpu": 900}, 1),
        ({"limits.memory": 2 * GIB}, 2),
        ({"pods": 2}, 2),
        ({"count/pods": 1}, 1),
        ({"count/deployments.apps": 0, "persistentvolumeclaims": 0, "requests.storage": 0}, 3),
        ({}, 3),
    ],
)
def test_pods_beyond_a_quota_are_not_planned_for(hard: dict[str, int], left: int) -> None:
    """Three of 900m and 1Gi: as many as the quota leaves, the first ones."""
    plan = made(some(3, cpu="900m", memory="1Gi"), quota(hard))

    assert ["p-0", "p-1", "p-2"][left:] == refused(plan)


def test_the_refusal_gives_the_figures_of_the_quota() -> None:
    """A typed cause, in words with Kubernetes' quantities."""
    unplaced = made(some(2, cpu="900m"), quota(CPU_ONE)).unplaced[0]

    cause = OverResourceQuota(Name("default"), Name("team"), Name("requests.cpu"), 1000, 900, 900)
    assert (cause, Stage.HELD) == (unplaced.cause, unplaced.stage)
    assert "ResourceQuota default/team: requests.cpu 1, 900m used or planned, 900m more needed" == unplaced.reason


def test_extended_resources_are_counted_as_requests() -> None:
    """And ephemeral storage by both names."""
    asked = Resources({"nvidia.com/gpu": 1, "example.com/nic": 2, "ephemeral-storage": GIB, "cpu": 100})
    pod = a_pod("p", containers=(Container("main", asked, asked),))

    for name in ("requests.example.com/nic", "requests.ephemeral-storage", "ephemeral-storage"):
        assert name in str(made([pod], quota({name: 1})).unplaced[0].reason)


def test_init_containers_sidecars_and_overhead_count_as_the_scheduler_counts_them() -> None:
    """The larger of any moment: 500m run beside a sidecar of 200m, an init container needs 600m beside it."""
    sidecar = Container("proxy", resources(cpu="200m"), resources(cpu="200m"), is_sidecar=True)
    init = (sidecar, a_container("load", cpu="600m"))
    pod = a_pod("p", containers=(a_container("main", cpu="500m"),), init_containers=init, overhead=resources(cpu="50m"))

    asked = {
        name: cause.more
        for name in ("requests.cpu", "limits.cpu")
        for each in made([pod], quota({name: 0})).unplaced
        if isinstance(cause := each.cause, OverResourceQuota)
    }
    assert {"requests.cpu": 850, "limits.cpu": 850} == asked


def test_live_pods_count_as_used_also_those_that_wait() -> None:
    """They have passed admission; only the new one is refused."""
    running = a_pod("runs", cpu="300m", node_name="n", phase=RUNNING, uid="1")
    waiting = a_pod("waits", cpu="600m", uid="2")

    plan = made([running, waiting, a_pod("new", cpu="200m")], quota(CPU_ONE), nodes=[a_node("n")])

    assert (["new"], 900) == (refused(plan), getattr(plan.unplaced[0].cause, "used", 0))


def test_a_live_pod_is_never_refused() -> None:
    """The quota may have been lowered since."""
    assert [] == refused(made(some(3, cpu=1, uid="1"), quota(CPU_ONE)))


def test_pods_that_have_ended_count_no_more() -> None:
    """As the quota's controller counts."""
    ended = a_pod("done", cpu=1, phase="Succeeded", uid="1")

    assert [] == refused(made([ended, a_pod("new", cpu=1)], quota(CPU_ONE)))


def test_a_gated_pod_uses_its_part() -> None:
    """It exists, and takes no node yet; what is older comes first."""
    gated = a_pod("gated", cpu="500m", scheduling_gates=("wait",), created_s=1.0)

    assert ["gated", "new"] == refused(made([gated, a_pod("new", cpu="600m", created_s=2.0)], quota(CPU_ONE)))


def test_older_pods_are_admitted_first_whatever_their_priority() -> None:
    """Admission knows no priority."""
    old, new = a_pod("old", cpu=1, created_s=1.0), a_pod("new", cpu=1, created_s=2.0, priority=9)

    assert ["new"] == refused(made([old, new], quota(CPU_ONE)))


def test_all_quotas_of_the_namespace_hold_and_no_others() -> None:
    """The first that refuses is named."""
    wide, narrow = quota({"pods": 5}), quota({"pods": 1}, name="zz")
    other = quota({"pods": 0}, namespace="other")

    plan = made(some(2, cpu=1), wide, narrow, other)

    assert ["zz"] == [getattr(each.cause, "name", "") for each in plan.unplaced]


@pytest.mark.parametrize("limited", ["requests.cpu", "cpu", "limits.cpu", "requests.memory", "memory", "limits.memory"])
def test_a_quota_on_cpu_or_memory_refuses_pods_that_state_none(limited: str) -> None:
    """In every container, init containers among them."""
    silent = (a_container("main", cpu=1, memory="1Gi"), Container("silent"))
    pods = [a_pod("p", containers=silent), a_pod("q", containers=silent[:1], init_containers=silent[1:])]

    plan = made(pods, quota({limited: 1 << 50}))

    cause = UnstatedForQuota(Name("default"), Name("team"), (Name(limited),))
    assert {cause} == {each.cause for each in plan.unplaced}
    assert (
        f"ResourceQuota default/team: each container must state {limited}, which it limits" == plan.unplaced[0].reason
    )


def test_other_resources_need_not_be_stated() -> None:
    """Nor does a pod that asks as a whole state cpu for its containers."""
    whole = a_pod("whole", containers=(Container("main"),), pod_requests=resources(cpu=1))
    free = a_pod("free", containers=(Container("main"),))

    assert [] == refused(made([whole], quota({"requests.cpu": 1000})))
    assert [] == refused(
        made([free], quota({"pods": 1, "requests.nvidia.com/gpu": 0, "requests.ephemeral-storage": 0}))
    )


BATCH = {"priority_class": "batch"}


@pytest.mark.parametrize(
    ("scope", "counts"),
    [
        (QuotaScope("Terminating"), ["deadline"]),
        (QuotaScope("NotTerminating"), ["asking", "batch", "effort", "far"]),
        (QuotaScope("BestEffort"), ["effort"]),
        (QuotaScope("NotBestEffort"), ["asking", "batch", "deadline", "far"]),
        (QuotaScope("PriorityClass"), ["batch"]),
        (QuotaScope("PriorityClass", "In", ("batch", "x")), ["batch"]),
        (QuotaScope("PriorityClass", "NotIn", ("batch",)), ["asking", "deadline", "effort", "far"]),
        (QuotaScope("PriorityClass", "DoesNotExist"), ["asking", "deadline", "effort", "far"]),
        (QuotaScope("CrossNamespacePodAffinity"), ["far"]),
        (QuotaScope("VolumeAttributesClass"), []),
    ],
)
def test_a_quota_with_a_scope_counts_only_what_it_selects(scope: QuotaScope, counts: list[str]) -> None:
    """No pod may be of the scope: which ones are refused."""
    far = PodAffinity(preferred=((1, PodAffinityTerm(ZONE, a_pod().spec.node_selector, ("other",))),))
    pods = [
        a_pod("asking", cpu=1),
        a_pod("batch", cpu=1, **BATCH),
        a_pod("deadline", cpu=1, active_deadline_s=60),
        a_pod("effort", containers=(Container("main"),)),
        a_pod("far", cpu=1, pod_anti_affinity=far),
    ]

    assert counts == refused(made(pods, quota({"pods": 0}, scope)))


def test_all_scopes_must_select_a_pod() -> None:
    """Of a class, and with a deadline."""
    pods = [a_pod("one", cpu=1, **BATCH), a_pod("both", cpu=1, active_deadline_s=1, **BATCH)]
    scopes = QuotaScope("Terminating"), QuotaScope("PriorityClass", "In", ("batch",))

    assert ["both"] == refused(made(pods, quota({"pods": 0}, *scopes)))
