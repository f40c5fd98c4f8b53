"""What pods tell HAMi, and others, by annotations that no scheduler reads."""

from collections.abc import Iterator

from kerf.engine.disruption.disturbance import RESTART_COST
from kerf.engine.explain.causes import cause_text
from kerf.lint.context import LintContext, held_by
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.spelling import nearest
from kerf.lint.subject import WORKLOADS, Subject
from kerf.manifests.schema import Path
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from kerf.sharing.hami.options import OF_PODS, unknown_words

_OF_PODS = {
    **dict.fromkeys(OF_PODS, "HAMi reads"),
    **dict.fromkeys(("gpu-fraction", "gpu-memory"), "KAI Scheduler reads"),
    DO_NOT_DISRUPT: "Karpenter and Kerf read",
    RESTART_COST: "Kerf reads",
}
"""Annotations of pods that nothing which makes pods hands on, and who reads them."""
_HAMIS = ("hami.io/", "nvidia.com/")


@rule("KL082", "hami-word-unknown", Severity.WARNING, WORKLOADS)
def word_unknown(subject: Subject, context: LintContext) -> Notes:
    """A pod names a scheduling policy that HAMi does not know, or an annotation that is nearly one of HAMi's.

    `hami.io/node-scheduler-policy` is `binpack` or `spread`; `hami.io/gpu-scheduler-policy` is one of `binpack`,
    `spread`, `mutex`, `numa` and `topology-aware`, or several of them with commas; `nvidia.com/numa-bind` is `true` or
    `false`. HAMi compares them as they are, with case and blanks. By any other word it packs nodes and spreads over
    cards, without a word, and so does Kerf; and no program reads `nvidia.com/use-gpu-type`.
    """
    del context
    held = held_by(subject)
    if held is None:
        return
    start: Path = (*(subject.template or ()), "metadata", "annotations")
    for cause in unknown_words(held.pod.annotations):
        yield Note((*start, cause.annotation), cause_text(cause), nearest(cause.got.strip().lower(), cause.known, 0.6))
    for key in sorted(held.pod.annotations):
        meant = nearest(key, OF_PODS, 0.9) if key.startswith(_HAMIS) and key not in OF_PODS else ""
        if meant:
            yield Note((*start, key), f"HAMi does not read {key}", f"is {meant} meant?", at_key=True)


@rule("KL083", "pod-annotation-above-pods", Severity.WARNING, WORKLOADS)
def annotation_above_pods(subject: Subject, context: LintContext) -> Notes:
    """An annotation that is read of pods stands on what makes pods, and not on the pods.

    HAMi's scheduler reads the annotations of a pod, as KAI Scheduler, Karpenter and Kerf read theirs, and a Deployment
    or Job gives its pods those of its template alone (`spec.template.metadata.annotations`). One that stands on the
    Deployment itself, such as `nvidia.com/use-gputype`, does nothing: its pods go to any card, and Kerf plans them so.
    """
    del context
    if not subject.template:
        return
    place = (*subject.template, "metadata", "annotations")
    for path in _above(subject):
        for key in subject.mapping(*path):
            if key in _OF_PODS and not subject.text(*place, key):
                message = f"{key} does nothing on a {subject.kind}: {_OF_PODS[key]} it of pods"
                yield Note((*path, key), message, f"move it to {'.'.join(map(str, place))}", at_key=True)


def _above(subject: Subject) -> Iterator[Path]:
    """Where annotations stand that no pod gets: on the object, and between it and the template of its pods."""
    yield ("metadata", "annotations")
    if subject.kind == "CronJob":
        yield ("spec", "jobTemplate", "metadata", "annotations")
