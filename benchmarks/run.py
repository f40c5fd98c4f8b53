"""Runs every benchmark, or the rows that are named, and holds their figures to `ranges.toml`.

Each figure comes from a process of its own; of repeated runs the best counts, since a shared machine only ever adds.
Exit 1 when a figure is out of its range or does not come in time, 2 for a name that no row has.
"""

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from benchmarks import burst, generate
from benchmarks.bench_hostile import LOADS
from benchmarks.bench_openb import FOLDER, loop_s
from kerf.cli.advise.command import COMMANDS as ADVISE
from kerf.cli.main import COMMANDS, HIDDEN

_KERF = str(Path(sys.executable).with_name("kerf"))

ALL_DAYS = "KERF_ALL_DAYS"
"""Of the environment: also run what takes days."""


def _run(*arguments: str) -> tuple[float, str]:
    """Wall seconds and stderr of one `kerf` run; exit 3 (something needs a look) is fine."""
    start = time.perf_counter()
    done = subprocess.run([_KERF, *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"kerf {' '.join(arguments)} exited with {done.returncode}: {done.stderr}")
    return time.perf_counter() - start, done.stderr


def help_() -> dict[str, float]:
    """CPU seconds of `kerf --help`, best of seven; the most that help, wrong usage and completion take of any command.

    Those of one command are best of three; the line says which command took most.
    """
    figures = {"help_s": min(_cpu_s("--help") for _ in range(7))}
    commands = [(name,) for name in (*COMMANDS, *HIDDEN)] + [("advise", name) for name in ADVISE]
    for what, asked in (("help_command_s", _helped), ("usage_s", _refused), ("completion_s", _completed)):
        found = {" ".join(command): min(asked(command) for _ in range(3)) for command in commands}
        most = max(found, key=found.__getitem__)
        print(f"{what}: most for {most}")
        figures[what] = found[most]
    return figures


def _helped(command: tuple[str, ...]) -> float:
    return _cpu_s(*command, "--help")


def _refused(command: tuple[str, ...]) -> float:
    return _cpu_s(*command, "--no-such-flag")


def _completed(command: tuple[str, ...]) -> float:
    words = " ".join(("kerf", *command, "--"))
    return _cpu_s(_KERF_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(len(command) + 1))


def _cpu_s(*arguments: str, **variables: str) -> float:
    """User and system seconds of one `kerf` run, whatever it exits with."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([_KERF, *arguments], capture_output=True, env={**os.environ, **variables}, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def plan(folder: Path, count: int) -> dict[str, float]:
    """A plan of `count` pods of twenty shapes against the whole AWS catalogue, read from JSON; best of three."""
    path = generate.write(folder, f"pods-{count}.json", generate.pods(count))
    best: dict[str, float] = {}
    for _ in range(3 if count < 50_000 else 1):
        _, errors = _run("plan", "-f", str(path), "-o", "json", "--timings")
        timings = json.loads(next(line for line in errors.splitlines() if line.startswith("{")))
        timings["peak_rss_mib"] = timings["peak_rss_bytes"] / 2**20
        over_imports = timings["peak_rss_bytes"] - timings["rss_after_imports_bytes"]
        timings["mb_a_10000"] = over_imports / 1e6 * 10_000 / count
        if not best or timings["plan_s"] < best["plan_s"]:
            best = timings
    names = ("read_s", "plan_s", "bound_s", "render_s", "peak_rss_mib", "mb_a_10000")
    return {f"plan_{count}_{name}": best[name] for name in names}


def day(folder: Path) -> dict[str, float]:
    """A simulated day of 200 pods that come and go: CPU in loops of `bench_openb`."""
    path = generate.write(folder, "day.json", generate.day())
    return {"simulate_day_loops": _cpu_s("simulate", str(path), "-o", "json") / loop_s()}


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
    """A simulated week of three windows with their Jobs, quotas and opportunistic pods, the scenario of the tests: CPU
    in loops of `bench_openb`."""
    path = Path(__file__).parents[1] / "tests" / "scenarios" / "windows-week.yaml"
    return {"simulate_windows_week_loops": _cpu_s("simulate", str(path), "-o", "json") / loop_s()}


def case() -> dict[str, float]:
    """The thirty days of the company of document 001, before and after; its guide must show what they come to."""
    root = Path(__file__).parents[1]
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "tools.case_001"], capture_output=True, text=True, check=True, cwd=root, timeout=1800
    )
    if done.stdout not in (root / "docs" / "guides" / "one-day-for-many.md").read_text(encoding="utf-8"):
        raise SystemExit(f"docs/guides/one-day-for-many.md shows another table than\n{done.stdout}")
    return {"case_001_s": time.perf_counter() - start}


def lint(folder: Path, count: int = 1000) -> dict[str, float]:
    """`kerf lint` of a folder of YAML files with one object each, the whole process; best of three, in loops."""
    place = folder / "manifests"
    place.mkdir()
    for number, manifest in enumerate(generate.manifests(count)):
        text = yaml.safe_dump(manifest, sort_keys=False)
        (place / f"{number:05}.yaml").write_text(text, encoding="utf-8")
    return {"lint_1000_loops": min(_cpu_s("lint", "-f", str(place), "-o", "json") for _ in range(3)) / loop_s()}


def apart(module: str, what: str, most_s: int = 1200) -> dict[str, float]:
    """The figures that a set of a `bench_` module prints as JSON, on one line or several.

    After `most_s` seconds it is stopped: then an infinite figure says so, beside those that came in time.
    """
    arguments = [sys.executable, "-m", f"benchmarks.{module}", what]
    late: dict[str, float] = {}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            printed, errors = process.communicate(timeout=most_s)
        except subprocess.TimeoutExpired:
            process.terminate()
            printed, errors = process.communicate()
            late[f"{what}_rest_after_{most_s}_s"] = math.inf
    if process.returncode > 0:
        raise SystemExit(f"{' '.join(arguments)} exited with {process.returncode}: {errors}")
    figures: dict[str, float] = {}
    for line in printed.splitlines():
        figures |= json.loads(line)
    return figures | late


def openb() -> dict[str, float]:
    """Bound and plans of the openb trace. Its files are not part of the project: without them the row says so."""
    return _of_the_trace(
        "openb",
        ("bench_openb", "bound"),
        ("bench_openb", "plan"),
        ("bench_openb", "baselines"),
        ("bench_plans", "few"),
        ("bench_plans", "limited"),
        ("bench_repacking", "openb"),
    )


def warm() -> dict[str, float]:
    """Plans of the same trace that begin with what the last one has left."""
    return _of_the_trace("warm", ("bench_warm", "fleet"), ("bench_warm", "search"), ("bench_warm", "waiting"))


def _of_the_trace(row: str, *sets: tuple[str, str]) -> dict[str, float]:
    if FOLDER not in os.environ:
        print(f"{row} IS LEFT OUT: {FOLDER} names no folder with the trace, see benchmarks/bench_openb.py", flush=True)
        return {}
    figures: dict[str, float] = {}
    for module, name in sets:
        figures |= apart(module, name, 600)
    return figures


def replay(what: str, most_s: int) -> dict[str, float]:
    """A set of replays of the same trace."""
    if FOLDER not in os.environ:
        print(f"replay-{what} IS LEFT OUT: {FOLDER} names no folder with the trace, see bench_replay.py", flush=True)
        return {}
    return apart("bench_replay", what, most_s)


def random_days() -> dict[str, float]:
    """Thirty days of ten large fleets, which take longer than all other rows together: only when asked for."""
    if ALL_DAYS not in os.environ:
        print(f"random-days IS LEFT OUT: it takes days, see benchmarks/README.md; {ALL_DAYS}=1 runs it", flush=True)
        return {}
    return apart("bench_random", "days", 1_000_000)


def rows(folder: Path) -> dict[str, Callable[[], dict[str, float]]]:
    """Every benchmark by name, in the order in which they run; inputs go into `folder`."""
    return {
        "help": help_,
        "plan-10000": partial(plan, folder, 10_000),
        "plan-100000": partial(plan, folder, 100_000),
        "day": partial(day, folder),
        "week": week,
        "burst": partial(bursts, folder),
        "case": case,
        "lint": partial(lint, folder),
        "disruption-budget": partial(apart, "bench_decisions", "budget", 300),
        "disruption-waiting": partial(apart, "bench_decisions", "waiting", 300),
        "groups": partial(apart, "bench_decisions", "groups", 300),
        "groups-catalogue": partial(apart, "bench_decisions", "catalogue", 300),
        "refused": partial(apart, "bench_decisions", "refused", 300),
        "refused-gpu": partial(apart, "bench_decisions", "refused-gpu", 300),
        "hints": partial(apart, "bench_decisions", "hints", 300),
        "spread": partial(apart, "bench_decisions", "spread", 300),
        "zonal": partial(apart, "bench_decisions", "zonal", 120),
        "different": partial(apart, "bench_decisions", "different", 300),
        "verified": partial(apart, "bench_decisions", "verified", 120),
        "alone": partial(apart, "bench_decisions", "alone", 300),
        "labels": partial(apart, "bench_decisions", "labels", 300),
        "strangers": partial(apart, "bench_decisions", "strangers", 300),
        "preferences": partial(apart, "bench_decisions", "preferences", 120),
        "diverse": partial(apart, "bench_decisions", "diverse", 300),
        "bounds": partial(apart, "bench_decisions", "bounds", 300),
        **{f"hostile-{load}": partial(apart, "bench_hostile", load, 120) for load in LOADS},
        "equal": partial(apart, "bench_plans", "equal", 300),
        "kinds": partial(apart, "bench_plans", "kinds", 300),
        "beside": partial(apart, "bench_plans", "beside", 300),
        "changes": partial(apart, "bench_changes", "changes", 300),
        "limits-far": partial(apart, "bench_limits", "far", 600),
        "limits-reached": partial(apart, "bench_limits", "reached", 900),
        "openb": openb,
        "warm": warm,
        "replay-day": partial(replay, "day", 900),
        "replay-weeks": partial(replay, "weeks", 1800),
        "replay-moved": partial(replay, "moved", 14_400),
        "random-few": partial(apart, "bench_random", "few", 14_400),
        "random-large": partial(apart, "bench_random", "large", 7_200),
        "random-days": random_days,
        "commands": partial(apart, "bench_commands", "commands", 300),
        "live-pods": partial(apart, "bench_live", "pods"),
        "live-surroundings": partial(apart, "bench_live", "surroundings"),
        "live-cluster": partial(apart, "bench_live", "cluster"),
        "usage": partial(apart, "bench_usage", "history"),
        "server-response": partial(apart, "bench_server", "response"),
        "server-start": partial(apart, "bench_server", "start"),
        "server-commands": partial(apart, "bench_server", "commands", 600),
        "server-long-plan": partial(apart, "bench_server", "long-plan", 300),
        "server-notice": partial(apart, "bench_server", "notice", 600),
        "aws": partial(apart, "bench_aws", "burst", 300),
        "differential": partial(apart, "bench_differential", "pods", 2400),
        "followed": partial(apart, "bench_followed", "pods", 2400),
    }


def chosen(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """The rows of these names in the order in which they run, all for none; `plan` is each row that begins `plan-`.

    Raises LookupError with the rows there are.
    """

    def is_named(row: str, name: str) -> bool:
        return row == name or row.startswith(f"{name}-")

    for name in names:
        if not any(is_named(row, name) for row in known):
            raise LookupError(f"expected rows of {', '.join(known)}, got {name}")
    return [row for row in known if not names or any(is_named(row, name) for name in names)]


def verdict(value: float, most: float | None, least: float | None = None) -> str:
    """What is said of a figure; nothing where it has no range and came in time."""
    if math.isinf(value):
        return "OUT OF TIME"
    if most is None and least is None:
        return ""
    is_within = (most is None or value <= most) and (least is None or value >= least)
    return "ok" if is_within else "OUT OF RANGE"


def main(names: Sequence[str]) -> int:
    """Run the rows and print each figure beside its range."""
    ranges = tomllib.loads((Path(__file__).parent / "ranges.toml").read_text(encoding="utf-8"))
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        benchmarks = rows(Path(name))
        try:
            wanted = chosen(names, tuple(benchmarks))
        except LookupError as error:
            print(error, file=sys.stderr)
            return 2
        for row in wanted:
            try:
                figures = benchmarks[row]()
            except SystemExit as error:
                # The other rows still say what they measure.
                print(f"{row} FAILED: {error}", flush=True)
                failed += 1
                continue
            for figure, value in figures.items():
                limits = ranges.get(figure, {})
                said = verdict(value, limits.get("max"), limits.get("min"))
                failed += said.startswith("OUT")
                held = ", ".join(f"{name} {limits[name]}" for name in ("min", "max") if name in limits)
                print(f"{figure:34} {value:10.3f}  {held:10} {said}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
