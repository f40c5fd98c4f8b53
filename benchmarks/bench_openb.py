"""Pods and types of the openb trace (alibaba/clusterdata, cluster-trace-gpu-v2023): bounds and plans.

`KERF_OPENB` is a folder with `openb_pod_list_<variant>.csv` (columns: name, cpu_milli, memory_mib, num_gpu, gpu_milli)
and `catalogue_aws_16.csv` (name, gpu_name, gpus, gpu_mem_mib, cpu_milli, mem_mib, pods, price). They are not part of
the project: without them the row fails and says so. All pods that ask for a GPU are pending at once, in the variants
`cpu...` those without one as well; a thousandth of a GPU is a tenth of a percent of the memory of any card, in whole
percent. In the variants `gpuspec...` pods name models of cards (`gpu_spec`), here those of `_MODELS`.
"""

import csv
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.baselines import by_score, karpenter
from benchmarks.boundcheck import PodRow, TypeRow, proved
from benchmarks.plancheck import checked
from kerf.cli.collector import collect_seldom
from kerf.cli.plan.json import plan_object
from kerf.engine.buy.bound import proven
from kerf.engine.decide import decide
from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.engine.place.shapes import group
from kerf.engine.supply.offered import supply
from kerf.engine.world import World
from kerf.model.constraints import Requirement, Requirements
from kerf.model.instancetypes import MICRO
from kerf.model.market import Market
from kerf.model.plan import PIN
from kerf.model.pods import Container, Pod, PodSpec
from kerf.model.policies import FIRST_FIT
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import a_market, a_pool, a_snapshot, an_instance_type, cards

FOLDER = "KERF_OPENB"
_POOL = a_pool(labels={"gpu": "on"})
_MODEL = "karpenter.k8s.aws/instance-gpu-name"
_MODELS = {
    **dict.fromkeys(("T4", "P100"), "t4"),
    **dict.fromkeys(("V100M16", "A10"), "a10g"),
    "V100M32": "l40s",
    **dict.fromkeys(("G1", "G2"), "l4"),
    "G3": "a100",
}
"""The model on AWS for each of the trace."""
Row = dict[str, str]


def rows(name: str) -> list[Row]:
    """The rows of a file of the folder. Exits where there is no folder, or no such file in it."""
    folder = os.environ.get(FOLDER, "")
    if not folder or not (Path(folder) / name).is_file():
        raise SystemExit(f"expected {name} in the folder that {FOLDER} names, got {folder or 'no such variable'}")
    with (Path(folder) / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def market(found: list[Row]) -> Market:
    """The types of a catalogue."""
    return a_market(
        *(
            an_instance_type(
                row["name"],
                cpu=f"{row['cpu_milli']}m",
                memory=f"{row['mem_mib']}Mi",
                pods=int(row["pods"]),
                devices=cards(int(row["gpus"]), int(row["gpu_mem_mib"]), row["gpu_name"].upper()),
                labels={_MODEL: row["gpu_name"]},
                price=row["price"],
            )
            for row in found
        )
    )


def asking(variant: str) -> list[Row]:
    """The rows of a variant that are pods of its row here."""
    found = rows(f"openb_pod_list_{variant}.csv")
    return found if variant.startswith("cpu") else [row for row in found if int(row["num_gpu"])]


def pending(found: list[Row], copies: int = 1) -> list[Pod]:
    """The pods, each so many times."""
    return [
        Pod("default", f"{row['name']}-{copy}", _spec(*_asked(row)), uid=f"{row['name']}-{copy}")
        for row in found
        for copy in range(copies)
    ]


def _asked(row: Row) -> tuple[str, str, str, int, frozenset[str]]:
    named = (row.get("gpu_spec") or "").split("|")
    models = frozenset(_MODELS[each] for each in named if each)
    return row["cpu_milli"], row["memory_mib"], row["num_gpu"], int(row["gpu_milli"]) // 10, models


@cache
def _spec(cpu_milli: str, memory_mib: str, gpus: str, percent: int, models: frozenset[str]) -> PodSpec:
    amounts = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}
    if gpus == "0":
        asked = Resources.parse(amounts)
        return PodSpec((Container("main", asked, asked),))
    asked = Resources.parse({**amounts, "nvidia.com/gpu": gpus, "nvidia.com/gpumem-percentage": percent})
    named = (Requirements([Requirement.of(_MODEL, "In", sorted(models))]),) if models else ()
    return PodSpec((Container("main", asked, asked),), affinity=named, scheduler_name="hami-scheduler")


def snapshot(pods: list[Pod], limits: Resources | None = None) -> ClusterSnapshot:
    """Nothing but a pool whose cards HAMi shares, with these limits, and the pods."""
    return a_snapshot(pools=[replace(_POOL, limits=limits)], pods=pods)


def pod_rows(found: list[Row], copies: int = 1) -> Iterator[PodRow]:
    """The same pods for the checks of bound and plan."""
    for row in found:
        cpu, memory_mib, gpus, percent, models = _asked(row)
        amounts = {"cpu": int(cpu), "memory": int(memory_mib) << 20, "pods": 1}
        for copy in range(copies):
            yield PodRow(f"default/{row['name']}-{copy}", amounts, int(gpus), percent, models=models)


def type_rows(found: list[Row]) -> list[TypeRow]:
    """The same types for the checks."""
    return [
        TypeRow(
            row["name"],
            {"cpu": int(row["cpu_milli"]), "memory": int(row["mem_mib"]) << 20, "pods": int(row["pods"])},
            round(float(row["price"]) * MICRO),
            int(row["gpus"]),
            int(row["gpu_mem_mib"]),
            row["gpu_name"],
        )
        for row in found
    ]


def bound(variant: str = "default") -> Iterator[tuple[str, float]]:
    """The bound of a variant, the best of three in CPU seconds, and what an independent check proves of it."""
    types, found = rows("catalogue_aws_16.csv"), asking(variant)
    market_, pods = market(types), pending(found)
    made = plan(snapshot(pods), market_, Options(FIRST_FIT))
    assert made.cost.bound is not None
    placed = {placed.pod for launch in made.launches for placed in launch.pods}
    shapes = group(pod for pod in pods if pod.key in placed)
    offered_types = supply(snapshot([]), market_).available
    seconds = []
    for _ in range(3):
        start = time.process_time()
        proven(shapes, offered_types)
        seconds.append(time.process_time() - start)
    printed: dict[str, Any] = json.loads(json.dumps(plan_object(made, World(snapshot(pods), market_))))
    yield f"openb_{variant}_bound_s", min(seconds)
    yield f"openb_{variant}_bound_usd_h", made.cost.bound.micro / MICRO
    yield f"openb_{variant}_bound_proved_usd_h", proved(printed, pod_rows(found), type_rows(types)) / MICRO
    yield f"openb_{variant}_first_fit_excess_percent", 100 * (made.cost.after_micro / made.cost.bound.micro - 1)


def planned(variant: str = "default", copies: int = 1) -> Iterator[tuple[str, float]]:
    """What a plan for all costs above its bound, checked node by node, and the median of three in CPU seconds.

    Decided with its bound, without words; also in loops of `loop_s`, since machines differ.
    """
    types, found = rows("catalogue_aws_16.csv"), asking(variant)
    market_, pods = market(types), pending(found, copies)
    name = f"openb_{variant}" + (f"_x{copies}" if copies > 1 else "")
    seconds, loops = [], []
    for _ in range(3):
        of_a_loop, world = loop_s(), World(snapshot(pods), market_)
        start = time.process_time()
        decision = decide(world, Options())
        seconds.append(time.process_time() - start)
        loops.append(seconds[-1] / of_a_loop)
    made = plan(snapshot(pods), market_, Options())
    assert made.cost.bound is not None
    assert decision.cost.after_micro == made.cost.after_micro
    printed: dict[str, Any] = json.loads(json.dumps(plan_object(made, world)))
    cost, left = checked(printed, pod_rows(found, copies), type_rows(types))
    yield f"{name}_plan_s", statistics.median(seconds)
    yield f"{name}_plan_loops", statistics.median(loops)
    yield f"{name}_plan_usd_h", cost / MICRO
    yield f"{name}_plan_excess_percent", 100 * (cost / made.cost.bound.micro - 1)
    yield f"{name}_plan_without_node", left
    yield f"{name}_plan_pinned_nodes", sum(launch.follow == PIN for launch in made.launches)


def baselines(variant: str = "default") -> Iterator[tuple[str, float]]:
    """What other rules buy for the pods of a variant that fit on some type, above the bound of the plan for them."""
    types, found = rows("catalogue_aws_16.csv"), asking(variant)
    made = decide(World(snapshot(pending(found)), market(types)), Options())
    assert made.cost.bound is not None
    placed = {pod.key for node in made.bought for pod in node.pods}
    pods, kinds = [row for row in pod_rows(found) if row.key in placed], type_rows(types)
    prices = {"best_fit": by_score(pods, kinds, fragmentation=False), "fgd": by_score(pods, kinds, fragmentation=True)}
    for name, (price_micro, left) in prices.items():
        assert not left, f"{name} left {left} pods"
        yield f"openb_{variant}_{name}_excess_percent", 100 * (price_micro / made.cost.bound.micro - 1)
    for name, is_summed in (("karpenter_summed", True), ("karpenter_by_card", False)):
        price_micro, nodes, wrong = karpenter(pods, kinds, summed=is_summed)
        yield f"openb_{variant}_{name}_usd_h", price_micro / MICRO
        yield f"openb_{variant}_{name}_excess_percent", 100 * (price_micro / made.cost.bound.micro - 1)
        yield f"openb_{variant}_{name}_wrong_nodes_percent", 100 * wrong / nodes


def loop_s() -> float:
    """CPU seconds of a plain loop of ten million steps."""
    start = time.process_time()
    total = 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - start


SETS = ("bound", "plan", "baselines")
_PLANNED = ("default", "default:3", "default:14", "cpu100", "gpushare40", "gpuspec10", "multigpu20")


def main(what: str, *variants: str) -> None:
    """Print the figures of a set, one object a line. A variant may have copies: `default:14`."""
    if what not in SETS:
        raise SystemExit(f"expected one of {', '.join(SETS)}, got {what}")
    # As the program does.
    collect_seldom()
    for variant in variants or (_PLANNED if what == "plan" else ("default",)):
        name, _, copies = variant.partition(":")
        made = {"bound": bound, "baselines": baselines}.get(what)
        figures = planned(name, int(copies or 1)) if made is None else made(name)
        for figure, value in figures:
            print(json.dumps({figure: value}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
