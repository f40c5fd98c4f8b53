"""New pods are planned within the ResourceQuotas of their namespace, as the API server admits them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.explain.plan import plan
from kerf.model.causes import Name, OverResourceQuota, UnstatedForQuota
from kerf.model.constraints import ZONE
from kerf.model.plan import Plan, Stage
from kerf.model.pods import RUNNING, Container, Pod
from kerf.model.quantities import Resources
from kerf.model.resourcequotas import QuotaScope
from kerf.model.runtimeclasses import RuntimeClass
from kerf.model.snapshot import ResourceQuota, Upserted, Watched
from kerf.model.topology import PodAffinity, PodAffinityTerm
from kerf.model.volumecauses import ClaimOverQuota
from kerf.model.volumes import ClaimTemplate, PersistentVolumeClaim, StorageClass
from kerf.state import ClusterState
from kerf.testing.builders import (
    NOON_S,
    a_container,
    a_market,
    a_node,
    a_pod,
    a_pool,
    a_snapshot,
    an_instance_type,
    resources,
)
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


def claim(name: str, gib: int = 10, **given: Any) -> PersistentVolumeClaim:
    """A claim of `fast` that is there, or with `is_new` one of a manifest."""
    given.setdefault("storage_class", "fast")
    return PersistentVolumeClaim("default", name, requested_bytes=gib * GIB, **given)


def stored(pods: list[Pod], *quotas: ResourceQuota, claims: Sequence[PersistentVolumeClaim] = (), **given: Any) -> Plan:
    """The plan where class `fast`, the default, makes volumes where their pod runs."""
    classes = {each.name: each for each in (StorageClass("fast", "ebs.csi.aws.com", waits=True, is_default=True),)}
    there = {each.key: each for each in claims}
    return made(pods, *quotas, storage_classes=classes, volume_claims=there, **given)


def of_set(count: int, template: ClaimTemplate, **given: Any) -> list[Pod]:
    """The new pods of a StatefulSet with this template."""
    return some(count, "db", cpu="100m", claim_templates=(template,), **given)


DATA = ClaimTemplate("data", "fast", requested_bytes=10 * GIB)
SCRATCH = ClaimTemplate("scratch", "fast", is_ephemeral=True, requested_bytes=10 * GIB)


@pytest.mark.parametrize("template", [DATA, SCRATCH])
@pytest.mark.parametrize(
    ("hard", "left"),
    [
        ({"persistentvolumeclaims": 1}, 1),
        ({"count/persistentvolumeclaims": 2}, 2),
        ({"requests.storage": 25 * GIB}, 2),
        ({"fast.storageclass.storage.k8s.io/requests.storage": 10 * GIB}, 1),
        ({"fast.storageclass.storage.k8s.io/persistentvolumeclaims": 2}, 2),
        ({"slow.storageclass.storage.k8s.io/requests.storage": 0, "requests.ephemeral-storage": 0}, 3),
    ],
)
def test_claims_of_templates_beyond_a_quota_are_not_made(
    template: ClaimTemplate, hard: dict[str, int], left: int
) -> None:
    """Three of 10Gi: the first ones are, by class too; a template without a class has the default one."""
    for each in (template, replace(template, storage_class=None)):
        assert ["db-0", "db-1", "db-2"][left:] == refused(stored(of_set(3, each), quota(hard)))


def test_the_pod_of_a_stateful_set_is_not_made_without_its_claim() -> None:
    """So it takes nothing of a quota on pods, and is held with the figures of the claim's quota."""
    hard = {"requests.storage": 10 * GIB, "pods": 2}

    plan = stored([*of_set(3, DATA), a_pod("web", cpu="100m")], quota(hard))

    over = OverResourceQuota(Name("default"), Name("team"), Name("requests.storage"), 10 * GIB, 10 * GIB, 10 * GIB)
    assert ["db-1", "db-2"] == refused(plan)
    assert (ClaimOverQuota(Name("data-db-1"), over), Stage.HELD) == (plan.unplaced[0].cause, plan.unplaced[0].stage)
    assert (
        'persistentvolumeclaim "data-db-1" is not created: ResourceQuota default/team: requests.storage 10Gi, '
        "10Gi used or planned, 10Gi more needed" == plan.unplaced[0].reason
    )


def test_a_claim_is_made_before_its_pod_is_refused() -> None:
    """The StatefulSet makes claims first: that of a pod over a quota on pods counts, and the next has none left."""
    plan = stored(of_set(3, DATA), quota({"pods": 1, "persistentvolumeclaims": 2}))

    assert [OverResourceQuota, ClaimOverQuota] == [type(each.cause) for each in plan.unplaced]


def test_a_pod_whose_ephemeral_volume_has_no_claim_waits() -> None:
    """It is there, and counts, also where it is gated."""
    pods = [*of_set(2, SCRATCH, scheduling_gates=("wait",)), *some(2, "web", cpu="100m", claim_templates=(SCRATCH,))]

    plan = stored(pods, quota({"persistentvolumeclaims": 3, "pods": 3}))

    causes = {each.pod: (type(each.cause), each.stage) for each in plan.unplaced}
    assert (OverResourceQuota, Stage.HELD) == causes["default/web-1"]
    assert "default/web-0" not in causes
    plan = stored(pods[2:], quota({"persistentvolumeclaims": 1, "pods": 2}))
    assert [("default/web-1", Stage.VOLUMES)] == [(each.pod, each.stage) for each in plan.unplaced]


def test_a_live_pod_whose_ephemeral_claim_is_still_to_come_waits_for_it() -> None:
    """The pod has passed admission, its claim has not."""
    pods = some(2, "web", cpu="100m", claim_templates=(SCRATCH,), uid="1")

    assert ["web-1"] == refused(stored(pods, quota({"persistentvolumeclaims": 1})))


def test_a_claim_of_a_manifest_over_the_quota_does_not_exist() -> None:
    """All pods that use it wait for it; claims come before pods, by name."""
    pods = [a_pod("a", cpu="100m", claims=("one",)), *(a_pod(name, cpu="100m", claims=("two",)) for name in "bc")]
    claims = [claim("two", is_new=True), claim("one", is_new=True)]

    plan = stored([*pods, *of_set(1, DATA)], quota({"requests.storage": 15 * GIB}), claims=claims)

    assert ["b", "c", "db-0"] == refused(plan)
    assert [Stage.VOLUMES, Stage.VOLUMES, Stage.HELD] == [each.stage for each in plan.unplaced]


def test_claims_that_are_there_count_and_are_not_made_again() -> None:
    """In any state, those of a StatefulSet among them."""
    claims = [claim("data-db-0"), claim("old", is_deleting=True)]

    plan = stored(of_set(3, DATA), quota({"persistentvolumeclaims": 3}), claims=claims)

    assert ["db-2"] == refused(plan)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (QuotaScope("VolumeAttributesClass", "In", ("gold",)), ["db-0"]),
        (QuotaScope("VolumeAttributesClass"), ["db-0"]),
        (QuotaScope("VolumeAttributesClass", "DoesNotExist"), ["db-1"]),
        (QuotaScope("VolumeAttributesClass", "NotIn", ("gold",)), ["db-1"]),
        (QuotaScope("NotTerminating"), []),
    ],
)
def test_of_scopes_that_of_volume_attributes_classes_selects_claims(scope: QuotaScope, expected: list[str]) -> None:
    """Which ones may not be."""
    gold = of_set(1, replace(DATA, attributes_class="gold"))[0]
    plain = replace(of_set(2, DATA)[1])

    assert expected == refused(stored([gold, plain], quota({"persistentvolumeclaims": 0}, scope)))


def test_what_the_pod_states_as_a_whole_counts() -> None:
    """KEP-2837: its limits stand in place of the sums of its containers, and they need not state theirs."""
    whole = a_pod("whole", containers=(Container("main"),), pod_limits=resources(cpu=2), pod_requests=resources(cpu=1))

    asked = {
        name: getattr(each.cause, "more", 0)
        for name in ("requests.cpu", "limits.cpu")
        for each in made([whole], quota({name: 500})).unplaced
    }
    assert {"requests.cpu": 1000, "limits.cpu": 2000} == asked
    limited = a_pod("limited", containers=(Container("main"),), pod_limits=resources(memory="1Gi"))
    assert [] == refused(made([limited], quota({"limits.cpu": 1000}))), "the server asks no container of such a pod"
    assert [] == refused(made([limited], quota({"pods": 0}, QuotaScope("BestEffort"))))


def test_a_pod_whose_runtime_class_is_missing_uses_nothing() -> None:
    """The server refuses it, whatever the quota."""
    classes = {"other": RuntimeClass("other")}
    lost = a_pod("a", cpu=1, runtime_class="gvisor", created_s=1.0)

    assert ["a"] == refused(made([lost, a_pod("b", cpu=1, created_s=2.0)], quota(CPU_ONE), runtime_classes=classes))


def test_ended_pods_count_as_objects_alone() -> None:
    """`count/pods` counts what is stored, `pods` what has not ended."""
    for hard, expected in (({"count/pods": 2}, ["new-1"]), ({"pods": 2}, [])):
        state = ClusterState(assume_node_classes=True)
        ended = a_pod("done", phase="Failed", uid="1", node_name="n")
        values: list[Watched] = [a_pool(), quota(hard), ended, *some(2, "new", cpu=1)]
        for value in values:
            state.apply(Upserted(value))

        assert expected == refused(plan(state.snapshot(NOON_S), MARKET))


@pytest.mark.parametrize("template", [DATA, SCRATCH])
def test_a_hint_raises_the_quota_by_as_much_as_all_refused_pods_ask(template: ClaimTemplate) -> None:
    """Three claims of a class of which one is allowed: the patch, applied, places all, and one less does not."""
    key = "fast.storageclass.storage.k8s.io/persistentvolumeclaims"
    pods = of_set(3, template)

    unplaced = stored(pods, quota({key: 1})).unplaced

    assert [{"spec": {"hard": {key: "3"}}}] * 2 == [each.patch and each.patch.change for each in unplaced]
    assert {f"no node would help: raise {key} of ResourceQuota default/team to 3"} == {each.hint for each in unplaced}
    assert [0, 1] == [len(stored(pods, quota({key: hard})).unplaced) for hard in (3, 2)]


def test_a_hint_raises_each_limit_that_pods_are_over() -> None:
    """Of cpu and of pods in two quotas; what is left may be asked for instead."""
    unplaced = made(some(2, cpu="900m"), quota(CPU_ONE), quota({"pods": 1}, name="zz")).unplaced[0]

    assert (
        "no node would help: raise requests.cpu of ResourceQuota default/team to 1800m and "
        "raise pods of ResourceQuota default/zz to 2, or ask for 100m at most"
    ) == unplaced.hint
    assert unplaced.patch is not None
    assert ["team", "zz"] == [unplaced.patch.name, *(each.name for each in unplaced.more)]
