"""Figures of the history of usage: memory and time for 10,000 workloads, and how large a checkpoint becomes.

Run as `python -m benchmarks.bench_usage history`, a process of its own, which prints its figures as JSON. The
histories are those of a hundred made-up workloads with eight days of a sample a minute, each held by a hundred names.
"""

import json
import os
import random
import time
from collections import Counter
from pathlib import Path

from kerf.engine.study.usage.history import History, WorkloadName, entry_text, history_of, shard_of
from kerf.engine.study.usage.sketch import DAY_S, Sketch
from kerf.model.usage import ContainerUsage, PodUsage

_DAY, _DAYS, _WORKLOADS, _PATTERNS = 20_000, 8, 10_000, 100


def _pattern(drawn: random.Random) -> dict[tuple[str, str], Sketch]:
    """Cpu with a spread of a third, memory with one of a tenth, around sizes of their own."""
    made = {}
    for resource, middle, spread in (
        ("cpu", drawn.randint(20, 4000), 0.35),
        ("memory", drawn.randint(1, 64) << 26, 0.1),
    ):
        sketch = Sketch()
        for day in range(_DAY, _DAY + _DAYS):
            values = (int(middle * drawn.lognormvariate(0, spread)) for _ in range(DAY_S // 60))
            sketch = sketch.merged(Sketch.of(day, values))
        made["main", resource] = sketch
    return made


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def history() -> dict[str, float]:
    """What 10,000 histories take, what a minute's samples of all cost, and the largest ConfigMap of them."""
    drawn = random.Random(1)
    patterns = [_pattern(drawn) for _ in range(_PATTERNS)]
    before = _resident_bytes()
    held: dict[WorkloadName, History] = {}
    for number in range(_WORKLOADS):
        # Each has bytes of its own.
        sketches = {key: Sketch(bytes(bytearray(s.data))) for key, s in patterns[number % _PATTERNS].items()}
        held[WorkloadName("team", "Deployment", f"web-{number}")] = History(
            sketches, _DAY * DAY_S, (_DAY + _DAYS) * DAY_S - 1
        )
    taken = _resident_bytes() - before
    began_s = time.process_time()
    sample = PodUsage("team", "p", (_DAY + _DAYS) * DAY_S - 1, 15, (ContainerUsage("main", 700, 1 << 30),))
    for name, one in held.items():
        held[name] = one.merged(history_of([sample]))
    look_s = time.process_time() - began_s
    shards: Counter[str] = Counter()
    for name, one in held.items():
        shards[shard_of(name)] += len(entry_text(name, one))
    return {
        "usage_10000_mib": taken / 2**20,
        "usage_10000_look_s": look_s,
        "usage_largest_checkpoint_kib": max(shards.values()) / 1024,
    }


if __name__ == "__main__":
    print(json.dumps(history()))
