"""What pods tell HAMi by annotations, where it does not read them."""

from kerf.engine.explain.causes import cause_text
from kerf.lint.context import LintContext, held_by
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.spelling import nearest
from kerf.lint.subject import WORKLOADS, Subject
from kerf.sharing.hami.options import OF_PODS, unknown_policies


@rule("KL082", "hami-policy-unknown", Severity.WARNING, WORKLOADS)
def policy_unknown(subject: Subject, context: LintContext) -> Notes:
    """A pod names a scheduling policy that HAMi does not know.

    `hami.io/node-scheduler-policy` is `binpack` or `spread`; `hami.io/gpu-scheduler-policy` is one of `binpack`,
    `spread`, `mutex`, `numa` and `topology-aware`, or several of them with commas. HAMi compares them as they are, with
    case and blanks. By any other word it packs nodes and spreads over cards, without a word, and so does Kerf.
    """
    del context
    held = held_by(subject)
    for cause in unknown_policies(held.pod.annotations) if held is not None else ():
        path = (*(subject.template or ()), "metadata", "annotations", cause.annotation)
        yield Note(path, cause_text(cause), nearest(cause.got.strip().lower(), cause.known, 0.6))


@rule("KL083", "hami-annotation-above-pods", Severity.WARNING, WORKLOADS)
def annotation_above_pods(subject: Subject, context: LintContext) -> Notes:
    """An annotation of HAMi stands on what makes pods, and not on the pods.

    HAMi's scheduler reads the annotations of a pod, and a Deployment or Job gives its pods those of its template alone
    (`spec.template.metadata.annotations`). One that stands on the Deployment itself, such as `nvidia.com/use-gputype`,
    does nothing: its pods go to any card, and Kerf plans them so.
    """
    del context
    if not subject.template:
        return
    for key in OF_PODS:
        if subject.text("metadata", "annotations", key) and not subject.text(
            *subject.template, "metadata", "annotations", key
        ):
            place = ".".join(map(str, (*subject.template, "metadata", "annotations")))
            message = f"{key} does nothing on a {subject.kind}: HAMi reads it of pods"
            yield Note(("metadata", "annotations", key), message, f"move it to {place}", at_key=True)
