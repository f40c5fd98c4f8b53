"""Changes of a spread constraint: the smallest skew that helps, fewer domains, whose taints count, a mere wish."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from kerf.engine.explain.hints.again import Question
from kerf.engine.explain.hints.situation import Advice, pod_patch
from kerf.engine.explain.hints.widening import Idea
from kerf.model.causes import Cause
from kerf.model.pods import PodSpec
from kerf.model.topology import SPREAD, NoTopologyLabel, SkewExceeded, TooFewDomains, TopologySpreadConstraint

_MOST_CONSTRAINTS = 4


def looser_spread(cause: Cause, question: Question) -> Iterator[Idea]:
    """Of the constraint that refuses the pods first, then of a few of their others, the smallest change first.

    Each change is a decision, and a pod may have hundreds of constraints.
    """
    spec = question.spec
    keys = Counter(each.key for each in spec.spread)
    skew = cause.skew if isinstance(cause, TooFewDomains) else cause
    refusing = skew.key if isinstance(skew, SkewExceeded | NoTopologyLabel) else ""
    required = sorted(spec.required_spread, key=lambda each: (each.key != refusing, each.key))
    for constraint in required[:_MOST_CONSTRAINTS]:
        is_refusing = constraint.key == refusing
        if is_refusing and isinstance(cause, TooFewDomains):
            yield from _fewer_domains(constraint, cause, question)
        yield from _taints_honored(constraint, question)
        least = skew.skew if is_refusing and isinstance(skew, SkewExceeded) else constraint.max_skew + 1
        yield from _larger_skew(constraint, least, question)
        if keys[constraint.key] == 1:
            # Two with one key and one whenUnsatisfiable are refused.
            yield from _wished(constraint, question)


def _fewer_domains(constraint: TopologySpreadConstraint, cause: TooFewDomains, question: Question) -> Iterator[Idea]:
    """The most that helps, and no more domains than there are: with those that are to come they may be enough."""
    for fewer in range(min(constraint.min_domains - 1, max(1, cause.domains)), 0, -1):
        hint = f"lower minDomains of {_named(constraint, question)} to {fewer}"
        found = _tried(hint, constraint, replace(constraint, min_domains=fewer), {"minDomains": fewer}, question)
        yield from found
        if found and found[0][1].served == len(question.pods):
            return


def _larger_skew(constraint: TopologySpreadConstraint, likely: int, question: Question) -> Iterator[Idea]:
    """The smallest maxSkew that places as many as any: between what it is and one that no count of pods reaches."""

    def tried(skew: int) -> list[Idea]:
        hint = f"maxSkew {skew} of {_named(constraint, question)}"
        return _tried(hint, constraint, replace(constraint, max_skew=skew), {"maxSkew": skew}, question)

    low, high = constraint.max_skew + 1, max(likely, constraint.max_skew + 1)
    best = tried(high)
    if _served(best) < len(question.pods):
        most = high + len(question.snapshot.pending)
        wide = tried(most)
        if _served(wide) > _served(best):
            low, high, best = high + 1, most, wide
    while best and low < high:
        middle = (low + high) // 2
        found = tried(middle)
        if _served(found) >= _served(best):
            high, best = middle, found
        else:
            low = middle + 1
    yield from best


def _served(found: list[Idea]) -> int:
    return found[0][1].served if found else 0


def _taints_honored(constraint: TopologySpreadConstraint, question: Question) -> Iterator[Idea]:
    """Nodes whose taints keep the pods off are domains without them, unless the constraint passes over such nodes."""
    if not constraint.honors_taints:
        hint = f"nodeTaintsPolicy Honor of {_named(constraint, question)}"
        why = "then nodes whose taints keep the pod off do not count"
        honoring = replace(constraint, honors_taints=True)
        yield from _tried(f"{hint}: {why}", constraint, honoring, {"nodeTaintsPolicy": "Honor"}, question)


def _wished(constraint: TopologySpreadConstraint, question: Question) -> Iterator[Idea]:
    entry = {"whenUnsatisfiable": "ScheduleAnyway", **({"minDomains": None} if constraint.min_domains > 1 else {})}
    hint = f"whenUnsatisfiable ScheduleAnyway of {_named(constraint, question)}"
    yield from _tried(hint, constraint, replace(constraint, is_required=False, min_domains=1), entry, question)


def _named(constraint: TopologySpreadConstraint, question: Question) -> str:
    """`the topology spread over zone`, with its whenUnsatisfiable where another one has the same key."""
    is_one = sum(each.key == constraint.key for each in question.spec.spread) == 1
    return f"the {'' if is_one else 'DoNotSchedule '}topology spread over {constraint.key}"


def _tried(
    hint: str,
    before: TopologySpreadConstraint,
    after: TopologySpreadConstraint,
    entry: Mapping[str, object],
    question: Question,
) -> list[Idea]:
    """The change in a list; nothing where it places no pod.

    Words alone where another constraint has the same key: kubectl merges them by it, so a patch could not say which one
    it means.
    """
    respec = partial(_putting, before, after)
    found = question.with_spec(respec)
    if found is None or not found.served:
        return []
    spec = respec(question.spec)
    if sum(each.key == after.key for each in spec.spread) > 1:
        return [(Advice(hint, spec=spec), found)]
    change = {"spec": {SPREAD: [{"topologyKey": after.key, **entry}]}}
    patch = pod_patch(question.pods[0], change, question.snapshot.cron_job_keys)
    return [(Advice(hint, patch, change, spec=spec), found)]


def _putting(before: TopologySpreadConstraint, after: TopologySpreadConstraint, spec: PodSpec) -> PodSpec:
    return replace(spec, spread=tuple(after if each == before else each for each in spec.spread))
