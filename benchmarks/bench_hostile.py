"""What one tenant's pods cost another tenant: CPU seconds until a pod that comes amid them is decided for.

Run as `python -m benchmarks.bench_hostile [LOAD ...]`. Kerf decides for a portion of the pods that wait. When another
tenant's pod comes, one such pass has just begun; the next one is for that pod, too. `hostile_LOAD_s` is both passes
together, `hostile_LOAD_words_s` what is said between them: no hint is tried any more once a decision waits, and
`hostile_LOAD_mib` the most memory that both took.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from kerf.catalog import aws
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.explain.hints.tries import Tries
from kerf.engine.explain.plan import explain
from kerf.engine.options import Options
from kerf.engine.place.shapes import Readings
from kerf.engine.portion import portion
from kerf.engine.world import World
from kerf.model.constraints import HOSTNAME, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.nodes import Node
from kerf.model.pods import RUNNING, Pod
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_node, a_pod, a_pool, a_snapshot

Figures = Iterator[tuple[str, float]]
MEAN, MOST = "mean", 400
_OPTIONS = Options(with_bound=False)


def differing(pods: int = 1_500, shapes: int = 900) -> list[Pod]:
    """Pods of so many shapes, most of which no machine holds."""
    given = ({"cpu": 1 if n % 50 == 0 else 5_000, "memory": f"{n % shapes + 1}Mi"} for n in range(pods))
    return [a_pod(f"p-{n}", namespace=MEAN, uid=f"m{n}", created_s=n, **each) for n, each in enumerate(given)]


def terms(pods: int = 60, terms: int = 1_000) -> list[Pod]:
    """Pods of so many terms of node affinity, none of which a pool meets."""
    asked = (tuple(Requirements.of_labels({"team": f"t-{n}-{t}"}) for t in range(terms)) for n in range(pods))
    return [
        a_pod(f"p-{n}", namespace=MEAN, uid=f"m{n}", created_s=n, cpu=1, affinity=each) for n, each in enumerate(asked)
    ]


def values(pods: int = 60, values: int = 1_000) -> list[Pod]:
    """Pods that list so many types each that they do not want."""
    unwanted = (Requirement.of(INSTANCE_TYPE, "NotIn", (f"x{n}.{v}" for v in range(values))) for n in range(pods))
    return [
        a_pod(f"p-{n}", namespace=MEAN, uid=f"m{n}", created_s=n, cpu=1, affinity=(Requirements([each]),))
        for n, each in enumerate(unwanted)
    ]


def averse(number: int, terms: int = 1_000) -> PodAffinity:
    """Anti-affinity of so many terms like no other pod's."""
    selectors = (Requirements.of_labels({"app": f"a-{number}-{t}"}) for t in range(terms))
    return PodAffinity(tuple(PodAffinityTerm(HOSTNAME, each) for each in selectors))


def apart(pods: int = 40) -> list[Pod]:
    """Pods of a thousand terms of anti-affinity."""
    return [
        a_pod(f"p-{n}", namespace=MEAN, uid=f"m{n}", created_s=n, cpu=1, pod_anti_affinity=averse(n))
        for n in range(pods)
    ]


def spread(pods: int = 40, terms: int = 300) -> list[Pod]:
    """Pods of so many constraints of spread on labels that no node has."""
    web = Requirements.of_labels({"app": "web"})
    asked = (tuple(TopologySpreadConstraint(f"k-{n}-{t}", 1, web) for t in range(terms)) for n in range(pods))
    return [
        a_pod(f"p-{n}", namespace=MEAN, uid=f"m{n}", created_s=n, cpu=1, spread=each) for n, each in enumerate(asked)
    ]


def running(pods: int = 40) -> tuple[list[Node], list[Pod]]:
    """The same pods as `apart` on a node each."""
    nodes = [a_node(f"n-{n}", labels={HOSTNAME: f"n-{n}", ZONE: "us-east-1a"}) for n in range(pods)]
    return nodes, [replace(pod, node_name=f"n-{n}", phase=RUNNING) for n, pod in enumerate(apart(pods))]


def _passes(waiting: list[Pod], nodes: list[Node], there: list[Pod]) -> tuple[float, float]:
    """CPU seconds of a pass without and one with the other tenant's pod; and for the words of the first."""
    other = a_pod("other", namespace="web", uid="other", created_s=10**6, cpu=1)
    whole = a_snapshot(
        pools=[a_pool(types=("m5.large", "m5.xlarge", "c5.large"))], pods=[*there, *waiting], nodes=nodes
    )
    market, spent = aws.load(), list[float]()
    tried: frozenset[str] = frozenset()
    made: list[Decision] = []
    for come in ((), (other,)):
        start = time.process_time()
        part = portion((*whole.pending, *come), MOST, tried=tried, read=lambda: Readings.of(whole))
        made.append(decide(World(replace(whole, pending=part.pods), market), _OPTIONS))
        spent.append(time.process_time() - start)
        tried |= {pod.uid for pod in part.pods}
    assert "web/other" not in made[-1].left
    start = time.process_time()
    explain(made[0], Tries(is_wanted=lambda: False))
    return sum(spent), time.process_time() - start


LOADS: dict[str, Callable[[], tuple[list[Pod], list[Node], list[Pod]]]] = {
    "differing": lambda: (differing(), [], []),
    "terms": lambda: (terms(), [], []),
    "values": lambda: (values(), [], []),
    "apart": lambda: (apart(), [], []),
    "spread": lambda: (spread(), [], []),
    "running": lambda: ([], *running()),
}


def figures(names: list[str]) -> Figures:
    """Those of the loads of these names, or of all."""
    for name in names or LOADS:
        spent, words = _passes(*LOADS[name]())
        yield f"hostile_{name}_s", spent
        yield f"hostile_{name}_words_s", words
        yield f"hostile_{name}_mib", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    for figure in figures(sys.argv[1:]):
        print(json.dumps(dict([figure])), flush=True)
