"""Each pod has one place, and is one that waits or that has to move; each node is named once."""

from collections import Counter
from collections.abc import Iterator

from kerf.model.placeholders import Keeper, Placeholder, is_virtual
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.violations import PartKind, PlanPart, PlanRule, Violation, violation
from kerf.verify.after import After
from kerf.verify.proposal import Proposal


def violations(after: After) -> Iterator[Violation]:
    """Pods that are placed twice, and such as the cluster does not have. Cost: linear in placed pods."""
    proposal = after.proposal
    yield from _named_twice(proposal)
    yield from _again(after)
    places: dict[str, PlanPart] = {}
    twice: dict[str, list[PlanPart]] = {}
    for launch in proposal.launches:
        part = PlanPart(PartKind.LAUNCH, launch.name)
        for placed in launch.pods:
            if places.setdefault(placed.pod, part) is not part:
                twice.setdefault(placed.pod, [places[placed.pod]]).append(part)
        if len({placed.pod for placed in launch.pods}) < len(launch.pods):
            yield violation(PlanRule.PLACED_TWICE, launch.name, "each pod once", "a pod twice", part)
    pairs = [(each, PlanPart(PartKind.PLACEMENT, each.pod.pod)) for each in proposal.placements]
    pairs += [
        (each, PlanPart(PartKind.DELETION, deletion.node)) for deletion in proposal.deletions for each in deletion.moved
    ]
    for placement, part in pairs:
        if placement.pod.pod in places:
            twice.setdefault(placement.pod.pod, [places[placement.pod.pod]]).append(part)
        else:
            places[placement.pod.pod] = part
    for key, parts in sorted(twice.items()):
        # One of the places may stay. Two of one pod on nodes that are there are the same part, and go together.
        left = [part for part in dict.fromkeys(parts) if part != parts[0]] or [parts[0]]
        yield violation(PlanRule.PLACED_TWICE, key, "one place", f"{len(parts)} places", *left)
    pods = after.pods
    unknown = sorted(places.keys() - pods.keys())
    keepers = _keepers(after.snapshot) if unknown else frozenset()
    for key in unknown:
        kept = Placeholder.of(key)
        if not is_virtual(key):
            expected = "a pod that waits, or one of a node that goes"
            yield violation(PlanRule.POD_UNKNOWN, key, expected, "neither", places[key])
        elif kept is None or (kept.keeper, kept.name) not in keepers:
            expected = "room that an object of the cluster keeps"
            yield violation(PlanRule.POD_UNKNOWN, key, expected, "of no such object", places[key])


def _keepers(snapshot: ClusterSnapshot) -> frozenset[tuple[Keeper, str]]:
    """The objects for which room may be kept, by what placeholders say of them."""
    found = {(Keeper.WINDOW, window.name) for window in snapshot.windows}
    found |= {(Keeper.RUN, each.key) for each in snapshot.cron_jobs}
    found |= {(Keeper.BUFFER, each.key) for each in snapshot.capacity_buffers}
    requests = [each.key for each in snapshot.provisioning_requests]
    return frozenset(found | {(keeper, key) for keeper in (Keeper.REQUEST, Keeper.CHECK) for key in requests})


def _again(after: After) -> Iterator[Violation]:
    """Pods to which another decision has already promised a place. Room that is kept is no pod, and moves on."""
    proposal = after.proposal
    promised = {each.pod.pod: f"node {each.node}" for each in proposal.coming}
    promised |= {placed.pod: launch.name for launch in proposal.bought for placed in launch.pods}
    if not promised:
        return
    for key, part in _parts_of(proposal):
        if key in promised and not is_virtual(key):
            yield violation(PlanRule.PLACED_TWICE, key, "one place", f"another on {promised[key]}", part)


def _parts_of(proposal: Proposal) -> Iterator[tuple[str, PlanPart]]:
    """Each placed pod with what places it."""
    for launch in proposal.launches:
        part = PlanPart(PartKind.LAUNCH, launch.name)
        yield from ((placed.pod, part) for placed in launch.pods)
    for placement in proposal.placements:
        yield placement.pod.pod, PlanPart(PartKind.PLACEMENT, placement.pod.pod)
    for deletion in proposal.deletions:
        part = PlanPart(PartKind.DELETION, deletion.node)
        yield from ((placement.pod.pod, part) for placement in deletion.moved)


def _named_twice(proposal: Proposal) -> Iterator[Violation]:
    """Launches of one name, and nodes that go or are relabelled more than once. All of one name are left out."""
    others = Counter(launch.name for launch in proposal.bought)
    launches = others + Counter(launch.name for launch in proposal.launches)
    relabels = Counter(relabel.node for relabel in proposal.relabels)
    for kind, names in (
        (PartKind.LAUNCH, launches),
        (PartKind.DELETION, Counter(deletion.node for deletion in proposal.deletions)),
        (PartKind.RELABEL, relabels),
    ):
        for name in sorted(name for name, number in names.items() if number > 1):
            yield violation(PlanRule.NAMED_TWICE, name, f"one {kind}", f"{names[name]}", PlanPart(kind, name))
