"""A node that is being drained: which pods it waits for, what holds each, and what would free it."""

from collections.abc import Iterator

from kerf.cli.plan.json import Json
from kerf.cli.render import counted, some
from kerf.engine.draining import Awaited, Drain, awaited_attachments, drain_of
from kerf.engine.explain.draining import awaited_text, remedy_text
from kerf.engine.lifecycle import drain_deadline_s
from kerf.model.eviction import Budgets
from kerf.model.nodeclaim import INSTANCE_TERMINATING
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.model.times import instant_text

_MOST_PODS = 5


class Draining:
    """What the drain of a node waits for in one snapshot, by the rules of the controller."""

    def __init__(self, node: ClusterNode, snapshot: ClusterSnapshot) -> None:
        claim, now_s = node.claim, snapshot.taken_at_s
        is_drained = claim is None or node.node is None or claim.is_true(INSTANCE_TERMINATING)
        self._is_over = is_drained or not node.is_deleting
        self._deadline_s = None if claim is None else drain_deadline_s(claim)
        self._drain, self._attachments = Drain(), tuple[str, ...]()
        if self._is_over:
            return
        budgets = Budgets(snapshot.disruption_budgets)
        self._drain = drain_of(node.pods, budgets, now_s, self._deadline_s)
        bound = (each for each in snapshot.volume_attachments.values() if each.node_name == node.name)
        left = awaited_attachments(bound, node.pods, snapshot.volume_claims.get, now_s)
        self._attachments = tuple(each.name for each in left)

    def pod_data(self, key: str) -> Json | None:
        """One pod that the drain waits for, as JSON; None for any other."""
        awaited = self._awaited(key)
        return None if awaited is None else _object(awaited)

    def pod_lines(self, key: str) -> Iterator[str]:
        """The same for people."""
        awaited = self._awaited(key)
        if awaited is not None:
            yield f"  its node drains: {awaited_text(awaited)}"

    def _awaited(self, key: str) -> Awaited | None:
        return next((each for each in self._drain.awaited if each.pod.key == key), None)

    def data(self) -> Json | None:
        """As JSON; None for a node that is not being drained."""
        if self._is_over:
            return None
        return {
            "deadline": None if self._deadline_s is None else instant_text(self._deadline_s),
            "pods": [{"pod": each.pod.key, **_object(each)} for each in self._drain.awaited],
            "volumeAttachments": list(self._attachments),
        }

    def lines(self) -> Iterator[str]:
        """For people: held pods first, since these need a person."""
        if self._is_over:
            return
        awaited, held = self._drain.awaited, self._drain.held
        if awaited:
            end = (
                "nothing sets it an end" if self._deadline_s is None else f"by {instant_text(self._deadline_s)} all go"
            )
            yield f"  drains: waits for {counted(len(awaited), 'pod')}, {len(held)} held; {end}"
        others = tuple(each for each in awaited if each not in held)
        shown = (*held, *others)[:_MOST_PODS]
        for each in shown:
            yield f"    {awaited_text(each)}"
        if len(awaited) > len(shown):
            yield f"    and {counted(len(awaited) - len(shown), 'pod')} more"
        if self._attachments and not awaited:
            yield f"  drained: waits for VolumeAttachments to go: {some(list(self._attachments), _MOST_PODS)}"


def _object(awaited: Awaited) -> Json:
    return {"why": awaited_text(awaited), "remedy": remedy_text(awaited) or None}
