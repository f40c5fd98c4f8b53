"""Each node holds the pods that come to it: resources, ports, taints, labels, volumes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kerf.model.constraints import Requirements, untolerated
from kerf.model.pods import Pod, port_in_conflict
from kerf.model.quantities import PODS, Resources, quantity_text
from kerf.model.violations import PartKind, PlanPart, PlanRule, Violation, violation
from kerf.model.volumes import PersistentVolume
from kerf.verify.after import After, TakingNode, counted_specs, meets, named, takes_pods
from kerf.verify.alike import for_each


def violations(after: After) -> Iterator[Violation]:
    """What each of the nodes does not hold. Cost: the pods of nodes that get some, and kinds of nodes to buy."""
    known = {site.name for site in after.there}
    for name in sorted(after.coming.keys() - known):
        parts = dict.fromkeys(part for _, part in after.coming[name] if part is not None)
        if parts:
            yield violation(PlanRule.NODE_UNUSABLE, f"node {name}", "a node of the cluster", "no such node", *parts)
    for site in after.there:
        yield from _of_place(after, site)
        yield from _of_site(after, site)
    for site, launches in after.bought:
        for found in _of_site(after, site) if site.pool else ():
            yield from for_each(found, launches)


def _of_place(after: After, site: TakingNode) -> Iterator[Violation]:
    """Whether pods may come to a node that is there at all."""
    assert site.node is not None
    name = named(after.snapshot, site.name)
    if site.name in after.gone:
        going = PlanPart(PartKind.DELETION, site.name)
        first = site.placed[0][0].pod
        yield violation(PlanRule.NODE_GOES, name, "a node that takes pods stays", f"it goes, and {first} comes", going)
    elif site.parts and not takes_pods(site.node):
        yield violation(PlanRule.NODE_UNUSABLE, name, "a node that takes pods", "one that takes none", *site.parts)


def _of_site(after: After, site: TakingNode) -> Iterator[Violation]:
    """What one node does not hold."""
    if not site.parts:
        return
    pods = [(pod, part) for placed, part in site.placed if (pod := after.pods.get(placed.pod)) is not None]
    coming = [pod for pod, _ in pods]
    yield from _resources(after, site, coming)
    yield from _ports(after, site, coming)
    by_spec: dict[int, list[tuple[Pod, PlanPart | None]]] = {}
    for pod, part in pods:
        by_spec.setdefault(id(pod.spec), []).append((pod, part))
    for held in by_spec.values():
        parts = tuple(dict.fromkeys(part for _, part in held if part is not None))
        if parts:
            yield from _admits(after, site, held[0][0], parts)


def _name(after: After, site: TakingNode) -> str:
    return site.name if site.launch is not None else named(after.snapshot, site.name)


def _resources(after: After, site: TakingNode, coming: Sequence[Pod]) -> Iterator[Violation]:
    asked = Resources.total((spec.requests, number) for spec, number in counted_specs(coming))
    for name in sorted(asked):
        amount, free = asked[name], site.allocatable.get(name, 0)
        if amount <= 0 or amount <= free or name in after.uncounted(site.family):
            continue
        rule = PlanRule.NODE_PODS if name == PODS else PlanRule.NODE_RESOURCES
        expected = f"at most {quantity_text(name, max(0, free))} {name}"
        yield violation(rule, _name(after, site), expected, f"{quantity_text(name, amount)} {name}", *site.parts)


def _ports(after: After, site: TakingNode, coming: Sequence[Pod]) -> Iterator[Violation]:
    asking = [pod for pod in coming if pod.spec.host_ports]
    if not asking:
        return
    taken = [port for pod in site.residents for port in pod.spec.host_ports]
    for pod in asking:
        clash = port_in_conflict(pod.spec.host_ports, taken)
        if clash is not None:
            got = f"{clash.port}/{clash.protocol} twice"
            yield violation(PlanRule.NODE_PORTS, _name(after, site), "each port of the node once", got, *site.parts)
            return
        taken.extend(pod.spec.host_ports)


def _admits(after: After, site: TakingNode, pod: Pod, parts: tuple[PlanPart, ...]) -> Iterator[Violation]:
    """Whether taints and labels let the pod onto the node, which stands for all that have its spec."""
    name = f"{pod.key} on {_name(after, site)}"
    taint = untolerated(site.taints, pod.spec.tolerations)
    if taint is not None:
        yield violation(PlanRule.NODE_TAINTS, name, f"a toleration of {taint.key}:{taint.effect}", "none", *parts)
    stated = site.stated if site.node is None or site.node.node is None else None
    missing = [meets(asked, site.labels, stated) for asked in pod.spec.own_alternatives]
    if all(key is not None for key in missing):
        key = missing[0] or ""
        asked = next(each[key] for each in pod.spec.own_alternatives if key in each)
        got = site.labels.get(key) or (str(site.stated[key]) if key in site.stated else "no such label")
        yield violation(PlanRule.NODE_LABELS, name, asked, f"{key} {got}", *parts)
    yield from _volumes(after, site, pod, name, parts)


def _volumes(after: After, site: TakingNode, pod: Pod, name: str, parts: tuple[PlanPart, ...]) -> Iterator[Violation]:
    """Whether the node reaches the volumes that the pod's claims have."""
    snapshot = after.snapshot
    for claim_name in pod.claim_names:
        claim = snapshot.volume_claims.get(f"{pod.namespace}/{claim_name}")
        volume = snapshot.volumes.get(claim.volume) if claim is not None and claim.is_bound else None
        # What is stored on a node that is gone is lost in any case, and a node to be has a name that no volume knows.
        if volume is None or not volume.terms or (volume.is_local and not _is_there(after, site, volume)):
            continue
        if not any(_reaches(site, term) for term in volume.terms):
            expected = f"a node that reaches volume {volume.name}"
            yield violation(PlanRule.NODE_VOLUMES, name, expected, f"no term of it holds ({volume.terms[0]})", *parts)


def _is_there(after: After, site: TakingNode, volume: PersistentVolume) -> bool:
    """Whether the node of a volume that is a part of one is there, and so is the node of the plan."""
    if site.node is None or not site.node.is_initialized:
        return False
    return any(
        meets(term, after.labels_there(node)[0]) is None
        for node in after.snapshot.nodes
        if node.node is not None
        for term in volume.terms
    )


def _reaches(site: TakingNode, term: Requirements) -> bool:
    stated = site.stated if site.node is None or site.node.node is None else None
    return meets(term, site.labels, stated) is None


def attached(after: After) -> Iterator[Violation]:
    """Whether the CSI drivers of nodes there can attach the volumes of the pods that come beside those that are there.

    Cost: pods of nodes that state such a limit and get a pod with claims.
    """
    if not after.snapshot.csi_nodes:
        return
    for site in after.there:
        limits = dict(csi.limits) if (csi := after.snapshot.csi_nodes.get(site.name)) is not None else {}
        coming = [pod for placed, part in site.placed if part and (pod := after.pods.get(placed.pod)) is not None]
        wanted = _attached(after, coming)
        if not limits or not wanted:
            continue
        all_of = wanted | _attached(after, site.residents)
        counts, new = Counter(driver for driver, _ in all_of), Counter(driver for driver, _ in wanted)
        for driver, most in sorted(limits.items()):
            if new[driver] and counts[driver] > most:
                expected, got = f"at most {most} volumes of {driver}", f"{counts[driver]} volumes of {driver}"
                yield violation(PlanRule.NODE_VOLUMES, named(after.snapshot, site.name), expected, got, *site.parts)


def _attached(after: After, pods: Iterable[Pod]) -> set[tuple[str, str]]:
    """The volumes of pods that a driver attaches, each with it; of a claim without a volume nothing is known."""
    found = set()
    for pod in pods:
        for name in pod.claim_names:
            claim = after.snapshot.volume_claims.get(f"{pod.namespace}/{name}")
            volume = after.snapshot.volumes.get(claim.volume) if claim is not None and claim.is_bound else None
            if volume is not None and volume.driver:
                found.add((volume.driver, volume.name))
    return found
