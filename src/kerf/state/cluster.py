"""ClusterState: watch events in, `snapshot()` out. The only mutable model.

It joins what the API shows apart: node and claim by provider id, pods by node, and each node's cards with what the
sharing family's own records say is used of them. It keeps no memory of its own: what it holds can always be read again.
At 100,000 pods nothing may be looked for by going through them, so what belongs together is indexed as events come,
and a node is joined again only when one of its parts has changed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from kerf.model.capacitybuffers import CapacityBuffer
from kerf.model.groups import group_of
from kerf.model.instancetypes import NodeOverlay
from kerf.model.namespaces import Namespace, Service
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pluginnamespaces import PLUGIN_NAMESPACES
from kerf.model.pods import FAILED, Pod, PodDisruptionBudget
from kerf.model.promises import moved
from kerf.model.provisioningrequests import PodTemplate, ProvisioningRequest, consumed_request
from kerf.model.quantities import Resources
from kerf.model.resourcequotas import OBJECTS
from kerf.model.runtimeclasses import RuntimeClass
from kerf.model.snapshot import (
    ClusterNode,
    ClusterSnapshot,
    ConfigMap,
    DaemonSet,
    Deleted,
    Event,
    Relisted,
    ResourceQuota,
    Synced,
    Upserted,
    Watched,
    key_of,
)
from kerf.model.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from kerf.model.windows import WINDOW_LABEL, CapacityWindow
from kerf.sharing.family import Family, Occupant
from kerf.sharing.gathering import WITNESSES, Gathered
from kerf.sharing.registry import double_booked, judged, owner_of, problem_in
from kerf.state.joining import Parts, demand_on, joined, stated
from kerf.state.objects import Objects
from kerf.state.shelves import Groups, Shelf, Sum
from kerf.state.versions import Ahead, Ends, compared


class ClusterState(Objects):
    """The cluster as the events so far describe it.

    `version` grows with every change that may change a decision: an object that differs in nothing but its resource
    version, as after a heartbeat, is none. Nor is a VolumeAttachment, which only the end of a node waits for.
    """

    def __init__(
        self, *, assume_node_classes: bool = False, plugin_namespaces: Collection[str] = PLUGIN_NAMESPACES
    ) -> None:
        super().__init__()
        self._plugin_namespaces = frozenset(plugin_namespaces)
        self.is_synced = False
        self.version = 0
        self._ahead: dict[tuple[str, str], Ahead] = {}
        """By kind and key what answers have shown and the watch has not yet."""
        self._ends = Ends()
        self._relisted: dict[str, str] = {}
        """By kind the version of the last list that was reported whole."""
        self.assumes_node_classes = assume_node_classes
        self._gathered = Gathered(plugin_namespaces)
        self._families, self._evidence = judged((), self._gathered)
        self._unreadable: dict[str, ConfigMap] = {}
        self._flawed: set[str] = set()
        """Keys of ConfigMaps that count although they cannot be read whole, or contradict others."""
        self._unbound: Shelf[Pod] = Shelf()
        self._nominated_to = Groups()
        self._pods_on, self._booked_on, self._windowed, self._grouped = Groups(), Groups(), Groups(), Groups()
        self._nodes_by_id, self._claims_by_id, self._claims_of_pool = Groups(), Groups(), Groups()
        self._claims_for, self._attached_to = Groups(), Groups()
        self._counted: dict[str, Sum] = {}
        # By name of a claim its pool, and what it adds to the sum of that.
        self._counts: dict[str, tuple[str, Resources]] = {}
        self._joined: dict[tuple[str, str], ClusterNode] = {}
        self._stale: set[tuple[str, str]] = set()
        self._nodes: tuple[ClusterNode, ...] = ()
        self._used: dict[str, Resources] = {}

    def apply(self, event: Event) -> bool:
        """Take note of one event; whether it is news. Repeats and deletions of unknown objects do no harm.

        A heartbeat is none: a node that differs in nothing but its resource version, which our next write must name.
        The first form after our own write is news, whatever has changed, since the write itself may not be shown.

        Raises DecodeError for a ConfigMap that its sharing family cannot read, or that contradicts the others: the form
        before counts, and of a map that never could be read whole, what can be read of it. ConfigMaps outside the
        namespaces of plugins configure nothing.
        """
        if isinstance(event, Synced):
            self.is_synced = True
            return True
        kind, key = key_of(event.value)
        is_noted = (kind, key) in self._ahead
        if is_noted and self._is_overtaken(event, (kind, key)):
            return True
        self._keep_end(event)
        after = self._still_going(event.value) if isinstance(event, Upserted) else None
        if isinstance(event.value, ConfigMap):
            if event.value.namespace in self._plugin_namespaces:
                self._change_config(event.value, is_gone=after is None)
            return True
        before: Any = self._shelf(kind).put(key, after)
        is_same = _is_same(before, after)
        if not isinstance(event.value, VolumeAttachment) and not is_same:
            self.version += 1
        self._index(key, before, after)
        return is_noted or not is_same or not isinstance(after, Node) or before == after

    def _change_config(self, config_map: ConfigMap, *, is_gone: bool) -> None:
        """Take a ConfigMap as it is now, and with it those that could not be read before and can be now.

        What cannot be read beside the others is remembered until it can, or is gone; its last form counts meanwhile.
        """
        key = key_of(config_map)[1]
        self._unreadable.pop(key, None)
        self._flawed.discard(key)
        if is_gone:
            self._take({key: None})
        else:
            self._unreadable[key] = config_map
        # Together first: two maps that change alike contradict each other while one of them is still the old one.
        self._take_sound()
        if key in self._unreadable:
            self.version += 1
            self._configure()
            alone = problem_in([config_map])
            refused = alone or problem_in(self._maps_with({key: config_map}), self._evidence)
            if refused is not None:
                raise refused

    def _take_sound(self) -> None:
        """Take those of the maps that could not be read which now can be, beside the others."""
        sound = [name for name in sorted(self._unreadable) if problem_in([self._unreadable[name]]) is None]
        for names in (sound, *([name] for name in sound)):
            changed = {name: self._unreadable[name] for name in names if name in self._unreadable}
            if changed and problem_in(self._maps_with(changed), self._evidence) is None:
                self._take(changed)
                self._unreadable = {name: held for name, held in self._unreadable.items() if name not in changed}

    def take_as_it_is(self, config_map: ConfigMap) -> None:
        """Take a map that `apply` has refused, where no form before can count: what depends on it registers no card."""
        key = key_of(config_map)[1]
        self._unreadable.pop(key, None)
        self._flawed.add(key)
        self._take({key: config_map})

    def _config_maps(self) -> tuple[ConfigMap, ...]:
        """All maps, each in its last good form; of one that never had any, what can be read of it counts."""
        held: dict[str, ConfigMap] = self._shelf("ConfigMap").held
        partly = {
            key: each for key, each in self._unreadable.items() if key not in held and problem_in([each]) is not None
        }
        both = {**held, **partly}
        return tuple(both[key] for key in sorted(both)) if partly else self._all(ConfigMap)

    def _maps_with(self, changed: Mapping[str, ConfigMap]) -> list[ConfigMap]:
        """Those that can be read, with these beside them."""
        held: dict[str, ConfigMap] = {**self._shelf("ConfigMap").held, **changed}
        return [held[key] for key in sorted(held) if key in changed or key not in self._flawed]

    def _take(self, changed: Mapping[str, ConfigMap | None]) -> None:
        for key, after in changed.items():
            if not _is_same(self._shelf("ConfigMap").put(key, after), after):
                self.version += 1
        self._configure()

    def note(self, value: Watched) -> None:
        """Take note of what the answer to a call has given, unless the state knows better by now.

        It does when the watch has shown a newer form, a newer object of that name, or the end. Then the answer was
        late. Where two versions cannot be compared only the watch counts (see `versions`). The answer to a deletion
        has no form: give the claim with the time of it.
        """
        named, answer = key_of(value), _identity(value)
        held, ahead = self.find(*named), self._ahead.get(named)
        if answer.uid in self._ends or (held is None and not isinstance(value, NodeClaim)):
            # Of what is written only claims are made by Kerf: all else that is not there has gone.
            return
        listed = self._relisted.get(named[0])
        if held is None and listed is not None and Ahead(answer.uid, answer.version).is_by(listed):
            # It came and went before a list that did not show it.
            return
        is_made = True
        if held is not None:
            known = _identity(held)
            order, is_deletion = compared(known.version, answer.version), _is_deletion(held, value)
            if is_deletion and order != -1:
                value = replace(cast("NodeClaim", held), deleted_s=cast("NodeClaim", value).deleted_s)
            elif order is None or order > 0 or (order == 0 and ahead is None):
                return
            is_made = known.uid != answer.uid or (ahead is not None and ahead.is_made)
        self.apply(Upserted(value))
        self._ahead[named] = Ahead(*_identity(value), is_made)

    def relist(self, relisted: Relisted) -> tuple[Deleted, ...]:
        """The ends of objects that only an answer has shown, and that a list made later does not show; by key.

        They came and went while the watch was cut: no event will ever tell of them.
        """
        self._relisted[relisted.kind] = relisted.version
        gone = sorted(
            named
            for named, ahead in self._ahead.items()
            if named[0] == relisted.kind and ahead.is_made and ahead.is_by(relisted.version)
        )
        return tuple(Deleted(held) for named in gone if (held := self.find(*named)) is not None)

    def _still_going(self, value: Watched) -> Watched:
        """The object, with the deletion that the state knows of: no form that lacks it can be newer."""
        if not isinstance(value, NodeClaim) or value.is_deleting:
            return value
        held = self.claim(value.name)
        is_going = held is not None and held.uid == value.uid and held.is_deleting
        return replace(value, deleted_s=held.deleted_s) if held is not None and is_going else value

    def _keep_end(self, event: Upserted | Deleted) -> None:
        """Remember which objects have gone, of the kinds that are written: a late answer must not bring one back."""
        if isinstance(event.value, _WRITTEN):
            (self._ends.add if isinstance(event, Deleted) else self._ends.discard)(event.value.uid)

    def _is_overtaken(self, event: Upserted | Deleted, named: tuple[str, str]) -> bool:
        """Whether the watch shows a form that was there before what an answer has shown, which the state has already.

        A watch lags behind answers, under load by seconds. Until it has caught up with the write, each form that it
        shows would take back what the write has done: a claim would lose its instance for a while.
        """
        ahead, shown = self._ahead[named], _identity(event.value)
        if ahead.is_newer_than(shown.version):
            if isinstance(event, Upserted) and shown.uid == ahead.uid:
                self._ahead[named] = replace(ahead, is_made=False)
                return True
            if shown.uid != ahead.uid:
                # An object of that name that was there before, or its end.
                self._keep_end(event)
                return True
        del self._ahead[named]
        return False

    def _index(self, key: str, before: Any, after: Any) -> None:
        """Keep what is joined in step with one object, which was `before` and is `after`; None for no object."""
        value = before if after is None else after
        if isinstance(value, WITNESSES) and self._gathered.note(before, after):
            self._configure()
            if self._unreadable:
                # What runs says which of several maps is read.
                self._take_sound()
        if isinstance(value, Pod):
            self._move_pod(key, before, after)
        elif isinstance(value, Node):
            self._move_node(key, before, after)
        elif isinstance(value, NodeClaim):
            self._move_claim(key, before, after)
        elif isinstance(value, VolumeAttachment):
            self._attached_to.move(key, *("" if each is None else each.node_name for each in (before, after)))
        elif isinstance(value, NodePool) and stated(before) != stated(after):
            for name in self._claims_of_pool.of(key):
                self._stale.add(("NodeClaim", name))
                self._touch_instances((self._shelf("NodeClaim").held[name].provider_id,))

    def _move_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        held, holds = _bound_to(before), _bound_to(after)
        self._pods_on.move(key, held, holds)
        nominated = [pod.nominated_to if pod is not None else "" for pod in (before, after)]
        self._nominated_to.move(key, *nominated)
        self._touch_nodes(nominated)
        self._windowed.move(key, _windowed(before), _windowed(after))
        self._grouped.move(key, _grouped(before), _grouped(after))
        waits = after if after is not None and not holds and not after.is_ended else None
        self._unbound.put(key, waits)
        if waits is not None:
            waits.ask_ahead()
        self._touch_nodes((held, holds))
        self._book(key, before, after, self._families)
        for pod in (before, after):
            if pod is not None:
                self._used.pop(pod.namespace, None)

    def _book(self, key: str, before: Pod | None, after: Pod | None, families: Iterable[Family]) -> None:
        for family in families:
            held, holds = _booked_at(before, family), _booked_at(after, family)
            if held or holds:
                self._booked_on.move(key, held and f"{family.name}/{held}", holds and f"{family.name}/{holds}")
                self._touch_nodes((held, holds))

    def _move_node(self, key: str, before: Node | None, after: Node | None) -> None:
        held, holds = ("" if node is None else node.provider_id for node in (before, after))
        self._nodes_by_id.move(key, held, holds)
        self._touch_nodes((key,))
        self._touch_instances((held, holds))
        if held != holds or before is None or after is None or before.capacity != after.capacity:
            for provider_id in {held, holds} - {""}:
                for name in self._claims_by_id.of(provider_id):
                    self._count(name, self.claim(name))

    def _move_claim(self, key: str, before: NodeClaim | None, after: NodeClaim | None) -> None:
        held, holds = ("" if claim is None else claim.provider_id for claim in (before, after))
        self._touch_instances((held, holds))
        self._claims_by_id.move(key, held, holds)
        self._claims_of_pool.move(key, *("" if c is None else c.node_pool for c in (before, after)))
        self._move_promises(key, before, after)
        self._stale.add(("NodeClaim", key))
        if before is None or after is None or not _counts_alike(before, after):
            self._count(key, after)

    def _count(self, key: str, claim: NodeClaim | None) -> None:
        """Count the claim again: what it was launched with, and of cards what its node shows."""
        counts = None
        if claim is not None and not claim.is_terminated:
            node = self.node_of(claim)
            shown = {} if node is None else {name: n for name, n in node.capacity.items() if n and "/" in name}
            counts = claim.node_pool, claim.capacity.replaced(shown) if shown else claim.capacity
        before = self._counts.pop(key, None)
        if counts is not None:
            self._counts[key] = counts
        if before == counts:
            return
        for each, sign in ((before, -1), (counts, 1)):
            if each is not None:
                pool, capacity = each
                self._counted.setdefault(pool, Sum()).add(capacity, sign)

    def _move_promises(self, key: str, before: NodeClaim | None, after: NodeClaim | None) -> None:
        held, holds = ({} if claim is None else claim.annotations for claim in (before, after))
        gone, come = moved(held, holds)
        for pod in gone:
            self._claims_for.move(key, pod, "")
        for pod in come:
            self._claims_for.move(key, "", pod)

    def _touch_nodes(self, names: Iterable[str]) -> None:
        self._stale.update(("Node", name) for name in names if name)

    def _touch_instances(self, provider_ids: Iterable[str]) -> None:
        """Whatever is joined by these ids is to be joined again."""
        for provider_id in provider_ids:
            self._touch_nodes(self._nodes_by_id.of(provider_id))
            self._stale.update(("NodeClaim", name) for name in self._claims_by_id.of(provider_id))

    def _configure(self) -> None:
        """Take the families as the ConfigMaps and what is installed now say; everything depends on them."""
        before = self._families
        self._families, self._evidence = judged(self._config_maps(), self._gathered)
        if before == self._families:
            return
        for key, pod in self._unbound.held.items():
            self._book(key, pod, None, before)
            self._book(key, None, pod, self._families)
        self._used.clear()
        self._stale.update((kind, name) for kind in ("Node", "NodeClaim") for name in self._shelf(kind).held)

    def unreadable_config_maps(self) -> tuple[ConfigMap, ...]:
        """Those that cannot be read as they are, alone or beside the others, so the form before counts; by key."""
        return tuple(self._unreadable[key] for key in sorted(self._unreadable))

    def pending(self) -> tuple[Pod, ...]:
        """The pods that wait for a node and have no room on any yet, by key; see `nominees`."""
        return tuple(pod for pod in self._unbound.values() if pod.is_pending and not self._is_nominee(pod))

    def nominees(self, node_name: str) -> tuple[Pod, ...]:
        """The pods that a scheduler has nominated to a node and not bound yet, by key.

        They take room there as if they were on it: so its scheduler counts for all pods that are not more important.
        No decision is made for them, and no pod is planned into their room. A node that is not there has none.
        """
        pods: dict[str, Pod] = self._shelf("Pod").held
        return tuple(pods[key] for key in self._nominated_to.of(node_name)) if self.node(node_name) is not None else ()

    def is_any_nominated_to(self, node_name: str) -> bool:
        """Whether a pod is nominated to a node of that name, which may not be there."""
        return bool(self._nominated_to.of(node_name))

    def _is_nominee(self, pod: Pod) -> bool:
        return bool(pod.nominated_to) and self.node(pod.nominated_to) is not None

    def pods_on(self, node_name: str) -> tuple[Pod, ...]:
        """The pods bound to a node that have not ended, by key."""
        pods: dict[str, Pod] = self._shelf("Pod").held
        return tuple(pods[key] for key in self._pods_on.of(node_name))

    def is_any_on(self, node_name: str, of: Callable[[Pod], bool]) -> bool:
        """Whether some pod bound to a node that has not ended is such a one. Cost: the pods up to the first."""
        pods: dict[str, Pod] = self._shelf("Pod").held
        return any(of(pods[key]) for key in self._pods_on.of(node_name))

    def attachments_to(self, node_name: str) -> tuple[VolumeAttachment, ...]:
        """The attachments of volumes to a node, by name."""
        held: dict[str, VolumeAttachment] = self._shelf("VolumeAttachment").held
        return tuple(held[name] for name in self._attached_to.of(node_name))

    def windowed(self) -> tuple[Pod, ...]:
        """The pods with the label of CapacityWindows that have not ended, by key."""
        pods: dict[str, Pod] = self._shelf("Pod").held
        return tuple(pods[key] for key in self._windowed.of(WINDOW_LABEL))

    def grouped(self) -> tuple[Pod, ...]:
        """The pods that belong to a group, or take the room of a request, and have not failed nor go, by key."""
        pods: dict[str, Pod] = self._shelf("Pod").held
        return tuple(pods[key] for key in self._grouped.of(_GROUPED))

    def claims_of(self, pool: str) -> tuple[NodeClaim, ...]:
        """The claims of a pool, by name."""
        claims: dict[str, NodeClaim] = self._shelf("NodeClaim").held
        return tuple(claims[name] for name in self._claims_of_pool.of(pool))

    def claims_for(self, pod: str) -> tuple[NodeClaim, ...]:
        """The claims that were bought for a pod (`namespace/name`), by name."""
        held = self._shelf("NodeClaim").held
        return tuple(held[name] for name in self._claims_for.of(pod))

    def counted(self, pool: str) -> Resources:
        """What the capacities of a pool's claims sum up to, with their number as `nodes`; without terminated ones.

        Of cards what the nodes show, once they are there: replicas, slots, instances (Karpenter sums up the capacities
        of nodes), as limits count them.
        """
        return self._counted[pool].total() if pool in self._counted else Resources()

    def node_of(self, claim: NodeClaim) -> Node | None:
        """The node that a claim's instance has registered; None while there is none."""
        held = self.node(claim.node_name)
        if held is not None and claim.provider_id and held.provider_id == claim.provider_id:
            return held
        return next((self.node(name) for name in self._nodes_by_id.of(claim.provider_id)), None)

    def claim_of(self, node: Node) -> NodeClaim | None:
        """The claim a node was launched for; None for a node that is not ours."""
        return next((self.claim(name) for name in self._claims_by_id.of(node.provider_id)), None)

    def family_of(self, node: Node | None, claim: NodeClaim | None) -> Family:
        """The sharing family that owns the cards of a claim's node; what the node says itself goes before its pool."""
        pool = stated(self.pool(claim.node_pool) if claim is not None else None)
        labels = {**(claim.labels if claim is not None else {}), **(node.labels if node is not None else {})}
        return owner_of(labels, {**pool, **node.annotations} if node is not None else pool, self._families)

    def snapshot(self, now_s: float, planned: Sequence[Pod] | None = None) -> ClusterSnapshot:
        """Everything at this moment, frozen. What has not changed since the last one is the same object again.

        `planned` are the pending pods that a plan is to find places for, instead of all that are pending. What a
        scheduler has booked for one of them counts as free where the plan counts what the pod asks instead.
        """
        pending = self.pending() if planned is None else tuple(planned)
        waiting = {pod.key for pod in pending}
        again = {pod.key for pod in planned or () if self._is_booked_again(pod)}
        return ClusterSnapshot(
            taken_at_s=now_s,
            node_pools=self.pools(),
            nodes=self._nodes_without(again),
            pending=pending,
            overlays=self._all(NodeOverlay),
            node_classes=self.node_classes(),
            daemon_sets=self._daemon_sets(),
            disruption_budgets=self._all(PodDisruptionBudget),
            config_maps=self._config_maps(),
            quotas=tuple(replace(q, used=self._used_in(q.namespace, again)) for q in self._all(ResourceQuota)),
            windows=self.windows(),
            cron_jobs=self.cron_jobs(),
            windowed=tuple(pod for pod in self.windowed() if pod.node_name),
            pod_groups=self.pod_groups(),
            pod_templates=self._all(PodTemplate),
            provisioning_requests=self.provisioning_requests(),
            capacity_buffers=self.capacity_buffers(),
            scalables=self.scalables(),
            grouped=tuple(pod for pod in self.grouped() if pod.key not in waiting),
            assume_node_classes=self.assumes_node_classes,
            evidence=self._evidence,
            version=self.version,
            namespaces={name: each.labels for name, each in self._named(Namespace).items()},
            services=self._all(Service),
            volume_claims=self._named(PersistentVolumeClaim),
            volumes=self._named(PersistentVolume),
            storage_classes=self._named(StorageClass),
            csi_nodes=self._named(CSINode),
            volume_attachments=self._named(VolumeAttachment),
            runtime_classes=self._named(RuntimeClass),
        )

    def _is_booked_again(self, pod: Pod) -> bool:
        """Whether the scheduler that has booked devices for the pod will book what the pod asks in its place.

        It does not for one that asks for none or is held by a gate: what stands on that pod is counted against all
        others.
        """
        booking = (family for family in self._families if _booked_at(pod, family))
        return not pod.spec.scheduling_gates and any(demand_on(pod, family) is not None for family in booking)

    def _daemon_sets(self) -> tuple[DaemonSet, ...]:
        """All DaemonSets, their pods as the RuntimeClass that they name is written into them."""
        classes, held = self._named(RuntimeClass), self._all(DaemonSet)
        if not any(each.pod.spec.runtime_class in classes for each in held):
            return held
        return tuple(_of_class(each, classes.get(each.pod.spec.runtime_class)) for each in held)

    def _nodes_without(self, again: Collection[str]) -> tuple[ClusterNode, ...]:
        """All nodes as they would be without the bookings of these pods."""
        nodes = self._nodes_now()
        if not again:
            return nodes
        pods = [pod for key in again if (pod := self.pod(key)) is not None]
        names = {_booked_at(pod, family) for pod in pods for family in self._families}
        rejoined = {name: self.cluster_node(name, again) for name in names}
        return tuple((each.node and rejoined.get(each.name)) or each for each in nodes)

    def _nodes_now(self) -> tuple[ClusterNode, ...]:
        """All nodes, and the claims without one, by name; a node before a claim of its name."""
        if self._stale:
            for kind, name in self._stale:
                joined = self.cluster_node(name) if kind == "Node" else self._claim_alone(name)
                if joined is None:
                    self._joined.pop((kind, name), None)
                else:
                    self._joined[kind, name] = joined
            self._stale.clear()
            self._nodes = tuple(sorted(self._joined.values(), key=lambda each: (each.name, each.node is None)))
        return self._nodes

    def cluster_node(
        self, name: str, without: Collection[str] = (), claim: NodeClaim | None = None
    ) -> ClusterNode | None:
        """The node with its claim, its pods and its cards, as it is now; None when there is none of that name.

        `without` are pods, by `namespace/name`, whose bookings do not count. Give a `claim` to see the node as it would
        be with this form of its claim.
        """
        node = self.node(name)
        if node is None:
            return None
        claim = claim or self.claim_of(node)
        family = self.family_of(node, claim)
        booked = (self.pod(key) for key in self._booked_on.of(f"{family.name}/{name}") if key not in without)
        pool = self.pool(claim.node_pool) if claim is not None else None
        # Of one that is nominated here as well its record counts, once.
        nominees = self.nominees(name)
        held = tuple(pod for pod in booked if pod and pod.nominated_to != name)
        problem = double_booked(node.labels, stated(pool), self._families)
        there = (*self.pods_on(name), *nominees)
        return joined(Parts(node, claim, pool, there, held, problem), family)

    def _claim_alone(self, name: str) -> ClusterNode | None:
        """The claim as capacity on its way; None when a node is joined to it, or when it is gone."""
        claim = self.claim(name)
        is_joined = claim is not None and self._nodes_by_id.of(claim.provider_id)
        if claim is None or claim.is_terminated or (is_joined and self._claims_by_id.of(claim.provider_id)[0] == name):
            return None
        return joined(Parts(None, claim, self.pool(claim.node_pool), (), ()), self.family_of(None, claim))

    def _used_in(self, namespace: str, without: Collection[str] = ()) -> Resources:
        """What the pods of a namespace, save some, hold of the keys of sharing families, and how many have ended."""
        used = self._used.get(namespace) if not without else None
        if used is None:
            there: list[Pod] = list(self._shelf("Pod").within(f"{namespace}/"))
            pods = [pod for pod in there if not pod.is_ended and pod.key not in without]
            ended = sum(1 for pod in there if pod.is_ended)
            used = Resources({OBJECTS: ended} if ended else {})
            for family in self._families:
                holding = (pod for pod in pods if pod.node_name or family.booked_node(pod))
                used = used + family.quota_used([Occupant(pod, demand_on(pod, family)) for pod in holding])
            if not without:
                self._used[namespace] = used
        return used


def _of_class(daemon_set: DaemonSet, runtime_class: RuntimeClass | None) -> DaemonSet:
    if runtime_class is None:
        return daemon_set
    spec = runtime_class.admitted(daemon_set.pod.spec)
    # Most classes only name a handler; what has not changed stays the same object from snapshot to snapshot.
    return daemon_set if spec == daemon_set.pod.spec else replace(daemon_set, pod=replace(daemon_set.pod, spec=spec))


class _Identity(NamedTuple):
    """Which object, and which form of it; empty for a kind that has none."""

    uid: str
    version: str


_WRITTEN = (NodeClaim, Node, CapacityWindow, ProvisioningRequest, CapacityBuffer)


def _identity(value: Watched) -> _Identity:
    return _Identity(getattr(value, "uid", ""), getattr(value, "resource_version", ""))


def _is_deletion(held: Watched, value: Watched) -> bool:
    """Whether `value` says of the same claim that it is being deleted, which the state does not know yet."""
    if not (isinstance(held, NodeClaim) and isinstance(value, NodeClaim)):
        return False
    return held.uid == value.uid and value.is_deleting and not held.is_deleting


def _is_same(before: Any, after: Any) -> bool:
    """Whether two versions of one object differ in nothing but their version."""
    if before is None or after is None or before == after:
        return before is after or before == after
    if isinstance(before, CapacityBuffer):
        # Its status is Kerf's own word, and no decision reads it.
        after = replace(after, status=before.status)
    version = getattr(before, "resource_version", None)
    return version is not None and bool(replace(after, resource_version=version) == before)


def _counts_alike(before: NodeClaim, after: NodeClaim) -> bool:
    """Whether two versions of a claim add the same to what its pool has."""
    known, now = (
        (each.node_pool, each.is_terminated, each.capacity, each.provider_id, each.node_name)
        for each in (before, after)
    )
    return known == now


def _windowed(pod: Pod | None) -> str:
    """The group of a pod that holds, or waits for, what windows count; empty if none."""
    return WINDOW_LABEL if pod is not None and WINDOW_LABEL in pod.labels and not pod.is_ended else ""


_GROUPED = "grouped"


def _grouped(pod: Pod | None) -> str:
    """The index of pods of groups and of requests; empty for others, and for those that have failed or go."""
    is_lost = pod is None or pod.phase == FAILED or (pod.deleted_s is not None and not pod.is_ended)
    return _GROUPED if pod is not None and not is_lost and (group_of(pod) or consumed_request(pod)) else ""


def _bound_to(pod: Pod | None) -> str:
    """The node whose room a pod takes; empty if none."""
    return "" if pod is None or pod.is_ended else pod.node_name


def _booked_at(pod: Pod | None, family: Family) -> str:
    """The node where devices are booked for a pod that is not bound yet; empty if none."""
    return "" if pod is None or pod.node_name or pod.is_ended else family.booked_node(pod)
