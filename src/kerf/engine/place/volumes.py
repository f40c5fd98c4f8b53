"""What the volumes of pods ask of nodes, looked up once for a snapshot.

A pod names claims, a claim its volume or its class, and those say where a pod may run. The answer is written into the
pod's spec as further terms of node affinity: so pods whose claims are in one zone stay one shape, and all that places
pods or buys nodes knows of zones already. Rules of kube-scheduler 1.36 (pkg/scheduler/framework/plugins: volumebinding,
volumezone, volumerestrictions, nodevolumelimits); on nodes to be bought as Karpenter (volumetopology.go).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from kerf.engine.place.freevolumes import FreeVolumes, Terms, WaitingClaim, shared_out
from kerf.engine.place.sharedclaims import SharedClaims, with_groups
from kerf.model.causes import Cause, Name
from kerf.model.constraints import ANYTHING, HOSTNAME, REGION, ZONE, Requirement, Requirements
from kerf.model.placeholders import VIRTUAL
from kerf.model.pods import Pod, PodSpec
from kerf.model.runtimeclasses import RuntimeClassMissing
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.model.volumecauses import ClaimInUse, ClaimProblem, ClaimUnusable, TooManyChoices, VolumesApart
from kerf.model.volumes import (
    DRIVERS_OF_NODES,
    DRIVERS_OF_SHARES,
    NO_MOUNTS,
    NO_PROVISIONER,
    Attached,
    ClaimTemplate,
    Mounts,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    default_class,
)

MOST_CHOICES = 64
"""Combinations of a pod's own terms with those of its volumes; a pod with more is refused."""
NOWHERE = Requirements([Requirement.of("", "Exists")])
"""No node satisfies it: no label has an empty key."""
_NO_ZONE = Requirements([Requirement.of(ZONE, "DoesNotExist"), Requirement.of(REGION, "DoesNotExist")])


@dataclass(frozen=True, slots=True)
class _Held:
    """What one claim asks: a term that holds of nodes there are, one of new nodes, and what is attached for it.

    `moved` is in the place of `new` for a pod that runs now and is made again elsewhere; None where that is the same.
    """

    there: Terms = (ANYTHING,)
    new: Terms = (ANYTHING,)
    driver: str = ""
    volume: str = ""
    waiting: WaitingClaim | None = None
    moved: Terms | None = None

    def on_new(self, *, is_moved: bool) -> Terms:
        """What a node to be bought must have."""
        return self.new if self.moved is None or not is_moved else self.moved


def may_ask(spec: PodSpec) -> bool:
    """Whether `Volumes.followed` may look at anything for a pod with the spec; most pods mount nothing."""
    return bool(spec.claims or spec.claim_templates or spec.runtime_class)


class Volumes:
    """Looks up what pods mount. Linear in the pods with claims of the snapshot, once, and then in those asked for.

    `passed_over` are pods that wait and come after all others with a claim which one pod alone may use.
    """

    def __init__(self, snapshot: ClusterSnapshot, passed_over: frozenset[str] = frozenset()) -> None:
        self._snapshot, self._passed_over = snapshot, passed_over
        self._held: dict[str, _Held | Cause] = {}
        # Shapes compare specs by identity first. The spec before is kept beside: an identity is free once it is gone.
        self._specs: dict[tuple[int, Mounts], tuple[PodSpec, PodSpec]] = {}
        self._of_classes: dict[int, tuple[PodSpec, PodSpec]] = {}

    @cached_property
    def _lacks_claims(self) -> bool:
        """Whether files were read without one PersistentVolumeClaim: that one is not there says nothing of it."""
        return self._snapshot.may_lack_kinds and not self._snapshot.volume_claims

    def asks(self, pod: Pod) -> bool:
        """Whether `followed` would look at anything; most pods mount nothing."""
        spec = pod.spec
        return bool(spec.claims or spec.claim_templates or (spec.runtime_class and not pod.uid))

    def followed(self, pod: Pod, *, is_moved: bool = False) -> Pod | Cause:
        """The pod with what its RuntimeClass and its volumes ask in its spec, or why no node may take it.

        `is_moved`: it runs now, and would be made again elsewhere. The same pod where it names neither.
        """
        spec = self.admitted(pod)
        if isinstance(spec, Cause):
            return spec
        if spec.claims or spec.claim_templates:
            mounts = self._mounts(pod, spec, is_moved=is_moved)
            if isinstance(mounts, Cause):
                if VIRTUAL not in pod.namespace:
                    return mounts
                # Room is kept for a pod that is to come, and its claims may come with it.
                mounts = NO_MOUNTS
            key = id(spec), mounts
            if key not in self._specs:
                self._specs[key] = spec, replace(spec, claims=(), claim_templates=(), mounts=mounts)
            spec = self._specs[key][1]
        if spec.mounts.beside:
            return replace(pod, spec=spec, labels=with_groups(pod.labels, spec.mounts.beside))
        return pod if spec is pod.spec else replace(pod, spec=spec)

    def admitted(self, pod: Pod) -> PodSpec | Cause:
        """The spec with what admission adds for the RuntimeClass; that of a pod that a server has seen has it."""
        spec, snapshot = pod.spec, self._snapshot
        if not spec.runtime_class or pod.uid:
            return spec
        found = snapshot.runtime_classes.get(spec.runtime_class)
        if found is not None:
            conflict = found.conflict(spec)
            if conflict is not None:
                return conflict
            held = self._of_classes.get(id(spec))
            if held is None:
                held = self._of_classes[id(spec)] = spec, found.admitted(spec)
            return held[1]
        is_assumed = snapshot.assume_node_classes and not snapshot.runtime_classes
        return spec if is_assumed else RuntimeClassMissing(Name(spec.runtime_class))

    def _mounts(self, pod: Pod, spec: PodSpec, *, is_moved: bool) -> Mounts | Cause:
        held: list[_Held] = []
        claims = tuple(claims_of(pod, spec))
        for name, template in claims:
            found = self._of(pod, name, template, is_moved=is_moved)
            if isinstance(found, Cause):
                return found
            held.append(found)
        names = tuple(Name(name) for name, _ in claims)
        waiting = [each.waiting for each in held if each.waiting is not None]
        shared = shared_out(waiting) if waiting else (ANYTHING,)
        if isinstance(shared, Cause):
            return shared
        there = _combined([shared, *(each.there for each in held if each.waiting is None)])
        new = _combined([each.on_new(is_moved=is_moved) for each in held])
        if isinstance(there, Cause):
            return there
        if isinstance(new, Cause):
            return new
        if not there and not new:
            return VolumesApart(names)
        choices = len(spec.own_alternatives) * max(len(there), len(new))
        if choices > MOST_CHOICES:
            return TooManyChoices(choices, MOST_CHOICES)
        beside = () if VIRTUAL in pod.namespace else self._shared.of(self._unmade(pod))
        return self._attaching(Mounts(there or (NOWHERE,), new or (NOWHERE,), beside=beside), held)

    def _attaching(self, mounts: Mounts, held: Iterable[_Held]) -> Mounts:
        """With what is attached; volumes that several pods use are kept by name, since they count once a node."""
        own: Counter[str] = Counter()
        shared: set[tuple[str, str]] = set()
        for driver, volume in sorted({(each.driver, each.volume) for each in held if each.driver}):
            if self._users[volume] > 1:
                shared.add((driver, volume))
            else:
                own[driver] += 1
        if not own and not shared:
            return mounts
        return replace(mounts, own=tuple(sorted(own.items())), shared=tuple(sorted(shared)))

    def _of(self, pod: Pod, name: str, template: ClaimTemplate | None, *, is_moved: bool) -> _Held | Cause:
        """What one claim of the pod asks."""
        key = f"{namespace_of(pod)}/{name}"
        claim = self._snapshot.volume_claims.get(key)
        if claim is None and self._lacks_claims and is_moved and not (template is not None and template.is_ephemeral):
            return ClaimUnusable(Name(name), ClaimProblem.NOT_READ)
        # The claim of an ephemeral volume goes with its pod, and the next one makes another.
        is_to_come = claim is None or (is_moved and template is not None and template.is_ephemeral)
        if is_to_come and template is not None:
            return self._provisioned(Name(name), template.storage_class, key)
        if claim is None:
            return _Held() if self._lacks_claims else ClaimUnusable(Name(name), ClaimProblem.MISSING)
        if template is not None and template.is_ephemeral and pod.uid and claim.owner_uid != pod.uid:
            return ClaimUnusable(Name(name), ClaimProblem.OF_ANOTHER_POD)
        if claim.is_of_one_pod:
            user = self._first_users.get(claim.key)
            if user is not None and user != pod.key and not is_moved:
                return ClaimInUse(Name(name), Name(user))
        if claim.key not in self._held:
            self._held[claim.key] = self._looked_up(claim)
        return self._held[claim.key]

    def _looked_up(self, claim: PersistentVolumeClaim) -> _Held | Cause:
        """As volumebinding's podHasPVCs and GetPodVolumeClaims."""
        name, volume = Name(claim.name), Name(claim.volume)
        if claim.is_lost:
            return ClaimUnusable(name, ClaimProblem.LOST, volume)
        if claim.is_deleting:
            return ClaimUnusable(name, ClaimProblem.DELETING)
        if not claim.volume:
            return self._to_be_bound(claim)
        if not claim.is_bound:
            return ClaimUnusable(name, ClaimProblem.NOT_BOUND, Name(claim.storage_class or ""))
        found = self._snapshot.volumes.get(claim.volume)
        if found is None:
            is_assumed = self._snapshot.assume_node_classes and not self._snapshot.volumes
            return _Held() if is_assumed else ClaimUnusable(name, ClaimProblem.VOLUME_MISSING, volume)
        again = _terms_again(found)
        new = _terms_new(found) if self._stands(found) else again
        return _Held(_terms_there(found), new, found.driver, _volume_of(claim), moved=again)

    def _stands(self, volume: PersistentVolume) -> bool:
        """Whether the node is there and stays of which it is a part: then it is not made again on another one."""
        named = (term[HOSTNAME].values for term in volume.terms if HOSTNAME in term)
        return volume.is_local and any(not values.isdisjoint(self._hosts) for values in named)

    @cached_property
    def _hosts(self) -> frozenset[str]:
        nodes = (each for each in self._snapshot.nodes if each.node is not None and not each.is_deleting)
        return frozenset(each.labels.get(HOSTNAME, each.name) for each in nodes)

    def _to_be_bound(self, claim: PersistentVolumeClaim) -> _Held | Cause:
        """A claim whose volume is still to be found or made."""
        held = self._provisioned(Name(claim.name), claim.storage_class, _volume_of(claim))
        if isinstance(held, Cause):
            return held
        if claim.selected_node and self._snapshot.node(claim.selected_node) is not None:
            # Its volume is being made for that node; should that fail, the provisioner takes the choice back.
            return replace(held, there=(_on_node(claim.selected_node, self._snapshot),), new=())
        place = self._places_of_users.get(claim.key)
        if place is not None:
            new = () if HOSTNAME in place else _all_within(held.new, place)
            held = replace(held, there=_all_within(held.there, place), new=new)
        found = self._class_of(claim.storage_class)
        if found is None:
            return held
        free = self._free.of(claim, found.name)
        if found.provisioner != NO_PROVISIONER and not free:
            return held
        # The labels of a volume that is still free are not looked at: volumezone reads those of bound ones alone.
        return replace(held, waiting=WaitingClaim(free, held.there if found.provisioner != NO_PROVISIONER else ()))

    def _provisioned(self, claim: Name, class_name: str | None, volume: str) -> _Held | Cause:
        """What a volume asks that is made where its pod first runs."""
        found = self._class_of(class_name)
        if found is None:
            if class_name != "" and self._snapshot.assume_node_classes and not self._snapshot.storage_classes:
                return _Held()
            problem = ClaimProblem.CLASS_MISSING if class_name else ClaimProblem.WITHOUT_CLASS
            return ClaimUnusable(claim, problem, Name(class_name or ""))
        if not found.waits:
            return ClaimUnusable(claim, ClaimProblem.NOT_BOUND, Name(found.name))
        terms = found.topologies or (ANYTHING,)
        return _Held(terms, terms, found.driver, volume if found.driver else "")

    def class_named(self, name: str | None) -> str:
        """The StorageClass that the server gives a new claim: the one it names, else the default; empty for none."""
        if name is not None:
            return name
        found = self._class_of(None)
        return "" if found is None else found.name

    def _class_of(self, name: str | None) -> StorageClass | None:
        classes = self._snapshot.storage_classes
        if name is not None:
            return classes.get(name)
        return default_class(classes.values())

    def attached(self, node: ClusterNode) -> Attached:
        """What drivers have attached to the node for its pods. Linear in their claims."""
        own: Counter[str] = Counter()
        shared: set[tuple[str, str]] = set()
        for pod in node.pods:
            if (pod.spec.claims or pod.spec.claim_templates) and not pod.is_ended:
                for driver, volume in self._attached_by(pod):
                    if self._users[volume] > 1:
                        shared.add((driver, volume))
                    else:
                        own[driver] += 1
        return Attached(tuple(sorted(own.items())), frozenset(shared))

    def limits(self, node: ClusterNode) -> Mapping[str, int]:
        """How many volumes each driver attaches to the node, where its CSINode says; none of a node to be."""
        found = self._snapshot.csi_nodes.get(node.name) if node.node is not None else None
        return dict(found.limits) if found is not None else {}

    def _attached_by(self, pod: Pod) -> Iterator[tuple[str, str]]:
        """(driver, volume) for each claim of the pod."""
        for name, template in claims_of(pod, pod.spec):
            claim = self._snapshot.volume_claims.get(f"{pod.namespace}/{name}")
            driver = self._driver_of(claim, template)
            if driver:
                yield driver, _volume_of(claim) if claim is not None else f"{pod.namespace}/{name}"

    def _driver_of(self, claim: PersistentVolumeClaim | None, template: ClaimTemplate | None) -> str:
        volume = self._snapshot.volumes.get(claim.volume) if claim is not None else None
        if volume is not None:
            return volume.driver
        named = claim.storage_class if claim is not None else template.storage_class if template is not None else ""
        found = self._class_of(named)
        return found.driver if found is not None else ""

    @cached_property
    def _pods(self) -> tuple[Pod, ...]:
        """Those with claims: bound ones, then those that wait, in the order of the queue as far as it is known."""
        bound = (pod for node in self._snapshot.nodes for pod in node.pods if not pod.is_ended)
        waiting = sorted(self._snapshot.pending, key=lambda pod: (-pod.spec.priority, pod.created_s, pod.key))
        return tuple(pod for pods in (bound, waiting) for pod in pods if pod.spec.claims or pod.spec.claim_templates)

    @cached_property
    def _users(self) -> Counter[str]:
        """How many pods use each volume."""
        return Counter(volume for pod in self._pods for volume in {_volume_of(each) for each in self._claims(pod)})

    @cached_property
    def _first_users(self) -> dict[str, str]:
        """Who has each claim that only one pod may use, by its key: a pod that runs, else the first to wait."""
        found: dict[str, str] = {}
        for pod in sorted(self._pods, key=lambda pod: pod.key in self._passed_over):
            for claim in self._claims(pod):
                if claim.is_of_one_pod:
                    found.setdefault(claim.key, pod.key)
        return found

    @cached_property
    def _places_of_users(self) -> dict[str, Requirements]:
        """By key of a claim without a volume the zone where a pod with it runs already, and so where that is made; the
        node, where it will be a part of one."""
        found: dict[str, Requirements] = {}
        for pod in self._pods:
            node = self._snapshot.node(pod.node_name) if pod.node_name else None
            if node is None:
                continue
            for claim in self._unmade(pod):
                if self._is_of_a_node(claim):
                    found[claim] = _on_node(pod.node_name, self._snapshot)
                elif ZONE in node.labels:
                    found[claim] = Requirements.of_labels({ZONE: node.labels[ZONE]})
        return found

    @cached_property
    def _shared(self) -> SharedClaims:
        users = [tuple(self._unmade(pod)) for pod in self._pods if not pod.node_name]
        return SharedClaims(users, frozenset(filter(self._is_of_a_node, {claim for each in users for claim in each})))

    def _is_of_a_node(self, key: str) -> bool:
        """Whether the volume of a claim that waits will be a part of a node: all that it may take are, or can be made.

        No other node has the label values of a driver's topology then, and these become the volume's node affinity.
        """
        claim = self._snapshot.volume_claims[key]
        found = self._class_of(claim.storage_class)
        if found is None:
            return False
        terms = [term for volume in self._free.of(claim, found.name) for term in volume.terms or (ANYTHING,)]
        is_made = found.provisioner != NO_PROVISIONER
        if is_made and found.driver not in self._of_nodes:
            return False
        return (is_made or bool(terms)) and all(HOSTNAME in term for term in terms)

    def _unmade(self, pod: Pod) -> Iterator[str]:
        """The keys of its claims that others may have as well, and whose volume is made in the zone of the first."""
        for claim in self._claims(pod):
            if not (claim.volume or claim.is_of_one_pod or claim.selected_node or claim.owner_uid):
                found = self._class_of(claim.storage_class)
                if found is not None and found.waits and found.driver not in self._everywhere:
                    yield claim.key

    @cached_property
    def _everywhere(self) -> frozenset[str]:
        """The drivers whose volumes any node reaches."""
        return DRIVERS_OF_SHARES.union(*(each.everywhere for each in self._snapshot.csi_nodes.values()))

    @cached_property
    def _of_nodes(self) -> frozenset[str]:
        """The drivers whose volumes are parts of nodes."""
        return DRIVERS_OF_NODES.union(*(each.of_node for each in self._snapshot.csi_nodes.values()))

    @cached_property
    def _free(self) -> FreeVolumes:
        return FreeVolumes(self._snapshot.volumes)

    def _claims(self, pod: Pod) -> Iterator[PersistentVolumeClaim]:
        for name, _ in claims_of(pod, pod.spec):
            claim = self._snapshot.volume_claims.get(f"{pod.namespace}/{name}")
            if claim is not None:
                yield claim


def claims_of(pod: Pod, spec: PodSpec) -> Iterator[tuple[str, ClaimTemplate | None]]:
    """The names of a pod's claims, those that are made for it with their template."""
    yield from ((name, None) for name in dict.fromkeys(spec.claims))
    yield from ((template.claim_of(pod.name), template) for template in spec.claim_templates)


def namespace_of(pod: Pod) -> str:
    """Where its claims are; of a placeholder the namespace of the pod for which it keeps room."""
    kept = pod.kept_for
    return pod.namespace if kept is None else kept.name.partition("/")[0]


def _volume_of(claim: PersistentVolumeClaim) -> str:
    """What stands for a claim's volume among those attached; as csi.go, one that is not made yet by its claim."""
    return claim.volume or claim.key


def _terms_there(volume: PersistentVolume) -> Terms:
    """One of its terms, and its zones where the node has any (volumezone passes over nodes without such labels)."""
    terms = volume.terms or (ANYTHING,)
    if not volume.zones:
        return terms
    return tuple(dict.fromkeys(term.intersect(zones) for zones in (volume.zones, _NO_ZONE) for term in terms))


def _terms_new(volume: PersistentVolume) -> Terms:
    """A node to be bought has a zone, and a name that no volume knows."""
    return tuple(dict.fromkeys(term.intersect(volume.zones) for term in volume.terms or (ANYTHING,)))


def _terms_again(volume: PersistentVolume) -> Terms:
    """The same of a local volume that is made again where its pod goes, as Karpenter plans (`volumetopology.go`)."""
    terms = _terms_new(volume)
    return tuple(dict.fromkeys(term.without((HOSTNAME,)) for term in terms)) if volume.is_local else terms


def _all_within(terms: Terms, zone: Requirements) -> Terms:
    """Those of the terms that can hold in the zone; one that never holds where there is none."""
    return tuple(term.intersect(zone) for term in terms if term.conflict(zone) is None) or (NOWHERE,)


def _on_node(name: str, snapshot: ClusterSnapshot) -> Requirements:
    node = snapshot.node(name)
    hostname = node.labels.get(HOSTNAME, name) if node is not None else name
    return Requirements.of_labels({HOSTNAME: hostname})


def _combined(each: Sequence[Terms]) -> Terms | Cause:
    """One term of each claim, in every combination that some node may satisfy; too many are a cause."""
    distinct = [terms for terms in dict.fromkeys(each) if terms != (ANYTHING,)]
    found: Terms = (ANYTHING,)
    for terms in distinct:
        pairs = (one.intersect(other) for one in found for other in terms if one.conflict(other) is None)
        found = tuple(dict.fromkeys(pairs))
        if len(found) > MOST_CHOICES:
            return TooManyChoices(prod(map(len, distinct)), MOST_CHOICES)
    return found
