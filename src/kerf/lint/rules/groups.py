"""Groups of pods that get nodes together: numbers without which, or with which, none ever comes."""

from kerf.engine.explain.causes import cause_text
from kerf.lint.context import LintContext, held_by
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.subject import WORKLOADS, Subject
from kerf.model.groups import KUEUE, KUEUE_COUNT, OWN, POD_GROUP, POD_GROUP_MIN, MinimumUnreadable, group_of, stated_min


@rule("KL065", "group-never-whole", Severity.WARNING, WORKLOADS)
def group_never_whole(subject: Subject, context: LintContext) -> Notes:
    """The number of pods that a group needs is missing, no number, above what its Jobs make, or of no group.

    Pods with the label `kerf.dev/pod-group` get nodes together, as many as `kerf.dev/pod-group-min` says, or not at
    all; Kueue's plain pod groups likewise. Without a number that can be read the group is held for ever, and so it is
    where all of its Jobs in the input together run fewer pods at once. Without the group's label the number does
    nothing, and the pods come one by one.
    """
    held = held_by(subject)
    if held is None:
        return
    pod, metadata = held.pod, (*(subject.template or ()), "metadata")
    place = "labels" if POD_GROUP_MIN in pod.labels else "annotations"
    key = group_of(pod)
    if POD_GROUP_MIN in {**pod.labels, **pod.annotations} and (key is None or key.api != OWN):
        message = f"{POD_GROUP_MIN} without the label {POD_GROUP} does nothing"
        yield Note((*metadata, place, POD_GROUP_MIN), message, f"name the group: label {POD_GROUP}")
    if key is None or key.api not in (OWN, KUEUE):
        return
    path = (*metadata, place, POD_GROUP_MIN) if key.api == OWN else (*metadata, "annotations", KUEUE_COUNT)
    least = stated_min(pod, key.api)
    if isinstance(least, MinimumUnreadable):
        message = f"{cause_text(least)}; the group is held for ever"
        yield Note(path, message, "how many pods are of use only together")
        return
    if subject.kind != "Job" or least <= _at_once(subject):
        return
    members = [each for each in context.workloads if group_of(each.pod) == key]
    if all(each.subject.kind == "Job" for each in members):
        most = sum(_at_once(each.subject) for each in members)
        if least > most:
            message = f"group {key.name} needs {least} pods, and its Jobs run at most {most} at once: none ever comes"
            yield Note(path, message, f"{most} at most, or a larger parallelism")


def _at_once(job: Subject) -> int:
    """How many pods a Job runs at once, suspended or not."""
    parallelism, completions = job.get("spec", "parallelism"), job.get("spec", "completions")
    most = parallelism if isinstance(parallelism, int) else 1
    return min(most, completions) if isinstance(completions, int) else most
