"""Random workloads for an empty cluster: what a plan buys for them must be what the schedulers make of them.

What is random is drawn from a seed alone, so a case is known by its number. No pod tolerates every taint: no node could
be kept for others against it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

Json = dict[str, Any]

ZONE, HOST, CAPACITY_TYPE = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "karpenter.sh/capacity-type"
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
DISK = "example.com/disk"
TYPES = ("m5.large", "m5.xlarge", "m5.2xlarge")
DEDICATED = {"key": "dedicated", "value": "a", "effect": "NoSchedule"}
TIERS = ("x", "y")
PRIORITIES = {"urgent": 1000, "usual": 0, "idle": -10}
"""None preempts: a pod whose node is still to come would take the place of a lower one on a node that is there."""

ALL = frozenset(
    {"selector", "affinity", "tolerations", "preferences", "ports", "spread", "pods", "volumes", "priorities"}
)
"""Kinds of constraints that pods may have."""


@dataclass(frozen=True)
class RandomWorkloads:
    """What is there from the start: pools, classes, claims, DaemonSets; and the pods that come at once."""

    seed: int
    objects: list[Json]
    pods: list[Json]


def random_workloads(seed: int, pods: int, kinds: frozenset[str] = ALL) -> RandomWorkloads:
    """So many pods, in workloads of 1 to 8 equal ones, each with constraints of some kinds."""
    draw = Random(seed)
    made = _Maker(draw, kinds)
    while len(made.pods) < pods:
        made.workload(min(draw.choice((1, 2, 3, 3, 4, 6, 8)), pods - len(made.pods)))
    return RandomWorkloads(seed, [*_shared(draw), *made.claims], made.pods)


def _object(version: str, kind: str, name: str, **metadata: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}


def _shared(draw: Random) -> list[Json]:
    priorities = [
        {
            **_object("scheduling.k8s.io/v1", "PriorityClass", name),
            "value": value,
            "preemptionPolicy": "Never",
            "globalDefault": name == "usual",
        }
        for name, value in PRIORITIES.items()
    ]
    storage = {
        **_object("storage.k8s.io/v1", "StorageClass", "waits"),
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": list(ZONES[:2])}]}],
    }
    pools = [
        _pool("ssd", {DISK: "ssd"}, list(draw.sample(TYPES, 2)), []),
        _pool("hdd", {DISK: "hdd"}, [draw.choice(TYPES[1:])], []),
        _pool("dedicated", {DISK: "ssd"}, [draw.choice(TYPES)], [DEDICATED]),
    ]
    return [*priorities, storage, *pools, *_daemon_sets(draw)]


def _pool(name: str, labels: Json, types: list[str], taints: list[Json]) -> Json:
    def one_of(key: str, values: list[str]) -> Json:
        return {"key": key, "operator": "In", "values": values}

    requirements = [
        one_of("node.kubernetes.io/instance-type", types),
        one_of(CAPACITY_TYPE, ["on-demand"]),
        one_of(ZONE, list(ZONES)),
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"nodeClassRef": reference, "requirements": requirements, "taints": taints}
    template = {"metadata": {"labels": labels}, "spec": spec}
    never = {"consolidateAfter": "Never"}
    return {**_object("karpenter.sh/v1", "NodePool", name), "spec": {"template": template, "disruption": never}}


def _daemon_sets(draw: Random) -> list[Json]:
    """One on all nodes of pools without taints, and one on some, which takes a port."""
    logs = {"containers": [_container({"cpu": "100m", "memory": "128Mi"})], "tolerations": [{"operator": "Exists"}]}
    port = {"containerPort": 80, "hostPort": draw.choice((80, 9100))}
    probe = {"containers": [{**_container({"cpu": "50m"}), "ports": [port]}], "nodeSelector": {DISK: "hdd"}}
    return [_daemon_set("logs", logs), _daemon_set("probe", probe)]


def _daemon_set(name: str, spec: Json) -> Json:
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    made = _object("apps/v1", "DaemonSet", name, namespace="default")
    return {**made, "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}}


def _container(requests: Json) -> Json:
    return {"name": "main", "image": "none", "resources": {"requests": requests}}


class _Maker:
    """Draws workloads. Each kind of constraint is drawn apart, so most have one or two."""

    def __init__(self, draw: Random, kinds: frozenset[str]) -> None:
        self._draw, self._kinds = draw, kinds
        self.pods: list[Json] = []
        self.claims: list[Json] = []
        self._apps = 0

    def workload(self, count: int) -> None:
        """So many equal pods more; where they have volumes, each has one of its own."""
        draw, name = self._draw, f"w{self._apps:03}"
        self._apps += 1
        labels = {"app": name, "tier": draw.choice(TIERS)}
        requests = {"cpu": f"{draw.choice((100, 200, 500, 900, 1400))}m", "memory": f"{draw.choice((64, 512, 2048))}Mi"}
        spec: Json = {"containers": [_container(requests)], "terminationGracePeriodSeconds": 0}
        adders: dict[str, tuple[float, Callable[[Json, Json], None]]] = {
            "selector": (0.15, self._selector),
            "affinity": (0.15, self._affinity),
            "tolerations": (0.25, self._tolerations),
            "preferences": (0.2, self._preferences),
            "ports": (0.12, self._ports),
            "spread": (0.35, self._spread),
            "pods": (0.3, self._pods),
            "priorities": (0.2, self._priorities),
        }
        for kind, (share, add) in adders.items():
            if draw.random() < share and kind in self._kinds:
                add(spec, labels)
        has_volumes = draw.random() < 0.12 and "volumes" in self._kinds
        for number in range(count):
            pod = {**_object("v1", "Pod", f"{name}-{number}", namespace="default", labels=labels), "spec": spec}
            self.pods.append(self._with_claim(pod) if has_volumes else pod)

    def _with_claim(self, pod: Json) -> Json:
        name = f"data-{pod['metadata']['name']}"
        claim = _object("v1", "PersistentVolumeClaim", name, namespace="default")
        wanted = {"storageClassName": "waits", "accessModes": ["ReadWriteOnce"]}
        self.claims.append({**claim, "spec": {**wanted, "resources": {"requests": {"storage": "1Gi"}}}})
        mount = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        return {**pod, "spec": {**pod["spec"], "volumes": [mount]}}

    def _selector(self, spec: Json, _: Json) -> None:
        spec["nodeSelector"] = self._draw.choice(
            ({DISK: "ssd"}, {DISK: "hdd"}, {ZONE: ZONES[0]}, {ZONE: ZONES[1]}, {CAPACITY_TYPE: "on-demand"})
        )

    def _affinity(self, spec: Json, _: Json) -> None:
        terms = [{"matchExpressions": [self._expression()]} for _ in range(self._draw.choice((1, 1, 2)))]
        _affinity_of(spec, "nodeAffinity")[REQUIRED] = {"nodeSelectorTerms": terms}

    def _expression(self) -> Json:
        key, values = self._draw.choice(((ZONE, ZONES), (DISK, ("ssd", "hdd"))))
        operator = self._draw.choice(("In", "NotIn", "Exists"))
        if operator == "Exists":
            return {"key": key, "operator": operator}
        return {"key": key, "operator": operator, "values": self._draw.sample(values, self._draw.randint(1, 2))}

    def _tolerations(self, spec: Json, _: Json) -> None:
        one, any_value = {**DEDICATED, "operator": "Equal"}, {"key": DEDICATED["key"], "operator": "Exists"}
        spec["tolerations"] = [self._draw.choice((one, any_value))]
        if self._draw.random() < 0.3:
            # They want the dedicated nodes alone.
            spec.setdefault("nodeSelector", {})["karpenter.sh/nodepool"] = "dedicated"

    def _preferences(self, spec: Json, labels: Json) -> None:
        if self._draw.random() < 0.5:
            wanted = {"matchExpressions": [self._expression()]}
            _affinity_of(spec, "nodeAffinity")[PREFERRED] = [
                {"weight": self._draw.choice((1, 50)), "preference": wanted}
            ]
            return
        kind = self._draw.choice(("podAffinity", "podAntiAffinity"))
        weighted = {"weight": 10, "podAffinityTerm": self._term(labels, self._draw.choice((HOST, ZONE)))}
        _affinity_of(spec, kind)[PREFERRED] = [weighted]

    def _ports(self, spec: Json, _: Json) -> None:
        spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": self._draw.choice((80, 81))}]

    def _spread(self, spec: Json, labels: Json) -> None:
        draw = self._draw
        keys = draw.sample((ZONE, ZONE, HOST), draw.choice((1, 1, 2)))
        spec["topologySpreadConstraints"] = [self._constraint(labels, key) for key in dict.fromkeys(keys)]

    def _constraint(self, labels: Json, key: str) -> Json:
        draw = self._draw
        made: Json = {"topologyKey": key, "maxSkew": draw.choice((1, 1, 2)), "labelSelector": self._selected(labels)}
        made["whenUnsatisfiable"] = "DoNotSchedule" if draw.random() < 0.85 else "ScheduleAnyway"
        if made["whenUnsatisfiable"] == "DoNotSchedule" and draw.random() < 0.2:
            made["minDomains"] = draw.choice((2, 3))
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if draw.random() < 0.2:
                made[policy] = draw.choice(("Honor", "Ignore"))
        return made

    def _selected(self, labels: Json) -> Json:
        """As a rule the workload's own pods; at times those of a tier, or of another workload."""
        draw = self._draw
        other = f"w{draw.randrange(self._apps):03}"
        own = {"matchLabels": {"app": labels["app"]}}
        return draw.choice((own, own, own, {"matchLabels": {"tier": labels["tier"]}}, {"matchLabels": {"app": other}}))

    def _pods(self, spec: Json, labels: Json) -> None:
        draw = self._draw
        if draw.random() < 0.5:
            _affinity_of(spec, "podAntiAffinity")[REQUIRED] = [self._term(labels, draw.choice((HOST, HOST, ZONE)))]
        else:
            _affinity_of(spec, "podAffinity")[REQUIRED] = [self._term(labels, draw.choice((ZONE, ZONE, HOST)))]

    def _term(self, labels: Json, key: str) -> Json:
        return {"topologyKey": key, "labelSelector": self._selected(labels)}

    def _priorities(self, spec: Json, _: Json) -> None:
        spec["priorityClassName"] = self._draw.choice(("urgent", "idle"))


def _affinity_of(spec: Json, kind: str) -> Json:
    found: Json = spec.setdefault("affinity", {}).setdefault(kind, {})
    return found
