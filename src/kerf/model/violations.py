"""What a plan breaks: the rules that it is put to before it is printed or acted on, and one breach of one rule.

The names of the rules are part of the interface: metrics, JSON and reports of bugs bear them.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kerf.model.causes import Cause, Name, Quoted


class PlanRule(StrEnum):
    """One rule for a plan. `engine.explain.violations` says each in words."""

    PLACED_TWICE = "placed-twice"
    POD_UNKNOWN = "pod-unknown"
    POD_LOST = "pod-lost"
    POD_OUTCOME = "pod-outcome"
    POD_HELD = "pod-held"
    NODE_GOES = "node-goes"
    NODE_UNUSABLE = "node-unusable"
    NODE_RESOURCES = "node-resources"
    NODE_PODS = "node-pods"
    NODE_PORTS = "node-ports"
    NODE_TAINTS = "node-taints"
    NODE_LABELS = "node-labels"
    NODE_VOLUMES = "node-volumes"
    CARD_UNUSABLE = "card-unusable"
    CARD_REQUEST = "card-request"
    CARD_FAMILY = "card-family"
    CARD_MODEL = "card-model"
    CARD_MEMORY = "card-memory"
    CARD_CORES = "card-cores"
    CARD_SLOTS = "card-slots"
    CARD_GEOMETRY = "card-geometry"
    CARD_PARTS = "card-parts"
    OFFERING = "offering"
    PRICE = "price"
    ALTERNATIVES = "alternatives"
    POOL_LIMITS = "pool-limits"
    POOL_FLOOR = "pool-floor"
    QUOTA = "quota"
    GROUP = "group"
    WINDOW = "window"
    SPREAD = "spread"
    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    RELABEL = "relabel"
    EVICTION = "eviction"
    DISRUPTION_BUDGET = "disruption-budget"
    POD_DISRUPTION_BUDGET = "pod-disruption-budget"
    DO_NOT_DISRUPT = "do-not-disrupt"
    REASON = "reason"
    NAMED_TWICE = "named-twice"
    ALLOCATED = "allocated-above-paid"
    COST = "cost"
    BOUND = "cost-below-bound"


class PartKind(StrEnum):
    """What of a plan can be left out by itself."""

    LAUNCH = "launch"
    PLACEMENT = "placement"
    RELABEL = "relabel"
    DELETION = "deletion"
    BOUND = "bound"
    FIGURES = "figures"
    REFUSAL = "refusal"


class PlanPart(NamedTuple):
    """A part of a plan by its name: of a launch, of the node that goes or is relabelled, of the pod that is placed or
    has a reason why it is not."""

    kind: PartKind
    name: str = ""


@dataclass(frozen=True, slots=True)
class Violation(Cause):
    """A breach: at `object` the rule wants what is `expected`, and the plan has what it `got`; amounts have units.

    `parts` are those without which the rest keeps the rule; none: nothing of the plan is left.
    """

    rule: PlanRule
    object: Name
    expected: Quoted
    got: Quoted
    parts: tuple[PlanPart, ...] = field(default=(), compare=False)


def violation(rule: PlanRule, of: str, expected: object, got: object, *parts: PlanPart) -> Violation:
    """One of these from plain values."""
    return Violation(rule, Name(of), Quoted(str(expected)), Quoted(str(got)), parts)
