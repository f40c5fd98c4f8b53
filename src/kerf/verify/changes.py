"""What a plan changes of nodes and pods that are there: idle nodes alone are relabelled, and only pods that fill what
is idle make room."""

from collections.abc import Iterator

from kerf.model.plan import Eviction, Repartition
from kerf.model.violations import PartKind, PlanPart, PlanRule, Violation, violation
from kerf.verify.after import After, leaves_open


def violations(after: After) -> Iterator[Violation]:
    """Relabels of nodes in use, and evictions of pods that have a right to stay. Cost: pods of these nodes."""
    for relabel in after.proposal.relabels:
        yield from _idle(after, relabel)
    for eviction in after.proposal.evictions:
        yield from _gives_way(after, eviction)


def _idle(after: After, relabel: Repartition) -> Iterator[Violation]:
    part, name = PlanPart(PartKind.RELABEL, relabel.node), f"node {relabel.node}"
    node = after.snapshot.node(relabel.node)
    if node is None or node.claim is None or node.claim.name != relabel.claim or node.is_deleting:
        yield violation(PlanRule.RELABEL, name, f"a node of NodeClaim {relabel.claim} that stays", "none", part)
        return
    pool = after.pool(node.claim.node_pool)
    if pool is None or pool.name != relabel.node_pool:
        expected, got = f"a node of NodePool {node.claim.node_pool}", f"of NodePool {relabel.node_pool}"
        yield violation(PlanRule.RELABEL, name, expected, got, part)
    else:
        strange = sorted(key for key, value in relabel.labels.items() if not leaves_open(pool, key, value))
        if strange:
            expected, got = (
                f"labels that NodePool {pool.name} leaves open",
                f"{strange[0]}={relabel.labels[strange[0]]}",
            )
            yield violation(PlanRule.RELABEL, name, expected, got, part)
    if any(device.used_slots for device in node.devices):
        yield violation(PlanRule.RELABEL, name, "a node whose cards no pod uses", "one in use", part)
    if not relabel.devices:
        yield violation(PlanRule.RELABEL, name, "the cards that it has then", "none", part)
    here = {placed.pod for placed, _ in after.coming.get(relabel.node, ())}
    missing = [placed.pod for placed in relabel.pods if placed.pod not in here]
    if missing:
        yield violation(PlanRule.RELABEL, name, "its pods among those that are placed", missing[0], part)


def _gives_way(after: After, eviction: Eviction) -> Iterator[Violation]:
    part = PlanPart(PartKind.PLACEMENT, eviction.for_pod)
    node = after.snapshot.node(eviction.node)
    pod = next((each for each in (node.pods if node is not None else ()) if each.key == eviction.pod), None)
    if pod is None or not pod.is_opportunistic:
        expected, got = f"an opportunistic pod of node {eviction.node}", "none" if pod is None else "another pod"
        yield violation(PlanRule.EVICTION, eviction.pod, expected, got, part)
    elif eviction.for_pod not in {placed.pod for placed, _ in after.coming.get(eviction.node, ())}:
        expected = f"a pod that comes to node {eviction.node}"
        yield violation(PlanRule.EVICTION, eviction.pod, expected, f"{eviction.for_pod} elsewhere", part)
