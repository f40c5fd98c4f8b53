"""F9: a cause that repeats backs off. A day of each beside a healthy workload: at most twenty launches of it, what
waits says when the next try is, and the healthy pods are served as if they were alone. The long tier plays a week."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kerf.sim.course.report import SimulationReport
from kerf.sim.course.scenario import read_scenario
from kerf.sim.simulation import run
from tests.scenarios.test_last_word import deployment, times, whys

A_DAY_S, MOST = 86_400, 20
HEALTHY_S = (0, 3_600, 20_000, 43_200, 70_000)
"""When a pod of the healthy workload comes, in each day; it stays for half an hour."""


def pool(name: str, *types: str, cap: str = "") -> str:
    """A pool that takes the pods that select it, and consolidates after a minute."""
    annotations = f", annotations: {{kerf.dev/max-price-per-hour: '{cap}'}}" if cap else ""
    return f"""\
    - apiVersion: karpenter.sh/v1
      kind: NodePool
      metadata: {{name: {name}{annotations}}}
      spec:
        disruption: {{consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 1m, budgets: [{{nodes: 100%}}]}}
        template:
          spec:
            nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
            requirements:
              - {{key: node.kubernetes.io/instance-type, operator: In, values: [{", ".join(types)}]}}
              - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
"""


def selecting(name: str, pool: str, *, replicas: int = 1, part: str = "") -> str:
    """A Deployment of one-GPU pods for that pool."""
    return deployment(name, f"              nodeSelector: {{karpenter.sh/nodepool: {pool}}}\n{part}", replicas=replicas)


def lived(directory: Path, days: int, ill: str, timeline: list[str]) -> SimulationReport:
    """What comes of the ill pool `ill`, beside a healthy one whose pods come and go."""
    for day in range(days):
        for at_s in HEALTHY_S:
            begin = day * A_DAY_S + at_s
            timeline.append(f"{{at: {begin + 60}s, scale: {{deployment: good, replicas: 1}}}}")
            timeline.append(f"{{at: {begin + 1860}s, scale: {{deployment: good, replicas: 0}}}}")
    objects = pool("well", "g4dn.xlarge") + selecting("good", "well", replicas=0)
    text = f"""\
apiVersion: kerf.dev/v1alpha1
kind: Scenario
metadata: {{name: repeated}}
spec:
  duration: {days * 24}h
  timeline: [{", ".join(timeline)}]
  objects:
{ill}{objects}"""
    path = directory / "s.yaml"
    path.write_text(text, encoding="utf-8")
    return run(read_scenario(str(path)))


def never_joins(days: int) -> tuple[str, list[str]]:
    """No machine of the pool ever joins; five pods wait for five of them."""
    fault = "{at: 0s, deviceFault: {nodePool: ill, kind: never-joins, nodes: 100000}}"
    return pool("ill", "g5.xlarge") + selecting("web", "ill", replicas=5), [fault]


def never_registers(days: int) -> tuple[str, list[str]]:
    """No device plugin of the pool ever starts."""
    fault = "{at: 0s, deviceFault: {nodePool: ill, kind: never-registers, nodes: 100000}}"
    return pool("ill", "g5.xlarge") + selecting("web", "ill", replicas=2), [fault]


def flapping(days: int) -> tuple[str, list[str]]:
    """Every seven and a half minutes the other of two types is above the cap."""
    prices = {0: ("0.70", "1.12"), 1: ("1.12", "0.70")}
    flips = []
    for number in range(days * A_DAY_S // 450):
        g5, g6 = prices[number % 2]
        flips.append(f"{{at: {number * 450}s, price: {{instanceType: g5.xlarge, perHour: {g5}}}}}")
        flips.append(f"{{at: {number * 450}s, price: {{instanceType: g6.xlarge, perHour: {g6}}}}}")
    return pool("ill", "g5.xlarge", "g6.xlarge", cap="0.90") + selecting("web", "ill"), flips


def rejected(days: int) -> tuple[str, list[str]]:
    """No scheduler ever binds the pods."""
    refused = "{at: 0s, refuse: {podLabels: {app: web}, message: node(s) had no free licence}}"
    return pool("ill", "g5.xlarge") + selecting("web", "ill", replicas=2), [refused]


Cause = Callable[[int], tuple[str, list[str]]]
CAUSES: list[Cause] = [never_joins, never_registers, flapping, rejected]
every_cause = pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.__name__)
long = pytest.mark.long


def launches_a_day(report: SimulationReport) -> Counter[int]:
    """Of the ill pool."""
    return Counter(int(at_s // A_DAY_S) for at_s in times(report, "claim created", "/ill-"))


def is_served(report: SimulationReport, days: int) -> bool:
    """Whether every pod of the healthy workload was bound within the time of one start."""
    bound = times(report, "bound", "good")
    due = [day * A_DAY_S + at_s + 60 for day in range(days) for at_s in HEALTHY_S]
    return len(bound) == len(due) and all(0 <= at - begin <= 150 for at, begin in zip(bound, due, strict=True))


def played(cause: Cause, days: int) -> SimulationReport:
    """The pool of that cause, beside the healthy one."""
    with TemporaryDirectory() as directory:
        return lived(Path(directory), days, *cause(days))


@cache
def first_day(cause: Cause) -> SimulationReport:
    """Played once for all tests that look at it."""
    return played(cause, 1)


def check(report: SimulationReport, days: int) -> None:
    """What must hold on each day."""
    found = launches_a_day(report)

    assert found
    assert {} == {day: number for day, number in found.items() if number > MOST}
    assert is_served(report, days)


@pytest.mark.parametrize(
    "cause",
    [never_joins, flapping, pytest.param(never_registers, marks=long), pytest.param(rejected, marks=long)],
    ids=lambda cause: cause.__name__,
)
def test_a_day_of_a_repeated_cause_costs_at_most_twenty_launches(cause: Cause) -> None:
    """Each cause by itself."""
    check(first_day(cause), 1)


@long
@every_cause
def test_a_week_of_a_repeated_cause_costs_at_most_twenty_launches_a_day(cause: Cause) -> None:
    """Of seven days none costs more."""
    check(played(cause, 7), 7)


@pytest.mark.parametrize(
    "cause", [never_joins, pytest.param(never_registers, marks=long)], ids=lambda cause: cause.__name__
)
def test_the_pod_says_until_when_the_type_backs_off(cause: Cause) -> None:
    """The instant of the next try, in its event."""
    said = whys(first_day(cause), "FailedScheduling", "web")

    assert any("backs off in NodePool ill until 2026-01-05T" in why for why in said)


def test_the_claim_says_from_when_it_may_be_replaced_for_its_price() -> None:
    """Once the price has gone to and fro."""
    said = whys(first_day(flapping), "PriceCapExceeded")

    assert any("its price goes to and fro, replaced at 2026-01-05T" in why for why in said)


def without_replies(directory: Path, days: int) -> SimulationReport:
    """From the twentieth minute on no launch is answered; what runs before that stays."""
    objects = pool("ill", "g5.xlarge") + selecting("web", "ill", replicas=0)
    objects += pool("well", "g4dn.xlarge") + selecting("good", "well")
    timeline = "[{at: 20m, lostReply: {launches: 1000000}}, {at: 21m, scale: {deployment: web, replicas: 3}}]"
    text = f"""\
apiVersion: kerf.dev/v1alpha1
kind: Scenario
metadata: {{name: lost}}
spec:
  duration: {days * 24}h
  timeline: {timeline}
  objects:
{objects}"""
    path = directory / "s.yaml"
    path.write_text(text, encoding="utf-8")
    return run(read_scenario(str(path)))


@pytest.mark.parametrize("days", [1, pytest.param(7, marks=long)])
def test_replies_that_are_lost_for_ever_cost_at_most_twenty_launches_a_day(tmp_path: Path, days: int) -> None:
    """The type backs off in its pool, and the pods say until when; what runs is left alone."""
    report = without_replies(tmp_path, days)

    assert {} == {day: number for day, number in launches_a_day(report).items() if number > MOST}
    assert [126.0] == times(report, "bound", "good")
    assert [] == times(report, "Terminated", "/well-")
    assert any("backs off in NodePool ill until 2026-01-05T" in why for why in whys(report, "FailedScheduling", "web"))
