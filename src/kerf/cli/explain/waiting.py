"""`kerf explain` without an object: what waits, where it goes, and why the rest has no place."""

from collections.abc import Sequence

from kerf.cli.explain.explanation import Explanation
from kerf.cli.explain.pods import NO_PLACE, PodAnswers
from kerf.cli.explain.workloads import by_verdict, summary
from kerf.cli.render import counted
from kerf.model.pods import Pod


def explain_waiting(pods: Sequence[Pod], answers: PodAnswers, namespace: str | None) -> Explanation:
    """All pods that wait, together: those that go to a node by node, those without a place by reason."""
    where = f"namespace {namespace}" if namespace is not None else f"the {answers.read.place}"
    if not pods:
        return Explanation({"kind": "Waiting", "count": 0, "unplaced": 0}, (f"no pod of {where} waits for a node",))
    found = by_verdict(pods, answers)
    left = len(found.get(NO_PLACE, ()))
    title = f"{counted(len(pods), 'pod')} of {where} wait{'s' if len(pods) == 1 else ''} for a node"
    text = f"{title}, {left} without a place:" if left else f"{title}, and each gets one:"
    data = {"kind": "Waiting", "count": len(pods), "unplaced": left}
    return Explanation(data, (text, *summary(found, answers)), bool(left))
