"""A pod that no family serves gets a reason that names whose accelerator it asks for, and a next step."""

import json
from typing import Any

import pytest

from tests.cli.plan.test_found_configuration import SLICED, Json, config_map, nodes, plan, pods, pool
from tests.cli.program import kerf

SHARES = "ask for whole GPUs (nvidia.com/gpu), or for shares of them by HAMi, MIG, MPS or time-slicing"


def asking(limits: dict[str, str], annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    """A pod with these limits."""
    containers = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}, "limits": limits}}]
    metadata = {"name": "p", "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def unplaced(*objects: Json) -> dict[str, str]:
    """Reason and hint of the pod that gets no place."""
    stdin = "\n".join(f"---\n{json.dumps(each)}" for each in objects)
    found: list[dict[str, str]] = kerf("plan", "-f", "-", "-o", "json", stdin=stdin).data["unplaced"]
    assert 1 == len(found)
    return found[0]


@pytest.mark.parametrize(
    ("resource", "whose"),
    [
        ("habana.ai/gaudi", " (Intel Gaudi)"),
        ("google.com/tpu", " (Google TPUs)"),
        ("vastaitech.com/va", " (Vastai)"),
        ("birentech.com/1-2-gpu", " (Biren)"),
        ("acme.com/widget", ""),
    ],
)
def test_a_resource_that_no_type_has_is_named_with_its_vendor_and_a_next_step(resource: str, whose: str) -> None:
    """Whether the pool names its types or not; asking for less would not help."""
    open_ = pool()
    requirements = open_["spec"]["template"]["spec"]["requirements"]
    open_["spec"]["template"]["spec"]["requirements"] = [
        {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["g5"]},
        *(each for each in requirements if "instance-type" not in each["key"]),
    ]
    for held in (pool(), open_):
        hint = unplaced(held, asking({resource: "1"}))["hint"]
        assert f"has {resource}{whose}" in hint
        assert "a NodeOverlay with that capacity says so" in hint
        assert "ask for less" not in hint


def test_the_overlay_that_the_hint_names_places_the_pod() -> None:
    """Tried as it is printed: capacity of that resource for a type of the pool."""
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.xlarge"]}]
    spec = {"requirements": requirements, "capacity": {"acme.com/widget": "2"}}
    overlay = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "o"}, "spec": spec}

    assert 1 == nodes(plan(pool(), overlay, asking({"acme.com/widget": "1"})))


@pytest.mark.parametrize(
    "pod",
    [
        asking({}, {"gpu-fraction": "0.5"}, schedulerName="kai-scheduler"),
        asking({"acme.com/gpu-core": "10"}),
        asking({"huawei.com/Ascend910": "1"}),
        asking({"birentech.com/vgpu": "1"}),
        asking({}, resourceClaims=[{"name": "g", "resourceClaimTemplateName": "t"}]),
        asking({"deviceclass.resource.kubernetes.io/gpu": "1"}),
    ],
)
def test_a_way_of_sharing_that_is_not_planned_for_has_a_next_step(pod: Json) -> None:
    """What can be asked instead, and that nodes may be added by hand."""
    hint = unplaced(pool(), pod)["hint"]

    assert hint.startswith(SHARES)
    assert "yourself" in hint


@pytest.mark.parametrize(
    ("containers", "says"),
    [
        ([4000, 4000], "4000 MiB of a GPU for each of 2 containers"),
        ([4000, 4000, 4000], "4000 MiB of a GPU for each of 3 containers"),
        ([4000, 2000, 4000], "4000 MiB of a GPU for each of 2 containers and 2000 MiB of a GPU"),
        ([4000], "4000 MiB of a GPU"),
    ],
)
def test_equal_containers_of_a_pod_are_counted(containers: list[int], says: str) -> None:
    """Each holds a part of its own, so the sum of what WHY says is what the pod takes."""
    resources = [{"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(mib)}} for mib in containers]
    pod = asking({})
    pod["spec"]["containers"] = [{"name": f"c{i}", "image": "x", "resources": each} for i, each in enumerate(resources)]

    assert f"1 pod needs {says};" in plan(pool({"gpu": "on"}), pod).stdout


def test_an_init_container_that_has_ended_is_not_counted_beside_an_equal_one() -> None:
    """It gives its part back before the other starts."""
    pod = asking({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"})
    pod["spec"]["initContainers"] = [{**pod["spec"]["containers"][0], "name": "first"}]

    assert "1 pod needs 4000 MiB of a GPU;" in plan(pool({"gpu": "on"}), pod).stdout


BAD: dict[str, Json] = {
    "mig-parted": config_map("custom-mig-config", "gpu-operator", **{"config.yaml": "mig-configs: [1"}),
    "HAMi": config_map("hami-scheduler-device", "kube-system", **{"device-config.yaml": "nvidia: [1"}),
    "HAMi without its key": config_map("hami-scheduler-device", "kube-system", other="x"),
    "HAMi's nodes": config_map("hami-device-plugin", "kube-system", **{"config.json": '{"nodeconfig": ['}),
    "one of the plugin's": config_map("m", "gpu-operator", default=SLICED, bad=SLICED.replace("4", "1")),
    "no version": config_map("device-plugin-config", "kube-system", a="version: v2\nsharing: {timeSlicing: {}}"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_configuration_that_no_node_uses_ends_no_plan(name: str) -> None:
    """Pods on cpu and pods on GPUs get their nodes, and what is wrong is said."""
    done = plan(pool(), BAD[name], *pods(1, gpu=1), asking({}))

    assert 0 == done.returncode, done
    assert "2 pods placed, 0 not" in done.stdout
