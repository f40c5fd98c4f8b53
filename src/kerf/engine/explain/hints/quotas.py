"""By how much a ResourceQuota must rise for the pods that it refuses, shown by deciding again with it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kerf.engine.decide import decide
from kerf.engine.decision import Decision, Refusal
from kerf.engine.explain.hints.situation import Advice
from kerf.engine.explain.hints.tries import Tries
from kerf.model.causes import Cause, OverResourceQuota
from kerf.model.plan import Patch
from kerf.model.quantities import quantity_text
from kerf.model.resourcequotas import resource_of
from kerf.model.volumecauses import ClaimOverQuota

_MOST_RAISED = 3
"""So many times a decision is made: a pod may be over several limits, which are found one after the other."""
_Raised = dict[tuple[str, str], dict[str, int]]
"""By namespace and name of a quota what its limits rise to."""


def over_of(cause: Cause) -> OverResourceQuota | None:
    """What a cause says of a quota; None where it is of none."""
    over = cause.over if isinstance(cause, ClaimOverQuota) else cause
    return over if isinstance(over, OverResourceQuota) else None


def raise_quota(over: OverResourceQuota, words: str, decision: Decision, tries: Tries) -> Advice:
    """The least that the limit must rise to for all pods that it refuses; `words` alone where that helps none of them.

    Cost: a decision for each limit that must rise, which is a try.
    """
    left = _left_of(over)
    keys = {pod.key for each in _refused(over, decision.refusals) for pod in each.pods}
    raised: _Raised = {}
    made, first = decision, over
    for _ in range(_MOST_RAISED):
        limit = raised.setdefault((over.namespace, over.name), {})
        if over.resource in limit:
            break
        limit[over.resource] = _needed(over, made.refusals)
        if not tries.take_decision(decision.work):
            break
        made = _with(raised, decision)
        tries.cost(made.work, decision.work)
        refusals = [each.innermost for each in made.refusals if any(pod.key in keys for pod in each.pods)]
        if not refusals:
            found = [Patch("ResourceQuota", name, _change(each), at) for (at, name), each in raised.items()]
            hint = f"no node would help: {' and '.join(_steps(raised))}{left}"
            return Advice(hint, found[0], more=tuple(found[1:]))
        other = next(filter(None, (over_of(each.cause) for each in refusals)), None)
        if other is None:
            break
        over = other
    return Advice(f"{words}: {first.resource} lacks {_text(first, first.used + first.more - first.hard)}{left}")


def _refused(over: OverResourceQuota, refusals: Sequence[Refusal]) -> list[Refusal]:
    """Those by the same limit."""
    inner = ((each.innermost, over_of(each.innermost.cause)) for each in refusals)
    return [each for each, found in inner if found is not None and _limit(found) == _limit(over)]


def _limit(over: OverResourceQuota) -> tuple[str, str, str]:
    return over.namespace, over.name, over.resource


def _needed(over: OverResourceQuota, refusals: Sequence[Refusal]) -> int:
    """What all that is refused by the limit comes to beside what is used; a claim of several pods counts once."""
    used, more, claims = 0, 0, dict[str, int]()
    for refusal in _refused(over, refusals):
        found = over_of(refusal.cause)
        assert found is not None
        used = max(used, found.used)
        if isinstance(refusal.cause, ClaimOverQuota):
            claims[refusal.cause.claim] = found.more
        else:
            more += found.more * len(refusal.pods)
    return used + more + sum(claims.values())


def _with(raised: Mapping[tuple[str, str], Mapping[str, int]], decision: Decision) -> Decision:
    snapshot = decision.world.snapshot
    quotas = tuple(
        replace(each, hard={**each.hard, **raised.get((each.namespace, each.name), {})}) for each in snapshot.quotas
    )
    world = decision.world.of(replace(snapshot, quotas=quotas))
    return decide(world, replace(decision.options, with_bound=False))


def _change(limits: Mapping[str, int]) -> Mapping[str, object]:
    return {"spec": {"hard": {key: quantity_text(resource_of(key), amount) for key, amount in limits.items()}}}


def _steps(raised: _Raised) -> Iterator[str]:
    for (namespace, name), limits in raised.items():
        for key, amount in limits.items():
            yield f"raise {key} of ResourceQuota {namespace}/{name} to {quantity_text(resource_of(key), amount)}"


def _left_of(over: OverResourceQuota) -> str:
    """What a pod or claim may still ask for; empty where that is nothing."""
    left = over.hard - over.used
    return f", or ask for {_text(over, left)} at most" if left > 0 else ""


def _text(over: OverResourceQuota, amount: int) -> str:
    return quantity_text(resource_of(over.resource), amount)
