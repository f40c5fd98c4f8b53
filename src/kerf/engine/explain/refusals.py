"""Why a pod has no place: the stage it reached, the nearest miss, the missing quantity, the smallest change that helps.

The checks that refused a pod are asked again of the evidence that the refusal carries, one row a pool (its nearest
type) and one for the nearest existing node, so the answer cannot differ from the decision.
"""

from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kerf.engine.decision import Decision, Evidence, Refusal
from kerf.engine.explain.causes import cause_text, lost_text, misfit_sentence, misfit_text
from kerf.engine.explain.hints import Advice, Situation, hint_of
from kerf.engine.explain.hints.again import Again, Question, losers
from kerf.engine.explain.hints.alike import Alike
from kerf.engine.explain.hints.corrections import decided_again, work_expected
from kerf.engine.explain.hints.groups import is_of_limits, limits_of
from kerf.engine.explain.hints.quotas import over_of, raise_quota
from kerf.engine.explain.hints.related import RELATED, beside_others, missing, partly
from kerf.engine.explain.hints.search import ALONE, NOTHING, joined, smallest
from kerf.engine.explain.hints.situation import pod_patch
from kerf.engine.explain.hints.tries import Tries
from kerf.engine.explain.misses import lacks_cards, limit_in, nearest_in
from kerf.engine.explain.nearby import BESIDE_OTHERS, OF_VOLUMES, Nearby
from kerf.engine.headroom.buffers import is_of_buffer
from kerf.engine.place.fit import nearest
from kerf.engine.place.shapes import Shape
from kerf.model import causes
from kerf.model.causes import Cause, TargetKind, TargetName
from kerf.model.groups import GroupBehind, GroupIncomplete, GroupInvalid, GroupKind, GroupShort, GroupUntried
from kerf.model.nodepool import NodePool
from kerf.model.plan import Misfit, Patch, Stage, Unplaced
from kerf.model.pods import Owner, Pod

_POD_OF_A_FIT = 10
"""Pods that can be looked at in the time in which one node or type is asked."""


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

    `cron_jobs` are those of the cluster, as `namespace/name`: patches of their runs go to them. `decision` is what they
    are refusals of; without it pods that are wrong in themselves get no patch, since it could not be tried.
    """

    def __init__(
        self,
        tries: Tries | None = None,
        cron_jobs: Container[str] = (),
        decision: Decision | None = None,
        depth: int = 0,
    ) -> None:
        self._tries, self._cron_jobs, self._decision = tries or Tries(), cron_jobs, decision
        self._depth = depth
        self._reasons: dict[int, Reason] = {}
        self._situations: dict[int, Situation] = {}
        self._kept: list[Refusal] = []
        self._of_everyone: dict[str, Advice] = {}
        self._related: dict[Hashable, Advice] = {}
        self._with_pools: list[tuple[NodePool, Decision]] = []
        self._of_few_types: list[tuple[NodePool, NodePool]] = []
        self._nearby = None if decision is None else Nearby(decision)
        self._by_quota: dict[tuple[str, str, str], Advice] = {}
        self._by_kind: dict[Hashable, tuple[Advice, Again | None]] = {}

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
        reason, refused = self.reason(refusal), self._tries.refusals
        advice = self._cut(self._for_group(self._advised(refusal.innermost), refusal), refused)
        misfits = reason.misfits or self._nearest_misses(refusal.innermost)
        is_group = refusal.first is not None
        found: list[Unplaced] = []
        for pods in _by_owner(refusal.pods):
            # A patch of a workload is for the one that makes the pod, though equal pods come from several.
            patches = self._patches(pods[0], advice, is_group=is_group)
            for pod in pods:
                first, *more = [_for_pod(patch, pod.name) for patch in patches] or [None]
                words = reason.text, _with_more(advice, pods[0].key), first, misfits
                cause = refusal.cause, refusal.innermost.cause
                place = "" if pod.invalid is None else pod.invalid.place
                found.append(Unplaced(pod.key, reason.stage, *words, *cause, tuple(filter(None, more)), place))
        return found

    def _cut(self, advice: Advice, refused: int) -> Advice:
        """The advice, which says so where `kerf explain` would try more: since `refused` some tries were not made."""
        is_cut = (
            self._tries.are_short and self._tries.refusals > refused and (advice.patch is None or advice.is_partial)
        )
        return replace(advice, is_cut=True) if is_cut else advice

    def _nearest_misses(self, refusal: Refusal) -> tuple[Misfit, ...]:
        """What comes nearest where a decision has not compared nodes; nothing once too many were asked."""
        nearby = self._nearby
        if nearby is None or not isinstance(refusal.cause, (*BESIDE_OTHERS, *OF_VOLUMES)):
            return ()
        return nearby.misses(refusal) if self._tries.take_look(nearby.cost * _POD_OF_A_FIT) else ()

    def _patches(self, pod: Pod, advice: Advice, *, is_group: bool) -> list[Patch]:
        """That of what makes the pod, then those of NodePools; of a group's pods only those."""
        if not advice.change:
            quotas = (each for each in advice.more if each.kind == "ResourceQuota")
            found = [] if advice.patch is None else [advice.patch, *quotas]
        else:
            mine = pod_patch(pod, advice.change, self._cron_jobs)
            # Half of what is needed does not help.
            found = [] if mine is None else [mine, *advice.more]
        return [] if is_group and any(patch.kind != "NodePool" for patch in found) else [*found]

    def _advised(self, refusal: Refusal) -> Advice:
        """What would help; of a group what would help its first pod."""
        if isinstance(refusal.cause, RELATED):
            return self._beside_others(refusal)
        fixed = hint_of(refusal)
        over = over_of(refusal.cause)
        if over is not None and fixed is not None and self._decision is not None and refusal.pods[0].kept_for is None:
            return self._of_quota(over, fixed.hint)
        if fixed is not None and fixed.change:
            return self._corrected(refusal, fixed)
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
        return self._proven(smallest(Shape(refusal.pods), worst, situation), refusal)

    def _of_quota(self, over: causes.OverResourceQuota, words: str) -> Advice:
        """For pods and claims beyond one limit of a quota; once for all of them."""
        limit = over.namespace, over.name, over.resource
        if limit not in self._by_quota:
            assert self._decision is not None
            self._by_quota[limit] = raise_quota(over, words, self._decision, self._tries)
        return self._by_quota[limit]

    def _question(self, pods: tuple[Pod, ...]) -> Question | None:
        """What to ask for these pods and all of their workload that the same kind of cause refuses."""
        if self._decision is None or pods[0].kept_for is not None:
            return None
        return Question(pods, self._decision, self._tries, known=self._with_pools, few=self._of_few_types)

    def _beside_others(self, refusal: Refusal) -> Advice:
        """For pods that others keep from their place; once for those that share a hint."""
        group = self._alike.group(refusal.pods[0], refusal.cause)
        if group not in self._related:
            question, refused = self._question(self._alike.of(refusal)), self._tries.refusals
            found = Advice() if question is None else self._tried(refusal.cause, question)
            self._related[group] = self._cut(found, refused)
        return self._related[group]

    @cached_property
    def _alike(self) -> Alike:
        return Alike(self._decision.refusals if self._decision is not None else (), self._cron_jobs)

    def _tried(self, cause: Cause, question: Question) -> Advice:
        """The change that helps; what was found for an equal workload counts, where it holds for this one too."""
        kind = self._alike.kind(question.pods[0], cause)
        advice, found = self._by_kind.get(kind, (None, None))
        if advice is not None and advice.patch is None:
            return missing(cause, question) if question.may_look() else Advice()
        is_of_pool = advice is not None and advice.spec is None and not advice.is_partial
        if advice is None or not is_of_pool or found is None or not found.serves(question.pods):
            advice, _ = self._by_kind[kind] = beside_others(cause, question)
        return advice

    def _proven(self, advice: Advice, refusal: Refusal) -> Advice:
        """The same where deciding again with it serves the pods, if a purchase alone cannot show that.

        It cannot of pods that go by others, nor where the change is also one of pods that have a place, nor where pods
        that go by others take what a limit allows.
        """
        evidence = refusal.evidence
        if evidence is None or not advice.can_be_tried or advice.patch is None:
            return advice
        question = self._question(refusal.pods)
        if question is None:
            return advice
        # A patch of their template changes placed pods, too, and may take them from nodes that are there.
        moves_others = advice.spec is not None and question.has_placed
        goes_by_others = evidence.trial.ledger.concerns(Shape(refusal.pods)) or evidence.shares_limits
        if not moves_others and not goes_by_others:
            return advice
        found = question.with_both(advice.pool, advice.spec) if _is_one_pool(advice) else None
        if found is None and not question.can_be_tried:
            return Advice(advice.hint)
        if found is not None and found.served == len(refusal.pods) and not found.lost:
            return partly(advice, found, question)
        other, again = beside_others(refusal.cause, question)
        served = 0 if again is None else again.served
        if found is not None and found.served == len(refusal.pods) and (again is None or again.rank <= found.rank):
            return partly(advice, found, question)
        if served < len(refusal.pods) and found is not None:
            both, together = self._both(advice, found, question)
            if together > served:
                return both
        return other if served else Advice(self._in_vain(advice, found, question))

    def _for_group(self, advice: Advice, refusal: Refusal) -> Advice:
        """The same where deciding again with it places all of a group whose pods are not equal, or for which a limit
        must rise beside another change.

        A purchase was tried for those alone that are as its first pod; the others may lack something else. Limits
        alone are proven for all groups together (`hints.groups`). Cost: a decision, which is a try.
        """
        if refusal.first is None or advice.patch is None or not advice.can_be_tried or advice.spec is not None:
            return advice
        patches = (advice.patch, *advice.more)
        if all(map(is_of_limits, patches)) or not (_are_different(refusal.pods) or any(map(limits_of, patches))):
            return advice
        question = self._question(refusal.pods)
        if question is None:
            return advice
        found = question.with_both(advice.pool, None) if _is_one_pool(advice) else None
        if found is None:
            return Advice(advice.hint)
        if found.served == len(refusal.pods):
            return advice
        both, together = self._both(advice, found, question)
        if together > found.served:
            return both
        return partly(advice, found, question) if found.served else Advice(self._in_vain(advice, found, question))

    def _in_vain(self, advice: Advice, found: Again | None, question: Question) -> str:
        """That the change does not help, and what is in the way then."""
        refused = () if found is None else found.made.refusals
        left = next(filter(None, (_of(each, question.pods) for each in refused)), None)
        if left is None:
            return advice.hint + (NOTHING if question.can_be_tried else ALONE)
        return f"{advice.hint}, which alone does not help: then {self.reason(left).text}"

    def _both(self, advice: Advice, found: Again, question: Question) -> tuple[Advice, int]:
        """The change with another one for what then stands in the way, and how many of the pods both place."""
        left = next(filter(None, (_of(each, question.pods) for each in found.made.refusals)), None)
        if left is None or self._depth > 1:
            return advice, 0
        beside = Telling(self._tries, self._cron_jobs, found.made, self._depth + 1)._advised(left)
        if beside.patch is None or not _is_one_pool(beside):
            return advice, 0
        last = replace(question, decision=found.made, first=question.decision, known=[], few=[]).with_both(
            beside.pool, beside.spec
        )
        if last is None or last.served <= found.served:
            return advice, 0
        return partly(joined(advice, beside), last, question), last.served

    def _corrected(self, refusal: Refusal, fixed: Advice) -> Advice:
        """The change that the cause names, with what is needed beside it; without a patch where nothing helps."""
        words = Advice(fixed.hint)
        pods = refusal.pods
        if self._decision is None or pods[0].kept_for is not None:
            return words
        expected = work_expected(pods, self._decision)
        if not self._tries.take_decision(expected):
            return words
        made, left = decided_again(pods, fixed.change, self._decision)
        self._tries.cost(made.work, expected)
        lost = lost_text(losers(made, self._decision, frozenset(pod.key for pod in pods)))
        advice = replace(fixed, patch=pod_patch(pods[0], fixed.change, self._cron_jobs), effect=lost)
        if left is None:
            return advice
        if isinstance(left.cause, causes.Paced):
            return replace(advice, hint=f"{advice.hint}; then {cause_text(left.cause)}")
        telling = Telling(self._tries, self._cron_jobs, made)
        beside = telling._advised(left)
        if beside.patch is not None or beside.can_be_tried:
            return joined(advice, beside)
        more = f"; {beside.hint}{beside.extent}" if beside.hint else ""
        return Advice(f"{words.hint}, which alone does not help: then {telling.reason(left).text}{more}")


def _reason(refusal: Refusal) -> Reason:
    """Of pods without a group, or of one pod of it."""
    cause = refusal.cause
    if isinstance(cause, causes.NotBought) and refusal.evidence is not None:
        return _not_bought(refusal, refusal.evidence)
    text = cause_text(cause)
    if isinstance(cause, causes.NoRoomOfRequest) and cause.is_there:
        lacks = f"{refusal.misfits[0].target}: {misfit_text(refusal.misfits[0])}" if refusal.misfits else ""
        text = f"{text}: {lacks or 'there is no node'}"
    if isinstance(cause, causes.TemplateMissing | causes.TemplateInvalid):
        of_buffer = any(is_of_buffer(pod.key) for pod in refusal.pods)
        text = f"{'CapacityBuffer' if of_buffer else GroupKind.REQUEST} {cause.request}: {text}"
    return Reason(refusal.stage or Stage.RESOURCES, text, refusal.misfits)


_OF_GROUPS = (GroupInvalid, GroupIncomplete, GroupShort, GroupBehind, GroupUntried)


def _of_group(cause: Cause, first: Reason | None) -> str:
    """What follows the group's name."""
    text = cause_text(cause)
    if not isinstance(cause, GroupShort):
        return text
    return f"{text}: {first.text if first is not None else f'no scheduler has refused {cause.coming} others yet'}"


def _not_bought(refusal: Refusal, evidence: Evidence) -> Reason:
    shape = Shape(refusal.pods)
    pools = sorted(evidence.world.snapshot.node_pools, key=lambda pool: pool.order)
    refused = [(pool, misfit) for pool in pools if (misfit := nearest_in(pool, shape, evidence)) is not None]
    refused = refused or [(pool, found) for pool in pools if (found := limit_in(pool, shape, evidence)) is not None]
    by_pool = [misfit for _, misfit in refused]
    on_nodes = evidence.trial.nearest(shape)
    misfits = (*by_pool, on_nodes) if on_nodes is not None else tuple(by_pool)
    if not pools:
        stage = misfits[0].stage if misfits else Stage.REQUIREMENTS
        return Reason(stage, "there is no NodePool, so nothing can be bought", misfits)
    misfits = misfits or (Misfit(TargetName(TargetKind.CLUSTER), Stage.OFFERINGS, causes.NothingOffered()),)
    apt = [misfit for pool, misfit in refused if not lacks_cards(pool, shape, evidence)]
    worst = nearest(apt or by_pool or misfits)
    return Reason(worst.stage, misfit_sentence(worst), misfits, worst)


def _are_different(pods: Sequence[Pod]) -> bool:
    """Whether the pods do not all ask the same. Linear in the pods; each spec is compared once."""
    first, *others = {id(pod.spec): pod.spec for pod in pods}.values()
    return any(other != first for other in others)


def _is_one_pool(advice: Advice) -> bool:
    """Whether it changes no more than one pool: it holds the last alone."""
    patches = (advice.patch, *advice.more)
    return sum(patch is not None and patch.kind == "NodePool" for patch in patches) <= 1


def _of(refusal: Refusal, pods: Sequence[Pod]) -> Refusal | None:
    """The refusal with those of the pods alone that it is of; None where it is of none."""
    keys, inner = {pod.key for pod in pods}, refusal.innermost
    mine = tuple(pod for pod in inner.pods if pod.key in keys)
    return replace(inner, pods=mine) if mine and not isinstance(inner.cause, causes.Paced) else None


def _by_owner(pods: Sequence[Pod]) -> list[tuple[Pod, ...]]:
    """The pods of each workload, in their order."""
    groups: dict[tuple[str, Owner | None], list[Pod]] = {}
    for pod in pods:
        groups.setdefault((pod.namespace, pod.owner), []).append(pod)
    return [tuple(members) for members in groups.values()]


def _with_more(advice: Advice, pod: str) -> str:
    """The hint, and which command tries more where not all was tried."""
    more = f"kerf explain pod/{pod} tries more" if advice.is_cut else ""
    return "; ".join(filter(None, (advice.text, more)))


def _for_pod(patch: Patch | None, name: str) -> Patch | None:
    return replace(patch, name=name) if patch is not None and patch.kind == "Pod" else patch
