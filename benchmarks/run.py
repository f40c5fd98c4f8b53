"""Runs every benchmark and holds its figures to `ranges.toml`.

Each figure comes from a process of its own; of repeated runs the best counts, since a shared machine only ever adds.
Exit 1 when a figure is out of its range.
"""

import json
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from benchmarks import burst, generate

_KERF = str(Path(sys.executable).with_name("kerf"))


def _run(*arguments: str) -> tuple[float, str]:
    """Wall seconds and stderr of one `kerf` run; exit 3 (something needs a look) is fine."""
    start = time.perf_counter()
    done = subprocess.run([_KERF, *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"kerf {' '.join(arguments)} exited with {done.returncode}: {done.stderr}")
    return time.perf_counter() - start, done.stderr


def help_() -> dict[str, float]:
    """`kerf --help`, best of seven."""
    return {"help_s": min(_run("--help")[0] for _ in range(7))}


def plan(folder: Path, count: int) -> dict[str, float]:
    """A plan of `count` pods of twenty shapes against the whole AWS catalogue, read from JSON; best of three."""
    path = generate.write(folder, f"pods-{count}.json", generate.pods(count))
    best: dict[str, float] = {}
    for _ in range(3 if count < 50_000 else 1):
        _, errors = _run("plan", "-f", str(path), "-o", "json", "--timings")
        timings = json.loads(next(line for line in errors.splitlines() if line.startswith("{")))
        timings["peak_rss_mib"] = timings["peak_rss_bytes"] / 2**20
        if not best or timings["plan_s"] < best["plan_s"]:
            best = timings
    names = ("read_s", "plan_s", "bound_s", "render_s", "peak_rss_mib")
    return {f"plan_{count}_{name}": best[name] for name in names}


def day(folder: Path) -> dict[str, float]:
    """A simulated day of 200 pods that come and go."""
    path = generate.write(folder, "day.json", generate.day())
    return {"simulate_day_s": _run("simulate", str(path), "-o", "json")[0]}


def bursts(folder: Path) -> dict[str, float]:
    """Ten thousand Jobs that start over ten simulated minutes, against what one plan at the end would launch."""
    scenario, at_once = burst.write(folder, 10_000, "m5.24xlarge")
    found: list[dict[str, Any]] = []
    start = time.perf_counter()
    for arguments in (("simulate", str(scenario)), ("plan", "-f", str(at_once))):
        done = subprocess.run([_KERF, *arguments, "-o", "json"], capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    report, planned = found
    excess = report["totals"]["launches"] / len(planned["launches"]) - 1
    return {"burst_10000_s": time.perf_counter() - start, "burst_10000_excess_percent": 100 * excess}


def week() -> dict[str, float]:
    """A simulated week of three windows with their Jobs, quotas and opportunistic pods; the scenario of the tests."""
    path = Path(__file__).parents[1] / "tests" / "scenarios" / "windows-week.yaml"
    return {"simulate_windows_week_s": _run("simulate", str(path), "-o", "json")[0]}


def case() -> dict[str, float]:
    """The thirty days of the company of document 001, before and after; its guide must show what they come to."""
    root = Path(__file__).parents[1]
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "tools.case_001"], capture_output=True, text=True, check=True, cwd=root, timeout=1800
    )
    if done.stdout not in (root / "docs" / "guides" / "001-one-day-for-many.md").read_text(encoding="utf-8"):
        raise SystemExit(f"docs/guides/001-one-day-for-many.md shows another table than\n{done.stdout}")
    return {"case_001_s": time.perf_counter() - start}


def lint(folder: Path, count: int = 1000) -> dict[str, float]:
    """`kerf lint` of a folder of YAML files with one object each, the whole process; best of three."""
    place = folder / "manifests"
    place.mkdir()
    for number, manifest in enumerate(generate.manifests(count)):
        text = yaml.safe_dump(manifest, sort_keys=False)
        (place / f"{number:05}.yaml").write_text(text, encoding="utf-8")
    return {"lint_1000_s": min(_run("lint", "-f", str(place), "-o", "json")[0] for _ in range(3))}


def apart(module: str, what: str) -> dict[str, float]:
    """A set of figures that `bench_live`, `bench_server` or `bench_usage` prints."""
    arguments = [sys.executable, "-m", f"benchmarks.{module}", what]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=1200)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)} exited with {done.returncode}: {done.stderr}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> int:
    """Run all, print each figure beside its range."""
    ranges = tomllib.loads((Path(__file__).parent / "ranges.toml").read_text(encoding="utf-8"))
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        benchmarks: tuple[Callable[[], dict[str, float]], ...] = (
            help_,
            lambda: plan(folder, 10_000),
            lambda: plan(folder, 100_000),
            lambda: day(folder),
            week,
            lambda: bursts(folder),
            case,
            lambda: lint(folder),
            lambda: apart("bench_live", "pods"),
            lambda: apart("bench_live", "cluster"),
            lambda: apart("bench_usage", "history"),
            lambda: apart("bench_server", "response"),
            lambda: apart("bench_server", "start"),
        )
        for benchmark in benchmarks:
            for figure, value in benchmark().items():
                most = ranges.get(figure, {}).get("max")
                verdict = "" if most is None else ("ok" if value <= most else "OUT OF RANGE")
                failed += verdict == "OUT OF RANGE"
                print(f"{figure:34} {value:10.3f}  {'' if most is None else f'max {most}':10} {verdict}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
