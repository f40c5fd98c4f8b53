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

from benchmarks import generate

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
