"""Ways of sharing GPUs that Kerf knows by name only: their pods get one clear refusal, and nothing is bought."""

import pytest

from kerf.engine.explain.plan import plan
from kerf.model.pods import Container, Pod, PodSpec
from kerf.model.quantities import Resources
from kerf.sharing.unsupported import UNSUPPORTED, unsupported_by
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot
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
    ],
)
def test_a_resource_says_whose_it_is(resource: str, title: str) -> None:
    """The plan names the family and the resource, and buys nothing."""
    decided = plan(a_snapshot(pools=[a_pool()], pods=[asking(resource)]), a_market(M5, G5))

    assert ((), 1) == (decided.launches, len(decided.unplaced))
    assert f"by {resource}, which {title} gives out" in decided.unplaced[0].reason


@pytest.mark.parametrize("key", ["gpu-fraction", "gpu-memory"])
def test_an_annotation_asks_for_a_part(key: str) -> None:
    """As KAI Scheduler reads them; without it the pod would get a node that has no GPU."""
    decided = plan(a_snapshot(pools=[a_pool()], pods=[a_pod(cpu=1, annotations={key: "0.5"})]), a_market(M5, G5))

    assert () == decided.launches
    assert f"by {key}, which KAI Scheduler gives out" in decided.unplaced[0].reason


@pytest.mark.parametrize("text", ["", "yes", "0", "-1", "nan", "1e999x"])
def test_another_use_of_the_word_asks_for_nothing(text: str) -> None:
    """A common word as an annotation keeps no node from a pod."""
    assert None is unsupported_by(a_pod(cpu=1, annotations={"gpu-memory": text}))


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
