"""`kerf plan --strategies`: each way to choose nodes, side by side."""

from tests.cli.program import files, kerf

GPUS = files("examples/000-gpu-pools/two-sizes.yaml", "examples/000-gpu-pools/workload.yaml")


def test_each_strategy_is_a_row() -> None:
    """First-fit buys the larger type for 6.678, the cheapest are five small ones for 5.03; both against one bound."""
    done = kerf("plan", *GPUS, "--strategies", "-o", "json")

    rows = [(i["strategy"], i.get("budget"), i["nodes"], i["perHourAfter"], i["unplaced"]) for i in done.data["items"]]
    assert [("first-fit", None, 2, 6.678, 0), ("cost", "1s", 5, 5.03, 0), ("cost", "30s", 5, 5.03, 0)] == rows
    assert {5.03} == {item["perHourLowerBound"] for item in done.data["items"]}
    assert all(item["seconds"] >= 0 for item in done.data["items"])
    assert 0 == done.returncode


def test_pods_that_a_strategy_leaves_are_counted() -> None:
    """A pool whose limit ends before they all have a node."""
    done = kerf(
        "plan", *files("examples/000-gpu-pools/pool.yaml", "examples/000-gpu-pools/workload.yaml"), "--strategies"
    )

    assert 3 == done.returncode
    assert "first-fit  1          1.212  0 %          0 %         4 " in done.stdout


def test_it_stands_in_place_of_a_plan() -> None:
    """As a comparison does."""
    done = kerf("plan", *GPUS, "--strategies", "--compare", "cpu=1")

    assert 2 == done.returncode
    assert "--strategies: expected neither --compare nor --calendar" in done.stderr
