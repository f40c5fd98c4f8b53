"""`kerf advise`: jobs per node, families by cost, a pool's limits; offline, printed and never applied."""

from pathlib import Path

from tests.cli.program import files, kerf

BATCH = files("examples/002-batch")


def test_four_jobs_a_node_without_any_file(tmp_path: Path) -> None:
    """002-6: the catalogue is enough for a type: 980m each, and 1 cpu gives three."""
    environment = {"HOME": str(tmp_path), "KUBECONFIG": ""}
    done = kerf("advise", "per-node", "4", "--instance-type", "m5.xlarge", "-o", "json", environment=environment)

    assert (0, 1) == (done.returncode, len(done.stderr.splitlines()))
    [item] = done.data["items"]
    assert ({"cpu": "980m", "memory": "3540Mi"}, 4) == (item["requests"], item["fit"])
    assert "naiveFit" in item["resources"][0]
    assert ("1", 3) == (item["resources"][0]["naive"], item["resources"][0]["naiveFit"])


def test_jobs_per_node_says_why_the_quotient_is_wrong() -> None:
    """With the figures of kubelet and DaemonSets."""
    done = kerf("advise", "per-node", "4", *BATCH)

    assert "cpu 1 (4 / 4) gives 3, not 4: kubelet keeps 80m and DaemonSets ask 0, so 3920m are left" in done.stdout
    assert "resources: {requests: {cpu: 980m, memory: 3540Mi}}" in done.stdout


def test_slices_of_a_pool_that_hami_shares() -> None:
    """Memory is a card's; limits, because HAMi reads those."""
    done = kerf("advise", "per-node", "3", *files("examples/003-hami/nodepool.yaml"))

    assert "limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 7629, nvidia.com/gpucores: 33}" in done.stdout
    assert "3 slices a GPU" in done.stdout


def test_no_type_holds_so_many() -> None:
    """Exit code 3, with what stands in the way."""
    done = kerf("advise", "per-node", "60", *BATCH)

    assert 3 == done.returncode
    assert "no advice: a node of this type holds 58, not 60" in done.stdout


def test_what_is_wrong_is_one_line() -> None:
    """A type that is not sold, a pool that is not there, no pool at all."""
    cases = (
        (("--instance-type", "m5.xlarg"), "--instance-type m5.xlarg: not sold in us-east-1; nearest known: m5.xlarge"),
        (("--instance-type", "M5.XLARGE"), "--instance-type M5.XLARGE: not sold in us-east-1; nearest known: m5.xlar"),
        (("--nodepool", "x"), "--nodepool x: expected one of the NodePools there (batch), got 'x'"),
    )
    for flags, told in cases:
        done = kerf("advise", "per-node", "4", *BATCH, *flags)
        assert (2, "") == (done.returncode, done.stdout)
        assert done.stderr.startswith(f"error: {told}")
    done = kerf("advise", "per-node", "4", *files("examples/002-batch/job.yaml"))
    assert "error: the input has no NodePool: give --instance-type TYPE" in done.stderr


def test_families_for_a_workload_begin_with_what_is_allowed() -> None:
    """25 jobs of 900m: seven m5.xlarge as the pool allows, and what else there is."""
    job = "examples/002-batch-fixed/job.yaml"
    done = kerf(
        "advise", "instance-types", "job/dagster-run", *files("examples/002-batch/pool.yaml", job), "-o", "json"
    )

    assert 0 == done.returncode
    assert (25, 7, 1.344, True) == (
        done.data["pods"],
        done.data["today"]["nodes"],
        done.data["today"]["perHour"],
        done.data["today"]["allowed"],
    )
    items = done.data["items"]
    assert items == sorted(items, key=lambda item: (item["unplaced"], item["perHour"], item["family"]))
    assert all(item["perHourLowerBound"] <= item["perHour"] for item in items if not item["unplaced"])


def test_families_of_pods_by_label_or_none() -> None:
    """-l as everywhere; a selector that nobody has is an error, a cluster without waiting pods none."""
    pool = files("examples/002-batch/pool.yaml")
    assert "advice for 25 pods" in kerf("advise", "instance-types", "-l", "app=dagster-run", *BATCH).stdout
    assert 1 == kerf("advise", "instance-types", "-l", "app=x", *BATCH).returncode
    assert "the input has no such pod" in kerf("advise", "instance-types", *pool).stdout
    assert 2 == kerf("advise", "instance-types", "node/x", *pool).returncode


def test_a_pool_whose_limit_is_reached() -> None:
    """002-8: with its figures, and what it costs when filled."""
    done = kerf("advise", "pool", "gpu-pool-1", *files("examples/000-gpu-pools/pool.yaml"), "-o", "json")
    assert 0 == done.returncode
    [limit] = done.data["limits"]
    assert {"instanceType": "g5.2xlarge", "nodes": 1, "perHour": 1.212} == limit["filledDearest"]

    workload = "examples/000-gpu-pools/workload.yaml"
    done = kerf("advise", "pool", "gpu-pool-1", *files("examples/000-gpu-pools/pool.yaml", workload))
    assert "advice: limit cpu 10 is reached: 8 in use or planned, and one more node counts 8" in done.stdout


def test_a_pool_without_limits_and_one_that_is_not_there() -> None:
    """Said; and the nearest name."""
    assert "advice: it has no limit" in kerf("advise", "pool", "batch", *BATCH).stdout
    done = kerf("advise", "pool", "bath", *BATCH)
    assert (1, "error: nodepool/bath not found; nearest known: batch\n") == (done.returncode, done.stderr)
