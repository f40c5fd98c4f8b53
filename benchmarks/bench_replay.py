"""Replays of the openb trace: what production controllers cost beyond a free re-pack, and how long a day takes.

`KERF_OPENB` is the folder of `bench_openb`. Copies of the trace are moved against each other by seed 7 within the 37
days that hold nearly all of it; no pod runs longer than a week, and a node takes 90 seconds until its cards are
registered. kube-scheduler fills nodes (MostAllocated), as the rule beside it does: pods without a card that are spread
keep nodes with idle cards. Nodes go when they are empty: what is measured is what is bought, not what is moved. `moved`
is the same with consolidation: a tenth of the nodes at most in ten minutes, and a pod that is moved loses a minute,
which it states. Beside both a rule as Karpenter's has the same pods (`peerreplay`).

Small changes of any kind move the dollars of one run by half a percent, so rules are compared over `starts`: the same
hours from each of seven days, with one rule and with the other. `compare` says what the second file of such figures has
beyond the first.
"""

import copy
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.bench_openb import FOLDER, rows
from benchmarks.boundcheck import TypeRow
from benchmarks.peerreplay import PeerReplay
from kerf.cli.collector import collect_seldom
from kerf.sim.course.scenario import Scenario, read_scenario
from kerf.sim.course.tracescenario import TraceFlags, with_flags
from kerf.sim.simulation import run
from kerf.sim.traces.replay import Arrival, Replay, TraceSource, read_replay

_POD_LIST = "openb_pod_list_default.csv"
_DAY_S = 86_400
_SEED, _RESTART_S = 7, 60
_STARTS = (2, 6, 10, 14, 18, 22, 26)
"""Days after which `starts` begins."""
_MOVING = {
    "consolidationPolicy": "WhenEmptyOrUnderutilized",
    "consolidateAfter": "60s",
    "budgets": [
        {"nodes": "10%"},
        {"nodes": "0", "reasons": ["Underutilized"], "schedule": "1-59/10 * * * *", "duration": "9m"},
    ],
}
"""A tenth of the nodes at most, in the first of each ten minutes."""
_SCENARIO: dict[str, Any] = {
    "apiVersion": "kerf.dev/v1alpha1",
    "kind": "Scenario",
    "metadata": {"name": "openb"},
    "spec": {
        "duration": "24h",
        "seed": _SEED,
        "scheduler": {"scoringStrategy": {"type": "MostAllocated"}},
        "cloud": {"catalog": "types.json", "launch": "40s", "register": "15s", "ready": "5s", "devicesReady": "30s"},
        "objects": [
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodePool",
                "metadata": {"name": "gpu"},
                "spec": {
                    "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "60s"},
                    "template": {
                        "metadata": {"labels": {"gpu": "on"}},
                        "spec": {
                            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                            "requirements": [
                                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
                            ],
                        },
                    },
                },
            }
        ],
    },
}


def catalogue() -> list[dict[str, Any]]:
    """The types of `catalogue_aws_16.csv` in the form of a catalogue file; what they have is what pods can use."""
    return [
        {
            "name": row["name"],
            "architecture": "amd64",
            "operatingSystems": ["linux"],
            "resources": {
                "cpu": f"{row['cpu_milli']}m",
                "memory": f"{row['mem_mib']}Mi",
                "pods": row["pods"],
                "ephemeral-storage": "100Gi",
                "nvidia.com/gpu": row["gpus"],
            },
            "overhead": {"cpu": "0", "memory": "0"},
            "labels": {"karpenter.k8s.aws/instance-gpu-name": row["gpu_name"]},
            "devices": [
                {"model": row["gpu_name"].upper(), "memoryMiB": int(row["gpu_mem_mib"]), "count": int(row["gpus"])}
            ],
            "offerings": [
                {
                    "price": float(row["price"]),
                    "available": True,
                    "requirements": [
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]},
                    ],
                }
            ],
        }
        for row in rows("catalogue_aws_16.csv")
    ]


def source(copies: int) -> TraceSource:
    """So many copies of the part of the trace that holds nearly all of it."""
    path = str(Path(os.environ[FOLDER], _POD_LIST))
    return TraceSource(
        path, copies=copies, skip_s=9_700_000, span_s=3_200_000, longest_s=7 * _DAY_S, restart_s=_RESTART_S
    )


def scenario(copies: int, duration_s: int, bound_every_s: int, *, moves: bool = False) -> Scenario:
    """So many copies for so long, with or without consolidation."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "types.json").write_text(json.dumps(catalogue()), encoding="utf-8")
        written = copy.deepcopy(_SCENARIO)
        if moves:
            written["spec"]["objects"][0]["spec"]["disruption"] = _MOVING
        Path(folder, "s.json").write_text(json.dumps(written), encoding="utf-8")
        held = read_scenario(str(Path(folder, "s.json")))
    replayed = replace(held, replay=read_replay(source(copies)))
    return with_flags(replayed, TraceFlags(duration_s=duration_s, bound_every_s=bound_every_s))


@dataclass(frozen=True, repr=False)
class LaterReplay(Replay):
    """The same from `begin_s` on: what runs then comes at once, and runs for what is left of its time."""

    begin_s: int = 0

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """As of a whole replay."""
        running, later = [], []
        for each in super().arrivals(seed):
            if each.at_s >= self.begin_s:
                later.append(replace(each, at_s=each.at_s - self.begin_s))
            elif each.runs_s is None:
                running.append(replace(each, at_s=0))
            elif each.at_s + each.runs_s > self.begin_s:
                running.append(replace(each, at_s=0, runs_s=each.at_s + each.runs_s - self.begin_s))
        yield from running
        yield from later


def later(held: Scenario, begin_s: int) -> Scenario:
    """The scenario of a replay that begins so much later."""
    replay = held.replay
    assert replay is not None
    return replace(held, replay=LaterReplay(replay.source, replay.pods, replay.span_s, replay.notes, begin_s))


def peer(copies: int, duration_s: int) -> PeerReplay:
    """What a rule as Karpenter's does with the same pods."""
    types = [
        TypeRow(
            row["name"],
            {"cpu": int(row["cpu_milli"]), "memory": int(row["mem_mib"]) << 20, "pods": int(row["pods"])},
            round(float(row["price"]) * 1e6),
            int(row["gpus"]),
        )
        for row in rows("catalogue_aws_16.csv")
    ]
    found = PeerReplay(types)
    found.run(read_replay(source(copies)).arrivals(_SEED), duration_s)
    return found


def day(duration_s: int = _DAY_S) -> Iterator[tuple[str, float]]:
    """A day of 32 copies, without a bound, in CPU seconds and in loops of ten million steps; and that it is the same
    again."""
    collect_seldom()
    loops, found = [_loop_s()], []
    for _ in range(2):
        start = time.process_time()
        report = run(scenario(32, duration_s, 0))
        found.append((time.process_time() - start, json.dumps(report.to_object())))
        loops.append(_loop_s())
    seconds = min(each for each, _ in found)
    yield "replay_day_s", seconds
    yield "replay_day_loops", seconds / min(loops)
    yield "replay_day_reports", len({text for _, text in found})


def weeks(copies: int = 8, duration_s: int = 10 * _DAY_S) -> Iterator[tuple[str, float]]:
    """Ten days of so many copies: cost above the re-pack bound, waits, and how much of the cards paid is used."""
    yield from _figures(f"replay_{copies}", copies, duration_s, moves=False)


def moved(copies: int = 32, duration_s: int = 10 * _DAY_S) -> Iterator[tuple[str, float]]:
    """The same with consolidation, and how often pods were moved."""
    yield from _figures(f"replay_moved_{copies}", copies, duration_s, moves=True)


def starts(copies: int = 16, duration_s: int = 8 * 3600) -> Iterator[tuple[str, float]]:
    """So long from each of seven days, with consolidation: dollars, above the bound, evictions, CPU."""
    collect_seldom()
    held = scenario(copies, duration_s, 5400, moves=True)
    for day_number in _STARTS:
        began = time.process_time()
        report = run(later(held, day_number * _DAY_S))
        seconds = time.process_time() - began
        assert report.replayed is not None
        assert report.replayed.bound is not None
        name, cost_micro = f"replay_from_day_{day_number}", report.totals.cost_micro
        yield f"{name}_usd", cost_micro / 1e6
        yield f"{name}_over_bound_percent", 100 * (cost_micro / report.replayed.bound.micro - 1)
        yield f"{name}_evictions", report.totals.evictions
        yield f"{name}_cpu_s", seconds


def compare(before: str, after: str) -> Iterator[tuple[str, float]]:
    """Two files of `starts`: by how many percent the second has more dollars, with the standard error, and how often it
    has the evictions and the CPU of the first."""
    first, second = _read(before), _read(after)
    days = [day for day in _STARTS if f"replay_from_day_{day}_cpu_s" in first.keys() & second.keys()]

    def of(figures: dict[str, float], what: str) -> list[float]:
        return [figures[f"replay_from_day_{day}_{what}"] for day in days]

    more = [100 * (new / old - 1) for old, new in zip(of(first, "usd"), of(second, "usd"), strict=True)]
    yield "days", len(days)
    yield "usd_percent", statistics.mean(more)
    if len(more) > 1:
        yield "usd_percent_error", statistics.stdev(more) / len(more) ** 0.5
    for figures, name in ((first, "before"), (second, "after")):
        yield f"over_bound_percent_{name}", statistics.mean(of(figures, "over_bound_percent"))
    for what in ("evictions", "cpu_s"):
        yield f"{what}_times", sum(of(second, what)) / sum(of(first, what))


def _read(path: str) -> dict[str, float]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return {name: value for line in lines for name, value in json.loads(line).items()}


def _figures(name: str, copies: int, duration_s: int, *, moves: bool) -> Iterator[tuple[str, float]]:
    collect_seldom()
    report = run(scenario(copies, duration_s, 5400, moves=moves))
    assert report.replayed is not None
    assert report.replayed.bound is not None
    totals, hours = report.totals, duration_s / 3600
    bound_micro = report.replayed.bound.micro
    other = peer(copies, duration_s)
    peer_over = 100 * (other.cost_micro / bound_micro - 1)
    over = 100 * (totals.cost_micro / bound_micro - 1)
    yield f"{name}_over_bound_percent", over
    yield f"{name}_peer_over_bound_percent", peer_over
    yield f"{name}_of_peer", 100 * over / peer_over
    yield f"{name}_bound_usd_h", bound_micro / 1e6 / hours
    if moves:
        yield f"{name}_moves_per_pod_hour", totals.evictions / other.pod_hours
    yield f"{name}_wait_p50_s", totals.waits.p50
    yield f"{name}_wait_p99_s", totals.waits.p99
    yield f"{name}_gpus_used_percent", 100 * (1 - totals.kerf)
    yield f"{name}_unplaced", totals.pods_unplaced


def _loop_s() -> float:
    """CPU seconds of a plain loop of ten million steps."""
    start = time.process_time()
    total = 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - start


SETS: dict[str, Callable[..., Iterator[tuple[str, float]]]] = {
    "day": day,
    "weeks": weeks,
    "moved": moved,
    "starts": starts,
}


def main(what: str, *sizes: str) -> None:
    """Print the figures of a set, one object a line; all but `day` may be given a number of copies, and of seconds.
    `compare` is given two files."""
    if what != "compare" and what not in SETS:
        raise SystemExit(f"expected one of {', '.join(SETS)}, compare, got {what}")
    for figure, value in compare(*sizes) if what == "compare" else SETS[what](*map(int, sizes)):
        print(json.dumps({figure: value}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
