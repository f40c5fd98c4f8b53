"""Random clusters and pods in which every filter of kube-scheduler has something to refuse.

What is random is drawn from a seed alone, so a case is known by its number. Values come from short lists: only where
pods meet the labels, claims and ports of others is anything tried.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

Json = dict[str, Any]

ZONE, HOST, RACK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/rack"
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
DRIVER = "csi.example.com"
NAMESPACES = {"default": {}, "team-a": {"team": "a", "stage": "test"}, "team-b": {"team": "b"}}
ONLY_ASKED = "example.com/only-asked"
"""A pod with this label is never bound: its claims would need a controller that binds them."""
APPS, VERSIONS, ZONES, RACKS = ("web", "db", "cache", "job"), ("v1", "v2"), ("z1", "z2", "z3"), ("r1", "r2", "r3", "r4")

SIMPLE = frozenset({"selector", "affinity", "taints", "ports", "overhead", "resources"})
ALL = SIMPLE | {"fields", "spread", "pods", "volumes", "claims"}
"""Kinds of constraints that pods may have."""


@dataclass(frozen=True)
class RandomCluster:
    """Objects that are there from the start, and the pods to be placed, in order."""

    seed: int
    objects: list[Json]
    pods: list[Json]


def random_cluster(seed: int, kinds: frozenset[str] = ALL, most_pods: int = 200) -> RandomCluster:
    """10 to 50 nodes and 50 to `most_pods` pods, whose constraints are of some kinds."""
    draw = Random(seed)
    nodes = [_node(draw, f"s{seed}-n{number:02}") for number in range(draw.randint(10, 50))]
    volumes = [*_volumes(draw, seed)]
    claims = [obj for obj in volumes if obj["kind"] == "PersistentVolumeClaim"]
    names = [node["metadata"]["name"] for node in nodes]
    limits = [limit for name in names if draw.random() < 0.7 for limit in [_csi_node(draw, name)]]
    maker = _PodMaker(draw, kinds, names, claims)
    pods = [maker.pod(f"s{seed}-p{number:03}") for number in range(draw.randint(50, most_pods))]
    return RandomCluster(seed, [*volumes, *limits, *nodes], pods)


def shared_objects() -> list[Json]:
    """What all clusters share: namespaces and classes."""
    classes: list[Json] = [
        {"metadata": {"name": "waits"}, "provisioner": DRIVER, "allowedTopologies": [_topology("z1", "z2")]},
        {"metadata": {"name": "static"}, "provisioner": "kubernetes.io/no-provisioner"},
    ]
    first = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "volumeBindingMode": "WaitForFirstConsumer"}
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "heavy"},
        "handler": "heavy",
    }
    overhead = {"overhead": {"podFixed": {"cpu": "700m"}}, "scheduling": {"nodeSelector": {"disk": "ssd"}}}
    meek = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "meek"}, "value": 0}
    return [
        *(_object("v1", "Namespace", name, labels=dict(labels)) for name, labels in NAMESPACES.items()),
        *({**first, **each} for each in classes),
        {**runtime, **overhead},
        {**meek, "preemptionPolicy": "Never", "globalDefault": True},
    ]


def _object(version: str, kind: str, name: str, **metadata: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}


def _topology(*zones: str) -> Json:
    return {"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}


def _node(draw: Random, name: str) -> Json:
    labels = {HOST: name, "kubernetes.io/arch": draw.choice(("amd64", "arm64"))}
    labels |= {ZONE: draw.choice(ZONES)} if draw.random() < 0.92 else {}
    labels |= {RACK: draw.choice(RACKS)} if draw.random() < 0.85 else {}
    labels |= {"disk": draw.choice(("ssd", "hdd"))} if draw.random() < 0.9 else {}
    labels |= {"size": draw.choice(("2", "8", "16", "large", "1_0", "9" * 20))} if draw.random() < 0.9 else {}
    taints = [
        {"key": "dedicated", "value": draw.choice(("a", "b")), "effect": effect}
        for effect, share in (("NoSchedule", 0.12), ("PreferNoSchedule", 0.1), ("NoExecute", 0.06))
        if draw.random() < share
    ]
    spec: Json = {"taints": taints, "unschedulable": True} if draw.random() < 0.04 else {"taints": taints}
    amounts = {
        "cpu": str(draw.choice((2, 4, 8))),
        "memory": f"{draw.choice((4, 8, 16))}Gi",
        "pods": str(draw.choice((3, 5, 20))),
        "example.com/card": str(draw.choice((0, 0, 2))),
    }
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}
    return {**_object("v1", "Node", name, labels=labels), "spec": spec, "status": status}


def _csi_node(draw: Random, name: str) -> Json:
    driver: Json = {"name": DRIVER, "nodeID": name, "topologyKeys": []}
    if draw.random() < 0.9:
        driver["allocatable"] = {"count": draw.choice((1, 1, 2))}
    return {**_object("storage.k8s.io/v1", "CSINode", name), "spec": {"drivers": [driver]}}


def _volumes(draw: Random, seed: int) -> Iterator[Json]:
    """Bound claims with their volumes, free volumes of a static class, and claims that wait for their pod."""
    for number in range(24):
        name, namespace = f"s{seed}-c{number:02}", draw.choice(tuple(NAMESPACES))
        mode = draw.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))
        yield _volume(draw, name, mode, namespace)
        claim = _claim(name, namespace, mode, "2Gi", volumeName=name, storageClassName="")
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        yield claim
    for number in range(6):
        name = f"s{seed}-static{number}"
        volume = _volume(draw, name, draw.choice(("ReadWriteOnce", "ReadWriteMany")), "")
        of_class = draw.choice(("static", "static", "static", "waits"))
        volume["spec"] |= {"storageClassName": of_class, "capacity": {"storage": draw.choice(("1Gi", "3Gi"))}}
        volume["metadata"]["labels"] |= {"tier": draw.choice(("gold", "tin"))}
        if draw.random() < 0.2:
            volume["spec"]["claimRef"] = {"namespace": draw.choice(tuple(NAMESPACES)), "name": f"s{seed}-w{number}"}
        yield {**volume, "status": {"phase": "Available"}}
    for number in range(6):
        name, namespace = f"s{seed}-w{number}", draw.choice(tuple(NAMESPACES))
        of_class = draw.choice(("waits", "static"))
        claim = _claim(name, namespace, "ReadWriteOnce", draw.choice(("1Gi", "2Gi")), storageClassName=of_class)
        if draw.random() < 0.2:
            claim["spec"]["selector"] = {"matchLabels": {"tier": "gold"}}
        yield claim


def _volume(draw: Random, name: str, mode: str, namespace: str) -> Json:
    labels = {ZONE: draw.choice(("z1", "z2", "z2__z3"))} if draw.random() < 0.3 else {}
    spec: Json = {
        "capacity": {"storage": "2Gi"},
        "accessModes": [mode],
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    if namespace:
        spec["claimRef"] = {"namespace": namespace, "name": name}
    if draw.random() < 0.6:
        zones = draw.sample(ZONES, draw.choice((1, 2)))
        terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": zones}]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    status = {"phase": "Bound"}
    return {**_object("v1", "PersistentVolume", name, labels=labels), "spec": spec, "status": status}


def _claim(name: str, namespace: str, mode: str, size: str, **spec: Any) -> Json:
    made = _object("v1", "PersistentVolumeClaim", name, namespace=namespace)
    return {**made, "spec": {"accessModes": [mode], "resources": {"requests": {"storage": size}}, **spec}}


class _PodMaker:
    """Draws pods. Each kind of constraint is drawn apart, so that most pods have one or two."""

    _SHARES: ClassVar[dict[str, float]] = {
        "selector": 0.15,
        "affinity": 0.25,
        "fields": 0.08,
        "taints": 0.4,
        "ports": 0.2,
        "overhead": 0.06,
        "spread": 0.35,
        "pods": 0.35,
        "volumes": 0.35,
        "claims": 0.06,
    }

    def __init__(self, draw: Random, kinds: frozenset[str], nodes: list[str], claims: list[Json]) -> None:
        self._draw, self._kinds, self._nodes = draw, kinds, nodes
        self._bound = [claim for claim in claims if "volumeName" in claim["spec"]]
        self._waiting = [claim for claim in claims if "volumeName" not in claim["spec"]]

    def pod(self, name: str) -> Json:
        """One pod, of any namespace that has the claims it mounts."""
        draw = self._draw
        labels = {"app": draw.choice(APPS)}
        labels |= {"version": draw.choice(VERSIONS)} if draw.random() < 0.9 else {}
        pod = _object(
            "v1", "Pod", name, namespace=draw.choice(("default", "default", "team-a", "team-b")), labels=labels
        )
        requests = {"cpu": f"{draw.choice((200, 800, 1500, 2600))}m", "memory": f"{draw.choice((64, 1024, 4096))}Mi"}
        container: Json = {"name": "main", "image": "none", "resources": {"requests": requests}}
        if "resources" in self._kinds and draw.random() < 0.06:
            container["resources"]["limits"] = {"example.com/card": "1"}
        pod["spec"] = {"containers": [container], "terminationGracePeriodSeconds": 0}
        adders: dict[str, Callable[[Json], None]] = {
            "selector": self._selector,
            "affinity": self._affinity,
            "fields": self._fields,
            "taints": self._tolerations,
            "ports": self._ports,
            "overhead": self._overhead,
            "spread": self._spread,
            "pods": self._pods,
            "volumes": self._volumes,
            "claims": self._claims,
        }
        for kind, add in adders.items():
            if draw.random() < self._SHARES[kind] and kind in self._kinds:
                add(pod)
        return pod

    def _selector(self, pod: Json) -> None:
        pod["spec"]["nodeSelector"] = self._draw.choice(
            ({"disk": "ssd"}, {"disk": "hdd"}, {"kubernetes.io/arch": "amd64"}, {"size": "8"}, {ZONE: "z1"})
        )

    def _affinity(self, pod: Json) -> None:
        terms = [{"matchExpressions": [self._expression() for _ in range(self._draw.choice((1, 1, 2)))]}]
        if self._draw.random() < 0.5:
            terms.append({"matchExpressions": [self._expression()]})
        self._required(pod)["nodeSelectorTerms"] = terms

    def _expression(self) -> Json:
        draw = self._draw
        operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        if operator in ("Gt", "Lt"):
            return {"key": "size", "operator": operator, "values": [draw.choice(("2", "7", "8"))]}
        key, values = draw.choice((("disk", ("ssd", "hdd", "tape")), (ZONE, ZONES), ("size", ("2", "8", "large"))))
        if operator in ("Exists", "DoesNotExist"):
            return {"key": key, "operator": operator}
        return {"key": key, "operator": operator, "values": draw.sample(values, draw.choice((1, 2)))}

    def _fields(self, pod: Json) -> None:
        name = self._draw.choice((*self._nodes, "nowhere"))
        operator = self._draw.choice(("In", "NotIn"))
        term: Json = {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}
        if self._draw.random() < 0.2:
            term["matchExpressions"] = [self._expression()]
        terms = self._required(pod).setdefault("nodeSelectorTerms", [])
        if self._draw.random() < 0.3:
            terms.clear()
        terms.append(term)

    def _required(self, pod: Json) -> Json:
        affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
        required: Json = affinity.setdefault(REQUIRED, {})
        return required

    def _tolerations(self, pod: Json) -> None:
        draw = self._draw
        pod["spec"]["tolerations"] = [
            draw.choice(
                (
                    {"key": "dedicated", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
                    {"key": "dedicated", "operator": "Equal", "value": "b"},
                    {"key": "dedicated", "operator": "Exists", "effect": draw.choice(("NoSchedule", "NoExecute"))},
                    {"operator": "Exists"},
                )
            )
        ]

    def _ports(self, pod: Json) -> None:
        draw = self._draw
        port: Json = {"containerPort": 80, "hostPort": draw.choice((80, 81))}
        port |= draw.choice(
            ({}, {}, {"protocol": "UDP"}, {"hostIP": "127.0.0.1"}, {"hostIP": "0.0.0.0"}, {"hostIP": "::"})
        )
        if draw.random() < 0.8:
            pod["spec"]["containers"][0]["ports"] = [port]
            return
        requests = {"cpu": draw.choice(("100m", "1")), "memory": "64Mi"}
        starts_first: Json = {"name": "first", "image": "none", "ports": [port], "resources": {"requests": requests}}
        starts_first |= {"restartPolicy": "Always"} if draw.random() < 0.6 else {}
        pod["spec"]["initContainers"] = [starts_first]

    def _overhead(self, pod: Json) -> None:
        # The class asks for a disk too: another one would be refused by the server.
        pod["spec"].pop("nodeSelector", None)
        pod["spec"]["runtimeClassName"] = "heavy"

    def _spread(self, pod: Json) -> None:
        draw = self._draw
        keys = draw.sample((ZONE, HOST, RACK), draw.choice((1, 1, 2)))
        pod["spec"]["topologySpreadConstraints"] = [self._constraint(pod, key) for key in keys]

    def _constraint(self, pod: Json, key: str) -> Json:
        draw = self._draw
        made: Json = {"topologyKey": key, "maxSkew": draw.choice((1, 1, 2)), "labelSelector": self._label_selector(pod)}
        made["whenUnsatisfiable"] = "DoNotSchedule" if draw.random() < 0.85 else "ScheduleAnyway"
        if made["whenUnsatisfiable"] == "DoNotSchedule" and draw.random() < 0.25:
            made["minDomains"] = draw.choice((1, 3, 5))
        if draw.random() < 0.25 and "version" not in str(made["labelSelector"]):
            made["matchLabelKeys"] = ["version"]
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if draw.random() < 0.4:
                made[policy] = draw.choice(("Honor", "Ignore"))
        return made

    def _label_selector(self, pod: Json) -> Json:
        draw, own = self._draw, pod["metadata"]["labels"]["app"]
        app = own if draw.random() < 0.75 else draw.choice(APPS)
        return draw.choice(
            (
                {"matchLabels": {"app": app}},
                {"matchLabels": {"app": app}},
                {"matchLabels": {"app": app, "version": draw.choice(VERSIONS)}},
                {"matchExpressions": [{"key": "app", "operator": "In", "values": [app, draw.choice(APPS)]}]},
                {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [draw.choice(APPS)]}]},
                {"matchExpressions": [{"key": "version", "operator": draw.choice(("Exists", "DoesNotExist"))}]},
                {},
            )
        )

    def _pods(self, pod: Json) -> None:
        draw = self._draw
        for kind, share in (("podAffinity", 0.5), ("podAntiAffinity", 0.6)):
            if draw.random() < share:
                terms = [self._pod_term(pod, kind) for _ in range(draw.choice((1, 1, 1, 2)))]
                pod["spec"].setdefault("affinity", {})[kind] = {REQUIRED: terms}
            elif draw.random() < 0.2:
                weighted = [{"weight": 10, "podAffinityTerm": self._pod_term(pod, kind)}]
                pod["spec"].setdefault("affinity", {})[kind] = {PREFERRED: weighted}

    def _pod_term(self, pod: Json, kind: str) -> Json:
        draw = self._draw
        keys = (ZONE, RACK, HOST) if kind == "podAffinity" else (HOST, HOST, RACK)
        made: Json = {"topologyKey": draw.choice(keys), "labelSelector": self._label_selector(pod)}
        if "version" not in str(made["labelSelector"]) and draw.random() < 0.3:
            made[draw.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["version"]
        elif "version" in str(made["labelSelector"]) and draw.random() < 0.3:
            made["mismatchLabelKeys"] = ["version"]
        scope: Any = draw.choice(({}, {}, {}, {"namespaces": ["team-a"]}, {"namespaceSelector": {}}, "teams"))
        if scope == "teams":
            expression: Json = {"key": "team", "operator": draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))}
            expression |= {"values": ["a"]} if expression["operator"] in ("In", "NotIn") else {}
            scope = {"namespaceSelector": {"matchExpressions": [expression]}}
        return {**made, **scope}

    def _volumes(self, pod: Json) -> None:
        # A claim that several pods ask for is of one namespace; so the pod comes to it.
        claims = self._draw.sample(self._bound, self._draw.choice((1, 1, 2)))
        pod["metadata"]["namespace"] = claims[0]["metadata"]["namespace"]
        same = [claim for claim in claims if claim["metadata"]["namespace"] == pod["metadata"]["namespace"]]
        names = [claim["metadata"]["name"] for claim in same]
        if self._draw.random() < 0.03:
            names.append("missing")
        pod["spec"]["volumes"] = [_mount(number, name) for number, name in enumerate(names)]

    def _claims(self, pod: Json) -> None:
        """Claims that wait for their pod: it is only asked which nodes can take it."""
        claims = self._draw.sample(self._waiting, self._draw.choice((1, 1, 2)))
        if any("selector" in claim["spec"] for claim in claims):
            # Where they differ in more than size the scheduler may take a volume that the other one needs, by chance.
            claims = claims[:1]
        namespace = pod["metadata"]["namespace"] = claims[0]["metadata"]["namespace"]
        pod["metadata"]["labels"][ONLY_ASKED] = "true"
        names = [claim["metadata"]["name"] for claim in claims if claim["metadata"]["namespace"] == namespace]
        pod["spec"]["volumes"] = [_mount(number, name) for number, name in enumerate(names)]


def _mount(number: int, claim: str) -> Json:
    return {"name": f"v{number}", "persistentVolumeClaim": {"claimName": claim}}
