"""Pods that an API server would refuse."""

from kerf.errors import DecodeError
from kerf.lint.context import LintContext, held_by
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.subject import WORKLOADS, Subject
from kerf.manifests.kinds import POD_SPEC
from kerf.manifests.pods.refusal import refusals
from kerf.manifests.pods.resources import is_extended
from kerf.manifests.pods.volumes import with_claim_templates
from kerf.manifests.schema import Problem, Report, path_text


@rule("KL073", "refused-pod", Severity.ERROR, WORKLOADS)
def refused(subject: Subject, context: LintContext) -> Notes:
    """The API server refuses the pods.

    For what they say of where they are to run: a negative `maxSkew`, a weight of 0, `In` without values, a toleration
    of operator Equal without a key. For what they ask: `cpus` for `cpu`, huge pages alone, less as a whole than their
    containers ask together. For their ports, volumes and mounts: one port of the node twice, a mount of a volume that
    is not there. For a priority that their PriorityClass does not give, and what a LimitRange of the input does not
    allow. The server takes a Deployment with such a template all the same; then its ReplicaSet makes no pod, and only
    an event of it says why. Rules of Kubernetes 1.36 (`ValidatePodSpec` and the admission plug-ins that are on without
    a flag). Probes, environment variables and security contexts are not looked at.
    """
    del context
    held = held_by(subject)
    if held is None or subject.is_live:
        return
    templates = subject.get("spec", "volumeClaimTemplates") if subject.kind == "StatefulSet" else None
    spec, form = with_claim_templates(subject.mapping(*subject.pod), templates), Report()
    POD_SPEC.check(spec, subject.pod, form)
    # What is of another form has its own finding, and cannot be asked what it means.
    found = [why for why in refusals(spec) if not _has_its_own_rule(why)] if not form.problems else []
    for why in found:
        at = (*subject.pod, *why.path)
        message = f"the API server refuses it: {DecodeError(path_text(at), why.expected, why.got)}"
        yield Note(at, message, why.hint)
    if not form.problems and not found and held.pod.invalid is not None and next(refusals(spec), None) is None:
        yield Note(subject.pod, f"the API server refuses it: {held.pod.invalid}", held.pod.invalid.hint)


def _has_its_own_rule(why: Problem) -> bool:
    """Whether it is what KL030, KL031 and KL032 find."""
    name = why.path[-1]
    return "resources" in why.path and isinstance(name, str) and is_extended(name)
