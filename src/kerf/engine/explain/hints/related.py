"""What would help a pod that other pods keep from its place: one change, tried by deciding again for all of them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kerf.engine.buy.cells import planned_labels
from kerf.engine.explain.causes import lost_text
from kerf.engine.explain.hints.again import Again, Question, most
from kerf.engine.explain.hints.company import corrected_selectors, is_meant_by_all, keepers, unmet_terms
from kerf.engine.explain.hints.labels import with_tolerations, with_value
from kerf.engine.explain.hints.models import of_pod
from kerf.engine.explain.hints.situation import Advice, pod_patch
from kerf.engine.explain.hints.spread import looser_spread
from kerf.engine.explain.hints.widening import Idea, higher_limits, labelled_pools, wider_machines, wider_pools
from kerf.engine.place.shapes import Shape
from kerf.model.causes import Cause
from kerf.model.constraints import CAPACITY_TYPE, HOSTNAME, ZONE
from kerf.model.pods import PodSpec
from kerf.model.topology import (
    NoRoomBeside,
    NotNear,
    NoTopologyLabel,
    OutOfTurn,
    SkewExceeded,
    TooFewDomains,
    TooNear,
    Unwelcome,
)
from kerf.model.volumecauses import SharedElsewhere

RELATED = (
    NoRoomBeside,
    NotNear,
    NoTopologyLabel,
    OutOfTurn,
    SharedElsewhere,
    SkewExceeded,
    TooFewDomains,
    TooNear,
    Unwelcome,
)
"""Causes that are constraints on other pods."""
_MOST_VALUES = 3
_NOUNS = {HOSTNAME: "node", ZONE: "zone", CAPACITY_TYPE: "capacity type"}


def beside_others(cause: Cause, question: Question) -> tuple[Advice, Again | None]:
    """The change that places all of the pods, else the one that places most; words where none places any.

    Also the decision with it. Where too many pods would be looked at again, there are no words either.
    """
    if not question.may_look():
        return Advice(), None
    best: Idea | None = None
    for advice, found in _ideas(cause, question):
        if found.served == len(question.pods) and not found.lost:
            return replace(advice, extent=found.pace), found
        if best is None or found.rank > best[1].rank:
            best = advice, found
    if best is None:
        return missing(cause, question), None
    advice, found = best
    return partly(advice, found, question), found


def missing(cause: Cause, question: Question) -> Advice:
    """Words where no change was found."""
    return Advice(_what_is_missing(cause, question))


def partly(advice: Advice, found: Again, question: Question) -> Advice:
    """The same with how many of the pods it places where it is not all, and who loses a place."""
    is_all = found.served == len(question.pods)
    places = "" if is_all else f"; that places {found.served} of these {most(question.pods)}"
    return replace(advice, extent=f"{places}{found.pace}", effect=lost_text(found.lost), is_partial=not is_all)


def _ideas(cause: Cause, question: Question) -> Iterator[Idea]:
    """Changes that were tried, those first that leave what the workload asks for as it is."""
    if isinstance(cause, OutOfTurn):
        cause = cause.why
    if isinstance(cause, NotNear):
        yield from corrected_selectors(question)
    key = key_of(cause)
    keys = (key,) if key else ()
    if isinstance(cause, NoTopologyLabel):
        yield from labelled_pools(key, question)
    yield from wider_pools(keys, question)
    yield from higher_limits(question)
    yield from _tolerating(question)
    yield from _elsewhere((*keys, ZONE), question)
    yield from looser_spread(cause, question)
    yield from wider_machines(question)


def key_of(cause: Cause) -> str:
    """The label by which the pods go; empty for none."""
    cause = cause.skew if isinstance(cause, TooFewDomains) else cause
    return getattr(cause, "key", "")


def _tolerating(question: Question) -> Iterator[Idea]:
    for pool in sorted(question.snapshot.node_pools, key=lambda pool: pool.order):
        hint, spec, change = with_tolerations(pool.taints, question.spec)
        if spec.tolerations == question.spec.tolerations:
            continue
        found = _respecified(spec.tolerations, question)
        if found is not None and found.served:
            patch = pod_patch(question.pods[0], {"spec": change}, question.snapshot.cron_job_keys)
            yield Advice(hint, patch, {"spec": change}, spec=spec), found


def _elsewhere(keys: Iterable[str], question: Question) -> Iterator[Idea]:
    """Pods that ask for another value of a label of which they ask one now: a value that they get if they ask none."""
    for key in dict.fromkeys(keys):
        own = [each[key] for each in question.spec.own_alternatives if key in each]
        if not own or any(each.complement for each in own):
            continue
        freed = question.with_spec(lambda held, key=key: _without(held, key))  # type: ignore[misc]
        if freed is None or not freed.served:
            continue
        asked = frozenset[str]().union(*(each.values for each in own))
        for value in sorted(_values_of(key, freed, question) - asked)[:_MOST_VALUES]:
            found = question.with_spec(lambda held, key=key, to=value: with_value(held, key, to)[0])  # type: ignore[misc]
            if found is not None and found.served:
                spec, change = with_value(question.spec, key, value)
                patch = pod_patch(question.pods[0], {"spec": change}, question.snapshot.cron_job_keys)
                cards = of_pod(Shape(question.pods[:1]), spec, question.decision.world)
                yield Advice(f'let the pod ask {key} "{value}"{cards}', patch, {"spec": change}, spec=spec), found


def _without(spec: PodSpec, key: str) -> PodSpec:
    terms = tuple(term.without((key,)) for term in spec.affinity)
    return replace(spec, node_selector=spec.node_selector.without((key,)), affinity=terms)


def _values_of(key: str, found: Again, question: Question) -> set[str]:
    """The values of the label where the pods in question get their places."""
    mine = {pod.key for pod in question.pods}
    loads = [node.load for node in found.made.bought if any(pod.key in mine for pod in node.pods)]
    nodes = [question.snapshot.node(each.node) for each in found.made.placements if each.pod.pod in mine]
    values = {planned_labels(load).get(key) for load in loads} | {node.labels.get(key) for node in nodes if node}
    return {value for value in values if value}


def _respecified(tolerations: object, question: Question) -> Again | None:
    return question.with_spec(lambda held: replace(held, tolerations=tolerations))  # type: ignore[arg-type]


def _what_is_missing(cause: Cause, question: Question) -> str:
    """Where no change was found: who is in the way, and what there would have to be."""
    in_vain = ", and Kerf found no change that {}" if question.can_be_tried else ""
    match cause:
        case TooNear() | Unwelcome():
            noun = _NOUNS.get(cause.key, f"value of {cause.key}")
            whose = keepers(cause, question)
            kept = f"it must be away from {whose}: " if whose else ""
            return f"{kept}a further {noun} is what is missing{in_vain.format('brings one')}"
        case NotNear() if unmet_terms(question):
            return "no pod matches, neither one that runs nor one that waits: it comes when there is one"
        case NotNear(also=also) if also and not is_meant_by_all(question):
            return "no pod is meant by all of its affinity terms, as kube-scheduler asks: it comes when there is one"
        case NoRoomBeside(held=0):
            return f"both must agree on zone, labels, volumes and neighbours{in_vain.format('makes them')}"
        case NotNear() | NoRoomBeside():
            return f"where such pods are there is no room for it{in_vain.format('makes any')}"
        case SharedElsewhere(claim=claim, key=key):
            where = "on one node" if key == HOSTNAME else "in one zone"
            return f"all pods with claim {claim} must be able to run {where}{in_vain.format('lets them')}"
        case NoTopologyLabel(key=key):
            return f"no NodePool gives its nodes the label {key}"
    return "Kerf found no change that places it" if in_vain else ""
