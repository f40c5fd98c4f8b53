"""001-12: the pods of a CronJob's next run count before they are there."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.explain.plan import plan
from kerf.engine.explain.runs import warning_text
from kerf.engine.headroom.prewarm import Leads, prewarming, prewarming_pods, warnings
from kerf.engine.place.shapes import group
from kerf.model.cronjobs import LEAD_TIMES, PREWARM, PREWARM_CRON_JOBS, CronJob
from kerf.model.nodeclaim import INITIALIZED, LAUNCHED, PLANNED_PODS, TRUE, Condition
from kerf.model.plan import Plan
from kerf.model.pods import Owner
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.uses import Use
from kerf.testing.builders import NOON_S, a_claim, a_market, a_node, a_pod, a_pool, a_snapshot
from tests.engine.worlds import G5

LETS: Any = {Use.PREWARM: "default"}
AUTO: Any = {PREWARM: "auto"}


def a_cron_job(schedule: str = "0 13 * * *", **given: Any) -> CronJob:
    """An hour after noon UTC, one GPU, nothing to warn of."""
    pod = a_pod("job", gpu=1, owner=Owner("CronJob", "job"))
    stated: dict[str, Any] = {"time_zone": "UTC", "has_deadline": True, "annotations": AUTO, **given}
    return CronJob("default", "job", schedule, pod, **stated)


def seen(at_s: float, *cron_jobs: CronJob, **given: Any) -> ClusterSnapshot:
    """A cluster so many seconds after noon, with a pool of g5.xlarge."""
    pools = given.pop("pools", [a_pool(own_annotations=LETS)])
    return a_snapshot(pools=pools, taken_at_s=NOON_S + at_s, cron_jobs=cron_jobs, **given)


def counted(snapshot: ClusterSnapshot) -> int:
    """How many pods count that are not there."""
    return len(prewarming_pods(snapshot))


def decided(snapshot: ClusterSnapshot) -> Plan:
    """The plan of it."""
    return plan(snapshot, a_market(G5))


@pytest.mark.parametrize(
    ("at_s", "pods"), [(0, 0), (2999, 0), (3000, 3), (3600, 3), (3719, 3), (3720, 0), (86_400 + 3000, 3)]
)
def test_pods_count_from_a_lead_before_the_run_to_two_minutes_after_it(at_s: int, pods: int) -> None:
    """Ten minutes before 13:00, as long as no node has shown how long it takes."""
    assert pods == counted(seen(at_s, a_cron_job(pods=3)))


def test_a_node_is_bought_for_a_run_that_is_near() -> None:
    """And says for which; the pods are no one's yet, so that they are not among those that wait."""
    launch = decided(seen(3000, a_cron_job())).launches[0]

    assert launch.why.startswith("the pod of the next run of CronJob default/job needs 1 GPU")
    assert () == decided(seen(2999, a_cron_job())).launches


def test_pods_that_have_come_take_the_places_that_were_kept() -> None:
    """Those of this run's Job, waiting or running; another run's do not."""
    job = f"job-{int(NOON_S + 3600) // 60}"
    pods = [a_pod("a", gpu=1, owner=Owner("Job", job)), a_pod("b", node_name="node", owner=Owner("Job", job))]
    others = [a_pod("c", gpu=1, owner=Owner("Job", "job-1")), a_pod("d", namespace="x", owner=Owner("Job", job))]
    snapshot = seen(3600, a_cron_job(pods=3), pods=[*pods, *others], nodes=[a_node()])

    assert 1 == counted(snapshot)


def test_room_that_is_there_is_kept_and_not_bought_again() -> None:
    """A node on its way counts as well."""
    claim = a_claim(instance_type="g5.xlarge", reached=(LAUNCHED,), labels={"karpenter.sh/nodepool": "pool"})
    found = decided(seen(3000, a_cron_job(), claims=[claim]))

    assert ((), 1) == (found.launches, len(found.placements))


def test_the_lead_is_what_nodes_have_taken() -> None:
    """p95 of what is noted on the pool and of nodes that are there, rounded up to minutes with a margin."""
    noted = a_pool(own_annotations={LEAD_TIMES: json.dumps({"gone": 200})})
    ready = Condition(INITIALIZED, TRUE, since_s=NOON_S + 300)
    there = a_claim("there", created_s=NOON_S, conditions=(ready,))

    assert [240] == [each.lead_s for each in prewarming(seen(0, a_cron_job(), pools=[noted]))]
    assert [360] == [each.lead_s for each in prewarming(seen(0, a_cron_job(), pools=[noted], claims=[there]))]


def test_a_lead_that_shrinks_does_not_let_go_what_was_bought() -> None:
    """A claim that was bought for this run holds its pods; one for another run does not."""
    pool = a_pool(own_annotations={LEAD_TIMES: json.dumps({"gone": 20})})
    key = prewarming_pods(seen(3590, a_cron_job(), pools=[pool]))[0].key
    bought = a_claim(annotations={PLANNED_PODS: json.dumps({key: [0]})}, reached=())
    earlier = replace(bought, annotations={PLANNED_PODS: json.dumps({key.replace("/2", "/1"): [0]})})

    assert [0, 1, 0] == [counted(seen(3000, a_cron_job(), pools=[pool], claims=c)) for c in ([], [bought], [earlier])]


def test_a_pool_may_ask_for_all_that_say_nothing_themselves() -> None:
    """Their nodes are then of that pool, though another is cheaper by weight; `off` keeps one out."""
    pools = [a_pool("first", weight=10), a_pool("warm", own_annotations={PREWARM_CRON_JOBS: "5m"})]
    silent, off = a_cron_job(annotations={}), a_cron_job(annotations={PREWARM: "off"})

    assert [0, 1, 0] == [
        counted(seen(at_s, job, pools=pools)) for at_s, job in ((3299, silent), (3300, silent), (3300, off))
    ]
    assert ["warm"] == [launch.node_pool for launch in decided(seen(3300, silent, pools=pools)).launches]


@pytest.mark.parametrize(
    ("given", "warned"),
    [
        ({}, ""),
        ({"annotations": {}}, ""),
        ({"has_deadline": False}, "its Job has no activeDeadlineSeconds"),
        ({"time_zone": ""}, "it has no timeZone"),
        ({"is_suspended": True}, "it is suspended"),
        ({"starting_deadline_s": 599}, "startingDeadlineSeconds 599 is shorter than the lead of 10m"),
        ({"starting_deadline_s": 600}, ""),
        ({"time_zone": "Mars/Olympus"}, "spec.timeZone: expected a name of the time zone database"),
        ({"schedule": "0 25 * * *"}, "spec.schedule: expected five cron fields"),
        ({"annotations": {PREWARM: "soon"}}, "annotation kerf.dev/prewarm: expected auto, off or a duration"),
        ({"annotations": {PREWARM: "0s"}}, "annotation kerf.dev/prewarm: expected auto, off or a duration"),
    ],
)
def test_what_keeps_a_run_from_its_node_is_said(given: dict[str, Any], warned: str) -> None:
    """As a note of the plan; nothing where nobody asks for a warm node. A broken one never stops the others."""
    cron_job = a_cron_job(**given)
    found = [warning_text(why) for why in warnings(cron_job, Leads([a_pool()], ()))]
    other = replace(a_cron_job(), name="other")

    assert ([warned] if warned else []) == [text[: len(warned)] for text in found]
    assert {f"CronJob default/job: {text}" for text in found} <= set(decided(seen(0, cron_job)).notes)
    assert 1 <= counted(seen(3300, cron_job, other))


@pytest.mark.parametrize(("number", "notes"), [(3, 3), (4, 1), (40, 1)])
def test_what_many_runs_of_a_namespace_lack_is_said_once(number: int, notes: int) -> None:
    """So a tenant's CronJobs hide no other note."""
    jobs = [replace(a_cron_job(time_zone=""), name=f"c{index}") for index in range(number)]
    said = [note for note in decided(seen(0, *jobs)).notes if "it has no timeZone" in note]

    assert (notes, notes == 1) == (len(said), said[0].startswith(f"{number} CronJobs (default/c0, default/c1, "))


def test_equal_pods_of_many_runs_are_planned_as_one_shape() -> None:
    """So the cost of a plan does not grow with the square of the CronJobs; the launch names them."""
    jobs = [replace(a_cron_job(), name=f"c{index}") for index in range(5)]
    snapshot = seen(3300, *jobs)
    made = decided(snapshot)

    (shape,) = group(prewarming_pods(snapshot))
    assert (5, 5) == (len(shape), len(made.launches))
    whose = "the pod of the next runs of 5 CronJobs (default/c0, default/c1, default/c2 and 2 more) needs 1 GPU"
    assert made.launches[0].why.startswith(whose)


def test_a_pool_whose_annotation_is_none_says_so() -> None:
    """It counts as absent."""
    found = decided(seen(3300, a_cron_job(annotations={}), pools=[a_pool(own_annotations={PREWARM_CRON_JOBS: "yes"})]))

    assert () == found.launches
    assert any("annotation kerf.dev/prewarm-cronjobs: expected auto, off" in note for note in found.notes)
