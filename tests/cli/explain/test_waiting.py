"""`kerf explain` without an object: all that waits, and why."""

from tests.cli.program import CLUSTER, POOL_000, WORKLOAD_000, files, kerf

CASE = files(POOL_000, WORKLOAD_000)


def test_all_that_waits_is_explained() -> None:
    """Where each goes, then why the others have no place, with what would help."""
    done = kerf("explain", *CASE)

    assert 3 == done.returncode
    assert "5 pods of the input wait for a node, 4 without a place:\n" in done.stdout
    assert "  default/gpu-app-1 and 3 more  limits: limit cpu 10 of NodePool gpu-pool-1" in done.stdout
    assert "    hint: 40 is the smallest cpu limit of NodePool gpu-pool-1 that places all 5 pods\n" in done.stdout


def test_json_has_each_pod() -> None:
    """With its verdict; names are those of pods."""
    data = kerf("explain", *CASE, "-o", "json").data

    assert ["new-node", *["no-place"] * 4] == [item["verdict"] for item in data["items"]]
    assert {"kind": "Waiting", "count": 5, "unplaced": 4} == data["waiting"]
    assert 5 == len(kerf("explain", *CASE, "-o", "name").stdout.splitlines())


def test_a_namespace_is_looked_at_alone() -> None:
    """Nothing waits in another one."""
    done = kerf("explain", *CASE, "-n", "other")

    assert (0, "no pod of namespace other waits for a node") == (done.returncode, done.stdout.splitlines()[0])


def test_nothing_waits() -> None:
    """Which is said, and is no error."""
    assert "wait" in kerf("explain", *files(CLUSTER)).stdout.splitlines()[0]
