"""Ways of sharing GPUs that Kerf knows by name only: their pods get one clear refusal, and nothing is bought."""

import pytest

from kerf.engine.explain.plan import plan
from kerf.model.pods import Container, Pod, PodSpec
from kerf.model.quantities import Resources
from kerf.sharing.unsupported import UNSUPPORTED, unsupported_by
from kerf.testing.builders import a_market, a_node, a_pod, a_pool, a_snapshot
from tests.engine.worlds import G5, M5


def asking(resource: str) -> Pod:
    """A pod that asks one of a resource."""
    amounts = Resources({"cpu": 1000, resource: 1})
    return a_pod(spec=PodSpec((Container("main", amounts, amounts),)))


@pytest.mark.parametrize(
    "resource, title",
    [
        ("koordinator.sh/gpu-core", "Koordinator"),
        ("volcano.sh/vgpu-number", "Volcano vGPU"),
        ("aliyun.com/gpu-mem", "Alibaba's gpushare and cGPU"),
        ("huawei.com/Ascend910B3", "Huawei Ascend"),
        ("kunlunxin.com/vxpu", "Kunlunxin"),
        ("mthreads.com/sgpu-memory", "Moore Threads"),
        ("cambricon.com/vmlu", "Cambricon"),
        ("hygon.com/dcunum", "Hygon"),
        ("huawei.com/npu-core", "Huawei Ascend"),
        ("huawei.com/ascend-1980", "Huawei Ascend"),
        ("huawei.com/ASCEND310", "Huawei Ascend"),
        ("baidu.com/xpu", "Baidu's cGPU and XPU"),
        ("baidu.com/v100_32g_cgpu_memory", "Baidu's cGPU and XPU"),
        ("tke.cloud.tencent.com/qgpu-core", "Tencent's qGPU"),
        ("elasticgpu.io/gpu-memory", "elastic-gpu"),
        ("gpu.intel.com/millicores", "Intel's GPU Aware Scheduling"),
        ("gpu.intel.com/memory.max", "Intel's GPU Aware Scheduling"),
        ("amd.com/gpucores", "HAMi for AMD"),
        ("vke.volcengine.com/mgpu-core", "Volcengine's mGPU"),
    ],
)
def test_a_resource_says_whose_it_is(resource: str, title: str) -> None:
    """The plan names the family and the resource, and buys nothing."""
    decided = plan(a_snapshot(pools=[a_pool()], pods=[asking(resource)]), a_market(M5, G5))

    assert ((), 1) == (decided.launches, len(decided.unplaced))
    assert f"by {resource}, which {title} gives out" in decided.unplaced[0].reason


@pytest.mark.parametrize(
    "name",
    [
        "gpu-core",
        "gpu-cores",
        "gpu-memory",
        "gpu_memory",
        "gpu-mem",
        "gpu-mem.128Mi",
        "gpu-core.percentage",
        "card-percentage",
        "vgpu",
        "vgpu-number",
        "vnpu",
        "qgpu",
        "t4_16g_cgpu_memory",
        "Acme.vCore",
        "acme.vMem",
        "sgpu2",
    ],
)
def test_a_name_that_says_a_part_of_a_card_is_one(name: str) -> None:
    """Nothing is bought, and the sum over a node that shows it places no pod."""
    resource = f"acme.com/{name}"
    node = a_node(allocatable=Resources.parse({"cpu": 8, "memory": "32Gi", "pods": 50, resource: 100}))
    decided = plan(a_snapshot(pools=[a_pool()], nodes=[node], pods=[asking(resource)]), a_market(M5, G5))

    assert ((), ()) == (decided.launches, decided.placements)
    assert [
        f"asks for {resource}, by its name a share of a card that Kerf does not know; Kerf buys nothing for it"
    ] == [each.reason for each in decided.unplaced]


@pytest.mark.parametrize(
    "resource",
    [
        "vendor.com/nic",
        "smarter-devices/fuse",
        "amd.com/gpu",
        "habana.ai/gaudi",
        "aws.amazon.com/neuroncore",
        "aws.amazon.com/neuron",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        "birentech.com/1-2-gpu",
        "vastaitech.com/va",
        "google.com/tpu",
        "nvidia.com/gpu-10gb",
        "kubernetes.io/batch-memory",
        "resource.katalyst.kubewharf.io/reclaimed_memory",
        "devices.kubevirt.io/kvm",
        "example.com/encore",
        "example.com/memory-card",
    ],
)
def test_devices_that_are_counted_whole_are_placed_by_their_sum(resource: str) -> None:
    """Kubelet counts them, so kube-scheduler's sum over the node is right."""
    node = a_node(allocatable=Resources.parse({"cpu": 8, "memory": "32Gi", "pods": 50, resource: 1}))
    decided = plan(a_snapshot(nodes=[node], pods=[asking(resource)]), a_market(M5))

    assert (1, ()) == (len(decided.placements), decided.unplaced)


def test_a_name_that_a_familys_configuration_gives_is_known() -> None:
    """HAMi's resources may have any name, also one that reads like another's."""
    assert None is unsupported_by(asking("acme.com/gpu-core"), {"acme.com/gpu-core"})


@pytest.mark.parametrize("key", ["gpu-fraction", "gpu-memory"])
def test_an_annotation_asks_for_a_part(key: str) -> None:
    """As KAI Scheduler reads them; without it the pod would get a node that has no GPU."""
    decided = plan(a_snapshot(pools=[a_pool()], pods=[a_pod(cpu=1, annotations={key: "0.5"})]), a_market(M5, G5))

    assert () == decided.launches
    assert f"by {key}, which KAI Scheduler gives out" in decided.unplaced[0].reason


@pytest.mark.parametrize("scheduler_name", ["kai-scheduler", "default-scheduler"])
@pytest.mark.parametrize("text", ["", " ", "lots", "half", "-1", "nan", "1e999x", "0,5", "8 G i", "４"])
@pytest.mark.parametrize("key", ["gpu-fraction", "gpu-memory", "kai.scheduler/container.c0.gpu-memory.request"])
def test_a_malformed_amount_is_a_request_still(key: str, text: str, scheduler_name: str) -> None:
    """No scheduler runs such a pod as one that asks for no GPU; a node without one would be bought for nothing."""
    pod = a_pod(cpu=1, scheduler_name=scheduler_name, annotations={key: text})
    decided = plan(a_snapshot(pools=[a_pool()], pods=[pod]), a_market(M5, G5))

    assert () == decided.launches
    assert f"by {key}, which KAI Scheduler gives out" in decided.unplaced[0].reason


@pytest.mark.parametrize("text", ["0", "0.0", " 0Gi", "+0", "0%"])
def test_an_amount_of_nothing_asks_for_nothing(text: str) -> None:
    """As templates write it for pods without a GPU."""
    pod = a_pod(cpu=1, scheduler_name="kai-scheduler", annotations={"gpu-memory": text})

    assert None is unsupported_by(pod)


@pytest.mark.parametrize("text", ["", "yes", "0", "-1"])
def test_an_unknown_annotation_without_an_amount_asks_for_nothing(text: str) -> None:
    """Of a scheduler that shares cards: `example.com/gpu-reviewed: "yes"` says nothing of an amount."""
    pod = a_pod(cpu=1, scheduler_name="kai-scheduler", annotations={"example.com/gpu-reviewed": text})

    assert None is unsupported_by(pod)


def test_a_scheduler_of_theirs_counts_for_gpus_alone() -> None:
    """What else it places, kube-scheduler would place alike."""
    assert None is unsupported_by(a_pod(cpu=1, scheduler_name="koord-scheduler"))
    found = unsupported_by(a_pod(gpu=1, scheduler_name="koord-scheduler"))
    assert found is not None
    assert ("Koordinator", "koord-scheduler") == (found.title, found.asked)


def test_what_is_planned_for_is_never_refused() -> None:
    """HAMi, MIG, shared and whole GPUs."""
    for name in (
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.5gb",
        "nvidia.com/gpumem",
        "amd.com/gpu",
    ):
        assert None is unsupported_by(asking(name))
    assert None is unsupported_by(a_pod(gpu=1, gpumem=1000, scheduler_name="hami-scheduler"))


def test_each_beginning_is_one_s_own() -> None:
    """No resource belongs to two."""
    beginnings = [name for each in UNSUPPORTED for name in each.resources]
    assert [] == [(a, b) for a in beginnings for b in beginnings if a is not b and a.startswith(b)]


@pytest.mark.parametrize(
    "key, text",
    [
        ("nvidia.com/container.trainer.gpu-memory.request", "8Gi"),
        ("kai.scheduler/container.trainer.gpu-memory.portion.limit", "0.5"),
        ("acme.example/container.a-b.gpu-fraction.request", ".25"),
        ("nvidia.cdi.k8s.io/main.gpu-memory.limit", "40GiB"),
        ("container.main.gpu-compute.portion.request", "25%"),
        ("gpu-memory", "8000Mi"),
        ("gpu-memory", "8e3"),
    ],
)
def test_an_annotation_for_a_container_is_known_by_its_form(key: str, text: str) -> None:
    """Their prefix is a setting of KAI Scheduler, and amounts have units: no list of keys is whole."""
    decided = plan(a_snapshot(pools=[a_pool()], pods=[a_pod(cpu=1, annotations={key: text})]), a_market(M5, G5))

    assert () == decided.launches
    assert f"by {key}, which KAI Scheduler gives out" in decided.unplaced[0].reason


@pytest.mark.parametrize(
    "key", ["kai.scheduler/gpu-slices", "runai/gpus", "example.com/v2.gpu.portion", "gpu-fraction-devices"]
)
def test_what_speaks_of_gpus_is_a_request_where_the_scheduler_shares_cards(key: str) -> None:
    """An annotation that is newer than this list: a node without a GPU would not do."""
    found = unsupported_by(a_pod(cpu=1, scheduler_name="kai-scheduler", annotations={key: "2"}))

    assert found is not None
    assert key == found.asked
    assert None is unsupported_by(a_pod(cpu=1, annotations={key: "2"}))


@pytest.mark.parametrize("key", ["example.com/gpuless", "example.com/my-gpux", "kai.scheduler/queue"])
def test_other_annotations_of_such_a_pod_ask_for_nothing(key: str) -> None:
    """A queue with a number for a name is no GPU."""
    assert None is unsupported_by(a_pod(cpu=1, scheduler_name="kai-scheduler", annotations={key: "2"}))
