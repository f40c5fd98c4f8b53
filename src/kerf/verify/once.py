"""Each pod has one place, and is one that waits or that has to move."""

from collections.abc import Iterator

from kerf.model.placeholders import is_virtual
from kerf.model.violations import PartKind, PlanPart, PlanRule, Violation, violation
from kerf.verify.after import After


def violations(after: After) -> Iterator[Violation]:
    """Pods that are placed twice, and such as the cluster does not have. Cost: linear in placed pods."""
    proposal = after.proposal
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
    for key in sorted(key for key in places.keys() - pods.keys() if not is_virtual(key)):
        expected = "a pod that waits, or one of a node that goes"
        yield violation(PlanRule.POD_UNKNOWN, key, expected, "neither", places[key])
