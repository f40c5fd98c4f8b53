"""Random pods on random clusters, judged by the real kube-scheduler, the in-memory one and Kerf's fit.

Run as `python -m benchmarks.bench_differential pods [COUNT]`. The gate asks about 2,000 other pods
(`tests/controlplane/test_differential.py`), and prints a minimal case where two disagree; here it is as many as can be
had in some minutes.
"""

import json
import sys
import time

from tests.differential.clusters import ALL, SIMPLE, random_cluster
from tests.differential.play import Played, play
from tests.differential.real import RealCluster
from tools.controlplane.recording import real_scheduler
from tools.playground import programs

_FIRST_SEED = 1_000
"""Those of the gate are below it."""


def pods(count: int = 50_000) -> dict[str, float]:
    """Disagreements, and pods a second, of so many pods; it ends at the first cluster in which two disagree."""
    total, seed, began = Played(), _FIRST_SEED, time.monotonic()
    with real_scheduler(programs()) as scheduler:
        real = RealCluster(scheduler)
        real.share()
        while total.pods < count and not total.disagreements:
            cluster = random_cluster(seed, ALL if seed % 3 else SIMPLE)
            with real.filled(cluster.objects):
                total.add(play(cluster, real=real, with_fit=True))
            seed += 1
    for found in total.disagreements:
        print(found.text(), file=sys.stderr)
    print(f"{total.pods} pods in {time.monotonic() - began:.0f} s, {total.bound} bound", file=sys.stderr)
    return {
        "differential_pods_not_asked": max(0, count - total.pods),
        "differential_disagreements": len(total.disagreements),
        "differential_s": time.monotonic() - began,
    }


if __name__ == "__main__":
    print(json.dumps(pods(*map(int, sys.argv[2:]))))
