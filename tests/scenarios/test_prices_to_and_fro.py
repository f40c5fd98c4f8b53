"""E14: a price that goes to and fro is not run after. A day of each swing costs at most twenty launches, and the bill
is no higher than where nothing moves; a price that has changed for good is answered (`price.yaml`)."""

from pathlib import Path
from typing import NamedTuple

import pytest

from kerf.sim.course.report import SimulationReport
from kerf.sim.course.scenario import read_scenario
from kerf.sim.simulation import run
from tests.scenarios.test_last_word import times

A_DAY_S, MOST, NODES = 86_400, 20, 4


class Swing(NamedTuple):
    """Prices that types have in turn, each for so long; `begin` are the types whose swing begins with the second."""

    every_s: int
    prices: dict[str, tuple[str, str]]
    begin: frozenset[str] = frozenset()

    def timeline(self) -> list[str]:
        """The prices as a scenario sets them."""
        return [
            f"{{at: {at_s}s, price: {{instanceType: {name}, perHour: {prices[(turn + (name in self.begin)) % 2]}}}}}"
            for turn, at_s in enumerate(range(0, A_DAY_S, self.every_s))
            for name, prices in self.prices.items()
        ]


LESS = {"m5.xlarge": ("0.192", "0.150")}
MORE = {"m5.xlarge": ("0.300", "0.150")}
TWO = {"m5.xlarge": ("0.192", "0.150"), "m5a.xlarge": ("0.140", "0.200")}
SWINGS = {
    "one-type-half-hours": Swing(1_800, LESS),
    "one-type-minutes": Swing(60, LESS),
    "one-type-six-hours": Swing(21_600, LESS),
    "expensive-on-average-hours": Swing(3_600, MORE),
    "expensive-on-average-half-hours-from-the-low": Swing(1_800, MORE, frozenset(MORE)),
    "two-types-half-hours": Swing(1_800, TWO),
    "two-types-six-hours": Swing(21_600, TWO),
    "three-types-half-hours": Swing(1_800, TWO | {"m6i.xlarge": ("0.175", "0.190")}, frozenset({"m6i.xlarge"})),
    "three-types-hours": Swing(3_600, TWO | {"m6i.xlarge": ("0.120", "0.250")}, frozenset({"m5.xlarge"})),
}
IN_GATE = ("one-type-half-hours",)


def lived(directory: Path, timeline: list[str], types: str, budget: str) -> SimulationReport:
    """What comes of so many pods that fill a node each."""
    path = directory / f"{budget.rstrip('%')}.yaml"
    path.write_text(
        f"""\
apiVersion: kerf.dev/v1alpha1
kind: Scenario
metadata: {{name: swing}}
spec:
  duration: 24h
  timeline: [{", ".join(timeline)}]
  objects:
    - apiVersion: karpenter.sh/v1
      kind: NodePool
      metadata: {{name: cpus}}
      spec:
        disruption: {{consolidateAfter: 1m, budgets: [{{nodes: {budget}}}]}}
        template:
          spec:
            nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
            requirements:
              - {{key: node.kubernetes.io/instance-type, operator: In, values: [{types}]}}
              - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {{name: web, namespace: default}}
      spec:
        replicas: {NODES}
        selector: {{matchLabels: {{app: web}}}}
        template:
          metadata: {{labels: {{app: web}}}}
          spec:
            containers: [{{name: main, image: "ubuntu:22.04", resources: {{requests: {{cpu: 3, memory: 4Gi}}}}}}]
""",
        encoding="utf-8",
    )
    return run(read_scenario(str(path)))


@pytest.mark.parametrize(
    "swing",
    [pytest.param(each, id=name, marks=() if name in IN_GATE else pytest.mark.long) for name, each in SWINGS.items()],
)
def test_a_price_that_goes_to_and_fro_costs_few_launches_and_no_money(tmp_path: Path, swing: Swing) -> None:
    """For a day."""
    types = ", ".join({"m5.xlarge", "m5a.xlarge", *swing.prices})
    stays = lived(tmp_path, swing.timeline(), types, "0%")
    moves = lived(tmp_path, swing.timeline(), types, "100%")
    launches = len(times(moves, "claim created", "/cpus-"))

    assert NODES <= launches <= MOST
    assert moves.totals.cost_micro <= stays.totals.cost_micro
