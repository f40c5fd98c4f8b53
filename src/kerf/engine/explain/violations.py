"""The rules of the last line in words, and what is said of a part of a plan that broke one."""

from collections.abc import Iterable, Iterator, Mapping

from kerf.model.violations import PlanRule, Violation

RULES: Mapping[PlanRule, str] = {
    PlanRule.PLACED_TWICE: "a pod has one place",
    PlanRule.POD_UNKNOWN: "a pod that gets a place waits, or is on a node that goes",
    PlanRule.POD_LOST: "each pod of a node that goes has another place, or is meant to have none",
    PlanRule.POD_OUTCOME: "each pod that waits has a place, or a reason why it has none, and never both",
    PlanRule.POD_HELD: "no pod gets a place that others still hold back",
    PlanRule.NODE_GOES: "a node that takes pods does not go at the same time",
    PlanRule.NODE_UNUSABLE: "a node that takes pods, or goes, is there and may do so",
    PlanRule.NODE_RESOURCES: "the pods of a node ask for no more of a resource than it has",
    PlanRule.NODE_PODS: "a node has no more pods than its kubelet takes",
    PlanRule.NODE_PORTS: "each host port of a node is taken once",
    PlanRule.NODE_TAINTS: "a pod tolerates the taints of its node",
    PlanRule.NODE_LABELS: "a node has the labels that its pods ask for",
    PlanRule.NODE_VOLUMES: "a node reaches the volumes of its pods, and its drivers can attach them",
    PlanRule.CARD_UNUSABLE: "a card that takes slices is there, healthy and not cordoned",
    PlanRule.CARD_REQUEST: "each container has as many slices as it asks for, on as many cards, and as large",
    PlanRule.CARD_FAMILY: "a pod gets cards of the plugin that serves what it asks for",
    PlanRule.CARD_MODEL: "a card is of the models, and one of those, that the pod's annotations allow",
    PlanRule.CARD_MEMORY: "the slices of a card have no more memory than it has",
    PlanRule.CARD_CORES: "the slices of a card have no more cores than it has, and one with all of them is alone",
    PlanRule.CARD_SLOTS: "a card has no more slices than its plugin gives out",
    PlanRule.CARD_GEOMETRY: "MIG instances lie where the card lets them start, beside each other",
    PlanRule.CARD_PARTS: "no more parts of a card are taken than it was cut into",
    PlanRule.OFFERING: "a NodePool buys what it offers and what can be had",
    PlanRule.PRICE: "a node costs what its offering costs",
    PlanRule.ALTERNATIVES: "each type that may stand in for another holds the same pods",
    PlanRule.POOL_LIMITS: "a NodePool stays within its limits",
    PlanRule.POOL_FLOOR: "a NodePool keeps as many nodes as it states",
    PlanRule.QUOTA: "the pods of a namespace stay within its ResourceQuotas",
    PlanRule.GROUP: "a group of pods has room for all it needs, or none",
    PlanRule.WINDOW: "a pod that waits for a CapacityWindow gets a place while one is open for it",
    PlanRule.SPREAD: "topologySpreadConstraints hold",
    PlanRule.AFFINITY: "podAffinity holds",
    PlanRule.ANTI_AFFINITY: "podAntiAffinity holds, in both directions",
    PlanRule.RELABEL: "only a node whose cards are idle gets another configuration",
    PlanRule.EVICTION: "only an opportunistic pod makes room for another",
    PlanRule.DISRUPTION_BUDGET: "no more nodes of a NodePool go than its budgets allow",
    PlanRule.POD_DISRUPTION_BUDGET: "no node goes with a pod that a PodDisruptionBudget holds",
    PlanRule.DO_NOT_DISRUPT: "no node goes that is protected, or has a protected pod",
    PlanRule.REASON: "a node goes for a reason that it has, and for which its NodePool lets it go",
    PlanRule.NAMED_TWICE: "each node that is bought has a name of its own, and a node goes or is relabelled once",
    PlanRule.ALLOCATED: "no more of the cards is allocated than is paid for",
    PlanRule.COST: "the cost is what the nodes cost",
    PlanRule.BOUND: "the cost is not below the lower bound",
}
"""Each rule as a sentence that holds of a plan."""

_MOST_SAID = 3


def violation_text(breach: Violation) -> str:
    """`card-memory: node a, card 0: expected at most 0 MiB of 22888, got 9000 MiB`."""
    return f"{breach.rule}: {breach.object}: expected {breach.expected}, got {breach.got}"


def left_out_notes(found: Iterable[Violation]) -> Iterator[str]:
    """What a plan says of its parts that were left out: once a rule, with the first breaches of it."""
    by_rule: dict[PlanRule, list[str]] = {}
    for each in found:
        by_rule.setdefault(each.rule, []).append(violation_text(each))
    for rule, texts in by_rule.items():
        known = list(dict.fromkeys(texts))
        more = f", and {len(known) - _MOST_SAID} more" if len(known) > _MOST_SAID else ""
        yield (
            f"Kerf left out a part of this plan that broke a rule ({RULES[rule]}): "
            f"{'; '.join(known[:_MOST_SAID])}{more}; this is a bug of Kerf: please report it with `kerf snapshot`"
        )
