"""`kerf sweep`: what it prints and keeps, whoever runs it, and how it goes on."""

import csv
import io
import json
from pathlib import Path

from tests.cli.program import kerf
from tests.sim.sweep.files import SWEEP, write

HIGHER = '    - {name: up, factor: 1.5, instanceType: "m5.*"}\n'
SMALL = SWEEP.replace("seeds: [1, 2, 3]", "seeds: [1, 2]").replace(HIGHER, "")


def printed(axes: str, *arguments: str) -> str:
    """What goes to standard output of a sweep that ends well."""
    done = kerf("sweep", axes, *arguments)
    assert 0 == done.returncode, done.stderr
    return done.stdout


def test_the_same_bytes_whatever_the_workers(tmp_path: Path) -> None:
    """Table, JSON, CSV and plot, from one process and from two."""
    axes = write(tmp_path, SMALL)
    found = set()
    for workers in "12":
        options = ("--workers", workers, "--results", str(tmp_path / workers), "--plot", str(tmp_path / "p.svg"))
        texts = [printed(axes, *options, "-o", output) for output in ("table", "json", "csv")]
        kept = {path.name: path.read_bytes() for path in (tmp_path / workers).iterdir()}
        found.add((*texts, (tmp_path / "p.svg").read_text(encoding="utf-8"), str(sorted(kept.items()))))

    assert 1 == len(found)


def test_a_sweep_says_what_policies_cost(tmp_path: Path) -> None:
    """A row for each group with its interval; in CSV one for each run."""
    axes = write(tmp_path, SMALL)
    text, rows = printed(axes, "--workers", "1"), list(csv.DictReader(io.StringIO(printed(axes, "-o", "csv"))))
    groups = json.loads(printed(axes, "-o", "json"))["groups"]

    assert "tiny: 4 runs\n\nPOLICY   TRACE    PRICES  SEEDS  COST " in text
    assert "Student's t over the seeds" in text
    assert [("batches", "1"), ("batches", "2"), ("at-once", "1"), ("at-once", "2")] == [
        (row["policy"], row["seed"]) for row in rows
    ]
    mean = sum(float(row["cost"]) for row in rows[:2]) / 2
    low, high = groups[0]["cost"]["interval95"]
    assert low <= groups[0]["cost"]["mean"] == round(mean, 4) <= high
    more = [group["costAgainstFirstPolicyPercent"] for group in groups]
    assert more[0] is None
    assert more[1]["mean"] > 0


def test_a_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    """What is kept is not run again, and what is broken is."""
    axes, results = write(tmp_path, SMALL), tmp_path / "sweep.results"
    first = printed(axes, "--workers", "1")
    kept = sorted(results.iterdir())
    kept[0].write_text("{", encoding="utf-8")
    kept[1].unlink()
    times = {path: path.stat().st_mtime_ns for path in kept[2:]}

    assert first == printed(axes, "--workers", "1")
    assert kept == sorted(results.iterdir())
    assert times == {path: path.stat().st_mtime_ns for path in kept[2:]}


def test_a_run_that_fails_ends_no_other(tmp_path: Path) -> None:
    """Exit code 1 with its names; the others are kept."""
    axes = write(
        tmp_path, SMALL.replace("    - {name: morning", "    - {name: few, file: few.csv}\n    - {name: morning")
    )
    (tmp_path / "few.csv").write_text((tmp_path / "pods.csv").read_text().partition("p1")[0], encoding="utf-8")
    scenario = tmp_path / "scenario" / "s.yaml"
    scenario.write_text(scenario.read_text() + "  timeline:\n    - {at: 9m, interrupt: {nodes: 1}}\n", encoding="utf-8")
    done = kerf("sweep", axes, "--workers", "1")

    assert 1 == done.returncode
    assert "tiny: 4 runs" in done.stdout
    assert 4 == done.stderr.count("error: policy ")
    assert "trace few, prices list, seed 1: " in done.stderr
    assert "expected at least 1 running instances then" in done.stderr


def test_workers_here_or_there(tmp_path: Path) -> None:
    """Not both."""
    done = kerf("sweep", write(tmp_path, SMALL), "--workers", "2", "--scheduler", "tcp://x:1")

    assert 2 == done.returncode
    assert "--workers is of this machine, and --scheduler of another" in done.stderr
