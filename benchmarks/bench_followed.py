"""What a plan for random workloads on an empty cluster buys is what comes of it, on a real API server and scheduler.

Run as `python -m benchmarks.bench_followed pods [COUNT] [SEED]`. The gate does so for 100 pods
(`tests/controlplane/test_bought_and_followed.py`). Needs the programs of `make controlplane`.
"""

import json
import sys
import time

from tests.controlplane.cluster import cluster, end_all
from tests.controlplane.test_bought_and_followed import KINDS, PODS
from tests.controlplane.test_following_plans import all_refused
from tests.differential.bought import key_of, settled
from tools.controlplane.process import ControlPlaneError
from tools.playground import programs

_MOST_S = 900.0
"""Until all pods are bound; those that wait then are counted."""


def pods(count: int = 1_000, seed: int = 0) -> dict[str, float]:
    """Of so many pods those that wait though the plan placed them, nodes beyond the plan, and the seconds it took."""
    workloads, nodes = settled(seed, count, KINDS)
    keys = {key_of(pod) for pod in workloads.pods}
    with cluster(programs()) as site:

        def waiting() -> set[str]:
            return keys - {key_of(pod) for pod in site.pods() if pod["spec"].get("nodeName")}

        site.plane.apply(workloads.objects)
        for pod in workloads.pods:
            site.plane.request("POST", PODS, pod).good("create a pod")
        all_refused(site, len(keys), _MOST_S)
        began = time.monotonic()
        site.start("--batch-max=60s")
        try:
            site.until(lambda: not waiting(), "all are bound", _MOST_S)
        except ControlPlaneError as error:
            print(error, *sorted(waiting())[:20], sep="\n", file=sys.stderr)
        took, left, bought = time.monotonic() - began, len(waiting()), len(site.created_claims())
    end_all()
    print(f"{len(keys)} of {count} pods on {nodes} nodes as planned, {bought} bought", file=sys.stderr)
    return {
        f"followed_{count}_waiting": left,
        f"followed_{count}_nodes_beyond": max(0, bought - nodes),
        f"followed_{count}_s": took,
    }


if __name__ == "__main__":
    print(json.dumps(pods(*map(int, sys.argv[2:]))))
