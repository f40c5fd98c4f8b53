"""A ResourceQuota holds inside a batch: nothing is bought for a pod that HAMi will refuse anyway."""

from kerf.engine.explain.plan import plan
from kerf.model.plan import Stage
from kerf.model.snapshot import ResourceQuota
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type, cards

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


def test_a_quota_of_another_namespace_holds_nobody_back() -> None:
    """Quotas are per namespace."""
    pods = [a_pod(f"p-{n}", gpu=1, gpumem=8000) for n in range(2)]
    made = plan(a_snapshot(pools=[POOL], pods=pods, quotas=(quota(1, "other"),)), MARKET)

    assert () == made.unplaced


def test_what_pods_hold_already_counts() -> None:
    """The state fills in what the namespace's pods use."""
    used = ResourceQuota("default", "gpu", {"limits.nvidia.com/gpumem": 10_000}, {"limits.nvidia.com/gpumem": 4000})
    made = plan(a_snapshot(pools=[POOL], pods=[a_pod(gpu=1, gpumem=8000)], quotas=(used,)), MARKET)

    assert 1 == len(made.unplaced)
