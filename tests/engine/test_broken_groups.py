"""A group that has room gets it, though groups of another tenant find room one by one and break each other together."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.constraints import HOSTNAME, ZONE, Requirements
from kerf.model.pods import Pod
from kerf.model.quantities import CPU
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
SIZES = (("m5.xlarge", 4, "16Gi", "0.192"), ("c5.2xlarge", 8, "16Gi", "0.34"), ("m5.4xlarge", 16, "64Gi", "0.768"))
MARKET = a_market(*(an_instance_type(n, cpu=cpu, memory=m, price=p, zones=ZONES) for n, cpu, m, p in SIZES))
OPTIONS = Options(with_bound=False)


def app(name: str) -> Requirements:
    """Pods with this label."""
    return Requirements.of_labels({"app": name})


def by(selector: Requirements, key: str) -> PodAffinity:
    """What a pod must be with, or away from, in a domain of the key."""
    return PodAffinity((PodAffinityTerm(key, selector),))


def group(namespace: str, name: str, least: int, amounts: Iterable[str], label: str = "", **given: Any) -> list[Pod]:
    """A group of one pod for each amount of cpu; `3@5` came at second 5, else at 1."""
    labels = {"app": label or name, "kerf.dev/pod-group": name, "kerf.dev/pod-group-min": str(least)}
    asked = [amount.partition("@") for amount in amounts]
    return [
        a_pod(
            f"{name}-{number}",
            namespace=namespace,
            uid=f"{namespace}/{name}-{number}",
            cpu=cpu,
            memory="128Mi",
            created_s=float(age or 1),
            labels=labels,
            **given,
        )
        for number, (cpu, _, age) in enumerate(asked)
    ]


def evil() -> list[Pod]:
    """Groups that seek zones without each other's pods: `e14` finds one alone, and none once all are packed."""
    away, even = by(Requirements(), ZONE), (TopologySpreadConstraint(ZONE, 1, app("e13")),)
    return [
        *group("evil", "e1", 1, ["1007m"], "e15", pod_anti_affinity=by(app("e15"), ZONE)),
        *group("evil", "e2", 1, ["3"], "e7", pod_affinity=by(app("e7"), HOSTNAME)),
        *group("evil", "e9", 3, ["1063m", "1@5", "3@5", "1"], pod_anti_affinity=away),
        *group("evil", "e11", 1, ["100m"], "e13", pod_anti_affinity=by(Requirements(), HOSTNAME)),
        *group("evil", "e13", 4, ["1", "1091m", "1", "1091m@5"], spread=even),
        *group("evil", "e14", 1, ["3"], "e19", pod_anti_affinity=away),
    ]


def good() -> list[Pod]:
    """Three younger groups of another tenant."""
    return [
        *group("good", "g1", 1, ["1@10"], pod_anti_affinity=by(app("g1"), HOSTNAME)),
        *group("good", "g3", 2, ["1@10", "1@10"], pod_affinity=by(app("g3"), HOSTNAME)),
        *group("good", "e4", 1, ["3@10"], "g4", pod_affinity=by(app("g4"), ZONE)),
    ]


def decided(pods: Iterable[Pod], cpu: int | None = None) -> Decision:
    """What is done for them, with one pool of so much cpu at most."""
    pools = [a_pool(limits=None if cpu is None else {CPU: cpu})]
    return decide(World(a_snapshot(pods=pods, pools=pools), MARKET), OPTIONS)


def served(made: Decision) -> set[str]:
    """The pods that get a node."""
    return {pod.pod for launch in made.launches for pod in launch.pods}


@pytest.mark.parametrize("impossible", [0, 12])
def test_a_group_that_is_whole_is_not_refused_because_another_breaks(impossible: int) -> None:
    """Whatever else of the other tenant fits nowhere. The one that broke is what is left out."""
    never = [pod for n in range(impossible) for pod in group("evil", f"x{n}", 1, [str(100 + n)])]
    found = served(decided([*evil(), *never, *good()]))

    assert {pod.key for pod in good()} <= found
    assert {"evil/e1-0", "evil/e2-0", "evil/e11-0", *(f"evil/e13-{n}" for n in range(4))} <= found


@pytest.mark.parametrize("seed", range(6))
def test_it_is_served_whatever_the_order_in_which_groups_came(seed: int) -> None:
    """Also with groups of the other tenant that are younger than its own, and with parts of them alone."""
    random = Random(seed)
    theirs = [pod for pod in evil() if random.random() < 0.9]
    pods = [replace(pod, created_s=float(random.randrange(20))) for pod in (*theirs, *good())]
    random.shuffle(pods)

    assert {pod.key for pod in good()} <= served(decided(pods))


def test_a_younger_group_does_not_take_the_place_of_an_older_one_that_has_room() -> None:
    """Where one that broke is left out at a limit, the place that it leaves goes to the first that it serves."""
    singles = [pod for n in range(6) for pod in group("good", f"s{n}", 2, [f"1@{20 + n}"] * 2)]
    found = [{key for key in served(decided([*evil(), *singles], cpu)) if "good/" in key} for cpu in (8, 12, 20, 40)]

    for keys in found:
        assert {f"good/s{n}-{i}" for n in range(len(keys) // 2) for i in range(2)} == keys
    assert 12 == len(found[-1])
