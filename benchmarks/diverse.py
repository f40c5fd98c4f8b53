"""The workload, the types and the pool of Karpenter's scheduling benchmark, for both to plan the same.

Its sources are pkg/controllers/provisioning/scheduling/scheduling_benchmark_test.go (`makeDiversePods`,
`makePreferencePods`) and pkg/cloudprovider/fake/instancetype.go (`InstanceTypes`). What is random there is random here
from the same values, though not by the same generator.
"""

import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from kerf.model.constraints import HOSTNAME, ZONE, Requirements
from kerf.model.instancetypes import MICRO, ON_DEMAND, SPOT, InstanceType, Offering
from kerf.model.market import Market
from kerf.model.pods import Pod, PodSpec
from kerf.model.quantities import CPU, MEMORY, Resources
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type

ZONES = ("test-zone-1", "test-zone-2", "test-zone-3")
PREFERRED_ZONE = ZONES[0]
_SOLD = tuple((zone, SPOT) for zone in ZONES[:2]) + tuple((zone, ON_DEMAND) for zone in ZONES)
_CPU_M, _MEMORY_MI = (100, 250, 500, 1000, 1500), (100, 256, 512, 1024, 2048, 4096)
_VALUES = "abcdefg"
_SEED = 42
LIMITS: Mapping[str, str | int] = {CPU: 10_000_000, MEMORY: "10000000Gi"}
"""Of the pool, which no plan comes near."""


def types(count: int = 400) -> Market:
    """So many types, of a core more each, with 2 GiB and 10 pods a core; every offering of one type at one price."""
    return a_market(*map(_type, range(1, count + 1)))


def _type(cores: int) -> InstanceType:
    # 0.1 a core, and 0.1 for each 10^9 bytes.
    price_micro = cores * MICRO // 10 + 2 * cores * 2**30 * MICRO // 10**10
    return an_instance_type(
        f"fake-it-{cores - 1}",
        cpu=cores,
        memory=f"{2 * cores}Gi",
        pods=10 * cores,
        zones=ZONES,
        capacity_types=(SPOT, ON_DEMAND),
        overhead=Resources.parse({CPU: "100m", MEMORY: "10Mi"}),
        offerings=tuple(Offering(zone, capacity_type, price_micro) for zone, capacity_type in _SOLD),
    )


def diverse(count: int, seed: int = _SEED) -> ClusterSnapshot:
    """Pods of five kinds, as many of each: any; spread over zones; over nodes; beside equals in a zone; each away from
    all others of the kind. The remainder is of the first kind. Labels and selectors of spread do not go together.

    The pool has the limits that it has there.
    """
    made = _Maker(seed)
    kinds = (made.any, made.over_zones, made.over_nodes, made.together, made.apart)
    each = count // len(kinds)
    pods = [kind(number * each + index) for number, kind in enumerate(kinds) for index in range(each)]
    pods += [made.any(index) for index in range(len(pods), count)]
    return a_snapshot(pools=[a_pool(capacity_types=(), limits=LIMITS)], pods=pods)


def preferring(count: int, seed: int = _SEED) -> ClusterSnapshot:
    """Equal pods that would rather be in one zone, in a zone without each other, which all but one cannot have, and on
    nodes without each other."""
    labels = {"app": "nginx"}
    selector = Requirements.of_labels(labels)
    terms = ((10, PodAffinityTerm(ZONE, selector)), (1, PodAffinityTerm(HOSTNAME, selector)))
    asked = a_pod(
        **_Maker(seed).sizes(),
        preferred=((1, Requirements.of_labels({ZONE: PREFERRED_ZONE})),),
        pod_anti_affinity=PodAffinity(preferred=terms),
    ).spec
    pods = [Pod("default", f"pod-{number}", asked, labels=labels, uid=f"u{number}") for number in range(count)]
    return a_snapshot(pools=[a_pool(capacity_types=())], pods=pods)


class _Maker:
    """Makes pods by their numbers. Equal specs are one object, as decode makes them."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._spec: Callable[..., PodSpec] = cache(_spec)
        self._selecting = cache(_selecting)

    def sizes(self) -> dict[str, str]:
        """Random requests."""
        return {"cpu": f"{self._chance.choice(_CPU_M)}m", "memory": f"{self._chance.choice(_MEMORY_MI)}Mi"}

    def any(self, number: int) -> Pod:
        """A pod that asks nothing of others."""
        return self._made(number, self._label("my-label"))

    def over_zones(self, number: int) -> Pod:
        """A pod spread over zones among some that need not be its equals."""
        return self._made(number, self._label("my-label"), spread=self._even(ZONE))

    def over_nodes(self, number: int) -> Pod:
        """The same over nodes."""
        return self._made(number, self._label("my-label"), spread=self._even(HOSTNAME))

    def together(self, number: int) -> Pod:
        """A pod that must be in one zone with those of its label."""
        # The label is spelled so in the source.
        labels = self._label("my-affininity")
        return self._made(number, labels, pod_affinity=self._term(ZONE, labels))

    def apart(self, number: int) -> Pod:
        """A pod that shares no node with any other of this kind."""
        labels = {"app": "nginx"}
        return self._made(number, labels, pod_anti_affinity=self._term(HOSTNAME, labels))

    def _made(self, number: int, labels: dict[str, str], **relations: Any) -> Pod:
        spec = self._spec(**self.sizes(), **relations)
        return Pod("default", f"pod-{number}", spec, labels=labels, uid=f"u{number}")

    def _label(self, key: str) -> dict[str, str]:
        return {key: self._chance.choice(_VALUES)}

    def _even(self, key: str) -> tuple[TopologySpreadConstraint, ...]:
        return (TopologySpreadConstraint(key, 1, self._selecting(*self._label("my-label").items())),)

    def _term(self, key: str, labels: dict[str, str]) -> PodAffinity:
        return PodAffinity((PodAffinityTerm(key, self._selecting(*labels.items())),))


def _selecting(*labels: tuple[str, str]) -> Requirements:
    return Requirements.of_labels(dict(labels))


def _spec(**asked: Any) -> PodSpec:
    return a_pod(**asked).spec
