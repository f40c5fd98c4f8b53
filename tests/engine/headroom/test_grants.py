"""F5: whatever is bought for a namespace is bound by its ResourceQuota, and by what pools say of it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from kerf.cli.plan.text import unplaced_lines
from kerf.engine.decide import decide
from kerf.engine.explain.plan import plan
from kerf.engine.explain.requests import advanced, verdict
from kerf.engine.headroom.bookings import bookings
from kerf.engine.headroom.grants import MOST_PODS
from kerf.engine.headroom.prewarm import prewarming_pods
from kerf.engine.headroom.waiting import waiting_pods
from kerf.engine.headroom.windows.warm import warm_counts
from kerf.engine.options import Options
from kerf.engine.place.trial import Trial
from kerf.engine.supply.offered import supply
from kerf.engine.world import World
from kerf.model.causes import RoomLimited
from kerf.model.cronjobs import PREWARM, CronJob
from kerf.model.nodeclaim import PLANNED_PODS
from kerf.model.nodepool import NodePool
from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.model.provisioningrequests import (
    BEST_EFFORT_ATOMIC,
    CHECK_CAPACITY,
    PROVISIONED,
    PodSet,
    PodTemplate,
    ProvisioningRequest,
)
from kerf.model.quantities import Resources
from kerf.model.resourcequotas import QuotaScope
from kerf.model.snapshot import ClusterSnapshot, ResourceQuota
from kerf.model.uses import Use
from kerf.model.windows import WINDOW_LABEL, Quota, Reservation, WindowStatus
from kerf.testing.builders import NOON_S, a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type, cards
from tests.engine.headroom.windows.test_windows import GPU_HOUR, HOUR, a_window, warm
from tests.engine.worlds import G5

MARKET = a_market(G5)
GPUS, GPUMEM = "requests.nvidia.com/gpu", "limits.nvidia.com/gpumem"


def run(pods: int, name: str = "train", *, namespace: str = "team", **asked: Any) -> CronJob:
    """A CronJob that is due in five minutes."""
    pod = a_pod("job", namespace=namespace, **(asked or {"gpu": 1}))
    given: Any = {PREWARM: "24h"}
    return CronJob(namespace, name, "5 12 * * *", pod, time_zone="UTC", has_deadline=True, pods=pods, annotations=given)


def quota(namespace: str = "team", **hard: Any) -> ResourceQuota:
    """A quota; `gpu` is of whole cards, other keys by their names in `hard`."""
    amounts = {GPUS: hard.pop("gpu")} if "gpu" in hard else {}
    return ResourceQuota(namespace, "quota", {**amounts, **hard.pop("hard", {})}, **hard)


def a_named_pool(name: str = "pool", **uses: str) -> NodePool:
    """A pool that lets namespaces do what the keywords say."""
    return a_pool(name, own_annotations={Use[use.upper()]: names for use, names in uses.items()})


def seen(*jobs: CronJob, pools: Sequence[NodePool] | None = None, **given: Any) -> ClusterSnapshot:
    """A cluster in which nothing runs unless a case says so."""
    return a_snapshot(pools=[a_pool()] if pools is None else pools, cron_jobs=jobs, **given)


def planned(snapshot: ClusterSnapshot) -> Plan:
    """The plan of it, each card a node."""
    return plan(snapshot, MARKET, Options(with_bound=False))


def about(made: Plan) -> list[str]:
    """Its notes on room."""
    return [note for note in made.notes if "room is kept" in note]


def test_a_run_has_room_for_no_more_pods_than_its_quota_leaves() -> None:
    """The finding's case: parallelism 20, a quota of one card; the plan says so."""
    made = planned(seen(run(20), quotas=(quota(gpu=1),)))

    assert 1 == len(made.launches)
    assert [
        "CronJob team/train: room is kept for 1 of 20 pods: ResourceQuota team/quota: requests.nvidia.com/gpu 1, 1 "
        "used or planned, 1 more needed"
    ] == about(made)


@pytest.mark.parametrize(
    ("hard", "expected"),
    [
        ({GPUS: 3}, 3),
        ({GPUS: 9, "pods": 2}, 2),
        ({GPUS: 9, "count/pods": 4}, 4),
        ({GPUS: 9, "requests.cpu": 5000}, 2),
        ({GPUS: 9, "cpu": 4000}, 2),
        ({GPUS: 9, "limits.memory": 3 << 30}, 3),
        ({GPUS: 0}, 0),
    ],
)
def test_each_hard_limit_binds_the_pods_that_are_not_there(hard: dict[str, int], expected: int) -> None:
    """Cards, cpu, memory and numbers, in requests and limits; here each pod asks 1 card, 2 cores and 1 GiB."""
    job = run(20, gpu=1, cpu=2, memory="1Gi")

    assert expected == len(prewarming_pods(seen(job, quotas=(quota(hard=hard),))))


def test_hamis_memory_binds_too() -> None:
    """A quota of 5000 MiB leaves room for two slices of 2000."""
    snapshot = seen(run(20, gpu=1, gpumem=2000), quotas=(quota(hard={GPUMEM: 5000}),))

    assert 2 == len(prewarming_pods(snapshot))


def test_what_pods_ask_already_counts_with_the_room() -> None:
    """A quota of five cards: one is used, one pod waits for another; ended pods, and others', are free."""
    pods = [
        a_pod("runs", namespace="team", gpu=1, node_name="node"),
        a_pod("waits", namespace="team", gpu=1),
        a_pod("ended", namespace="team", gpu=1, node_name="node", phase="Succeeded"),
        a_pod("other", gpu=1, node_name="node"),
    ]
    snapshot = seen(run(20), pods=pods, nodes=[a_node()], quotas=(quota(gpu=5),))

    assert 3 == len(prewarming_pods(snapshot))


def test_room_of_one_namespace_counts_together() -> None:
    """A request takes two of three cards, so two runs share the third."""
    jobs = (run(2, "a"), run(2, "b"))
    snapshot = seen(*jobs, quotas=(quota(gpu=3),), **requested(2))
    found = waiting_pods(snapshot, supply(snapshot, MARKET), Trial(snapshot, MARKET)).pods

    assert ["provisioningrequest:team.r"] * 2 + ["cronjob:team.a"] == sorted(
        (pod.namespace for pod in found), key=lambda name: name.startswith("cronjob")
    )


@pytest.mark.parametrize("number", [1, 2, 15])
def test_a_namespace_that_nothing_bounds_gets_one_node_for_all_its_runs(number: int) -> None:
    """No quota limits the cards, one of cpu or of another namespace does not; one note says it of all runs."""
    scoped = replace(quota(gpu=9, scopes=(QuotaScope("Terminating"),)), name="scoped")
    loose = (quota(hard={"requests.cpu": 100_000}), quota("web", gpu=9), scoped)
    made = planned(seen(*(run(20, f"c{index}") for index in range(number)), quotas=loose))

    whose = {
        1: "CronJob team/c0",
        2: "2 CronJobs (team/c0, team/c1)",
        15: "15 CronJobs (team/c0, team/c1, team/c10 and 12 more)",
    }
    assert 1 == len(made.launches)
    assert [
        f"{whose[number]}: room is kept for 1 of {20 * number} pods: no ResourceQuota of namespace team limits "
        "requests.nvidia.com/gpu, and no NodePool names the namespace in kerf.dev/prewarm-namespaces; add one of them"
    ] == about(made)


def test_the_earliest_run_of_an_unbounded_namespace_has_its_room() -> None:
    """Ties by name; each namespace has its own."""
    later = replace(run(1, "a"), schedule="9 12 * * *")
    jobs = [later, run(1, "c"), run(1, "b"), run(1, "z", namespace="web")]

    for order in permutations(jobs):
        found = prewarming_pods(seen(*order))
        assert ["cronjob:team.b", "cronjob:web.z"] == [pod.namespace for pod in found]


def test_a_run_that_has_its_node_keeps_the_room_of_its_namespace() -> None:
    """Else each new CronJob with an earlier run would buy one node more."""
    later = replace(run(1, "a"), schedule="9 12 * * *")
    key = prewarming_pods(seen(later))[0].key
    bought = a_claim(annotations={PLANNED_PODS: json.dumps({key: [0]})}, reached=())

    assert ["cronjob:team.a"] == [pod.namespace for pod in prewarming_pods(seen(later, run(1, "b"), claims=[bought]))]


def test_an_unbounded_namespace_has_one_place_for_requests_windows_and_runs_together() -> None:
    """Many requests of one pod are as many runs of one: the oldest request has the room, then windows, then runs."""
    given = requested(1)
    (first,) = given["provisioning_requests"]
    others = tuple(replace(first, name=f"s{index}", uid=f"s{index}") for index in range(20))
    windows = (a_window(warm=warm(2), namespaces=("team",)),)
    snapshot = seen(run(3), windows=windows, **{**given, "provisioning_requests": (*others, first)})
    decision = decide(World(snapshot, MARKET), Options(with_bound=False))

    assert [["provisioningrequest:team.r/0-0"]] == [[pod.pod for pod in each.pods] for each in decision.launches]
    assert 20 == sum(isinstance(refusal.cause, RoomLimited) for refusal in decision.refusals)
    assert (2, 0) == warm_counts(windows[0], decision)


def test_requests_of_a_namespace_without_room_are_one_row() -> None:
    """A tenant's requests hide no other row; a single one says its name."""
    given = requested(1)
    (first,) = given["provisioning_requests"]
    others = tuple(replace(first, name=f"s{index}", uid=f"s{index}") for index in range(20))

    for number in (1, 20):
        asked = (first, *others[:number])
        rows = list(unplaced_lines(planned(seen(**{**given, "provisioning_requests": asked})).unplaced))
        assert (1, True) == (len(rows), "no room is kept for 1 pod: no ResourceQuota of namespace team" in rows[0])
        assert ("ProvisioningRequest team/s0: no room" in rows[0]) == (number == 1)


@pytest.mark.parametrize("uses", [{}, {"booking": "team"}])
def test_room_that_buys_nothing_or_that_a_pool_grants_leaves_the_one_place(uses: dict[str, str]) -> None:
    """A request that only asks whether there is room, and one that a pool's name grants, are not bounded by it."""
    given = requested(1)
    checked = replace(given["provisioning_requests"][0], class_name=BEST_EFFORT_ATOMIC if uses else CHECK_CAPACITY)
    snapshot = seen(run(3), pools=[a_named_pool(**uses)], **{**given, "provisioning_requests": (checked,)})
    found = waiting_pods(snapshot, supply(snapshot, MARKET), Trial(snapshot, MARKET)).pods

    assert 1 == sum(pod.namespace == "cronjob:team.train" for pod in found)


def test_a_pool_that_names_the_namespace_lets_it_buy() -> None:
    """On that pool alone; other namespaces get nothing of it, with a quota neither."""
    pools = [a_named_pool("theirs", prewarm="team, ops"), a_pool("dear", weight=9)]
    made = planned(seen(run(3), pools=pools))
    assert ["theirs"] * 3 == [launch.node_pool for launch in made.launches]

    closed = planned(seen(run(3, namespace="web"), pools=pools[:1], quotas=(quota("web", gpu=2),)))
    assert [] == [launch for launch in closed.launches if launch.node_pool == "theirs"]
    none = planned(seen(run(3, namespace="web"), pools=pools[:1]))
    assert ((), ["CronJob web/train: no room is kept for 3 pods: no NodePool names namespace web"]) == (
        none.launches,
        [note.partition(" in kerf.dev")[0] for note in about(none)],
    )


def test_a_list_that_cannot_be_read_lets_no_namespace_in() -> None:
    """What was meant is not known; the pool says so."""
    made = planned(seen(run(1), pools=[a_named_pool(prewarm="team;ops")]))

    assert () == made.launches
    assert any("annotation kerf.dev/prewarm-namespaces: expected names of namespaces" in note for note in made.notes)


@pytest.mark.parametrize("pods", [5000, 100_000, 10**9])
def test_no_more_than_what_can_be_bought_is_built_of_a_number(pods: int) -> None:
    """Parallelism is any number that a tenant writes; a pool that names it has room for a thousand at once."""
    snapshot = seen(run(pods), pools=[a_named_pool(prewarm="team")])

    assert MOST_PODS == len(prewarming_pods(snapshot))


def requested(count: int) -> dict[str, Any]:
    """A request of namespace team for so many pods of one card."""
    request = ProvisioningRequest(
        "team", "r", BEST_EFFORT_ATOMIC, (PodSet("one", count),), uid="r", created_s=NOON_S - 60
    )
    template = PodTemplate("team", "one", a_pod("one", namespace="team", gpu=1))
    return {"provisioning_requests": (request,), "pod_templates": (template,)}


@pytest.mark.parametrize(
    ("count", "hard", "uses", "launches"),
    [
        (3, {GPUS: 3}, {}, 3),
        (3, {GPUS: 2}, {}, 0),
        (1, None, {}, 1),
        (2, None, {}, 0),
        (2, None, {"booking": "team"}, 2),
        (2, {GPUS: 2}, {"booking": "web"}, 0),
        (10**9, None, {"booking": "*"}, 0),
    ],
)
def test_a_request_gets_all_its_room_within_the_quota_or_none(
    count: int, hard: dict[str, int] | None, uses: dict[str, str], launches: int
) -> None:
    """By quota or by name of a pool; more than one pod needs one of them. Its condition says why not."""
    quotas = () if hard is None else (quota(hard=hard),)
    snapshot = seen(pools=[a_named_pool(**uses)], quotas=quotas, **requested(count))
    decision = decide(World(snapshot, MARKET), Options(with_bound=False))
    assert launches == len(decision.launches)

    (booking,) = bookings(snapshot)
    found = advanced(booking, verdict(booking, decision), NOON_S).condition(PROVISIONED)
    assert found is not None
    assert ("False", "NodesStarting" if launches else "CapacityIsNotFound") == (found.status, found.reason)


def test_a_window_keeps_warm_what_the_quotas_of_its_namespaces_leave() -> None:
    """Two of four places: one for each namespace; WarmReady counts those that are not kept as missing."""
    window = a_window(warm=warm(4), namespaces=("a", "b"))
    snapshot = seen(windows=(window,), quotas=(quota("a", gpu=1), quota("b", gpu=1)))
    decision = decide(World(snapshot, MARKET), Options(with_bound=False))

    assert (2, (4, 0)) == (len(decision.launches), warm_counts(window, decision))


@pytest.mark.parametrize(("uses", "launches"), [({}, 1), ({"window": "*"}, 4), ({"window": "team"}, 0)])
def test_a_window_for_any_namespace_needs_a_pool_for_all(uses: dict[str, str], launches: int) -> None:
    """Else it keeps one place, or none where the pool names some."""
    made = planned(seen(pools=[a_named_pool(**uses)], windows=(a_window(warm=warm(4)),)))

    assert launches == len(made.launches)


def labelled(number: int, **given: Any) -> Pod:
    """A pod with the label of a window and without its gate."""
    return a_pod(f"p-{number}", gpu=1, uid=f"p-{number}", labels={WINDOW_LABEL: "day"}, **given)


def test_a_windows_quota_counts_pods_without_its_gate() -> None:
    """Of five that came without it two fit in its four card-hours, and reserve them; none while it is closed."""
    pods = [labelled(number) for number in range(5)]
    made = planned(seen(windows=(a_window(quota=Quota(4 * GPU_HOUR)),), pods=pods))
    closed = planned(seen(windows=(a_window(opens=20, quota=Quota(4 * GPU_HOUR)),), pods=pods))

    assert (2, 3, 0) == (len(made.launches), len(made.unplaced), len(closed.launches))
    assert [((), 10_000, NOON_S + 2 * HOUR)] * 2 == [(a.gates, a.share, a.until_s) for a in made.admissions]


def test_a_pod_without_the_gate_is_let_in_once() -> None:
    """It is planned on by its reservation, not by an annotation, which it could write itself."""
    held = Reservation("default/p-0", "p-0", 10_000, NOON_S, NOON_S + 2 * HOUR)
    window = a_window(quota=Quota(2 * GPU_HOUR), status=WindowStatus(reservations=(held,)))
    forged = labelled(1, annotations={"kerf.dev/admitted-by": "day@2026-01-05T12:00:00Z"})
    made = planned(seen(windows=(window,), pods=[labelled(0), forged]))

    assert (["default/p-1"], 1) == ([each.pod for each in made.unplaced], len(made.launches))


def test_pools_say_who_may_use_what_is_idle() -> None:
    """An opportunistic pod of another namespace stays off the pool's nodes."""
    market = a_market(an_instance_type("gpu", devices=cards(1), cpu=4))
    labels = {OPPORTUNISTIC: "true"}
    pods = [a_pod("p", namespace=name, cpu=1, labels=labels, uid=name) for name in ("team", "web")]
    snapshot = seen(pods=pods, nodes=[a_node()], pools=[a_named_pool(opportunistic="team")])
    made = plan(snapshot, market, Options(with_bound=False))

    assert (["team/p"], ["web/p"]) == ([p.pod.pod for p in made.placements], [u.pod for u in made.unplaced])


def test_cpu_binds_pods_that_ask_no_card() -> None:
    """A quota of cpu or memory is enough for them."""
    snapshot = seen(run(9, cpu=1), quotas=(ResourceQuota("team", "q", Resources.parse({"cpu": 3})),))

    assert 3 == len(prewarming_pods(snapshot))
