"""What an input lacks, as dumps of some kinds do: what can be known without it, and what follows where it cannot.

A file with pods and without the objects beside them reads like a cluster in which nothing else is. So what pods and
nodes say of absent objects is looked at: their owners, and the labels that Karpenter gives a node.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kerf.cli.render import counted, some
from kerf.engine.explain.causes import cause_text
from kerf.manifests.decoded import Decoded, Workload
from kerf.model.causes import Name, NodeNamed
from kerf.model.constraints import NODE_POOL
from kerf.model.namespaces import NAMESPACE_NAME
from kerf.model.nodeclaim import INITIALIZED, LAUNCHED, READY, REGISTERED, TRUE, Condition, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodSpec
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.topology import PodAffinityTerm, reads_labels
from kerf.sharing.hami.options import OF_PODS

_MOST = 3
_ASSUMED = "kerf.dev/assumed-claim"


def with_claims(decoded: Decoded) -> Decoded:
    """The same with a claim for each node of a pool that is there, where the input has no NodeClaim at all.

    So their prices and amounts count. Nothing says since when such a node is quiet, so none of them is consolidated.
    Claims and nodes belong together by the id of their instance: a node without one gets one.
    """
    if decoded.node_claims:
        return decoded
    pools = {pool.name: pool for pool in decoded.node_pools}
    nodes = tuple(
        node if node.provider_id or node.labels.get(NODE_POOL) not in pools else replace(node, provider_id=_id_of(node))
        for node in decoded.nodes
    )
    owned = ((node, pools.get(node.labels.get(NODE_POOL, ""))) for node in nodes)
    claims = tuple(_claim_of(node, pool) for node, pool in owned if pool is not None)
    return replace(decoded, nodes=nodes, node_claims=claims)


def _id_of(node: Node) -> str:
    return f"assumed:///{node.name}"


def _claim_of(node: Node, pool: NodePool) -> NodeClaim:
    return NodeClaim(
        node.name,
        pool.name,
        pool.node_class,
        pool.requirements,
        labels=node.labels,
        annotations={_ASSUMED: ""},
        provider_id=node.provider_id,
        node_name=node.name,
        created_s=node.created_s,
        capacity=node.capacity,
        allocatable=node.allocatable,
        conditions=tuple(Condition(stage, TRUE, stage) for stage in (INITIALIZED, LAUNCHED, READY, REGISTERED)),
    )


def is_assumed(claim: NodeClaim) -> bool:
    """Whether it is one of those, and none of the input."""
    return _ASSUMED in claim.annotations


def gaps(decoded: Decoded, place: str) -> list[str]:
    """What the input, as it was read, seems to lack, and what follows for a plan; empty where it seems whole."""
    looks = (
        _no_pools,
        _no_claims,
        _no_nodes,
        _no_nodes_of_claims,
        _no_daemon_sets,
        _no_pods,
        _no_owners,
        _no_classes,
        _no_volume_claims,
        _no_namespaces,
    )
    found = [text for look in looks if (text := look(decoded, place))]
    return [*found, *map(cause_text, named_nodes(decoded)), *_annotated_above(decoded)]


def _annotated_above(decoded: Decoded) -> Iterator[str]:
    """Annotations of HAMi that stand on what makes pods: its scheduler reads those of pods alone."""
    makers: dict[str, list[str]] = {}
    for workload in decoded.workloads:
        for key in workload.beside:
            if key in OF_PODS:
                makers.setdefault(key, []).append(f"{workload.kind} {workload.namespace}/{workload.name}")
    for key, found in sorted(makers.items()):
        stands = "stands" if len(found) == 1 else "each stand"
        yield (
            f"{key} of {some(found, _MOST)} {stands} beside the pod template, where HAMi does not read it: its pods "
            "are planned without it"
        )


def unread_budgets(snapshot: ClusterSnapshot, nodes: Iterable[str]) -> list[str]:
    """What is not known of the pods that leave these nodes, where no PodDisruptionBudget at all was read from files."""
    if not snapshot.may_lack_kinds or snapshot.disruption_budgets:
        return []
    left = {
        name: sum(not pod.is_daemon and not pod.is_ended for pod in found.pods)
        for name in nodes
        if (found := snapshot.node(name)) is not None
    }
    names, pods = [name for name, count in left.items() if count], sum(left.values())
    if not pods:
        return []
    return [
        f"the input has no PodDisruptionBudget: whether one holds the {counted(pods, 'pod')} of "
        f"{some(names, _MOST)} is not known"
    ]


def named_nodes(decoded: Decoded) -> list[NodeNamed]:
    """For which pods the input itself names a node, one cause a node, in the order of their names."""
    makers: dict[str, list[tuple[str, int]]] = {}
    for workload in decoded.workloads:
        if workload.template.node_name and workload.replicas:
            named = makers.setdefault(workload.template.node_name, [])
            named.append((f"{workload.kind} {workload.namespace}/{workload.name}", workload.replicas))
    for pod in decoded.pods:
        if pod.names_its_node and pod.owner is None:
            makers.setdefault(pod.node_name, []).append((f"Pod {pod.key}", 1))
    there = {node.name for node in decoded.nodes}
    return [
        NodeNamed(tuple(Name(maker) for maker, _ in sorted(found)), sum(n for _, n in found), Name(node), node in there)
        for node, found in sorted(makers.items())
    ]


def _no_pools(decoded: Decoded, place: str) -> str:
    there = {pool.name for pool in decoded.node_pools}
    claims = [claim for claim in decoded.node_claims if claim.node_pool and claim.node_pool not in there]
    if not claims:
        return ""
    pools = sorted({claim.node_pool for claim in claims})
    return (
        f"the {place} has no NodePool {some(pools, _MOST)} of {_of([claim.name for claim in claims], 'NodeClaim')}: "
        "these nodes count at their prices and none of them is removed; nothing is bought from that pool, and its "
        "limits are not known"
    )


def _no_nodes(decoded: Decoded, place: str) -> str:
    there = {node.name for node in decoded.nodes}
    pods = [pod for pod in decoded.pods if pod.node_name and pod.node_name not in there and not pod.is_ended]
    if not pods:
        return ""
    names = sorted({pod.node_name for pod in pods})
    return (
        f"the {place} has no Node {some(names, _MOST)} of {_of([pod.key for pod in pods], 'pod')} with a node: what "
        "these pods use and what their nodes have left is not known, so nodes may be bought that are not needed"
    )


def _no_nodes_of_claims(decoded: Decoded, place: str) -> str:
    there = {node.provider_id for node in decoded.nodes}
    claims = [c.name for c in decoded.node_claims if c.is_true(INITIALIZED) and c.provider_id not in there]
    if not claims:
        return ""
    return (
        f"the {place} has no Node of {_of(claims, 'NodeClaim')} with the condition Initialized: they count at their "
        "prices and against limits, and no pod is planned for them"
    )


def _no_owners(decoded: Decoded, place: str) -> str:
    """Pods that a workload of the input made, by name and labels, and that do not say so. Linear in pods."""
    owned = {(pod.namespace, name) for pod in decoded.pods if pod.owner for name in _beginnings(f"{pod.owner.name}-")}
    lacking = {(w.namespace, w.name): w for w in decoded.workloads if w.replicas and (w.namespace, w.name) not in owned}
    keys: set[str] = set()
    workloads: set[str] = set()
    for pod in decoded.pods:
        if pod.owner is None and not pod.is_ended:
            named = (lacking.get((pod.namespace, name)) for name in _beginnings(pod.name))
            alike = [workload for workload in named if workload is not None and _has_labels_of(pod, workload)]
            keys.update(pod.key for _ in alike)
            workloads.update(workload.key for workload in alike)
    if not keys:
        return ""
    return (
        f"{_of(list(keys), 'pod')} of the {place} without ownerReferences may be of {some(sorted(workloads), _MOST)}: "
        "they do not count as its pods, so these are planned once more"
    )


def _beginnings(name: str) -> Iterator[str]:
    """Names of what may have made an object of that name: `web` and `web-6c9f` of `web-6c9f-x`."""
    return (name[:at] for at, letter in enumerate(name) if letter == "-")


def _has_labels_of(pod: Pod, workload: Workload) -> bool:
    labels = workload.template.labels
    return bool(labels) and labels.items() <= pod.labels.items()


def _no_claims(decoded: Decoded, place: str) -> str:
    pools = {pool.name for pool in decoded.node_pools}
    nodes = [node.name for node in decoded.nodes if node.labels.get(NODE_POOL, "") in pools]
    if decoded.node_claims or not nodes:
        return ""
    return (
        f"the {place} has no NodeClaims: {_of(nodes, 'node')} of NodePools by label, which count at their prices and "
        "against limits; none of them is removed, and nodes that are on their way are not known"
    )


def _no_daemon_sets(decoded: Decoded, place: str) -> str:
    pods = (pod for pod in decoded.pods if pod.owner is not None and pod.owner.kind == "DaemonSet" and not pod.is_ended)
    owners = sorted({f"{pod.namespace}/{pod.owner.name}" for pod in pods if pod.owner is not None})
    if decoded.daemon_sets or not owners:
        return ""
    return (
        f"the {place} has no DaemonSets, though pods are of {some(owners, _MOST)}: "
        "what they ask is missing on new nodes, which may hold fewer pods than planned"
    )


def _no_classes(decoded: Decoded, place: str) -> str:
    # Of a live cluster, and so in its dump, the classes are not asked for: its pods have their priorities.
    is_of_cluster = place != "input" or (decoded.dump is not None and decoded.dump.place != "input")
    if not decoded.absent_classes or is_of_cluster:
        return ""
    return (
        f"the {place} has no PriorityClass {some(decoded.absent_classes, _MOST)}: its pods count with the priority "
        "that they state, or 0"
    )


def _no_volume_claims(decoded: Decoded, place: str) -> str:
    is_of_cluster = place != "input" or (decoded.dump is not None and decoded.dump.place != "input")
    if decoded.volume_claims or is_of_cluster:
        return ""
    running = (pod for pod in decoded.pods if pod.node_name and not pod.is_ended)
    keys = [pod.key for pod in running if pod.spec.claims or pod.spec.claim_templates]
    if not keys:
        return ""
    return (
        f"the {place} has no PersistentVolumeClaims of {_of(keys, 'pod')} with a node: where their volumes are is not "
        "known, so these pods are not moved"
    )


def _no_namespaces(decoded: Decoded, place: str) -> str:
    """Namespaces whose labels a pod asks about; linear in pods and their terms of affinity."""
    if place != "input" or (decoded.dump is not None and decoded.dump.place != "input"):
        return ""
    made = [(workload.key, workload.template) for workload in decoded.workloads if workload.replicas]
    named = [(f"pod {pod.key}", pod) for pod in decoded.pods if not pod.is_ended] + made
    absent = {pod.namespace for _, pod in named}.difference(each.name for each in decoded.namespaces)
    specs = {id(pod.spec): pod.spec for _, pod in named if absent}
    asking = {key for key, spec in specs.items() if any(map(reads_labels, _affinity_terms(spec)))}
    names = sorted({name for name, pod in named if id(pod.spec) in asking})
    if not names:
        return ""
    return (
        f"the {place} has no Namespace {some(sorted(absent), _MOST)}: whether a namespaceSelector of "
        f"{some(names, _MOST)} takes it is not known; planned as if it had no label but {NAMESPACE_NAME}"
    )


def _affinity_terms(spec: PodSpec) -> Iterator[PodAffinityTerm]:
    for affinity in (spec.pod_affinity, spec.pod_anti_affinity):
        yield from affinity.required
        yield from (term for _, term in affinity.preferred)


def _no_pods(decoded: Decoded, place: str) -> str:
    if not decoded.nodes or any(pod.node_name for pod in decoded.pods):
        return ""
    names = [node.name for node in decoded.nodes]
    return (
        f"the {place} has no pod with a node: {_of(names, 'node')} count as empty, "
        "so pods may be planned where others run"
    )


def _of(names: Sequence[str], noun: str) -> str:
    return f"{counted(len(names), noun)} ({some(sorted(names), _MOST)})"
