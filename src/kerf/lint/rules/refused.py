"""Pods that an API server would refuse for how they are to be placed."""

from kerf.errors import DecodeError
from kerf.lint.context import LintContext, held_by
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.subject import WORKLOADS, Subject
from kerf.manifests.kinds import POD_SPEC
from kerf.manifests.pods.refusal import refused_placement
from kerf.manifests.schema import Report, path_text


@rule("KL073", "refused-placement", Severity.ERROR, WORKLOADS)
def refused(subject: Subject, context: LintContext) -> Notes:
    """The API server refuses the pods, for what they say of where they are to run.

    Such are a negative `maxSkew`, a weight of 0, `In` without values, a toleration of operator Equal without a key, and
    two volumes of one name. The server takes a Deployment with such a template all the same; then its ReplicaSet makes
    no pod, and only an event of it says why. Rules of Kubernetes 1.36 (`ValidatePodSpec`).
    """
    del context
    if held_by(subject) is None or subject.is_live:
        return
    spec, form = subject.mapping(*subject.pod), Report()
    POD_SPEC.check(spec, subject.pod, form)
    # What is of another form has its own finding, and cannot be asked what it means.
    for why in refused_placement(spec) if not form.problems else ():
        message = f"the API server refuses it: {DecodeError(path_text(why.path), why.expected, why.got)}"
        yield Note((*subject.pod, *why.path), message, why.hint)
