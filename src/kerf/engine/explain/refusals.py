"""Why a pod has no place: the stage it reached, the nearest miss, the missing quantity, the smallest change that helps.

The checks that refused a pod are asked again of the evidence that the refusal carries, one row a pool (its nearest
type) and one for the nearest existing node, so the answer cannot differ from the decision.
"""

import difflib
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kerf.engine.decision import Evidence, Refusal
from kerf.engine.explain.causes import cause_text, misfit_sentence, misfit_text
from kerf.engine.explain.hints import Advice, Situation, advise, hint_of
from kerf.engine.explain.hints.situation import pod_patch
from kerf.engine.explain.hints.tries import Tries
from kerf.engine.place.fit import fit, nearest
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.offered import OfferedType
from kerf.model import causes
from kerf.model.causes import Cause, Lack, Name, TargetKind, TargetName
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.market import Market
from kerf.model.nodepool import NodePool
from kerf.model.plan import Misfit, Patch, Stage, Unplaced
from kerf.model.pods import Owner, Pod
from kerf.model.quantities import NODES, Resources


@dataclass(frozen=True, slots=True)
class Reason:
    """What is said of a refusal: how far its pods got, why they got no further, and every near miss.

    `worst` is the misfit that advice goes by; None where none decides.
    """

    stage: Stage
    text: str
    misfits: tuple[Misfit, ...] = ()
    worst: Misfit | None = None


class Telling:
    """Puts refusals into words; remembers what refusals of one try have in common.

    `cron_jobs` are those of the cluster, as `namespace/name`: patches of their runs go to them.
    """

    def __init__(self, tries: Tries | None = None, cron_jobs: Container[str] = ()) -> None:
        self._tries, self._cron_jobs = tries or Tries(), cron_jobs
        self._reasons: dict[int, Reason] = {}
        self._situations: dict[int, Situation] = {}
        self._kept: list[Refusal] = []
        self._of_everyone: dict[str, Advice] = {}

    def everyone(self, refusals: Sequence[Refusal]) -> list[Unplaced]:
        """What would help if no group were left out; for a limit that helps the groups that were, too."""
        found = [entry for refusal in refusals for entry in self.unplaced(refusal)]
        for entry in found:
            if isinstance(entry.cause, causes.NotBought) and entry.patch is not None and entry.patch.kind == "NodePool":
                self._of_everyone.setdefault(entry.patch.name, Advice(entry.hint, entry.patch))
        return found

    def reason(self, refusal: Refusal) -> Reason:
        """Without what would help. Cost: types of all pools, and kinds of nodes, once a refusal."""
        cause = refusal.cause
        if not isinstance(cause, _OF_GROUPS):
            return self._of_pods(refusal)
        first = self._first(refusal)
        text = f"{cause.group}: {_of_group(cause, first)}"
        stage = refusal.stage or (first.stage if first is not None else Stage.HELD)
        return Reason(stage, text, first.misfits if first is not None else ())

    def _first(self, refusal: Refusal) -> Reason | None:
        """What stopped the first pod of a group."""
        return None if refusal.first is None else self._of_pods(refusal.first)

    def _of_pods(self, refusal: Refusal) -> Reason:
        if id(refusal) not in self._reasons:
            # Kept, so no other refusal can get its id.
            self._kept.append(refusal)
            self._reasons[id(refusal)] = _reason(refusal)
        return self._reasons[id(refusal)]

    def without_group(self, refusal: Refusal) -> str:
        """The reason as it is said to the group itself."""
        cause = refusal.cause
        if isinstance(cause, _OF_GROUPS):
            return _of_group(cause, self._first(refusal))
        if isinstance(cause, causes.TemplateMissing | causes.TemplateInvalid):
            return cause_text(cause)
        return self._of_pods(refusal).text

    def unplaced(self, refusal: Refusal) -> list[Unplaced]:
        """One entry a pod, with what would help it."""
        reason, advice = self.reason(refusal), self._advised(refusal.innermost)
        is_group = refusal.first is not None
        found: list[Unplaced] = []
        for pods in _by_owner(refusal.pods):
            # A patch of a workload is for the one that makes the pod, though equal pods come from several.
            patch = pod_patch(pods[0], advice.change, self._cron_jobs) if advice.change else advice.patch
            if is_group and (patch is None or patch.kind != "NodePool"):
                patch = None
            for pod in pods:
                mine = _for_pod(patch, pod.name)
                words = reason.text, advice.hint, mine, reason.misfits
                found.append(Unplaced(pod.key, reason.stage, *words, refusal.cause, refusal.innermost.cause))
        return found

    def _advised(self, refusal: Refusal) -> Advice:
        """What would help; of a group what would help its first pod."""
        fixed = hint_of(refusal)
        if fixed is not None or refusal.evidence is None:
            return fixed or Advice()
        worst = self.reason(refusal).worst
        situation = self._situations.setdefault(id(refusal.evidence), Situation(refusal.evidence, self._tries))
        if not situation.snapshot.node_pools:
            return Advice("apply a NodePool")
        if worst is None:
            return Advice()
        if isinstance(worst.cause, causes.LimitReached) and worst.cause.pool in self._of_everyone:
            return self._of_everyone[worst.cause.pool]
        return advise(Shape(refusal.pods), worst, situation)


def _reason(refusal: Refusal) -> Reason:
    """Of pods without a group, or of one pod of it."""
    cause = refusal.cause
    if isinstance(cause, causes.NotBought) and refusal.evidence is not None:
        return _not_bought(refusal, refusal.evidence)
    text = cause_text(cause)
    if isinstance(cause, causes.NoRoomOfRequest):
        lacks = f"{refusal.misfits[0].target}: {misfit_text(refusal.misfits[0])}" if refusal.misfits else ""
        text = f"{text}: {lacks or 'there is no node'}"
    if isinstance(cause, causes.TemplateMissing | causes.TemplateInvalid):
        text = f"{causes.GroupKind.REQUEST} {cause.request}: {text}"
    return Reason(refusal.stage or Stage.RESOURCES, text, refusal.misfits)


_OF_GROUPS = (causes.GroupInvalid, causes.GroupIncomplete, causes.GroupShort, causes.GroupBehind)


def _of_group(cause: Cause, first: Reason | None) -> str:
    """What follows the group's name."""
    text = cause_text(cause)
    if not isinstance(cause, causes.GroupShort):
        return text
    return f"{text}: {first.text if first is not None else f'no scheduler has refused {cause.coming} others yet'}"


def _not_bought(refusal: Refusal, evidence: Evidence) -> Reason:
    shape = Shape(refusal.pods)
    pools = sorted(evidence.world.snapshot.node_pools, key=lambda pool: pool.order)
    by_pool = [misfit for pool in pools if (misfit := _nearest_in(pool, shape, evidence)) is not None]
    on_nodes = evidence.trial.nearest(shape)
    misfits = (*by_pool, on_nodes) if on_nodes is not None else tuple(by_pool)
    if not pools:
        stage = misfits[0].stage if misfits else Stage.REQUIREMENTS
        return Reason(stage, "there is no NodePool, so that nothing can be bought", misfits)
    misfits = misfits or (Misfit(TargetName(TargetKind.CLUSTER), Stage.OFFERINGS, causes.NothingOffered()),)
    worst = nearest(by_pool or misfits)
    return Reason(nearest(misfits).stage, misfit_sentence(worst), misfits, worst)


def _by_owner(pods: Sequence[Pod]) -> list[tuple[Pod, ...]]:
    """The pods of each workload, in their order."""
    groups: dict[tuple[str, Owner | None], list[Pod]] = {}
    for pod in pods:
        groups.setdefault((pod.namespace, pod.owner), []).append(pod)
    return [tuple(members) for members in groups.values()]


def _for_pod(patch: Patch | None, name: str) -> Patch | None:
    return replace(patch, name=name) if patch is not None and patch.kind == "Pod" else patch


def _nearest_in(pool: NodePool, shape: Shape, evidence: Evidence) -> Misfit | None:
    """The pool's answer: its nearest type's misfit; None when it would take the pod after all."""
    supply, where = evidence.world.supply, TargetName(TargetKind.NODE_POOL, Name(pool.name))
    problem = dict(supply.pool_problems).get(pool.name)
    if problem is not None:
        return Misfit(where, Stage.OFFERINGS, causes.PoolClosed(Name(pool.name), problem))
    offered_types = supply.by_pool.get(pool.name, ())
    unavailable = [c for c in supply.unavailable if c.pool.name == pool.name]
    misfits = [_misfit(offered, shape, evidence) for offered in _furthest(offered_types, unavailable, shape, evidence)]
    if not misfits:
        return Misfit(where, Stage.OFFERINGS, _nothing_offered(pool, evidence.world.market))
    refused = [misfit for misfit in misfits if misfit is not None]
    return nearest(refused) if refused else None


def _furthest(
    offered_types: Sequence[OfferedType], unavailable: Sequence[OfferedType], shape: Shape, evidence: Evidence
) -> tuple[OfferedType, ...]:
    """The types of a pool among which the nearest is: where a limit alone keeps a type out, none that is too small.

    Types that are too small come no further than cards, and of those that a limit keeps out the cheapest is nearest.
    """
    holding = evidence.world.holding
    rows = holding.rows(offered_types)
    limited = np.isin(rows, evidence.limited) & (holding.alone(shape, holding.kind(shape))[rows] > 0)
    if not limited.any():
        return (*offered_types, *unavailable)
    price = min(offered_types[at].price_micro for at in np.flatnonzero(limited).tolist())
    others = np.flatnonzero(~limited & ~holding.lacking(shape)[rows])
    cheapest = (at for at in np.flatnonzero(limited).tolist() if offered_types[at].price_micro == price)
    return (*(offered_types[at] for at in (*cheapest, *others.tolist())), *unavailable)


def _misfit(offered: OfferedType, shape: Shape, evidence: Evidence) -> Misfit | None:
    result = fit(offered.target, offered.room, shape)
    if isinstance(result, Misfit):
        return result
    name, price = offered.target.name, offered.price_micro
    exceeded = evidence.after.exceeded_by(offered)
    if exceeded:
        cause = _limit(exceeded[0], offered, evidence)
        return Misfit(name, Stage.LIMITS, cause, (Lack(cause.more, cause.resource),), price)
    if offered.refused is not None:
        dear = offered.over_price_cap[0].price_micro if offered.over_price_cap else 0
        return Misfit(name, Stage.OFFERINGS, offered.refused, shortfall=price or dear)
    if offered.offering_for(result.room.requirements) is None:
        return Misfit(name, Stage.OFFERINGS, causes.NoOfferingLeft(result.room.requirements), shortfall=price)
    return None


def _limit(resource: str, offered: OfferedType, evidence: Evidence) -> causes.LimitReached:
    """The limit with its figures: what it is, what is in use, what this plan adds, what one more node needs."""
    pool = offered.pool.name
    limit = (evidence.after.limit(pool) or Resources()).get(resource, 0)
    used = evidence.before.used(pool).get(resource, 0)
    planned = evidence.after.used(pool).get(resource, 0) - used
    more = 1 if resource == NODES else offered.capacity[resource]
    return causes.LimitReached(Name(pool), Name(resource), limit, used, planned, more)


def _nothing_offered(pool: NodePool, market: Market) -> Cause:
    """No type of the market passes the pool's requirements: name the culprit where it is a type."""
    named = pool.requirements.get(INSTANCE_TYPE)
    if named is None or named.complement:
        return causes.NoTypeMatches(Name(pool.name))
    known = [kind.name for kind in market.types]
    return causes.NamedTypesUnusable(
        Name(pool.name), tuple(_unusable(Name(name), market, known) for name in sorted(named.values))
    )


def _unusable(name: Name, market: Market, known: Sequence[str]) -> Cause:
    if market.find(name) is not None:
        return causes.TypeUnmatched(name)
    if name in market.not_sold:
        return causes.TypeNotSold(name, causes.Quoted(market.not_sold[name]))
    close = difflib.get_close_matches(name, known, 1)
    return causes.TypeUnknown(name, Name(close[0]) if close else Name(""))
