"""What a plan states beside its answers, for those of its pods and pools that were asked for."""

from collections.abc import Sequence

from kerf.cli.explain.pods import PodAnswers
from kerf.cli.plan.planning import assumed
from kerf.engine.explain.plan import NOT_ALL_TRIED, caveats, pool_caveats
from kerf.model.pods import Pod


def notes_beside(pods: Sequence[Pod], named: Sequence[str], answers: PodAnswers) -> list[str]:
    """The notes that `kerf plan` prints of those of these pods that wait; else those of the `named` NodePools.

    Pods that wait for nothing have no plan, so nothing to say of it.
    """
    keys, plan = {pod.key for pod in pods}, answers.plan
    waiting = [pod for pod in answers.decision.pending if pod.key in keys]
    if waiting:
        tried = [note for note in plan.notes if note == NOT_ALL_TRIED]
        return [*caveats(answers.decision, waiting), *tried, *assumed(answers.read)]
    return [*pool_caveats(answers.decision, named)]
