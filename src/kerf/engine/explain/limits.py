"""What is said of pools whose limits keep pods waiting."""

from collections import Counter

from kerf.engine.explain.causes import cause_text
from kerf.model.causes import LimitReached
from kerf.model.plan import Plan


def pools_at_their_limit(plan: Plan) -> dict[str, str]:
    """By pool, the limit that keeps it from serving pods of the plan, with its figures and how many pods wait."""
    reasons: dict[str, str] = {}
    pods: Counter[str] = Counter()
    for unplaced in plan.unplaced:
        for misfit in unplaced.misfits:
            if isinstance(misfit.cause, LimitReached):
                reasons.setdefault(misfit.cause.pool, cause_text(misfit.cause))
                pods[misfit.cause.pool] += 1
    return {
        pool: f"{why}; {pods[pool]} {'pod waits' if pods[pool] == 1 else 'pods wait'}" for pool, why in reasons.items()
    }
