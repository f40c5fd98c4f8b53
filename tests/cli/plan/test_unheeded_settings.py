"""A setting that a plugin passes over is said beside the plan, by doctor and by the plan of a dump."""

import json

import pytest

from tests.cli.plan.test_found_configuration import CONFIG_LABEL, Json, config_map, hamis_map, nodes, plan, pods, pool
from tests.cli.program import kerf

RENAMED = (
    "version: v1\nsharing: {timeSlicing: {resources: [{name: gpu, rename: gpu.light, devices: [0], replicas: 4}]}}\n"
)
NODES = json.dumps({"nodeconfig": [{"name": "ip-10-0-0-1", "devicesplitcount": 2}]})
OLD = "nvidia: {knownMigGeometries: [{models: [A30]}]}"


def deployment(where: str) -> Json:
    """One with HAMi's annotation, on itself or on its template."""
    template: Json = {"metadata": {"labels": {"a": "b"}}, "spec": pods(1, gpu=1, gpumem=2000)[0]["spec"]}
    metadata: Json = {"name": "d"}
    {"itself": metadata, "template": template["metadata"]}[where]["annotations"] = {"nvidia.com/use-gputype": "A10"}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def hamis(annotations: dict[str, str], **of_pool: str) -> list[Json]:
    """A pool of HAMi's nodes and a pod with these annotations."""
    nodes_pool = pool({"gpu": "on"})
    nodes_pool["spec"]["template"]["metadata"]["annotations"] = {f"kerf.dev/{key}": v for key, v in of_pool.items()}
    (pod,) = pods(1, gpu=1, gpumem=2000)
    pod["metadata"]["annotations"] = annotations
    return [nodes_pool, pod]


SAID: dict[str, tuple[list[Json], str]] = {
    "a name": (
        [pool({CONFIG_LABEL: "a"}), config_map("m", "gpu-operator", a=RENAMED), *pods(1, gpu=1)],
        "passes over rename: 'gpu.light', so nodes show nvidia.com/gpu",
    ),
    "a choice of cards": (
        [pool({CONFIG_LABEL: "a"}), config_map("m", "gpu-operator", a=RENAMED), *pods(1, gpu=1)],
        "passes over devices, so it shows every nvidia.com/gpu of a node 4 times",
    ),
    "single nodes": (
        [*hamis({}), hamis_map(), config_map("hami-device-plugin", "kube-system", **{"config.json": NODES})],
        "(ip-10-0-0-1), which no new node has",
    ),
    "old geometries": (
        [*hamis({}, **{"hami-mode": "mig"}), config_map("h", "kube-system", **{"device-config.yaml": OLD})],
        "HAMi reads knownMigGeometries no more since 2.10",
    ),
    "a policy": (
        hamis({"hami.io/node-scheduler-policy": "binpak"}),
        "default/p0: hami.io/node-scheduler-policy: HAMi does not know 'binpak'",
    ),
    "an annotation above": (
        [pool({"gpu": "on"}), deployment("itself")],
        "nvidia.com/use-gputype of Deployment default/d stands beside the pod template",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_a_setting_that_does_nothing_is_said_beside_the_plan(name: str) -> None:
    """Once."""
    objects, text = SAID[name]

    assert 1 == plan(*objects).stdout.count(text)


def test_an_annotation_on_the_jobs_of_a_cron_job_is_said() -> None:
    """No pod has it either."""
    held = deployment("template")["spec"]["template"]
    held["spec"]["restartPolicy"] = "Never"
    jobs = {"metadata": held["metadata"], "spec": {"template": {"spec": held["spec"]}}}
    spec = {"schedule": "@daily", "jobTemplate": jobs}
    cron_job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec}

    done = plan(pool({"gpu": "on"}), cron_job, *pods(1, gpu=1, gpumem=2000))

    assert "nvidia.com/use-gputype of CronJob default/c stands beside the pod template" in done.stdout


def test_an_annotation_on_the_template_is_read_and_nothing_is_said() -> None:
    """As it should be."""
    assert "use-gputype" not in plan(pool({"gpu": "on"}), deployment("template")).stdout


def test_cards_of_a_choice_are_counted_as_the_plugin_shows_them() -> None:
    """Each card four times, by its own name: four pods on one node with one card."""
    objects = [pool({CONFIG_LABEL: "a"}), config_map("m", "gpu-operator", a=RENAMED)]

    assert 2 == nodes(plan(*objects, *pods(5, gpu=1)))


def test_old_geometries_are_not_said_where_no_card_is_cut() -> None:
    """Charts before 2.10 write them by default."""
    objects = [*hamis({}), config_map("h", "kube-system", **{"device-config.yaml": OLD})]

    assert "knownMigGeometries" not in plan(*objects).stdout


def test_doctor_is_red_for_a_name_that_no_node_will_show() -> None:
    """With the command that opens the map."""
    done = plan(*SAID["a name"][0], command="doctor")

    assert 3 == done.returncode
    assert "kubectl edit configmap m -n gpu-operator" in done.stdout


def test_a_dump_keeps_settings_of_single_nodes() -> None:
    """So that its plan says what the cluster's plan says."""
    objects, text = SAID["single nodes"]
    dump = kerf("snapshot", "-f", "-", stdin="\n".join(f"---\n{json.dumps(each)}" for each in objects)).stdout

    assert text in kerf("plan", "-f", "-", stdin=dump).stdout
