"""Changes of a spread constraint: the smallest skew that helps, fewer domains, whose taints count, a mere wish."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from kerf.engine.explain.hints.again import Question
from kerf.engine.explain.hints.situation import Advice, pod_patch
from kerf.engine.explain.hints.widening import Idea
from kerf.model.causes import Cause
from kerf.model.pods import PodSpec
from kerf.model.topology import SPREAD, SkewExceeded, TooFewDomains, TopologySpreadConstraint


def looser_spread(cause: Cause, question: Question) -> Iterator[Idea]:
    """Of the constraint that refuses the pods first, then of their others, the smallest change first."""
    spec = question.spec
    keys = [each.key for each in spec.spread]
    skew = cause.skew if isinstance(cause, TooFewDomains) else cause
    refusing = skew.key if isinstance(skew, SkewExceeded) else ""
    for constraint in sorted(spec.required_spread, key=lambda each: (each.key != refusing, each.key)):
        if keys.count(constraint.key) > 1:
            # kubectl merges them by their key, so a patch could not say which one it means.
            continue
        is_refusing = constraint.key == refusing
        if is_refusing and isinstance(cause, TooFewDomains):
            yield from _fewer_domains(constraint, cause, question)
        yield from _taints_honored(constraint, question)
        least = skew.skew if is_refusing and isinstance(skew, SkewExceeded) else constraint.max_skew + 1
        yield from _larger_skew(constraint, least, question)
        yield from _wished(constraint, question)


def _fewer_domains(constraint: TopologySpreadConstraint, cause: TooFewDomains, question: Question) -> Iterator[Idea]:
    """The most that helps, and no more domains than there are: with those that are to come they may be enough."""
    for fewer in range(min(constraint.min_domains - 1, max(1, cause.domains)), 0, -1):
        hint = f"lower minDomains of the topology spread over {constraint.key} to {fewer}"
        found = _tried(hint, replace(constraint, min_domains=fewer), {"minDomains": fewer}, question)
        yield from found
        if found and found[0][1].served == len(question.pods):
            return


def _larger_skew(constraint: TopologySpreadConstraint, likely: int, question: Question) -> Iterator[Idea]:
    """The smallest maxSkew that places as many as any: between what it is and one that no count of pods reaches."""

    def tried(skew: int) -> list[Idea]:
        hint = f"maxSkew {skew} of the topology spread over {constraint.key}"
        return _tried(hint, replace(constraint, max_skew=skew), {"maxSkew": skew}, question)

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
        hint = f"nodeTaintsPolicy Honor of the topology spread over {constraint.key}"
        why = "then nodes whose taints keep the pod off do not count"
        honoring = replace(constraint, honors_taints=True)
        yield from _tried(f"{hint}: {why}", honoring, {"nodeTaintsPolicy": "Honor"}, question)


def _wished(constraint: TopologySpreadConstraint, question: Question) -> Iterator[Idea]:
    entry = {"whenUnsatisfiable": "ScheduleAnyway", **({"minDomains": None} if constraint.min_domains > 1 else {})}
    hint = f"whenUnsatisfiable ScheduleAnyway of the topology spread over {constraint.key}"
    yield from _tried(hint, replace(constraint, is_required=False, min_domains=1), entry, question)


def _tried(hint: str, after: TopologySpreadConstraint, entry: Mapping[str, object], question: Question) -> list[Idea]:
    """The change in a list; nothing where it places no pod. No other constraint of the pods has the same key."""
    respec = partial(_putting, after)
    found = question.with_spec(respec)
    if found is None or not found.served:
        return []
    change = {"spec": {SPREAD: [{"topologyKey": after.key, **entry}]}}
    patch = pod_patch(question.pods[0], change, question.snapshot.cron_job_keys)
    return [(Advice(hint, patch, change, spec=respec(question.spec)), found)]


def _putting(after: TopologySpreadConstraint, spec: PodSpec) -> PodSpec:
    return replace(spec, spread=tuple(after if each.key == after.key else each for each in spec.spread))
