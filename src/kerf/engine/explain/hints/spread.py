"""Changes of a spread constraint: the smallest skew that helps, fewer domains, whose taints count, a mere wish."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from kerf.engine.explain.hints.again import Again, Question
from kerf.engine.explain.hints.situation import Advice, pod_patch
from kerf.engine.explain.hints.widening import Idea
from kerf.model.causes import Cause
from kerf.model.pods import PodSpec
from kerf.model.topology import SPREAD, SkewExceeded, TooFewDomains, TopologySpreadConstraint

_Entry = Mapping[str, object]


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
    for fewer in range(min(constraint.min_domains - 1, max(1, cause.domains)), 0, -1):
        hint = f"lower minDomains of the topology spread over {constraint.key} to {fewer}"
        found = question.with_spec(_putting(constraint, replace(constraint, min_domains=fewer)))
        if found is not None and found.served:
            yield _advice(hint, constraint, {"minDomains": fewer}, question), found
            if found.served == len(question.pods):
                return


def _larger_skew(constraint: TopologySpreadConstraint, likely: int, question: Question) -> Iterator[Idea]:
    """The smallest maxSkew that places as many as any: between what it is and one that no count of pods reaches."""

    def tried(skew: int) -> Again | None:
        return question.with_spec(_putting(constraint, replace(constraint, max_skew=skew)))

    low, high = constraint.max_skew + 1, max(likely, constraint.max_skew + 1)
    found = tried(high)
    if found is not None and found.served < len(question.pods):
        high += len(question.snapshot.pending)
        wide = tried(high)
        found = wide if wide is not None and wide.served > found.served else found
        high = high if found is wide else high - len(question.snapshot.pending)
    if found is None or not found.served:
        return
    while low < high:
        middle = (low + high) // 2
        other = tried(middle)
        if other is None:
            break
        if other.served >= found.served:
            high, found = middle, other
        else:
            low = middle + 1
    hint = f"maxSkew {high} of the topology spread over {constraint.key}"
    yield _advice(hint, constraint, {"maxSkew": high}, question), found


def _taints_honored(constraint: TopologySpreadConstraint, question: Question) -> Iterator[Idea]:
    """Nodes whose taints keep the pods off are domains without them, unless the constraint passes over such nodes."""
    if constraint.honors_taints:
        return
    change = {"nodeTaintsPolicy": "Honor"}
    found = question.with_spec(_putting(constraint, replace(constraint, honors_taints=True)))
    if found is not None and found.served:
        hint = f"nodeTaintsPolicy Honor of the topology spread over {constraint.key}: then nodes whose taints keep "
        yield _advice(f"{hint}the pod off do not count", constraint, change, question), found


def _wished(constraint: TopologySpreadConstraint, question: Question) -> Iterator[Idea]:
    change = {"whenUnsatisfiable": "ScheduleAnyway", **({"minDomains": None} if constraint.min_domains > 1 else {})}
    wish = replace(constraint, is_required=False, min_domains=1)
    found = question.with_spec(_putting(constraint, wish))
    if found is not None and found.served:
        hint = f"whenUnsatisfiable ScheduleAnyway of the topology spread over {constraint.key}"
        yield _advice(hint, constraint, change, question), found


def _putting(before: TopologySpreadConstraint, after: TopologySpreadConstraint) -> Callable[[PodSpec], PodSpec]:
    def respec(spec: PodSpec) -> PodSpec:
        return replace(spec, spread=tuple(after if each == before else each for each in spec.spread))

    return respec


def _advice(hint: str, constraint: TopologySpreadConstraint, entry: _Entry, question: Question) -> Advice:
    change = {"spec": {SPREAD: [{"topologyKey": constraint.key, **entry}]}}
    patch = pod_patch(question.pods[0], change, question.snapshot.cron_job_keys)
    return Advice(hint, patch, change)
