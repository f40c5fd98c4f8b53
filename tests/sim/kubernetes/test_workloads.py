"""The workload controllers: which pods exist, and which go first."""

from collections.abc import Iterator
from typing import Any

import pytest

from kerf.errors import ApiError
from kerf.sim.kubernetes.api import Change
from kerf.sim.kubernetes.reconcilers import PodMaker, Queue
from kerf.sim.kubernetes.replicas import DELETION_COST, deletion_order
from kerf.sim.kubernetes.schedules import due_times
from kerf.sim.kubernetes.workloads import DisruptionBudgets, Workloads
from kerf.sim.objects import Json
from tests.sim.world import START_S, Nodes, World, budget, node, pod, workload


class Managed(World):
    """A world with workload controllers, and nodes that run what they make."""

    def __init__(self) -> None:
        super().__init__()
        Workloads(self.api, self.clock).start()
        self.nodes = Nodes(self.api, self.clock)
        self.api.create(node("node-a"))
        self.api.create(node("node-b"))

    def pods(self, after_s: float) -> list[str]:
        """The names of the pods that exist at that time, each with `!` when it is going."""
        self.at(after_s)
        metadata = [held["metadata"] for held in self.api.list("Pod")]
        return [m["name"] + ("!" if "deletionTimestamp" in m else "") for m in metadata]

    def apply(self, obj: Json) -> None:
        """Create an object in the loop."""
        self.at(0, lambda: self.api.create(obj))

    def change(self, after_s: float, kind: str, name: str, **spec: Any) -> None:
        """Patch a spec at that time."""
        self.at(after_s, lambda: self.api.patch(kind, "default", name, {"spec": spec}))

    def end(self, after_s: float, name: str, phase: str) -> None:
        """Let a pod end at that time."""
        self.at(after_s, lambda: self.nodes.set_phase(name, phase))

    def status(self, kind: str, name: str = "web") -> Json:
        """The status of a workload."""
        obj = self.api.get(kind, "default", name)
        assert obj is not None
        found: Json = obj["status"]
        return found


@pytest.fixture
def world() -> Iterator[Managed]:
    """A managed world; its loop is closed after the test."""
    built = Managed()
    yield built
    built.loop.close()


def new_template(image: str) -> Json:
    """The template of `workload` with another image."""
    return {"spec": {"containers": [{"name": "main", "image": image}]}}


# Deployments and ReplicaSets.


def test_a_deployment_names_its_pods_in_order_and_never_twice(world: Managed) -> None:
    """003: 0 -> 3 -> 1 -> 2; the numbers keep growing, so that a timeline cannot confuse two pods."""
    world.apply(workload("Deployment", "gpu-inference", replicas=0))

    assert [] == world.pods(1)
    world.change(10, "Deployment", "gpu-inference", replicas=3)
    assert ["gpu-inference-0", "gpu-inference-1", "gpu-inference-2"] == world.pods(12)
    world.change(20, "Deployment", "gpu-inference", replicas=1)
    assert ["gpu-inference-0", "gpu-inference-1!", "gpu-inference-2!"] == world.pods(21)
    world.change(30, "Deployment", "gpu-inference", replicas=2)
    assert ["gpu-inference-0", "gpu-inference-3"] == world.pods(40)


def test_a_deployment_reports_its_pods(world: Managed) -> None:
    """Status counts come to rest and state what is there."""
    world.apply(workload("Deployment", replicas=2))
    world.at(5)

    counts = {name: world.status("Deployment")[name] for name in ("replicas", "readyReplicas", "unavailableReplicas")}
    assert {"replicas": 2, "readyReplicas": 2, "unavailableReplicas": 0} == counts


def test_an_evicted_pod_is_replaced_while_it_is_still_going(world: Managed) -> None:
    """A terminating pod is no replica, so its successor waits for a place before the old one has ended."""
    world.apply(workload("Deployment", replicas=1))
    world.at(10, lambda: world.api.evict("default", "web-0"))

    assert ["web-0!", "web-1"] == world.pods(11)
    assert ["web-1"] == world.pods(13)


def test_a_deleted_deployment_takes_its_pods_along(world: Managed) -> None:
    """By owner references: Deployment, ReplicaSet, pods."""
    world.apply(workload("Deployment", replicas=2))
    world.at(10, lambda: world.api.delete("Deployment", "default", "web"))

    assert ["web-0!", "web-1!"] == world.pods(10)
    assert ([], []) == (world.pods(15), world.api.list("ReplicaSet"))


def test_a_rollout_keeps_within_surge_and_unavailability(world: Managed) -> None:
    """Four replicas, 25 % each way: never more than five pods, never fewer than three ready."""
    world.apply(workload("Deployment", replicas=4))
    world.change(10, "Deployment", "web", template=new_template("web:2"))

    sizes, ready = set(), set()
    for tenth_s in range(100, 300):
        world.at(tenth_s / 10)
        active = [p for p in world.api.list("Pod") if "deletionTimestamp" not in p["metadata"]]
        sizes.add(len(active))
        ready.add(sum(1 for p in active if "containerStatuses" in p["status"]))

    assert (5, 3) == (max(sizes), min(ready))
    assert ["web-4", "web-5", "web-6", "web-7"] == world.pods(40)


def test_recreate_waits_until_the_old_pods_have_ended(world: Managed) -> None:
    """With `Recreate` a GPU is free before the successor asks for it."""
    world.apply(workload("Deployment", replicas=2, strategy={"type": "Recreate"}))
    world.change(10, "Deployment", "web", template=new_template("web:2"))

    assert ["web-0!", "web-1!"] == world.pods(11)
    assert ["web-2", "web-3"] == world.pods(14)


def test_a_refused_pod_is_tried_again(world: Managed) -> None:
    """Admission that refuses does not end a workload: it is tried again, later and later."""
    world.api.admission.append(refuse_pods_until(world, 60))
    world.apply(workload("Deployment", replicas=1))

    assert [] == world.pods(60)
    assert ["web-0"] == world.pods(80)


def refuse_pods_until(world: World, after_s: float) -> Any:
    """An admission hook that lets no pod in before that time."""

    def admit(obj: Json) -> None:
        if obj["kind"] == "Pod" and world.clock.now_s() < START_S + after_s:
            raise ApiError("the webhook cannot be reached")

    return admit


def candidate(name: str, **facts: Any) -> Json:
    """A ready pod on node-a, except for `facts`; a larger `age` is an older one."""
    age = facts.pop("age", 0)
    built = pod(name)
    built["metadata"] |= {"uid": name, "creationTimestamp": f"2026-01-05T07:00:{30 - age:02d}Z"}
    built["metadata"]["annotations"] = {DELETION_COST: str(facts.pop("cost", 0))}
    ready_since = f"2026-01-05T07:01:{30 - facts.pop('ready_age', 0):02d}Z"
    ready = {"type": "Ready", "status": str(facts.pop("is_ready", True)), "lastTransitionTime": ready_since}
    built["status"] = {"phase": facts.pop("phase", "Running"), "conditions": [ready]}
    built["spec"]["nodeName"] = facts.pop("on", "node-a")
    return built


@pytest.mark.parametrize(
    "first, other",
    [
        (candidate("x", on=""), candidate("a", phase="Pending")),
        (candidate("x", phase="Pending", is_ready=False), candidate("a", is_ready=False)),
        (candidate("x", is_ready=False), candidate("a", cost=-5)),
        (candidate("x", cost=-5), candidate("a")),
        (candidate("x", ready_age=0, age=5), candidate("a", ready_age=3)),
        (candidate("x", age=0), candidate("a", age=5)),
        (candidate("x"), candidate("a")),
    ],
    ids=["unassigned", "pending", "not-ready", "deletion-cost", "ready-later", "younger", "made-later"],
)
def test_who_goes_first(first: Json, other: Json) -> None:
    """The order of the ReplicaSet controller, one criterion a row, each stronger than all below it."""
    assert ["x", "a"] == [p["metadata"]["name"] for p in deletion_order([other, first], [other, first])]


def test_pods_on_a_crowded_node_go_before_those_alone() -> None:
    """003-9: of two and one on two nodes, one of the two goes first, although the single one is the youngest."""
    pods = [candidate("a", age=9), candidate("b", age=8), candidate("c", on="node-b")]

    assert ["b", "a", "c"] == [p["metadata"]["name"] for p in deletion_order(pods, pods)]


def test_scaling_from_three_to_one_empties_the_crowded_node(world: Managed) -> None:
    """003-9: 2 + 1 pods on two nodes; scaled to one, the single pod stays where it is."""
    world.nodes.place = {"web-2": "node-b"}
    world.apply(workload("Deployment", replicas=3))
    world.change(10, "Deployment", "web", replicas=1)

    assert ["web-2"] == world.pods(20)


# StatefulSets.


def test_a_stateful_set_starts_one_by_one_and_stops_from_the_end(world: Managed) -> None:
    """Each waits until the one before is ready, or gone."""
    world.apply(workload("StatefulSet", "db", replicas=3))

    assert [["db-0"], ["db-0", "db-1"], ["db-0", "db-1", "db-2"]] == [world.pods(s) for s in (0.5, 1.5, 2.5)]
    world.change(10, "StatefulSet", "db", replicas=1)
    assert [["db-0", "db-1", "db-2!"], ["db-0", "db-1!"], ["db-0"]] == [world.pods(s) for s in (11, 13, 15)]


def test_a_stateful_set_waits_until_each_pod_has_been_ready_long_enough(world: Managed) -> None:
    """`minReadySeconds` counts from Ready; upwards, and before one of a higher number goes."""
    world.apply(workload("StatefulSet", "db", replicas=2, minReadySeconds=10))

    assert [["db-0"], ["db-0", "db-1"]] == [world.pods(s) for s in (10.5, 11.5)]
    world.at(12)
    assert (2, 2, 1) == tuple(world.status("StatefulSet", "db")[f"{n}eplicas"] for n in ("r", "readyR", "availableR"))
    world.at(30)
    assert 2 == world.status("StatefulSet", "db")["availableReplicas"]


def test_a_pod_that_is_never_ready_keeps_the_next_from_existing(world: Managed) -> None:
    """Parallel ones all exist."""
    world.nodes.place["db-1"] = world.nodes.place["par-1"] = None
    world.apply(workload("StatefulSet", "db", replicas=3))
    world.apply(workload("StatefulSet", "par", replicas=3, podManagementPolicy="Parallel"))

    assert ["db-0", "db-1", "par-0", "par-1", "par-2"] == world.pods(60)


def test_of_two_that_are_not_ready_the_higher_waits_for_the_lower(world: Managed) -> None:
    """One alone goes at once, of whatever number; so kube-controller-manager has it."""
    world.apply(workload("StatefulSet", "db", replicas=4))
    for name in ("db-2", "db-3"):
        world.end(20, name, "Running")
    world.change(21, "StatefulSet", "db", replicas=1)
    assert ["db-0", "db-1", "db-2", "db-3"] == world.pods(40)

    world.at(41, lambda: world.nodes.set_phase("db-2", "Running", is_ready=True))
    assert [["db-0", "db-1", "db-2", "db-3!"], ["db-0", "db-1", "db-2!"]] == [world.pods(s) for s in (42, 44)]
    assert ["db-0"] == world.pods(60)


def test_the_index_of_a_pod_is_its_ordinal(world: Managed) -> None:
    """Which need not begin at 0."""
    world.apply(workload("StatefulSet", "db", replicas=1, ordinals={"start": 5}))
    world.at(1)

    (pod,) = world.api.list("Pod")
    assert ("db-5", "5") == (pod["metadata"]["name"], pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"])


def test_a_parallel_stateful_set_does_not_wait(world: Managed) -> None:
    """`podManagementPolicy: Parallel` makes all at once."""
    world.apply(workload("StatefulSet", "db", replicas=3, podManagementPolicy="Parallel"))

    assert ["db-0", "db-1", "db-2"] == world.pods(0.5)


def test_a_stateful_pod_comes_back_under_its_name(world: Managed) -> None:
    """The successor has to wait for the end of the old one, because it has the same name."""
    world.apply(workload("StatefulSet", "db", replicas=1))
    world.at(10, lambda: world.api.evict("default", "db-0"))

    assert [["db-0!"], ["db-0"]] == [world.pods(s) for s in (11, 13)]


def test_a_stateful_set_is_renewed_from_the_end(world: Managed) -> None:
    """A new template replaces the highest number first, and the next when that one is ready."""
    world.apply(workload("StatefulSet", "db", replicas=2))
    world.change(10, "StatefulSet", "db", template=new_template("web:2"))

    assert [["db-0", "db-1!"], ["db-0!", "db-1"]] == [world.pods(s) for s in (11, 14)]
    world.at(30)
    images = {p["spec"]["containers"][0]["image"] for p in world.api.list("Pod")}
    assert {"web:2"} == images


def test_claim_templates_become_claims_of_each_pod(world: Managed) -> None:
    """One PersistentVolumeClaim a pod, mounted under the template's name, kept for the successor."""
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    world.apply(workload("StatefulSet", "db", replicas=1, volumeClaimTemplates=[claim]))
    world.at(5)

    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
    assert [volume] == world.api.list("Pod")[0]["spec"]["volumes"]
    assert ["data-db-0"] == [c["metadata"]["name"] for c in world.api.list("PersistentVolumeClaim")]


# Jobs.


def test_a_job_runs_its_completions_with_its_parallelism(world: Managed) -> None:
    """002: as many at once as allowed, until enough have succeeded; finished pods stay."""
    world.apply(workload("Job", "run", parallelism=2, completions=3))

    assert ["run-0", "run-1"] == world.pods(5)
    world.end(10, "run-0", "Succeeded")
    assert ["run-0", "run-1", "run-2"] == world.pods(11)
    world.end(20, "run-1", "Succeeded")
    world.end(20, "run-2", "Succeeded")
    assert ["run-0", "run-1", "run-2"] == world.pods(21)
    status = world.status("Job", "run")
    assert (3, "Complete", "2026-01-05T07:00:20Z") == (
        status["succeeded"],
        status["conditions"][0]["type"],
        status["completionTime"],
    )


def test_an_evicted_job_pod_is_a_failure_and_comes_back_after_a_pause(world: Managed) -> None:
    """Ten seconds after the first failure, twenty after the second."""
    world.apply(workload("Job", "run"))
    world.at(10, lambda: world.api.evict("default", "run-0"))

    assert [[], ["run-1"]] == [world.pods(s) for s in (19, 21)]
    world.at(30, lambda: world.api.evict("default", "run-1"))
    assert [[], ["run-2"]] == [world.pods(s) for s in (49, 51)]
    assert 2 == world.status("Job", "run")["failed"]


def test_a_job_that_failed_too_often_is_given_up(world: Managed) -> None:
    """`backoffLimit` failures are allowed, one more ends the Job and its other pods."""
    world.apply(workload("Job", "run", backoffLimit=1, parallelism=2, completions=2))
    world.end(10, "run-0", "Failed")
    world.end(30, "run-2", "Failed")

    assert ["run-0", "run-2"] == world.pods(40)
    assert "BackoffLimitExceeded" == world.status("Job", "run")["conditions"][0]["reason"]


def test_a_failure_policy_may_ignore_disruptions(world: Managed) -> None:
    """An eviction that the policy ignores neither counts nor delays."""
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    world.apply(workload("Job", "run", backoffLimit=0, podFailurePolicy={"rules": [rule]}))
    world.at(10, lambda: world.api.evict("default", "run-0"))

    assert ["run-1"] == world.pods(13)
    assert 0 == world.status("Job", "run")["failed"]


def test_an_indexed_job_runs_each_index(world: Managed) -> None:
    """A failed index is tried again, a finished one is not."""
    world.apply(workload("Job", "run", completionMode="Indexed", parallelism=2, completions=3))
    world.end(10, "run-0", "Failed")
    world.end(10, "run-1", "Succeeded")
    world.at(25)

    index = "batch.kubernetes.io/job-completion-index"
    indexes = {p["metadata"]["name"]: p["metadata"]["annotations"][index] for p in world.api.list("Pod")}
    assert {"run-0": "0", "run-1": "1", "run-2": "0", "run-3": "2"} == indexes


def test_a_suspended_job_has_no_pods(world: Managed) -> None:
    """Suspending takes running pods away without calling them failed."""
    world.apply(workload("Job", "run"))
    world.change(10, "Job", "run", suspend=True)

    assert [] == world.pods(13)
    assert 0 == world.status("Job", "run")["failed"]


def test_a_finished_job_is_deleted_after_its_time(world: Managed) -> None:
    """`ttlSecondsAfterFinished` takes the Job and its pods."""
    world.apply(workload("Job", "run", ttlSecondsAfterFinished=60))
    world.end(10, "run-0", "Succeeded")

    assert [["run-0"], []] == [world.pods(s) for s in (69, 71)]


def test_a_job_past_its_deadline_fails(world: Managed) -> None:
    """`activeDeadlineSeconds` counts from the start, pods pending or not."""
    world.nodes.place = {"run-0": None}
    world.apply(workload("Job", "run", activeDeadlineSeconds=60))

    assert [["run-0"], []] == [world.pods(s) for s in (59, 61)]
    assert "DeadlineExceeded" == world.status("Job", "run")["conditions"][0]["reason"]


# CronJobs.


def cron_job(schedule: str, **spec: Any) -> Json:
    """A CronJob of one-pod Jobs."""
    template = {"spec": workload("Job")["spec"]}
    body = {"schedule": schedule, "jobTemplate": template, **spec}
    metadata = {"name": "tick", "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": body}


@pytest.mark.parametrize(
    "policy, pods",
    [
        ("Allow", ["tick-29459950-0", "tick-29459955-0"]),
        ("Forbid", ["tick-29459950-0"]),
        ("Replace", ["tick-29459955-0"]),
    ],
)
def test_a_cron_job_starts_when_it_is_due(world: Managed, policy: str, pods: list[str]) -> None:
    """Every five minutes from 07:10 on; what happens while the last one still runs is the policy's."""
    world.apply(cron_job("10-59/5 * * * *", concurrencyPolicy=policy))

    assert [] == world.pods(599)
    assert pods == world.pods(910)


def test_a_forbidden_run_starts_late_and_once(world: Managed) -> None:
    """Three runs were due while the first one ran; when it ends, one Job starts for them all."""
    world.apply(cron_job("*/5 * * * *", concurrencyPolicy="Forbid"))
    world.end(1230, "tick-29459945-0", "Succeeded")

    assert ["tick-29459945-0", "tick-29459960-0"] == world.pods(1240)


def test_only_the_last_finished_jobs_are_kept(world: Managed) -> None:
    """`successfulJobsHistoryLimit`."""
    world.apply(cron_job("*/5 * * * *", successfulJobsHistoryLimit=1))
    for minute in (5, 10, 15):
        world.end(minute * 60 + 30, f"tick-{29459940 + minute}-0", "Succeeded")

    assert ["tick-29459955-0"] == world.pods(1000)


@pytest.mark.parametrize(
    "schedule, zone, hours",
    [
        ("0 9 * * *", None, [2, 26]),
        ("@daily", "Asia/Shanghai", [9, 33]),
        ("30 8 * * 1-5", "America/New_York", [6.5, 30.5]),
    ],
)
def test_schedules_follow_their_time_zone(schedule: str, zone: str | None, hours: list[float]) -> None:
    """Hours after Monday 2026-01-05 07:00 UTC."""
    times = due_times(schedule, zone, START_S)

    assert hours == [(next(times) - START_S) / 3600 for _ in range(2)]


@pytest.mark.parametrize(
    "spec, problem",
    [
        ({"schedule": "every day"}, "spec.schedule: expected five cron fields or a macro, got 'every day'"),
        ({"schedule": "@daily", "timeZone": "Mars/Olympus"}, "spec.timeZone: expected a name"),
    ],
)
def test_a_schedule_that_cannot_be_read_is_refused(world: Managed, spec: Json, problem: str) -> None:
    """By the API server, at creation."""
    with pytest.raises(ApiError, match=problem):
        world.apply(cron_job(**spec))


# DaemonSets.


def tainted(effect: str) -> Json:
    """A patch that taints a node as about to go."""
    return {"spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": effect}]}}


def daemon_set(**pod_spec: Any) -> Json:
    """A DaemonSet whose pods have that spec."""
    built = workload("DaemonSet", "agent")
    built["spec"]["template"]["spec"] |= pod_spec
    return built


def test_a_daemon_set_puts_one_pod_on_each_fitting_node(world: Managed) -> None:
    """Labels and taints decide; a node that comes later gets its pod, one that loses the label loses it."""
    world.api.create({**node("node-c", labels={"gpu": "on"}), **tainted("NoSchedule")})
    world.apply(daemon_set(nodeSelector={"gpu": "on"}))

    assert [] == world.pods(1)
    world.at(5, lambda: world.api.create(node("node-d", labels={"gpu": "on"})))
    assert ["agent-node-d"] == world.pods(6)
    world.at(10, lambda: world.api.patch("Node", "", "node-d", {"metadata": {"labels": {"gpu": "off"}}}))
    assert [] == world.pods(13)


def test_a_cordoned_node_gets_its_daemons_and_keeps_them(world: Managed) -> None:
    """A daemon tolerates cordons and not-ready nodes; a later NoSchedule taint moves nothing, NoExecute does."""
    taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    world.api.patch("Node", "", "node-a", {"spec": {"unschedulable": True, "taints": taints}})
    world.apply(daemon_set())

    assert ["agent-node-a", "agent-node-b"] == world.pods(5)
    world.at(6, lambda: world.api.patch("Node", "", "node-a", tainted("NoSchedule")))
    assert ["agent-node-a", "agent-node-b"] == world.pods(10)
    world.at(11, lambda: world.api.patch("Node", "", "node-a", tainted("NoExecute")))
    assert ["agent-node-b"] == world.pods(15)


def test_a_daemon_pod_is_for_its_node_alone(world: Managed) -> None:
    """It asks for its node by field, as the real ones, and leaves the binding to the scheduler."""
    world.nodes.place = {"agent-node-a": None, "agent-node-b": None}
    world.apply(daemon_set())
    world.at(1)

    affinity = world.api.list("Pod")[0]["spec"]["affinity"]["nodeAffinity"]
    term = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}] == term


# Nodes that vanish, and budgets.


def test_pods_of_a_vanished_node_are_removed_and_made_again(world: Managed) -> None:
    """No kubelet ends them: after the quarantine they go by force, those that were terminating too."""
    world.nodes.place = {"web-0": "node-b"}
    world.apply(workload("Deployment", replicas=1))
    world.at(10, lambda: world.api.delete("Node", "", "node-b"))

    assert [["web-0"], ["web-1"]] == [world.pods(s) for s in (49, 52)]


def test_a_pod_bound_to_no_node_at_all_is_removed(world: Managed) -> None:
    """A scheduler that binds to a node which has just gone loses no pod for ever."""
    world.nodes.place = {"web-0": "node-z"}
    world.apply(workload("Deployment", replicas=1))

    assert [["web-0"], ["web-1"]] == [world.pods(s) for s in (39, 43)]


def test_a_node_that_comes_back_in_time_keeps_its_pods(world: Managed) -> None:
    """Within the quarantine nothing is lost."""
    world.apply(workload("Deployment", replicas=1))
    world.at(10, lambda: world.api.delete("Node", "", "node-a"))
    world.at(20, lambda: world.api.create(node("node-a")))

    assert ["web-0"] == world.pods(60)


def test_a_budget_shows_what_it_allows(world: Managed) -> None:
    """`disruptionsAllowed` follows the pods, so that clients need not try."""
    world.apply(budget(maxUnavailable=1))
    world.apply(workload("Deployment", replicas=2))

    allowed = []
    for after_s in (0.5, 5):
        world.at(after_s)
        allowed.append(world.status("PodDisruptionBudget")["disruptionsAllowed"])
    world.at(6, lambda: world.api.evict("default", "web-0"))
    allowed.append(world.status("PodDisruptionBudget")["disruptionsAllowed"])

    assert [0, 1, 0] == allowed


def test_a_budget_follows_the_replicas_that_are_asked_for(world: Managed) -> None:
    """Of a share, what should be there counts, before the pods are there; other workloads concern it not."""
    world.apply(budget(minAvailable="50%"))
    world.apply(workload("Deployment", replicas=2))
    world.at(5)
    before = world.status("PodDisruptionBudget")
    world.change(6, "Deployment", "web", replicas=6)
    world.at(6.25)

    counted = world.status("PodDisruptionBudget")

    assert [(2, 1, 1), (6, 3, 0)] == [
        (each["expectedPods"], each["desiredHealthy"], each["disruptionsAllowed"]) for each in (before, counted)
    ]


def test_only_the_budgets_that_select_a_pod_are_counted_again(world: Managed) -> None:
    """A hundred budgets are not counted for each change of one pod."""
    other = budget(maxUnavailable=1, selector={"matchLabels": {"app": "api"}})
    other["metadata"] = {"name": "api"}
    world.apply(budget(maxUnavailable=1))
    world.apply(other)
    queue = Queue(world.clock, lambda *_: None, lambda *_: None)
    budgets = DisruptionBudgets(world.api, world.clock, queue, PodMaker(world.api))
    made, api, strange = workload("Deployment", replicas=1), pod("api-0"), pod("web-0")
    api["metadata"]["labels"] = {"app": "api"}
    for each, namespace in ((made, "default"), (api, "default"), (strange, "elsewhere")):
        each["metadata"]["namespace"] = namespace

    noticed = [list(budgets.notice(Change(START_S, "MODIFIED", each))) for each in (made, api, strange, node("n"))]

    assert [[("default", "web")], [("default", "api")], [], []] == noticed
