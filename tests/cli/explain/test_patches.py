"""Every patch that plan and explain print goes to the object that makes the pods in the end, applies, and helps."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.cli.program import Result, kerf
from tests.patches import Object, applied

CATALOGUE = ("--catalog", "aws:us-east-1", "--now", "2026-01-05T12:00:00Z")
HASH = "5d4c"


def a_pool(labels: dict[str, str] | None = None, taints: list[Object] | None = None) -> Object:
    """NodePool `blue` of m5.xlarge."""
    spec: Object = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.xlarge"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        ],
        **({"taints": taints} if taints else {}),
    }
    template = {"metadata": {"labels": labels or {}}, "spec": spec}
    head = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "blue"}}
    return {**head, "spec": {"template": template}}


def an_object(kind: str, name: str, owner: Object | None = None, **more: Any) -> Object:
    """An object of the API in namespace `data`, as the API shows it."""
    version = {"Pod": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}.get(kind, "apps/v1")
    metadata: Object = {"name": name, "namespace": "data", "uid": f"uid-{name}", **more.pop("metadata", {})}
    if owner is not None:
        made_by = {key: owner[key] for key in ("apiVersion", "kind")}
        names = {key: owner["metadata"][key] for key in ("name", "uid")}
        metadata["ownerReferences"] = [{**made_by, **names, "controller": True}]
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def live_pod(owner: Object, spec: Object, labels: dict[str, str], status: Object | None = None) -> Object:
    """A pod that the API server has seen, with the tolerations that it gives to all."""
    given = [
        {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for taint in ("not-ready", "unreachable")
    ]
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/0 nodes"}
    return an_object(
        "Pod",
        f"{owner['metadata']['name']}-x1",
        owner,
        metadata={"labels": labels},
        spec={**spec, "tolerations": [*spec.get("tolerations", []), *given]},
        status=status or {"phase": "Pending", "conditions": [refused]},
    )


def a_deployment(spec: Object, status: Object | None = None) -> list[Object]:
    """Its ReplicaSet and a pod too."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    selects: Object = {"replicas": 1, "selector": {"matchLabels": labels}}
    top = an_object("Deployment", "web", spec={**selects, "template": template})
    hashed = {**labels, "pod-template-hash": HASH}
    below = {"replicas": 1, "selector": {"matchLabels": hashed}}
    below["template"] = {"metadata": {"labels": hashed}, "spec": spec}
    replica_set = an_object("ReplicaSet", f"web-{HASH}", top, spec=below)
    return [top, replica_set, live_pod(replica_set, spec, hashed, status)]


def a_stateful_set(spec: Object, status: Object | None = None) -> list[Object]:
    """And a pod."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    selects: Object = {"replicas": 1, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}}}
    top = an_object("StatefulSet", "web", spec={**selects, "template": template})
    return [top, live_pod(top, spec, {"app": "web"}, status)]


def a_cron_job(spec: Object, status: Object | None = None) -> list[Object]:
    """The Job of one run and its pod too."""
    spec = {**spec, "restartPolicy": "Never"}
    job: Object = {"template": {"spec": spec}}
    top = an_object("CronJob", "web", spec={"schedule": "0 3 * * *", "jobTemplate": {"spec": job}})
    run = an_object("Job", "web-29375640", top, spec=job)
    return [top, run, live_pod(run, spec, {"job-name": "web-29375640"}, status)]


def a_job(spec: Object, status: Object | None = None) -> list[Object]:
    """And its pod."""
    spec = {**spec, "restartPolicy": "Never"}
    top = an_object("Job", "web", spec={"template": {"spec": spec}})
    return [top, live_pod(top, spec, {"job-name": "web"}, status)]


Made = Callable[..., list[Object]]
MADE: dict[str, Made] = {
    "Deployment": a_deployment,
    "StatefulSet": a_stateful_set,
    "CronJob": a_cron_job,
    "Job": a_job,
}
MAIN: Object = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m"}}}
OTHER: Object = {"key": "other", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
TAINT: Object = {"key": "team", "value": "a", "effect": "NoSchedule"}
REFUSALS: dict[str, tuple[Object, Object]] = {
    "taint": (a_pool(taints=[TAINT]), {"containers": [MAIN], "tolerations": [OTHER]}),
    "selector": (a_pool(labels={"team": "b"}), {"containers": [MAIN], "nodeSelector": {"team": "a"}}),
}


def planned(objects: list[Object], *more: str) -> Result:
    """`kerf plan` of these objects, or another command."""
    arguments = more or ("plan",)
    return kerf(*arguments, "-f", "-", *CATALOGUE, stdin="\n---\n".join(map(json.dumps, objects)))


def printed(done: Result) -> str:
    """The one command that it prints."""
    [line] = {line.strip() for line in done.stdout.splitlines() if line.strip().startswith("kubectl patch")}
    return line


def from_template(top: Object) -> list[Object]:
    """The object alone, as its manifest: a CronJob by one run of it."""
    if top["kind"] != "CronJob":
        return [top]
    return [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "once"},
            "spec": top["spec"]["jobTemplate"]["spec"],
        }
    ]


@pytest.mark.parametrize("refusal", sorted(REFUSALS))
@pytest.mark.parametrize("kind", sorted(MADE))
def test_the_patch_of_a_live_pod_goes_to_the_top_controller_and_helps(kind: str, refusal: str) -> None:
    """Not to the ReplicaSet or the run between them, and planned again its pods have a place."""
    pool, spec = REFUSALS[refusal]
    objects = MADE[kind](spec)
    command = printed(planned([pool, *objects]))
    is_in_place = f"kubectl patch {kind.lower()} web -n data --type strategic -p" in command

    assert is_in_place == (kind != "Job")
    assert command == printed(planned([pool, *objects], "explain", f"pod/{objects[-1]['metadata']['name']}"))
    again = planned([pool, *from_template(applied(objects[0], command))])
    assert (0, True) == (again.returncode, "1 pod placed, 0 not" in again.stdout)


@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
def test_the_top_controller_is_found_where_the_input_lacks_what_is_between(kind: str) -> None:
    """By name and hash: the ReplicaSet and the Job are not given."""
    pool, spec = REFUSALS["selector"]
    top, _, pod = MADE[kind](spec)

    assert f"kubectl patch {kind.lower()} web -n data" in printed(planned([pool, top, pod]))


def test_what_a_foreign_controller_makes_gets_no_patch_that_it_would_undo() -> None:
    """A StatefulSet that an operator keeps: the hint alone."""
    pool, spec = REFUSALS["selector"]
    top, pod = a_stateful_set(spec)
    keeper = an_object("Database", "web")
    top["metadata"]["ownerReferences"] = [{"apiVersion": "x/v1", "kind": "Database", "name": "web", "uid": "k"}]
    assert "Database" == keeper["kind"]

    done = planned([pool, top, pod])

    assert "hint: the NodePool has team In [b]" in done.stdout
    assert "kubectl patch" not in done.stdout


def test_tolerations_of_the_template_stay_and_those_of_the_api_server_do_not_get_in() -> None:
    """The list is replaced as a whole; without its seconds an entry would hold for ever."""
    pool, spec = REFUSALS["taint"]
    objects = a_deployment(spec)
    changed = applied(objects[0], printed(planned([pool, *objects])))
    added = {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}

    assert [OTHER, added] == changed["spec"]["template"]["spec"]["tolerations"]


def a_node() -> Object:
    """Four cpus of which 3920m are for pods."""
    amounts = {"cpu": "3920m", "memory": "14Gi", "pods": "58"}
    labels = {"node.kubernetes.io/instance-type": "m5.xlarge", "kubernetes.io/hostname": "n1"}
    status = {"capacity": {**amounts, "cpu": "4"}, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": labels}, "status": status}


def a_sample(pod: str, used: Mapping[str, tuple[str, str]]) -> Object:
    """What each container was seen to use: cpu and memory."""
    containers = [{"name": name, "usage": {"cpu": cpu, "memory": memory}} for name, (cpu, memory) in used.items()]
    head = {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": {"name": pod, "namespace": "data"},
    }
    return {**head, "timestamp": "2026-01-05T12:00:00Z", "window": "20s", "containers": containers}


def running(
    kind: str, *containers: Object, init: Sequence[Object] = (), use: Mapping[str, tuple[str, str]]
) -> list[Object]:
    """A workload whose pod runs on n1, and what its containers use."""
    spec: Object = {"containers": list(containers), **({"initContainers": list(init)} if init else {})}
    objects = MADE[kind](spec, {"phase": "Running"})
    objects[-1]["spec"]["nodeName"] = "n1"
    return [a_pool(), a_node(), *objects, a_sample(objects[-1]["metadata"]["name"], use)]


def asked(spec: Object) -> dict[str, Object]:
    """The requests of a pod's containers, by name."""
    everyone = [*spec["containers"], *spec.get("initContainers", [])]
    return {each["name"]: each.get("resources", {}).get("requests", {}) for each in everyone}


PROXY: Object = {"name": "proxy", "image": "x", "resources": {"requests": {"cpu": "50m", "memory": "1Gi"}}}
SIDECAR: Object = {"name": "log", "image": "x", "restartPolicy": "Always"}


@pytest.mark.parametrize("kind", sorted(MADE))
def test_requests_from_use_go_to_the_top_controller_container_by_container(kind: str) -> None:
    """Each container gets what it used itself: the proxy its cpu alone, the sidecar among the init containers."""
    used = {"main": ("500m", "200Mi"), "proxy": ("100m", "500Mi"), "log": ("10m", "50Mi")}
    objects = running(kind, MAIN, PROXY, init=(SIDECAR,), use=used)
    done = planned(objects, "explain", f"{kind.lower()}/web", "-n", "data")
    [workload] = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, "web")]
    changed = from_template(applied(workload, printed(done)))[0]["spec"]["template"]["spec"]

    assert {
        "main": {"cpu": "580m", "memory": "240Mi"},
        "proxy": {"cpu": "120m", "memory": "1Gi"},
        "log": {"cpu": "20m", "memory": "60Mi"},
    } == asked(changed)
    assert "cpu 580m, memory 240Mi in container main; cpu 120m in container proxy" in done.stdout


def test_a_patch_leaves_out_a_container_that_a_webhook_has_put_into_the_pod() -> None:
    """The template does not have it, and would have one without an image."""
    objects = running("Deployment", MAIN, use={"main": ("500m", "200Mi"), "injected": ("100m", "10Mi")})
    pod = objects[4]["spec"]
    pod["containers"] = [*pod["containers"], {"name": "injected", "image": "x"}]
    done = planned(objects, "explain", "deployment/web", "-n", "data")

    assert {"main": {"cpu": "580m", "memory": "240Mi"}} == asked(
        applied(objects[2], printed(done))["spec"]["template"]["spec"]
    )
    assert "in container injected" in done.stdout


def test_the_whole_pods_use_is_not_put_on_its_first_container() -> None:
    """Where only the second used more than it asks, only the second is changed."""
    main = {**MAIN, "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    objects = running("Deployment", main, PROXY, use={"main": ("100m", "10Mi"), "proxy": ("400m", "10Mi")})
    item = planned(objects, "explain", "deployment/web", "-n", "data", "-o", "json").data["items"][0]

    assert [{"name": "proxy", "requests": {"cpu": "460m"}}] == item["advice"]["containers"]
