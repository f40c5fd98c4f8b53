"""Volumes that several pods share."""

from collections import Counter

from kerf.lint.context import LintContext
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.subject import Subject

_MANY = ("ReadWriteMany", "ReadOnlyMany")


@rule("KL044", "shared-volume-of-one-node", Severity.WARNING, ("PersistentVolumeClaim",))
def shared_volume(subject: Subject, context: LintContext) -> Notes:
    """Several pods share a volume that only one node can have.

    A ReadWriteOnce volume such as EBS is attached to one node of one zone. A second pod is either put onto that node,
    however full it is, or waits for ever with `volume node affinity conflict` or `Multi-Attach error`, and no new node
    helps. Give each pod a volume of its own (`volumeClaimTemplates` of a StatefulSet, or an ephemeral volume), or share
    a file system that many nodes can have (EFS, NAS: ReadWriteMany). Document 001, line 27.
    """
    modes = subject.get("spec", "accessModes")
    stated = [mode for mode in modes if isinstance(mode, str)] if isinstance(modes, list) else []
    if not stated or any(mode in _MANY for mode in stated):
        return
    users: Counter[str] = Counter()
    for held in context.workloads:
        if held.pod.namespace == subject.namespace and subject.name in held.pod.spec.claims:
            users[held.subject.title] += held.replicas
    if sum(users.values()) > 1:
        listed = ", ".join(f"{title} ({count})" for title, count in sorted(users.items()))
        message = (
            f"{sum(users.values())} pods share this {stated[0]} volume, which one node of one zone can have: {listed}"
        )
        hint = "a volume for each pod (volumeClaimTemplates), or a ReadWriteMany file system"
        yield Note(("spec", "accessModes"), message, hint, at_key=True)
