"""ClusterState: watch events in, `snapshot()` out. The only mutable model.

It joins what the API tells apart: node and claim by provider id, pods by node, and each node's cards with what the
sharing family's own records say is used of them. It keeps no memory of its own: what it holds can always be read again.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.errors import DecodeError
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.gpu import DeviceShape, DeviceState, GPUModel
from kerf.model.instancetypes import NodeOverlay
from kerf.model.nodeclaim import OBSERVED_DEVICES, PREDICTED_DEVICES, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDemand, PodDisruptionBudget
from kerf.model.quantities import Resources
from kerf.model.snapshot import (
    ClusterNode,
    ClusterSnapshot,
    ConfigMap,
    DaemonSet,
    Deleted,
    Event,
    NodeClass,
    ResourceQuota,
    Synced,
    Upserted,
    Watched,
    key_of,
)
from kerf.sharing.family import Family, Occupant
from kerf.sharing.registry import configured, demand_of, owner_of


class ClusterState:
    """The cluster as the events so far describe it."""

    def __init__(self, *, assume_node_classes: bool = False) -> None:
        self.is_synced = False
        self.version = 0
        self.assumes_node_classes = assume_node_classes
        self._objects: dict[str, dict[str, Watched]] = {}

    def apply(self, event: Event) -> None:
        """Take note of one event. Repeats and deletions of unknown objects do no harm.

        Raises DecodeError for a ConfigMap that its sharing family cannot read; the state stays as it was.
        """
        if isinstance(event, Synced):
            self.is_synced = True
            return
        kind, key = key_of(event.value)
        if isinstance(event, Upserted) and isinstance(event.value, ConfigMap):
            configured((event.value,))
        self.version += 1
        held = self._objects.setdefault(kind, {})
        if isinstance(event, Upserted):
            held[key] = event.value
        elif isinstance(event, Deleted):
            held.pop(key, None)

    def find(self, kind: str, key: str) -> Watched | None:
        """The object of that kind and `namespace/name`; None when there is none."""
        return self._objects.get(kind, {}).get(key)

    def pods(self) -> tuple[Pod, ...]:
        """All pods, by key."""
        return tuple(v for v in self._sorted("Pod") if isinstance(v, Pod))

    def claims(self) -> tuple[NodeClaim, ...]:
        """All claims, by name."""
        return tuple(v for v in self._sorted("NodeClaim") if isinstance(v, NodeClaim))

    def claim(self, name: str) -> NodeClaim | None:
        """The claim of that name; None when there is none."""
        found = self._objects.get("NodeClaim", {}).get(name)
        return found if isinstance(found, NodeClaim) else None

    def pool(self, name: str) -> NodePool | None:
        """The pool of that name; None when there is none."""
        found = self._objects.get("NodePool", {}).get(name)
        return found if isinstance(found, NodePool) else None

    def node(self, name: str) -> Node | None:
        """The node object of that name; None when there is none."""
        found = self._objects.get("Node", {}).get(name)
        return found if isinstance(found, Node) else None

    def node_of(self, claim: NodeClaim) -> Node | None:
        """The node that a claim's instance has registered; None while there is none."""
        if not claim.provider_id:
            return None
        nodes = self._objects.get("Node", {})
        held = nodes.get(claim.node_name)
        if isinstance(held, Node) and held.provider_id == claim.provider_id:
            return held
        return next(
            (n for _, n in sorted(nodes.items()) if isinstance(n, Node) and n.provider_id == claim.provider_id), None
        )

    def family_of(self, node: Node | None, claim: NodeClaim) -> Family:
        """The sharing family that owns the cards of a claim's node."""
        config_maps = tuple(v for v in self._sorted("ConfigMap") if isinstance(v, ConfigMap))
        pool = self.pool(claim.node_pool)
        annotations = pool.stated_annotations if pool is not None else {}
        return owner_of(
            {**claim.labels, **(node.labels if node is not None else {})}, annotations, configured(config_maps)
        )

    def claim_of(self, node: Node) -> NodeClaim | None:
        """The claim a node was launched for; None for a node that is not ours."""
        return next(
            (claim for claim in self.claims() if claim.provider_id and claim.provider_id == node.provider_id), None
        )

    def pods_on(self, node_name: str) -> tuple[Pod, ...]:
        """The pods bound to a node that have not ended, by key."""
        return tuple(pod for pod in self.pods() if pod.node_name == node_name and not pod.is_ended)

    def pod(self, key: str) -> Pod | None:
        """The pod of that `namespace/name`; None when there is none."""
        found = self._objects.get("Pod", {}).get(key)
        return found if isinstance(found, Pod) else None

    def pools(self) -> tuple[NodePool, ...]:
        """All pools, by name."""
        return tuple(v for v in self._sorted("NodePool") if isinstance(v, NodePool))

    def node_classes(self) -> tuple[NodeClass, ...]:
        """All NodeClasses, by name."""
        return tuple(v for v in self._sorted("NodeClass") if isinstance(v, NodeClass))

    def _sorted(self, kind: str) -> list[Watched]:
        held = self._objects.get(kind, {})
        return [held[key] for key in sorted(held)]

    def snapshot(self, now_s: float) -> ClusterSnapshot:
        """Everything at this moment, frozen. Linear in the objects."""
        config_maps = tuple(v for v in self._sorted("ConfigMap") if isinstance(v, ConfigMap))
        families = configured(config_maps)
        pods = self.pods()
        nodes = self._nodes(pods, families)
        quotas = tuple(v for v in self._sorted("ResourceQuota") if isinstance(v, ResourceQuota))
        return ClusterSnapshot(
            taken_at_s=now_s,
            node_pools=self.pools(),
            nodes=nodes,
            pending=tuple(pod for pod in pods if pod.is_pending),
            overlays=tuple(v for v in self._sorted("NodeOverlay") if isinstance(v, NodeOverlay)),
            node_classes=self.node_classes(),
            daemon_sets=tuple(v for v in self._sorted("DaemonSet") if isinstance(v, DaemonSet)),
            disruption_budgets=tuple(
                v for v in self._sorted("PodDisruptionBudget") if isinstance(v, PodDisruptionBudget)
            ),
            config_maps=config_maps,
            quotas=tuple(_with_use(quota, pods, families) for quota in quotas),
            assume_node_classes=self.assumes_node_classes,
        )

    def _nodes(self, pods: Sequence[Pod], families: tuple[Family, ...]) -> tuple[ClusterNode, ...]:
        by_node: dict[str, list[Pod]] = {}
        for pod in pods:
            if pod.node_name and not pod.is_ended:
                by_node.setdefault(pod.node_name, []).append(pod)
        reserving = [pod for pod in pods if not pod.node_name and not pod.is_ended]
        claims = {claim.provider_id: claim for claim in self.claims() if claim.provider_id}
        pools = {pool.name: pool for pool in self.pools()}
        joined, seen = [], set()
        for value in self._sorted("Node"):
            if isinstance(value, Node):
                claim = claims.get(value.provider_id)
                if claim is not None:
                    seen.add(claim.name)
                pool = pools.get(claim.node_pool) if claim is not None else None
                joined.append(
                    _joined(_Parts(value, claim, pool, tuple(by_node.get(value.name, ())), reserving), families)
                )
        alone = [claim for claim in self.claims() if claim.name not in seen]
        joined += [_joined(_Parts(None, claim, pools.get(claim.node_pool), (), ()), families) for claim in alone]
        return tuple(sorted(joined, key=lambda node: node.name))


@dataclass(frozen=True)
class _Parts:
    """What belongs to one node."""

    node: Node | None
    claim: NodeClaim | None
    pool: NodePool | None
    pods: tuple[Pod, ...]
    reserving: Sequence[Pod]


def _joined(parts: _Parts, families: tuple[Family, ...]) -> ClusterNode:
    node, claim = parts.node, parts.claim
    labels = {**(claim.labels if claim is not None else {}), **(node.labels if node is not None else {})}
    pool = parts.pool
    annotations = pool.stated_annotations if pool is not None else {}
    family = owner_of(labels, annotations, families)
    problem, observed = "", None
    if node is not None:
        try:
            observed = family.inventory(node)
        except DecodeError as error:
            problem = str(error)
    waiting = claim is not None and not claim.is_true("Initialized")
    if observed is None or (waiting and not observed):
        devices = family.predict(predicted_shapes(claim), annotations) if claim is not None and waiting else ()
    else:
        devices = observed
    occupants = [Occupant(pod, _demand(pod, family)) for pod in parts.pods]
    if node is not None:
        occupants += [Occupant(p, _demand(p, family)) for p in parts.reserving if family.booked_node(p) == node.name]
    used = family.occupied(devices, occupants) if devices else ()
    return ClusterNode(
        node, claim, parts.pods, used, family.name if devices or observed else "", problem, bool(observed)
    )


def _demand(pod: Pod, family: Family) -> PodDemand | None:
    demand = demand_of(pod, family)
    return demand if isinstance(demand, PodDemand) and not demand.is_empty else None


def predicted_shapes(claim: NodeClaim) -> tuple[DeviceShape, ...]:
    """The cards a claim's node must register, as written at its launch; empty once somebody broke the annotation."""
    try:
        cards = json.loads(claim.annotations.get(PREDICTED_DEVICES, "[]"))
        return tuple(
            DeviceShape(GPUModel(card["model"], "nvidia", card.get("registeredAs", "")), int(card["memoryMiB"]))
            for card in cards
        )
    except (ValueError, TypeError, KeyError):
        return ()


def devices_annotation(shapes: Iterable[DeviceShape]) -> str:
    """The annotation that `predicted_shapes` reads."""
    return json.dumps(
        [{"model": s.model.name, "registeredAs": s.model.registered_as, "memoryMiB": s.memory_mib} for s in shapes]
    )


def observed_memory(pools: Iterable[NodePool], nodes: Iterable[ClusterNode]) -> dict[tuple[str, str], int]:
    """What to reckon with for a card of each (pool, instance type), in MiB before any scaling, where it is noted.

    The note on the pool holds until a node of the type has initialised with more: one bad card must not speak for all.
    """
    known = {(pool.name, name): memory for pool in pools for name, memory in noted_observations(pool).items()}
    for node in nodes:
        claim = node.claim
        if claim is None or not node.is_initialized or node.is_deleting:
            continue
        key = (claim.node_pool, node.labels.get(INSTANCE_TYPE, ""))
        proven = min((shape.memory_mib for shape in predicted_shapes(claim)), default=0)
        if key in known:
            known[key] = max(known[key], proven)
    return known


def noted_observations(pool: NodePool) -> Mapping[str, int]:
    """What the pool's annotation says was registered, by instance type; empty when it cannot be read."""
    try:
        noted = json.loads(pool.own_annotations.get(OBSERVED_DEVICES, "{}"))
        return {str(name): int(memory) for name, memory in noted.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def lacks(predicted: Sequence[DeviceState], observed: Sequence[DeviceState]) -> str:
    """What the register lacks of what was predicted, card by card; empty when it holds at least that."""
    if len(observed) < len(predicted):
        return f"{len(observed)} of {len(predicted)} GPUs registered"
    healthy = sorted((d.memory_mib for d in observed if d.healthy), reverse=True)
    expected = sorted((d.memory_mib for d in predicted), reverse=True)
    if len(healthy) < len(expected):
        return f"{len(healthy)} of {len(expected)} GPUs are healthy"
    for got, wanted in zip(healthy, expected, strict=False):
        if 0 < got < wanted:
            return f"a GPU registered {got} MiB, {wanted} were predicted"
    return ""


def _with_use(quota: ResourceQuota, pods: Sequence[Pod], families: tuple[Family, ...]) -> ResourceQuota:
    used = Resources()
    for family in families:
        holding = [
            pod
            for pod in pods
            if pod.namespace == quota.namespace and not pod.is_ended and (pod.node_name or family.booked_node(pod))
        ]
        used = used + family.quota_used([Occupant(pod, _demand(pod, family)) for pod in holding])
    return replace(quota, used=used)
