"""A sweep as cells, and what is said of one that cannot be read."""

from pathlib import Path

import pytest

from kerf.errors import InputError
from kerf.sim.sweep.axes import read_sweep
from kerf.sim.sweep.cells import played, priced
from kerf.testing.builders import a_market, an_instance_type
from tests.sim.sweep.files import PODS, SWEEP, write


def test_there_is_a_cell_for_each_value_of_each_axis(tmp_path: Path) -> None:
    """By policy, trace, price, seed."""
    cells = read_sweep(write(tmp_path)).cells

    assert 12 == len(cells) == len({cell.digest for cell in cells})
    assert (("batches", "morning", "list"), 1) == (cells[0].names, cells[0].seed)
    assert (("at-once", "morning", "up"), 3) == (cells[-1].names, cells[-1].seed)


def test_without_axes_there_is_the_scenario(tmp_path: Path) -> None:
    """One cell, with its own seed."""
    axes = SWEEP[: SWEEP.index("  policies")]
    (cell,) = read_sweep(write(tmp_path, axes)).cells

    assert ("default", "", "list") == cell.names


def test_a_digest_is_of_what_counts(tmp_path: Path) -> None:
    """Not of names and places; of the files, the values and the seed."""
    first = [cell.digest for cell in read_sweep(write(tmp_path)).cells]
    other = tmp_path / "other"
    other.mkdir()
    renamed = SWEEP.replace("name: batches", "name: first").replace("name: up", "name: higher")
    assert first == [cell.digest for cell in read_sweep(write(other, renamed)).cells]

    higher = [cell.digest for cell in read_sweep(write(other, SWEEP.replace("1.5", "1.6"))).cells]
    assert [True, False] == [first[at] == higher[at] for at in (0, 3)]
    write(other)
    (other / "pods.csv").write_text(PODS + "q,1,1,0,0,0,9,0\n", encoding="utf-8")
    assert not set(first) & {cell.digest for cell in read_sweep(str(other / "sweep.yaml")).cells}


def test_a_policy_changes_settings_and_pools(tmp_path: Path) -> None:
    """Nodes that stay two minutes when they are empty cost more; higher prices cost as much more."""
    cells = {(cell.names[0], cell.names[2]): cell for cell in read_sweep(write(tmp_path)).cells if cell.seed == 1}
    costs = {names: played(cell)["cost"] for names, cell in cells.items()}

    assert costs["batches", "list"] < costs["at-once", "list"]
    assert costs["batches", "up"] == pytest.approx(1.5 * costs["batches", "list"], abs=1e-4)


def test_a_value_of_an_axis_that_says_nothing_changes_nothing(tmp_path: Path) -> None:
    """null is as if it were not there."""
    quiet = SWEEP.replace("- {name: list}", "- {name: list, factor: null, instanceType: null, capacityType: null}")
    cells = read_sweep(write(tmp_path, quiet)).cells

    assert 12 == len(cells)
    market = a_market(an_instance_type("a.large", price="2"))
    assert market == priced(market, cells[0].price)


def test_prices_of_some_offerings_change() -> None:
    """By type and capacity type; a millionth is the smallest step."""
    market = a_market(an_instance_type("a.large", price="0.000003"), an_instance_type("b.large", price="2"))
    changed = priced(market, {"name": "x", "factor": 0.5, "instanceType": "a.*"})

    assert [2, 2_000_000] == [kind.offerings[0].price_micro for kind in changed.types]
    assert market == priced(market, {"name": "x", "factor": 2, "capacityType": "reserved"})


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("kind: Sweep", "kind: Scenario", "sweep.yaml:1:1: kind: expected one document of kind Sweep"),
        (
            "  scenario: scenario/s.yaml",
            "  duration: 1h",
            "sweep.yaml:6:3: spec.scenario: expected a value, got <nothing>",
        ),
        ("scenario/s.yaml", "none.yaml", "none.yaml"),
        ("pods.csv", "none.csv", "none.csv: expected a CSV file that can be read, got: No such file"),
        ("seeds: [1, 2, 3]", "seeds: [1, 1]", "sweep.yaml:12:10: spec.seeds: expected each seed once"),
        ("name: at-once", "name: batches", "sweep.yaml:9:14: spec.policies[1].name: expected a name of its own"),
        ("batch-idle: 0s", "batch-idel: 0s", "spec.policies[1].settings: expected settings of kerf run (strategy, "),
        ("batch-idle: 0s", "batch-idle: soon", "expected a duration such as 1m30s or 500ms"),
        ("factor: 1.5", "factor: -1", "spec.prices[1].factor: expected a number above 0 and at most 1000, such as 0.9"),
        ("factor: 1.5", "factor: 1001", "expected a number above 0 and at most 1000, such as 0.9, got 1001"),
        ("factor: 1.5", "factor: null", "spec.prices[1].factor: expected a number above 0 and at most 1000"),
        (
            '"m5.*"',
            '"m55*"',
            "sweep.yaml:15:7: spec.prices[1]: expected offerings that the catalogue has, got <none of m55*>",
        ),
        (
            "consolidateAfter: 2m",
            "consolidateAfter: soon",
            "sweep.yaml:9:82: spec.policies[1].disruption.consolidateAfter: expected a duration such as 30s",
        ),
        (
            "consolidateAfter: 2m",
            "consolidateafter: 2m",
            "sweep.yaml:9:63: spec.policies[1].disruption: expected a known field, got 'consolidateafter' (hint: is "
            "`consolidateAfter` meant?)",
        ),
        ("{consolidateAfter: 2m}", "WhenEmpty", "spec.policies[1].disruption: expected a mapping, got 'WhenEmpty'"),
        ("seeds: [1, 2, 3]", "seeds: [1, 2", "sweep.yaml:13:9: expected YAML, got"),
        ("copies: 2", "copys: 2", "expected a known field, got 'copys' (hint: is `copies` meant?)"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    """Before anything is run."""
    assert old in SWEEP
    with pytest.raises(InputError) as raised:
        read_sweep(write(tmp_path, SWEEP.replace(old, new)))

    assert said in str(raised.value)
