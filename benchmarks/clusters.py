"""Clusters that made a decision slow, as snapshots of any size, so that its growth can be measured too.

The decisions under test find little or nothing to do. They look at everything then, which costs most, and a settled
cluster is what a pass meets every ten seconds.
"""

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kerf.model.constraints import HOSTNAME, ZONE, Requirement, Requirements
from kerf.model.gpu import NVIDIA_GPU, DeviceState
from kerf.model.groups import POD_GROUP, POD_GROUP_MIN
from kerf.model.market import Market
from kerf.model.nodeclaim import CONSOLIDATABLE, INITIALIZED, LAUNCHED, READY, REGISTERED
from kerf.model.nodepool import Budget, Disruption
from kerf.model.pods import RUNNING, Pod
from kerf.model.quantities import CPU, MEMORY, PODS
from kerf.model.snapshot import ClusterNode, ClusterSnapshot, Watched
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.sharing.hami.records import ALLOCATED, NODE, REGISTER, register_annotation
from kerf.sharing.registry import FAMILIES, family_named
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type, cards

MARKET: Market = a_market(
    *(
        an_instance_type(f"m5.{size}xlarge", cpu=4 * k, memory=f"{16 * k}Gi", price=f"{k}.00")
        for size, k in (("", 1), ("2", 2), ("4", 4))
    )
)
"""Three sizes at one price a core, by names that the catalogue of AWS has, too."""
_ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
_TYPE, _GPU_TYPE = "m5.xlarge", "g5.12xlarge"
_STAGES = (LAUNCHED, REGISTERED, INITIALIZED, READY, CONSOLIDATABLE)
_POOLS = 10
# No node has the label any more: pods that ask for it run on and fit nowhere else, however much room there is.
_GONE = {"disk": "fast"}
_MEMBERS = 4
HAMI = {"gpu": "on"}
_FULL = DeviceState(
    "", 0, "NVIDIA A10G", 22888, slots=10, mode="hami-core", used_memory_mib=22888, used_cores=100, used_slots=10
)


def without_budget(nodes: int) -> ClusterSnapshot:
    """Ten pools that allow no disruption; the pod of each node would fit on any other."""
    return _cluster(nodes, budget="0")


def with_waiting(nodes: int, pods: Iterable[Pod]) -> ClusterSnapshot:
    """The nodes have room for pods that wait, and pods of their own that fit nowhere else."""
    return _cluster(nodes, waiting=pods, selector=_GONE)


def waiting_shapes(each: int = 4) -> list[Pod]:
    """Pods of five shapes, `each` of every one."""
    return [
        a_pod(f"waiting-{shape}-{number}", cpu=f"{100 + 50 * shape}m", memory="128Mi")
        for shape in range(5)
        for number in range(each)
    ]


def waiting_small(count: int) -> list[Pod]:
    """`count` equal pods of a tenth of a core."""
    return [a_pod(f"waiting-{number:05}", cpu="100m", memory="128Mi") for number in range(count)]


def spread(nodes: int, pods: int, shapes: int, key: str = ZONE) -> ClusterSnapshot:
    """Nodes in three zones with twenty pods each, of many shapes; `pods` more wait, evenly spread by the key."""
    asked = []
    for number in range(shapes):
        labels = {"app": f"app-{number:03}"}
        even = TopologySpreadConstraint(key, 1, Requirements.of_labels(labels))
        pod = a_pod("", cpu="50m", memory="64Mi", labels=labels, priority=number, spread=(even,))
        asked.append(pod)
    held = [a_node(f"node-{n:05}", labels={ZONE: f"us-east-1{'abc'[n % 3]}"}) for n in range(nodes)]
    running: dict[str, list[Pod]] = {node.name: [] for node in held}
    for number in range(20 * nodes):
        # Whole rounds of the zones, one shape after the other, so each is evenly spread.
        node, mine = held[number % nodes], asked[number // 3 % shapes]
        pod = replace(mine, name=f"running-{number:06}", node_name=node.name, phase=RUNNING, uid=f"r{number}")
        running[node.name].append(pod)
    waiting = tuple(replace(asked[n % shapes], name=f"waiting-{n:06}", uid=f"w{n}") for n in range(pods))
    joined = tuple(ClusterNode(node, None, tuple(running[node.name])) for node in held)
    return a_snapshot(pools=[a_pool()], nodes=joined, pods=waiting)


def different(pods: int) -> ClusterSnapshot:
    """Pods of one workload that are evenly spread over zones and all ask for another amount of cpu."""
    labels = {"app": "web"}
    even = (TopologySpreadConstraint(ZONE, 1, Requirements.of_labels(labels)),)
    waiting = [
        a_pod(f"web-{n}", cpu=f"{100 + n}m", memory=f"{64 + n % 997}Mi", labels=labels, spread=even, uid=f"w{n}")
        for n in range(pods)
    ]
    return a_snapshot(pools=[a_pool()], pods=waiting)


def alone(pods: int) -> ClusterSnapshot:
    """Pods of as many workloads, each of which lets no other pod of its own onto its node; one label is of all."""
    waiting = []
    for n in range(pods):
        labels = {"all": "same", "app": f"app-{n}"}
        away = PodAffinity((PodAffinityTerm(HOSTNAME, Requirements.of_labels(labels)),))
        waiting.append(a_pod(f"p-{n}", cpu=f"{100 + n % 900}m", labels=labels, pod_anti_affinity=away, uid=f"w{n}"))
    return a_snapshot(pools=[a_pool()], pods=waiting)


def pairs(count: int) -> ClusterSnapshot:
    """So many pairs of pods: one with a label of its own, and one without labels that keeps off its node."""
    waiting = []
    for n in range(count):
        labels = {"app": f"app-{n}"}
        away = PodAffinity((PodAffinityTerm(HOSTNAME, Requirements.of_labels(labels)),))
        waiting.append(a_pod(f"old-{n}", cpu="100m", labels=labels, created_s=0, uid=f"o{n}"))
        waiting.append(a_pod(f"young-{n}", cpu="100m", pod_anti_affinity=away, created_s=1, uid=f"y{n}"))
    return a_snapshot(pools=[a_pool()], pods=waiting)


def strangers(pods: int, key: str = HOSTNAME) -> ClusterSnapshot:
    """Pods of which each keeps off all pods of whatever namespace but those with a label of its own."""
    waiting = []
    for n in range(pods):
        others = Requirements([Requirement.of("own", "NotIn", [f"v{n}"])])
        away = PodAffinity((PodAffinityTerm(key, others, namespace_selector=Requirements()),))
        labels = {"own": f"v{n}"}
        waiting.append(a_pod(f"p-{n}", cpu="10m", labels=labels, pod_anti_affinity=away, uid=f"w{n}"))
    return a_snapshot(pools=[a_pool()], pods=waiting)


def beside_strangers(pods: int, asked: str) -> ClusterSnapshot:
    """Pods that are spread over zones or nodes (even) with all but their own label, or must or would rather be in a
    zone with one of these, or away from them. One pod asks nothing, and so may come first."""
    waiting = [a_pod("first", cpu="10m", labels={"own": "first"}, priority=1, uid="first")]
    for n in range(pods):
        others = Requirements([Requirement.of("own", "NotIn", [f"v{n}"])])
        term = PodAffinityTerm(ZONE, others)
        fields: dict[str, dict[str, Any]] = {
            "spread": {"spread": (TopologySpreadConstraint(ZONE, 1, others),)},
            "even": {"spread": (TopologySpreadConstraint(HOSTNAME, 1, others),)},
            "near": {"pod_affinity": PodAffinity((term,))},
            "rather_near": {"pod_affinity": PodAffinity((), ((10, term),))},
            "rather_away": {"pod_anti_affinity": PodAffinity((), ((10, term),))},
        }
        waiting.append(a_pod(f"p-{n}", cpu="10m", labels={"own": f"v{n}"}, uid=f"w{n}", **fields[asked]))
    return a_snapshot(pools=[a_pool()], pods=waiting)


def strange_namespaces(pods: int) -> ClusterSnapshot:
    """As many namespaces with one pod each, that keeps off the zone of all pods of other ones."""
    waiting = []
    for n in range(pods):
        others = Requirements([Requirement.of("team", "NotIn", [f"t{n}"])])
        away = PodAffinity((PodAffinityTerm(ZONE, Requirements.of_labels({"a": "x"}), namespace_selector=others),))
        waiting.append(
            a_pod(f"p-{n}", cpu="10m", namespace=f"ns{n}", labels={"a": "x"}, pod_anti_affinity=away, uid=f"w{n}")
        )
    spaces = {f"ns{n}": {"team": f"t{n}"} for n in range(pods)}
    return a_snapshot(pools=[a_pool()], pods=waiting, namespaces=spaces)


def couples(pods: int) -> ClusterSnapshot:
    """Pairs of pods of which one must be on the other's node; no two pairs are alike."""
    waiting = []
    for n in range(pods // 2):
        labels = {"app": f"app-{n}"}
        near = PodAffinity((PodAffinityTerm(HOSTNAME, Requirements.of_labels(labels)),))
        waiting.append(a_pod(f"one-{n}", cpu="100m", labels=labels, created_s=0, uid=f"o{n}"))
        waiting.append(a_pod(f"other-{n}", cpu="100m", pod_affinity=near, created_s=1, uid=f"y{n}"))
    return a_snapshot(pools=[a_pool()], pods=waiting)


def forbidding(pods: int) -> ClusterSnapshot:
    """Pods that each forbid a label of their own, which no node has."""
    waiting = [
        a_pod(f"p-{n}", cpu="100m", affinity=(Requirements([Requirement.of(f"k{n}", "NotIn", ["x"])]),), uid=f"w{n}")
        for n in range(pods)
    ]
    return a_snapshot(pools=[a_pool()], pods=waiting)


def of_tenants(pods: int) -> ClusterSnapshot:
    """Pods that each select a value of their own of a label that the pool leaves open: each needs a node."""
    pool = a_pool(requirements=Requirements([Requirement.of("tenant", "Exists")]))
    waiting = [a_pod(f"p-{n}", cpu="100m", selector={"tenant": f"t{n}"}, uid=f"w{n}") for n in range(pods)]
    return a_snapshot(pools=[pool], pods=waiting)


def without_room(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """The same with nodes that hold no pod more."""
    full = (
        replace(each, node=replace(each.node, allocatable=each.node.allocatable.replaced({PODS: len(each.pods)})))
        for each in snapshot.nodes
        if each.node is not None
    )
    return replace(snapshot, nodes=tuple(full))


def many_types(count: int) -> Market:
    """Types of 1 to 16 cores and as many amounts of memory as it takes, in three zones."""
    sizes = ((n % 16 + 1, n // 16) for n in range(count))
    return a_market(
        *(
            an_instance_type(
                f"t{cpu}.{more}", cpu=cpu, memory=f"{2 * cpu + more}Gi", price=f"{cpu + more / 100}", zones=_ZONES
            )
            for cpu, more in sizes
        )
    )


def refused(nodes: int, shapes: int) -> ClusterSnapshot:
    """One pod of each shape waits that no node and no type can hold: by turns too large, and of a label nobody has."""
    pods = []
    for number in range(shapes):
        asked = {"cpu": f"{64_000 + number}m"} if number % 2 else {"cpu": f"{1_000 + number}m", "selector": _GONE}
        pods.append(a_pod(f"refused-{number:04}", memory="1Gi", **asked))
    return _cluster(nodes, waiting=pods)


def refused_labels(nodes: int, shapes: int) -> ClusterSnapshot:
    """One pod of each shape waits, each for a label of its own that no node has: each hint is another pool."""
    selectors = ({"disk": f"fast-{number}"} for number in range(shapes))
    pods = (a_pod(f"refused-{n:04}", cpu="100m", memory="1Gi", selector=each) for n, each in enumerate(selectors))
    return _cluster(nodes, waiting=tuple(pods))


def refused_gpu(nodes: int, shapes: int) -> ClusterSnapshot:
    """One pod of each shape waits, by turns for a slice and for a whole card. All cards are full, and no type has any.

    Cards of nodes differ only in their ids. What else runs there differs.
    """
    pods = []
    for number in range(shapes):
        asked = {"gpumem": 1_000 + number, "cpu": "100m"} if number % 2 else {"cpu": f"{100 + number}m"}
        pods.append(a_pod(f"refused-{number:04}", memory="1Gi", gpu=1, **asked))
    held = [_gpu_node(number) for number in range(nodes)]
    pools = [a_pool(_pool(number), labels=HAMI) for number in range(_POOLS)]
    return a_snapshot(pools=pools, nodes=held, pods=pods)


def slices(shapes: int, copies: int, sizes: int) -> ClusterSnapshot:
    """So many shapes of different requests, each with as many pods, which ask HAMi for a slice of one of the sizes."""
    pods = [
        a_pod(
            f"slice-{number}-{copy}",
            cpu=f"{1000 + 7 * number}m",
            memory=f"{1024 + 37 * (number * 11 % shapes)}Mi",
            gpu=1,
            gpumem=1_000 + 20_000 * (number % sizes) // sizes,
        )
        for number in range(shapes)
        for copy in range(copies)
    ]
    return a_snapshot(pools=[a_pool(capacity_types=(), labels=HAMI)], pods=pods)


def refused_spread(nodes: int, shapes: int) -> ClusterSnapshot:
    """One pod of each shape waits that is too large for all, and spreads over zones with others of its own label."""

    def even(number: int) -> TopologySpreadConstraint:
        return TopologySpreadConstraint(ZONE, 1, Requirements.of_labels({"app": f"app-{number}"}))

    return _cluster(nodes, waiting=[_waiting(n, cpu=f"{64_000 + n}m", spread=(even(n),)) for n in range(shapes)])


def refused_apart(nodes: int, shapes: int) -> ClusterSnapshot:
    """The same, each away from others of its label in place of the spread."""
    return _cluster(
        nodes, waiting=[_waiting(n, cpu=f"{64_000 + n}m", pod_anti_affinity=_beside(f"app-{n}")) for n in range(shapes)]
    )


def refused_alone(nodes: int, shapes: int) -> ClusterSnapshot:
    """One small pod of each shape waits, each for a node with a pod that nobody has."""
    return _cluster(
        nodes, waiting=[_waiting(n, cpu=f"{100 + n}m", pod_affinity=_beside(f"gone-{n}")) for n in range(shapes)]
    )


def _beside(app: str) -> PodAffinity:
    return PodAffinity((PodAffinityTerm(HOSTNAME, Requirements.of_labels({"app": app})),))


def _waiting(number: int, **asked: Any) -> Pod:
    return a_pod(f"refused-{number:04}", memory="1Gi", labels={"app": f"app-{number}"}, **asked)


def half_limited(pods: int) -> ClusterSnapshot:
    """Equal pods, one on each node, of which the limit of the pool allows half."""
    held = [a_pod(f"pod-{number:05}", cpu=3, memory="1Gi") for number in range(pods)]
    return a_snapshot(pools=[a_pool(types=(_TYPE,), limits={"cpu": 2 * pods})], pods=held)


def few_limited(seed: int) -> ClusterSnapshot:
    """Forty pods of six workloads that are spread, or keep off or near others, where a limit allows half of them."""
    draw, workloads = random.Random(seed), range(6)
    apps = [f"app-{number}" for number in workloads]
    asked: list[dict[str, Any]] = []
    for app in apps:
        found: dict[str, Any] = {"cpu": f"{draw.randrange(200, 6_000, 100)}m", "memory": f"{draw.randrange(1, 12)}Gi"}
        if draw.random() < 0.5:
            alike = Requirements.of_labels({"app": app})
            found["spread"] = (TopologySpreadConstraint(draw.choice((ZONE, HOSTNAME)), 1, alike),)
        for kind, odds in (("pod_anti_affinity", 0.4), ("pod_affinity", 0.2)):
            if draw.random() < odds:
                key = draw.choice((ZONE, HOSTNAME)) if kind == "pod_anti_affinity" else ZONE
                others = Requirements.of_labels({"app": draw.choice(apps)})
                found[kind] = PodAffinity((PodAffinityTerm(key, others),))
        asked.append(found)
    pods = [a_pod(f"pod-{n:02}", labels={"app": apps[n % 6]}, **asked[n % 6]) for n in range(40)]
    cpu_milli = sum(pod.spec.requests[CPU] for pod in pods)
    return a_snapshot(pools=[a_pool(limits={"cpu": f"{cpu_milli // 2}m"})], pods=pods)


def kept_off(count: int) -> ClusterSnapshot:
    """A pod that must be without any other on its node, and so many groups of one pod that is too large for all.

    The pool allows two types in one zone, so that each hint tries what the whole catalogue sells.
    """
    away = PodAffinity((PodAffinityTerm(HOSTNAME, Requirements()),))
    pods = [a_pod("alone", cpu=1, memory="1Gi", pod_anti_affinity=away, created_s=1.0)]
    for number in range(count):
        labels = {POD_GROUP: f"group-{number:03}", POD_GROUP_MIN: "1"}
        pods.append(a_pod(f"pod-{number:03}", cpu=1_000 + number, memory="1Gi", labels=labels, created_s=2.0))
    only = Requirements([Requirement.of(ZONE, "In", _ZONES[:1])])
    return a_snapshot(pools=[a_pool(types=("m5.xlarge", "m5.2xlarge"), requirements=only)], pods=pods)


def keeping_off(count: int) -> ClusterSnapshot:
    """So many pods, each of which keeps all others off its zone, and a pool that is open to the catalogue."""
    pods = []
    for number in range(count):
        others = Requirements([Requirement.of("app", "NotIn", (f"a{number}",))])
        away = PodAffinity((PodAffinityTerm(ZONE, others),))
        labels = {"app": f"a{number}"}
        pods.append(a_pod(f"pod-{number:03}", cpu="100m", memory="64Mi", labels=labels, pod_anti_affinity=away))
    return a_snapshot(pools=[a_pool()], pods=pods)


def groups(count: int, *, equal: bool = False, gpu: int = 0) -> ClusterSnapshot:
    """Groups of four pods, each group of a cpu request of its own unless `equal`; the limit allows half of them.

    Each pod asks for so many whole GPUs.
    """
    asked = {"gpu": str(gpu)} if gpu else {}
    pods = []
    for number in range(count):
        name = f"group-{number:03}"
        labels = {POD_GROUP: name, POD_GROUP_MIN: str(_MEMBERS)}
        cpu = f"{1000 if equal else 1000 + 5 * number}m"
        pods += [a_pod(f"{name}-{member}", cpu=cpu, memory="1Gi", labels=labels, **asked) for member in range(_MEMBERS)]
    total = sum(pod.spec.requests[CPU] for pod in pods)
    return a_snapshot(pools=[a_pool(limits={CPU: f"{total // 2}m"})], pods=pods)


def related_groups(count: int) -> ClusterSnapshot:
    """Groups of four pods that must be in one zone with their own kind, each group too much for the limit alone."""
    pods = []
    for number in range(count):
        name = f"group-{number:03}"
        labels = {POD_GROUP: name, POD_GROUP_MIN: str(_MEMBERS), "app": name}
        near = PodAffinity((PodAffinityTerm(ZONE, Requirements.of_labels({"app": name})),))
        for member in range(_MEMBERS):
            cpu = f"{30_000 + number}m"
            pods.append(a_pod(f"{name}-{member}", cpu=cpu, memory="1Gi", labels=labels, pod_affinity=near))
    return a_snapshot(pools=[a_pool(limits={CPU: 100})], pods=pods)


def _cluster(
    nodes: int,
    *,
    budget: str = "10%",
    waiting: Iterable[Pod] = (),
    selector: dict[str, str] | None = None,
) -> ClusterSnapshot:
    """Nodes of four cores in ten pools, each with a pod of one core."""
    disruption = Disruption(budgets=(Budget(budget),), consolidate_after_s=0)
    pools = [a_pool(_pool(number), disruption=disruption) for number in range(_POOLS)]
    held = [_node(number, selector or {}) for number in range(nodes)]
    return a_snapshot(pools=pools, nodes=held, pods=waiting)


def _pool(number: int) -> str:
    return f"pool-{number % _POOLS}"


def _node(number: int, selector: dict[str, str], zone: str = _ZONES[0]) -> ClusterNode:
    name, pool = f"node-{number:05}", _pool(number)
    node = a_node(name, pool=pool, instance_type=_TYPE, labels={ZONE: zone})
    claim = a_claim(f"claim-{number:05}", pool=pool, node_name=name, instance_type=_TYPE, reached=_STAGES)
    pod = a_pod(f"pod-{number:05}", node_name=name, phase=RUNNING, cpu=1, memory="1Gi", selector=selector)
    return ClusterNode(node, claim, (pod,))


def _gpu_node(number: int) -> ClusterNode:
    """Four full cards, and a pod of one of fifty sizes."""
    name, pool = f"node-{number:05}", _pool(number)
    amounts: dict[str, str | int] = {CPU: 8, MEMORY: "32Gi", PODS: 58, NVIDIA_GPU: 40}
    node = a_node(name, pool=pool, instance_type="g5.12xlarge", labels=HAMI, allocatable=amounts)
    claim = a_claim(f"claim-{number:05}", pool=pool, node_name=name, reached=_STAGES, labels=HAMI)
    pod = a_pod(f"pod-{number:05}", node_name=name, phase=RUNNING, cpu=f"{100 + number % 50}m", memory="1Gi")
    cards = tuple(replace(_FULL, id=f"GPU-{number:05}-{index}", index=index) for index in range(4))
    return ClusterNode(node, claim, (pod,), cards, "hami")


def fleet(nodes: int, pods_each: int = 20, shapes: int = 200) -> tuple[list[Watched], Market]:
    """The objects of nodes of ten pools in three zones that are full, and what is sold.

    Nine pools have pods of many shapes that spread over the zones, one has four cards a node and pods with slices.
    Every node may go as far as its pool is concerned, and its pods fit nowhere else.
    """
    disruption = Disruption(budgets=(Budget("10%"),), consolidate_after_s=0)
    found: list[Watched] = [a_pool(_pool(number), disruption=disruption) for number in range(_POOLS)]
    asked = []
    for number in range(shapes):
        labels = {"app": f"app-{number:03}"}
        even = TopologySpreadConstraint(ZONE, 1, Requirements.of_labels(labels))
        asked.append(a_pod("", cpu=f"{4_000 // pods_each}m", memory="64Mi", labels=labels, spread=(even,)))
    plain = 0
    for number in range(nodes):
        held = _node(number, {}, zone=_ZONES[plain % 3]) if number % _POOLS else _sliced(number)
        pods: Iterable[Pod] = held.pods
        if number % _POOLS:
            # Whole rounds of the zones, one shape after the other, so each is evenly spread.
            firsts = (asked[(plain // 3 * pods_each + at) % shapes] for at in range(pods_each))
            pods = (replace(first, name=f"{held.name}-{at}", uid=f"{number}-{at}") for at, first in enumerate(firsts))
            plain += 1
        found += (replace(pod, node_name=held.name, phase=RUNNING) for pod in pods)
        provider_id = f"fake:///{held.name}"
        assert held.node is not None
        assert held.claim is not None
        found += (replace(held.node, provider_id=provider_id), replace(held.claim, provider_id=provider_id))
    gpu = an_instance_type(_GPU_TYPE, cpu=4, memory="32Gi", devices=cards(4, model="A10G"), price="4.00")
    return found, replace(MARKET, types=tuple(sorted((*MARKET.types, gpu), key=lambda kind: kind.name)))


def _sliced(number: int) -> ClusterNode:
    """A node of HAMi with four cards, four slices on each."""
    name, pool = f"node-{number:05}", _pool(number)
    shapes = family_named("hami", FAMILIES).predict(cards(4), {}, {})
    amounts: dict[str, str | int] = {CPU: 4, MEMORY: "32Gi", PODS: 58, NVIDIA_GPU: 40}
    register = {REGISTER: register_annotation(shapes)}
    node = a_node(name, pool=pool, instance_type=_GPU_TYPE, labels=HAMI, allocatable=amounts, annotations=register)
    claim = a_claim(
        f"claim-{number:05}", pool=pool, node_name=name, instance_type=_GPU_TYPE, reached=_STAGES, labels=HAMI
    )
    pods = tuple(
        a_pod(
            f"{name}-{at}",
            cpu="250m",
            memory="1Gi",
            gpu=1,
            gpumem=5_000,
            annotations={NODE: name, ALLOCATED: f"gpu-{at // 4},NVIDIA,5000,0:;"},
            uid=f"{number}-{at}",
        )
        for at in range(16)
    )
    return ClusterNode(node, claim, pods)
