"""A fleet of GPUs to which everything happens: a Scenario made of a seed, for as many days and about as many cards.

Services grow and shrink by the hour and hold most of the cards, many of them in small slices, some whole and some
several at once; batch pods come and run to their end. Beside them prices move, offerings are sold out, spot machines
are taken back, cards break, machines never join, the cloud throttles, replies are lost, templates change, and Kerf is
killed. Rates are per day and of a fleet, higher than a cloud's, so that a month has all of them many times.

Chance comes from the seed alone, and the text is the same for every run.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DAY_S, _COMING_S, _REST_S = 86_400, 10_800, 7_200
_ZONES = ("zone-a", "zone-b")
_ON_DEMAND, _SPOT = "on-demand", "spot"
_CAPACITY_TYPE = "karpenter.sh/capacity-type"

# Name, model, MiB of a card, cards, cpu, GiB, and the price per hour on demand; sizes and prices as those of AWS.
_TYPES = (
    ("l4-small", "NVIDIA-L4", 22_888, 1, 4, 16, 0.8048),
    ("l4-large", "NVIDIA-L4", 22_888, 1, 16, 64, 1.3248),
    ("l4-four", "NVIDIA-L4", 22_888, 4, 48, 192, 4.6016),
    ("l4-eight", "NVIDIA-L4", 22_888, 8, 96, 384, 8.1440),
    ("a10-small", "NVIDIA-A10G", 23_028, 1, 8, 32, 1.2120),
    ("a10-four", "NVIDIA-A10G", 23_028, 4, 48, 192, 5.6720),
    ("l40s-one", "NVIDIA-L40S", 46_068, 1, 16, 128, 2.2421),
    ("l40s-four", "NVIDIA-L40S", 46_068, 4, 48, 384, 10.4926),
)
_SPOT_SHARE = 0.42

# Of a service: cards, percent of each, cpu in thousandths, MiB, how many such services of a hundred.
_SIZES = (
    (1, 10, 500, 2_000, 14),
    (1, 20, 1_000, 3_000, 18),
    (1, 25, 1_000, 3_500, 14),
    (1, 35, 1_500, 5_000, 12),
    (1, 47, 1_500, 6_000, 14),
    (1, 60, 2_000, 8_000, 8),
    (1, 100, 3_000, 12_000, 12),
    (2, 100, 6_000, 24_000, 4),
    (4, 100, 16_000, 64_000, 2),
    (8, 100, 48_000, 160_000, 2),
)
_DISRUPTED = (0.6, 0.25, 0.15)
"""Of services: the share that has a budget, of these that which counts what is available, and of single pods that are
not to be disrupted."""


@dataclass(frozen=True)
class RandomFleet:
    """The documents of one fleet: the Scenario, the types that its cloud sells, and a trace in the form of openb."""

    scenario: dict[str, Any]
    types: list[dict[str, Any]]
    trace: str

    def write(self, folder: Path) -> Path:
        """Write them into a folder; gives the file of the Scenario."""
        (folder / "types.json").write_text(json.dumps(self.types), encoding="utf-8")
        (folder / "pods.csv").write_text(self.trace, encoding="utf-8")
        path = folder / "scenario.json"
        path.write_text(json.dumps(self.scenario), encoding="utf-8")
        return path


def random_fleet(
    seed: int, days: float, gpus: int, *, faults: float = 1, pace: float = 1, bound_every_s: int = 5_400
) -> RandomFleet:
    """The fleet of a seed: about so many cards are paid for at a time.

    `faults` is how many times as often the cloud and the cards fail, 0 for never; `pace` how many times as often
    services grow and shrink, batch pods and jobs come (and run for as much shorter), and prices move. Cost: what
    happens in so many days.
    """
    return _Making(seed, round(days * _DAY_S), gpus, faults, pace).fleet(bound_every_s)


@dataclass(frozen=True)
class _Service:
    """A Deployment or a StatefulSet, and how many replicas it has on an average day."""

    kind: str
    name: str
    replicas: int
    cards: int
    percent: int


class _Making:
    """One fleet as it is made; each part draws from a source of its own, so that one part does not change another."""

    def __init__(self, seed: int, duration_s: int, gpus: int, faults: float, pace: float) -> None:
        self._seed, self._duration_s, self._gpus, self._often, self._pace = seed, duration_s, gpus, faults, pace
        # Nothing happens at the end, so that whatever waits there still has no reason to.
        self._last_s = duration_s - min(_REST_S, duration_s // 4)
        self._objects: list[dict[str, Any]] = [_pool("spot", [_SPOT], 0), _pool("steady", [_ON_DEMAND], 0)]
        self._timeline: list[tuple[int, dict[str, Any]]] = []

    def _chance(self, part: str) -> random.Random:
        return random.Random(f"{self._seed} {part}")

    def fleet(self, bound_every_s: int) -> RandomFleet:
        """Everything."""
        services = self._services()
        self._scale(services)
        self._jobs()
        self._market()
        self._faults()
        self._changes()
        timeline = sorted(self._timeline, key=lambda each: each[0])
        scenario = {
            "apiVersion": "kerf.dev/v1alpha1",
            "kind": "Scenario",
            "metadata": {"name": f"random-{self._seed}"},
            "spec": {
                "duration": f"{self._duration_s}s",
                "seed": self._seed,
                "cloud": {
                    "catalog": "types.json",
                    "launch": "40s",
                    "jitter": "20s",
                    "register": "15s",
                    "ready": "5s",
                    "devicesReady": "30s",
                },
                "settings": {"nodeRepair": "On", "spotToSpotConsolidation": "On"},
                "objects": self._objects,
                "trace": {"file": "pods.csv", "boundEvery": f"{bound_every_s}s"},
                "timeline": [{"at": f"{at_s}s", **action} for at_s, action in timeline],
            },
        }
        return RandomFleet(scenario, _types(), self._trace())

    # What asks for cards.

    def _services(self) -> list[_Service]:
        chance, found, held = self._chance("services"), list[_Service](), 0.0
        weights = [size[-1] for size in _SIZES]
        while held < 0.7 * self._gpus:
            cards, percent, cpu, memory, _ = chance.choices(_SIZES, weights)[0]
            share = cards * percent / 100
            replicas = max(1, round(chance.lognormvariate(2.0, 0.6) / max(1.0, share)))
            kind = "StatefulSet" if percent == 100 and chance.random() < 0.4 else "Deployment"
            service = _Service(kind, f"s{len(found):03}", replicas, cards, percent)
            found.append(service)
            held += share * replicas
            self._objects += _documents(service, cpu, memory, chance)
        return found

    def _scale(self, services: list[_Service]) -> None:
        """A wave of each day, and what is not foreseen: each service is scaled some eight times a day at pace 1.

        They come one after the other in the first hours.
        """
        for service in services:
            chance, now = self._chance(f"scale {service.name}"), service.replicas
            crest, depth = chance.uniform(0, _DAY_S), chance.uniform(0.1, 0.5)
            comes_s = chance.randrange(max(1, min(_COMING_S, self._last_s)))
            self._timeline.append((comes_s, {"scale": {service.kind.lower(): service.name, "replicas": now}}))
            for at_s in (each for each in self._times(chance, 8 * self._pace) if each > comes_s):
                phase = abs((at_s - crest) % _DAY_S / _DAY_S - 0.5) * 2
                wanted = service.replicas * (1 + depth * (2 * phase - 1)) * chance.lognormvariate(0, 0.15)
                if chance.random() < 0.01:
                    wanted = 0 if chance.random() < 0.5 else 2 * service.replicas
                if round(wanted) != now:
                    now = round(wanted)
                    named = {service.kind.lower(): service.name, "replicas": now}
                    self._timeline.append((at_s, {"scale": named}))

    def _jobs(self) -> None:
        """Jobs of several cards, some of which must not be moved."""
        chance = self._chance("jobs")
        for number, at_s in enumerate(self._times(chance, 0.1 * self._gpus * self._pace)):
            cards = chance.choice((1, 1, 2, 4))
            runs_s = round(min(_DAY_S, chance.lognormvariate(8.5, 1.0)) / self._pace)
            annotations = {"kerf.dev/run-for": f"{runs_s}s"}
            if chance.random() < 0.2:
                annotations["karpenter.sh/do-not-disrupt"] = "true"
            template = {
                "metadata": {"annotations": annotations},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [_container(cards, 100, 3_000 * cards, 12_000 * cards)],
                },
            }
            spec = {"ttlSecondsAfterFinished": 300, "backoffLimit": 100, "template": template}
            job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"j{number:05}"}, "spec": spec}
            self._timeline.append((at_s, {"apply": job}))

    def _trace(self) -> str:
        """Batch pods without an owner that the simulator knows, of a slice or a card each."""
        chance = self._chance("trace")
        lines = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time"]
        for number, at_s in enumerate([1, *self._times(chance, 1.2 * self._gpus * self._pace)]):
            percent = chance.choice((10, 15, 25, 30, 47, 50, 70, 100))
            runs_s = round(min(3 * _DAY_S, max(60, chance.lognormvariate(8.2, 1.3))) / self._pace)
            shape = f"{20 * percent + 500},{80 * percent + 1000},1,{10 * percent}"
            lines.append(f"b{number:06},{shape},{at_s},{at_s + runs_s},{at_s}")
        return "\n".join(lines) + "\n"

    # What the cloud does.

    def _market(self) -> None:
        for name, *_, price in _TYPES:
            chance = self._chance(f"price {name}")
            for zone in _ZONES:
                for at_s in self._times(chance, 2 * self._pace):
                    share = _SPOT_SHARE * min(1.9, max(0.6, chance.lognormvariate(0, 0.12)))
                    self._price(at_s, name, zone, _SPOT, share * price)
            for at_s in self._times(chance, 1 / 15):
                self._price(at_s, name, None, _ON_DEMAND, price * chance.uniform(0.9, 1.1))
            chance = self._chance(f"stock {name}")
            for at_s in self._times(chance, 0.5 * self._often):
                for_s = min(round(chance.uniform(300, 7200)), self._last_s - at_s)
                gone = {"instanceType": name, "for": f"{for_s}s"}
                if chance.random() < 0.7:
                    gone["zone"] = chance.choice(_ZONES)
                gone["capacityType"] = _SPOT if chance.random() < 0.8 else _ON_DEMAND
                self._timeline.append((at_s, {"stockout": gone}))

    def _price(self, at_s: int, name: str, zone: str | None, capacity_type: str, price: float) -> None:
        entry = {"instanceType": name, "capacityType": capacity_type, "perHour": round(price, 4)}
        self._timeline.append((at_s, {"price": entry if zone is None else {**entry, "zone": zone}}))

    def _faults(self) -> None:
        """Rates are a day's of 400 cards; a smaller fleet has fewer."""
        size, chance = self._often * self._gpus / 400, self._chance("faults")
        for at_s in self._times(chance, 6 * size):
            nodes = min(chance.choice((1, 1, 1, 1, 2, 5)), max(1, self._gpus // 80))
            if at_s < _COMING_S:
                # There may be none yet.
                continue
            self._timeline.append((at_s, {"interrupt": {"nodePool": "spot", "nodes": nodes}}))
        for at_s in self._times(chance, 2 * size):
            kind = chance.choice(("unhealthy", "unhealthy", "lost", "never-joins", "never-registers", "registers-less"))
            self._timeline.append(
                (at_s, {"deviceFault": {"nodePool": chance.choice(("spot", "steady")), "kind": kind}})
            )
        for at_s in self._times(chance, self._often):
            self._timeline.append((at_s, {"throttle": {"for": f"{round(chance.uniform(20, 300))}s"}}))
        for at_s in self._times(chance, 0.5 * self._often):
            self._timeline.append((at_s, {"lostReply": {"launches": chance.choice((1, 2))}}))

    def _changes(self) -> None:
        """What people do: a new template now and then, and Kerf is started again."""
        chance = self._chance("changes")
        for number, at_s in enumerate(self._times(chance, 0.2 * self._often), 1):
            name, capacity_type = chance.choice((("spot", _SPOT), ("steady", _ON_DEMAND)))
            self._timeline.append((at_s, {"apply": _pool(name, [capacity_type], number)}))
        for at_s in self._times(chance, 0.7 * self._often):
            self._timeline.append((at_s, {"restart": {}}))

    def _times(self, chance: random.Random, per_day: float) -> list[int]:
        """Times from the first minute on, each independent of the others, in order."""
        return list(_arrivals(chance, per_day, self._last_s))


def _arrivals(chance: random.Random, per_day: float, until_s: int) -> Iterator[int]:
    if per_day == 0:
        return
    at_s = 60.0
    while (at_s := at_s + chance.expovariate(per_day / _DAY_S)) < until_s:
        yield int(at_s)


def _pool(name: str, capacity_types: list[str], version: int) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "2m",
                "budgets": [{"nodes": "10%"}, {"nodes": "20%", "reasons": ["Empty"]}],
            },
            "template": {
                "metadata": {"labels": {"gpu": "on", "template": f"v{version}"}},
                "spec": {
                    "expireAfter": "720h",
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                    "requirements": [{"key": _CAPACITY_TYPE, "operator": "In", "values": capacity_types}],
                },
            },
        },
    }


def _container(cards: int, percent: int, cpu: int, memory: int) -> dict[str, Any]:
    limits = {
        "cpu": f"{cpu}m",
        "memory": f"{memory}Mi",
        "nvidia.com/gpu": str(cards),
        "nvidia.com/gpumem-percentage": str(percent),
    }
    return {"name": "main", "image": "fleet", "resources": {"limits": limits}}


def _documents(service: _Service, cpu: int, memory: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    labels = {"app": service.name}
    spec: dict[str, Any] = {"containers": [_container(service.cards, service.percent, cpu, memory)]}
    if chance.random() < 0.5:
        spec["nodeSelector"] = {_CAPACITY_TYPE: _ON_DEMAND}
    metadata: dict[str, Any] = {"labels": labels}
    has_budget, by_available, kept = _DISRUPTED
    if service.replicas == 1 and chance.random() < kept:
        metadata["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    rules = {"replicas": 0, "selector": {"matchLabels": labels}}
    yield {
        "apiVersion": "apps/v1",
        "kind": service.kind,
        "metadata": {"name": service.name},
        "spec": {**rules, "template": {"metadata": metadata, "spec": spec}},
    }
    if service.replicas > 2 and chance.random() < has_budget:
        allows = {"minAvailable": "75%"} if chance.random() < by_available else {"maxUnavailable": 1}
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": service.name},
            "spec": {"selector": {"matchLabels": labels}, **allows},
        }


def _types() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "architecture": "amd64",
            "operatingSystems": ["linux"],
            "resources": {
                "cpu": str(cpu),
                "memory": f"{memory}Gi",
                "pods": "110",
                "ephemeral-storage": "100Gi",
                "nvidia.com/gpu": str(cards),
            },
            "overhead": {"cpu": "100m", "memory": "1Gi"},
            "devices": [{"model": model, "memoryMiB": mib, "count": cards}],
            "offerings": [
                {
                    "price": round(price * share, 4),
                    "available": True,
                    "requirements": [
                        {"key": _CAPACITY_TYPE, "operator": "In", "values": [capacity_type]},
                        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]},
                    ],
                }
                for capacity_type, share in ((_ON_DEMAND, 1.0), (_SPOT, _SPOT_SHARE))
                for zone in _ZONES
            ],
        }
        for name, model, mib, cards, cpu, memory, price in _TYPES
    ]
