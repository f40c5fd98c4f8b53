"""Spread, affinity and anti-affinity hold once all pods of the plan are where it puts them.

Pods come in an order that is not known. So a rule is broken only where no order keeps it: the fewest pods of any domain
that is there only grow while pods come, and so does company; pods that keep others away keep them away in any order.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kerf.model.constraints import HOSTNAME, NODE_NAME, Requirement, Requirements, Taint, untolerated
from kerf.model.plan import PlacedPod
from kerf.model.pods import Pod, PodSpec
from kerf.model.topology import PodAffinityTerm, TopologySpreadConstraint
from kerf.model.violations import PartKind, PlanPart, PlanRule, Violation, violation
from kerf.verify.after import After, labels_of, lasting_taints, meets

_NAME = "kubernetes.io/metadata.name"


@dataclass(frozen=True, eq=False)
class _Spot:
    """A node by what topology reads of it."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    is_there: bool


@dataclass(frozen=True, eq=False)
class _Stay:
    """A pod on a node; `part` is what of the plan brings it, None for one that `rests` or that another plan brings."""

    pod: Pod
    spot: _Spot
    part: PlanPart | None = None
    rests: bool = False


def violations(after: After) -> Iterator[Violation]:
    """The constraints that are broken. Cost: nodes and pods once where any constraint is stated, then for each kind of
    constraint the pods that it means."""
    planned = [stay for stay in _planned(after) if stay.pod.spec.is_related]
    related = any(node.related for node in after.snapshot.nodes)
    if not planned and not related:
        return
    everyone = _Everyone(after)
    if not planned and not any(stay.pod.spec.is_related for stay in everyone.resting):
        return
    yield from _spread(everyone)
    yield from _near(everyone)
    yield from _apart(everyone)


def _planned(after: After) -> Iterator[_Stay]:
    """The pods that the plan puts somewhere, without their nodes; to see whether any of them states a constraint."""
    nowhere = _Spot("", {}, (), is_there=False)
    keys: list[PlacedPod] = [placed for launch in after.proposal.launches for placed in launch.pods]
    keys += [placed for placed_there in after.coming.values() for placed, _ in placed_there]
    pods = after.pods
    yield from (_Stay(pods[placed.pod], nowhere) for placed in keys if placed.pod in pods)


class _Everyone:
    """All pods with their nodes once the plan is carried out."""

    def __init__(self, after: After) -> None:
        self._after = after
        snapshot = after.snapshot
        self.resting: list[_Stay] = []
        self.coming: list[_Stay] = []
        self.spots: list[_Spot] = []
        # Room that is kept is for pods whose labels are not theirs yet, and what is evicted gives way.
        for node in snapshot.nodes:
            if node.name in after.gone or node.is_going:
                continue
            labels = node.labels if node.is_registered else after.labels_there(node)[0]
            spot = _Spot(node.name, {HOSTNAME: node.name, **labels}, lasting_taints(node), is_there=node.is_registered)
            self.spots.append(spot)
            self.resting += [
                _Stay(pod, spot, rests=True) for pod in node.pods if not pod.is_ended and pod.key not in after.evicted
            ]
        by_name = {spot.name: spot for spot in self.spots}
        met = set[str]()
        for site in after.there:
            spot = by_name.get(site.name) or _Spot(site.name, site.labels, site.taints, is_there=True)
            self._come(spot, [each for each in site.placed if each[0].pod not in met])
            # A node may come twice.
            met.update(placed.pod for placed, _ in site.placed)
        for launch in after.proposal.launches:
            pool, kind = after.pool(launch.node_pool), after.kind(launch.node_pool, launch.offering.instance_type)
            if pool is not None and kind is not None:
                labels, _ = labels_of(launch, kind, pool)
                taints = (*pool.taints, *launch.taints)
                spot = _Spot(launch.name, {**labels, HOSTNAME: launch.name}, taints, is_there=False)
                self.spots.append(spot)
                part = PlanPart(PartKind.LAUNCH, launch.name)
                self._come(spot, [(placed, part) for placed in launch.pods])

    def _come(self, spot: _Spot, placed: Iterable[tuple[PlacedPod, PlanPart | None]]) -> None:
        pods = self._after.pods
        self.coming += [_Stay(pods[each.pod], spot, part) for each, part in placed if each.pod in pods]

    @cached_property
    def _by_label(self) -> Mapping[tuple[str, str, str], Sequence[_Stay]]:
        found = defaultdict[tuple[str, str, str], list[_Stay]](list)
        for stay in (*self.resting, *self.coming):
            for key, value in stay.pod.labels.items():
                found[stay.pod.namespace, key, value].append(stay)
        return found

    @cached_property
    def _by_namespace(self) -> Mapping[str, Sequence[_Stay]]:
        found = defaultdict[str, list[_Stay]](list)
        for stay in (*self.resting, *self.coming):
            found[stay.pod.namespace].append(stay)
        return found

    def meant(self, selector: Requirements, namespaces: Iterable[str]) -> list[_Stay]:
        """The pods of these namespaces that the selector selects. Cost: those with its rarest label."""
        if selector.is_never:
            return []
        finite = [
            asked for asked in selector.values() if not asked.complement and asked.values and not asked.needs_label
        ]
        found: list[_Stay] = []
        for namespace in namespaces:
            among: Iterable[_Stay] = self._by_namespace.get(namespace, ())
            if finite:
                among = self._rarest([self._with(namespace, asked) for asked in finite])
            found += [stay for stay in among if selector.unsatisfied_by(stay.pod.labels) is None]
        return found

    @staticmethod
    def _rarest(found: Sequence[list[_Stay]]) -> list[_Stay]:
        return min(found, key=len)

    def _with(self, namespace: str, asked: Requirement) -> list[_Stay]:
        return [
            stay for value in sorted(asked.values) for stay in self._by_label.get((namespace, asked.key, value), ())
        ]

    def namespaces(self, term: PodAffinityTerm, own: str) -> tuple[str, ...]:
        """The namespaces that a term of a pod in its own one means."""
        if term.namespace_selector is None:
            return term.namespaces or (own,)
        labelled = self._after.snapshot.namespaces
        chosen = [
            name
            for name in sorted(self._by_namespace)
            if term.namespace_selector.unsatisfied_by(labelled.get(name, {_NAME: name})) is None
        ]
        return tuple(dict.fromkeys((*term.namespaces, *chosen)))


def _carriers(stays: Iterable[_Stay], stated: Callable[[PodSpec], object]) -> list[tuple[PodSpec, list[_Stay]]]:
    """Pods with constraints by what their specs state, by their namespace and the labels that the constraints read."""
    found: dict[object, tuple[PodSpec, list[_Stay]]] = {}
    # Most pods have the very spec of others; what a spec states is compared once.
    numbers, of_specs = dict[object, int](), dict[int, int]()
    for stay in stays:
        spec = stay.pod.spec
        if id(spec) not in of_specs:
            held = stated(spec)
            of_specs[id(spec)] = numbers.setdefault(held, len(numbers)) if held else -1
        if of_specs[id(spec)] >= 0:
            read = tuple((key, stay.pod.labels.get(key)) for key in sorted(spec.label_keys_read))
            key = of_specs[id(spec)], stay.pod.namespace, read
            found.setdefault(key, (spec, []))[1].append(stay)
    return list(found.values())


def _spread(everyone: _Everyone) -> Iterator[Violation]:
    """The fullest domains that the plan fills against the emptiest."""
    for spec, stays in _carriers(everyone.coming, _spreading):
        for constraint in spec.required_spread:
            yield from _even(everyone, spec, constraint, stays)


def _spreading(spec: PodSpec) -> object:
    """All that says which pods and nodes count for the constraints; nothing where there are none."""
    return spec.required_spread and (spec.required_spread, spec.own_alternatives, spec.tolerations)


def _even(
    everyone: _Everyone, spec: PodSpec, constraint: TopologySpreadConstraint, stays: Sequence[_Stay]
) -> Iterator[Violation]:
    sample = stays[0].pod
    selector = constraint.selected(sample.labels)
    meant = everyone.meant(selector, (sample.namespace,))
    rule = _Counting(spec, constraint)
    key = constraint.key
    counting = [spot for spot in everyone.spots if key in spot.labels and rule.counts(spot)]
    domains = {spot.labels[key] for spot in counting}
    # A node to be opens its domain when it comes: for pods that come before it there is none yet.
    there = {spot.labels[key] for spot in counting if spot.is_there}
    own = {id(stay) for stay in stays}
    everywhere, before = Counter[str](), Counter[str]()
    for stay in meant:
        domain = stay.spot.labels.get(key)
        if domain is None or not rule.counts(stay.spot):
            continue
        everywhere[domain] += 1
        # What else comes may come later, and pods that end may be gone; what only leaves is never too many.
        if stay.pod.deleted_s is None and (stay.rests or (stay.part is not None and id(stay) in own)):
            before[domain] += 1
    is_enough = len(domains) >= constraint.min_domains
    for domain in sorted({stay.spot.labels.get(key, "") for stay in stays if stay.part is not None}):
        here = [stay for stay in stays if stay.spot.labels.get(key, "") == domain and stay.part is not None]
        name = f"{sample.namespace}, {constraint.key} {domain}"
        parts = tuple(dict.fromkeys(stay.part for stay in here if stay.part is not None))
        if not domain:
            open_to = any(not stay.spot.is_there for stay in here)
            if not open_to:
                yield violation(PlanRule.SPREAD, here[0].pod.key, f"a node with {key}", "one without", *parts)
            continue
        least = min(everywhere[each] for each in {*there, domain}) if is_enough else 0
        if before[domain] - least > constraint.max_skew:
            expected = f"at most {least + constraint.max_skew} pods"
            yield violation(PlanRule.SPREAD, name, expected, f"{before[domain]} pods", *parts)


@dataclass(frozen=True, eq=False)
class _Counting:
    """Which nodes count for a constraint of spread."""

    spec: PodSpec
    constraint: TopologySpreadConstraint

    def counts(self, spot: _Spot) -> bool:
        """Whether the node does."""
        spec, constraint = self.spec, self.constraint
        if any(each.key not in spot.labels for each in spec.required_spread):
            return False
        if constraint.honors_taints and untolerated(spot.taints, spec.tolerations) is not None:
            return False
        if not constraint.honors_affinity:
            return True
        labels = {**spot.labels, NODE_NAME: spot.name}
        return any(meets(asked, labels) is None for asked in spec.own_alternatives)


def _near(everyone: _Everyone) -> Iterator[Violation]:
    """Pods that must be with others have such company in their domain."""
    for spec, stays in _carriers(everyone.coming, lambda spec: spec.pod_affinity.required):
        sample, terms = stays[0].pod, spec.pod_affinity.required
        own = {id(stay) for stay in stays}
        sets = [
            everyone.meant(term.selected(sample.labels), everyone.namespaces(term, sample.namespace)) for term in terms
        ]
        both = set.intersection(*({id(stay) for stay in found} for found in sets))
        company = [stay for stay in sets[0] if id(stay) in both]
        is_own = any(id(stay) in own for stay in company)
        for term in terms:
            seeded = {stay.spot.labels.get(term.key) for stay in company if id(stay) not in own}
            alone: dict[str | None, list[_Stay]] = {}
            for stay in stays:
                domain = stay.spot.labels.get(term.key)
                if stay.part is not None and domain not in seeded and (domain is not None or stay.spot.is_there):
                    alone.setdefault(domain, []).append(stay)
            # The first of pods that want each other may come where none is; the others must follow it.
            has_company = any(stay.part is None and term.key in stay.spot.labels for stay in company)
            allowed = 1 if is_own and not has_company else 0
            for domain, held in sorted(alone.items(), key=lambda each: str(each[0]))[allowed:]:
                parts = dict.fromkeys(stay.part for stay in held if stay.part is not None)
                got = f"none in {term.key} {domain}" if domain else f"a node without {term.key}"
                yield violation(PlanRule.AFFINITY, held[0].pod.key, "company that it asks for", got, *parts)


def _apart(everyone: _Everyone) -> Iterator[Violation]:
    """Pods that keep others away share no domain with them, whichever of them came first."""
    for spec, stays in _carriers([*everyone.resting, *everyone.coming], lambda spec: spec.pod_anti_affinity.required):
        sample = stays[0].pod
        if all(stay.pod.deleted_s is not None for stay in stays):
            continue
        for term in spec.pod_anti_affinity.required:
            selector, namespaces = term.selected(sample.labels), everyone.namespaces(term, sample.namespace)
            meant = [stay for stay in everyone.meant(selector, namespaces) if stay.pod.deleted_s is None]
            if meant:
                yield from _crowded(term, [stay for stay in stays if stay.pod.deleted_s is None], meant)


def _crowded(term: PodAffinityTerm, keeping: Sequence[_Stay], meant: Sequence[_Stay]) -> Iterator[Violation]:
    """Domains with a pod that keeps others away and one of these, at least one of which the plan brings there."""
    mine, others = _by_domain(term.key, keeping), _by_domain(term.key, meant)
    for domain in sorted(mine.keys() & others.keys()):
        own, theirs = mine[domain], others[domain]
        parts = dict.fromkeys((*_beside(own, theirs), *_beside(theirs, own)))
        if parts:
            one, other = next((one, other) for one in own for other in theirs if one.pod is not other.pod)
            got = f"{other.pod.key} in {term.key} {domain}"
            yield violation(PlanRule.ANTI_AFFINITY, one.pod.key, "no pod that it keeps away", got, *parts)


def _by_domain(key: str, stays: Iterable[_Stay]) -> Mapping[str, list[_Stay]]:
    found = defaultdict[str, list[_Stay]](list)
    for stay in stays:
        domain = stay.spot.labels.get(key)
        if domain is not None:
            found[domain].append(stay)
    return found


def _beside(some: Sequence[_Stay], others: Sequence[_Stay]) -> Iterator[PlanPart]:
    """The parts of the plan that bring one of some pods beside another pod."""
    for stay in some:
        if stay.part is not None and (len(others) > 1 or others[0].pod is not stay.pod):
            yield stay.part
