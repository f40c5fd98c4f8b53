"""A ResourceQuota holds inside a batch: nothing is bought for a pod that HAMi will refuse anyway."""

import pytest

from kerf.engine.explain.plan import plan
from kerf.model.plan import Stage
from kerf.model.snapshot import ConfigMap, ResourceQuota
from kerf.testing.builders import a_container, a_market, a_pod, a_pool, a_snapshot, an_instance_type, cards

MARKET = a_market(an_instance_type("g5.xlarge", devices=cards(1), price="1.006"))
POOL = a_pool(labels={"gpu": "on"})


def quota(mib: int, namespace: str = "default") -> ResourceQuota:
    return ResourceQuota(namespace, "gpu", {"limits.nvidia.com/gpumem": mib})


def test_pods_beyond_the_quota_are_left_out_before_anything_is_bought() -> None:
    """Three pods of 8000 MiB under 10000: one node for the first, the others named with the figures."""
    pods = [a_pod(f"p-{n}", gpu=1, gpumem=8000) for n in range(3)]
    made = plan(a_snapshot(pools=[POOL], pods=pods, quotas=(quota(10_000),)), MARKET)

    assert [["default/p-0"]] == [[p.pod for p in launch.pods] for launch in made.launches]
    assert [("default/p-1", Stage.DEVICES), ("default/p-2", Stage.DEVICES)] == [(u.pod, u.stage) for u in made.unplaced]
    assert (
        "ResourceQuota default/gpu: limits.nvidia.com/gpumem 10000, 8000 used or planned, 8000 more needed"
        == made.unplaced[0].reason
    )


def test_a_quota_of_another_namespace_holds_no_pod_back() -> None:
    """Quotas are per namespace."""
    pods = [a_pod(f"p-{n}", gpu=1, gpumem=8000) for n in range(2)]
    made = plan(a_snapshot(pools=[POOL], pods=pods, quotas=(quota(1, "other"),)), MARKET)

    assert () == made.unplaced


def test_what_pods_hold_already_counts() -> None:
    """The state fills in what the namespace's pods use."""
    used = ResourceQuota("default", "gpu", {"limits.nvidia.com/gpumem": 10_000}, {"limits.nvidia.com/gpumem": 4000})
    made = plan(a_snapshot(pools=[POOL], pods=[a_pod(gpu=1, gpumem=8000)], quotas=(used,)), MARKET)

    assert 1 == len(made.unplaced)


@pytest.mark.parametrize(("number", "expected"), [(1, 2), (4, 1)])
def test_an_init_container_without_a_gpu_takes_the_first_app_containers_part(number: int, expected: int) -> None:
    """A7: HAMi's record then books 4000 MiB of two app containers of 4000 on one card; on several cards both."""
    market = a_market(an_instance_type("g5.xlarge", devices=cards(number), price="1.006"))
    apps = tuple(a_container(name, gpu=1, gpumem=4000, cores=10) for name in ("a", "b"))
    pods = [a_pod(f"p-{n}", containers=apps, init_containers=(a_container("load"),)) for n in range(2)]
    made = plan(a_snapshot(pools=[POOL], pods=pods, quotas=(quota(12_000),)), market)

    assert expected == 2 - len(made.unplaced)


def test_a_quota_is_stated_in_hamis_unit_of_memory() -> None:
    """With a memory factor of 1024 a quota of 20 leaves room for two pods of 10."""
    config = ConfigMap("kube-system", "hami-scheduler-device", {"device-config.yaml": "nvidia: {memoryFactor: 1024}"})
    pods = [a_pod(f"p-{n}", gpu=1, gpumem=10) for n in range(3)]
    made = plan(a_snapshot(pools=[POOL], pods=pods, quotas=(quota(20),), config_maps=(config,)), MARKET)

    assert ["default/p-2"] == [unplaced.pod for unplaced in made.unplaced]
