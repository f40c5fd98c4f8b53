"""The form of an object: what no server takes, what a server would drop, and kinds that are no more."""

from kerf.errors import brief
from kerf.lint.context import LintContext
from kerf.lint.findings import Edit, Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.rules.keys import never_existed
from kerf.lint.spelling import nearest
from kerf.lint.subject import POOLS, WORKLOADS, Subject
from kerf.manifests.karpenter import ec2
from kerf.manifests.schema import Path, Problem, Report, path_text
from kerf.manifests.unfilled import placeholder_in
from kerf.model.keys import DOMAIN

_RENAMED = {"WhenUnderutilized": "WhenEmptyOrUnderutilized"}
"""Values of karpenter.sh/v1beta1 that have another name in v1 and the same meaning."""
_RETIRED = {"Provisioner": "NodePool", "Machine": "NodeClaim", "AWSNodeTemplate": "EC2NodeClass"}
_RETIRED_VERSIONS = ("v1alpha1", "v1alpha5", "v1beta1")
_FILL = "render the template, or write the value"
_STILL_ALPHA = ("NodeOverlay",)
"""Kinds whose version of today is an alpha."""

_NODE_CLASSES = {
    "eks.amazonaws.com": "NodeClass",
    "karpenter.alibabacloud.com": "ECSNodeClass",
    "karpenter.azure.com": "AKSNodeClass",
    "karpenter.k8s.alibabacloud": "ECSNodeClass",
    "karpenter.k8s.aws": "EC2NodeClass",
    "karpenter.kwok.sh": "KWOKNodeClass",
}
"""By group of their API the NodeClasses of Karpenter's providers, as their own definitions name them (2026-08)."""
_LIKE = 0.87
"""So alike are groups of which one is a misspelt other: `karpenter.k8s.gcp` is not like `karpenter.k8s.aws`."""


def is_retired(subject: Subject) -> bool:
    """Whether its kind or version of Karpenter's API is served no more."""
    if subject.group not in ("karpenter.sh", "karpenter.k8s.aws"):
        return False
    return subject.kind in _RETIRED or (subject.version in _RETIRED_VERSIONS and subject.kind not in _STILL_ALPHA)


@rule("KL001", "wrong-form", Severity.ERROR, is_fixable=True)
def wrong_form(subject: Subject, context: LintContext) -> Notes:
    """A field has not the form that the API wants.

    A server refuses the object, or Karpenter refuses it when it runs. Types, bounds and rules are those of the API of
    Kubernetes 1.36 and of Karpenter's own definitions (v1.14, 2026-08), as `kerf plan` reads them.

    `--fix` puts into quotes what YAML takes for a number or a truth value where text is wanted (`gpu: on` is `true`),
    and gives values that were renamed between versions of Karpenter their name of today.
    """
    del context
    if is_retired(subject):
        return
    report = _report(subject)
    for problem in (*report.problems, *report.refused):
        hint = problem.hint
        fix = _fix(subject, problem)
        if fix:
            hint = f"write {fix[0].new}"
        yield Note(problem.path, _text(problem), hint, fix=fix)


def _report(subject: Subject) -> Report:
    """What is wrong with the form; of an EC2NodeClass by its own definition, of which plans need nothing."""
    is_ec2 = (subject.kind, subject.text("apiVersion")) == (ec2.KIND, ec2.VERSION)
    if not is_ec2 or subject.is_live or subject.report.problems:
        return subject.report
    report = Report()
    ec2.check_ec2_node_class(subject.raw, report)
    return report


def _text(problem: Problem) -> str:
    got = problem.got
    shown = got.strip("<>") if isinstance(got, str) and got.startswith("<") else brief(got)
    field = f"{path_text(problem.path)}: " if problem.path else ""
    return f"{field}expected {problem.expected}, got {shown}"


def _fix(subject: Subject, problem: Problem) -> tuple[Edit, ...]:
    if problem.is_unquoted:
        written = subject.document.written(problem.path)
        return (Edit(problem.path, f'"{written}"'),) if written else ()
    renamed = _RENAMED.get(problem.got) if isinstance(problem.got, str) else None
    return (Edit(problem.path, renamed),) if renamed and problem.path[-1] == "consolidationPolicy" else ()


@rule("KL002", "unknown-field", Severity.WARNING)
def unknown_field(subject: Subject, context: LintContext) -> Notes:
    """A field does not exist in the API.

    A server drops it, with a warning that few deployment tools show, so the object does less than it says. The
    nearest name that exists is in the hint. An API that is newer than Kerf's knowledge of it (Kubernetes 1.36) may have
    the field: suppress the finding then.
    """
    del context
    if is_retired(subject):
        return
    for unknown in _report(subject).unknown:
        is_own = str(unknown.path[-1]).startswith(DOMAIN)
        # A server drops fields that it does not know, and keeps every key.
        if subject.is_live and not is_own:
            continue
        if never_existed(unknown.path[-1]):
            continue
        hint = f"is `{unknown.nearest}` meant?" if unknown.nearest else ""
        what = "no such key, nothing reads it" if is_own else "no such field, it is dropped"
        yield Note(unknown.path, f"{path_text(unknown.path)}: {what}", hint, at_key=True)


@rule("KL003", "retired-kind", Severity.ERROR)
def retired_kind(subject: Subject, context: LintContext) -> Notes:
    """A kind or version of Karpenter's API that is served no more.

    Provisioner, Machine and AWSNodeTemplate (`v1alpha5`, `v1alpha1`) became NodePool, NodeClaim and EC2NodeClass, whose
    `v1beta1` went with Karpenter 1.1. A server answers `no matches for kind`. `kerf migrate` writes the object for
    today's API and lists what could not be kept. Document 001 was written for them.
    """
    del context
    if not is_retired(subject):
        return
    today = _RETIRED.get(subject.kind, subject.kind)
    path: Path = ("kind",) if subject.kind in _RETIRED else ("apiVersion",)
    message = f"{subject.text('apiVersion')} {subject.kind} is served no more; today it is {today} v1"
    yield Note(path, message, "`kerf migrate` rewrites it")


@rule("KL079", "node-class-misspelt", Severity.WARNING, ("NodePool",))
def node_class_misspelt(subject: Subject, context: LintContext) -> Notes:
    """A NodePool names a kind of NodeClass that no provider has, and that is nearly one.

    An autoscaler takes the NodePools of its own provider, by group and kind of `nodeClassRef`, and leaves all others
    alone without a word: it could be run beside another. So nothing is ever bought for such a pool. A group that is not
    like any that Kerf knows is taken for another provider's.
    """
    del context
    path: Path = ("spec", "template", "spec", "nodeClassRef")
    group, kind = subject.text(*path, "group"), subject.text(*path, "kind")
    meant = group if group in _NODE_CLASSES else nearest(group, _NODE_CLASSES, _LIKE)
    if not meant or not kind:
        return
    if group != meant:
        yield Note((*path, "group"), f"no provider has the group {brief(group)}", f"is `{meant}` meant?")
    if kind != _NODE_CLASSES[meant]:
        yield Note((*path, "kind"), f"{meant} has no kind {brief(kind)}", f"is `{_NODE_CLASSES[meant]}` meant?")


_READ = (
    *WORKLOADS,
    *POOLS,
    *_RETIRED,
    *_NODE_CLASSES.values(),
    "CapacityBuffer",
    "CapacityWindow",
    "LimitRange",
    "NodeClaim",
    "NodeOverlay",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "PriorityClass",
    "ProvisioningRequest",
    "ResourceQuota",
    "StorageClass",
)
_OF_PROGRAMS = ("annotations", "args", "command", "description", "env", "exec", "httpGet", "userData")
"""Fields whose texts other programs read, in which such letters have a meaning of their own."""


@rule("KL088", "left-open", Severity.ERROR, tuple(dict.fromkeys(_READ)))
def left_open(subject: Subject, context: LintContext) -> Notes:
    """A placeholder of a template stands where its value should.

    `<<AZ>>`, `<AZ>`, `${CLASS}`, `$CLASS`, `{{ .Values.zone }}`: the manifest was copied from a page or taken out of a
    chart, and never filled in. Where the API takes any text (names, labels of pods, images) it takes this one too, and
    what it names is found nowhere. Render the template first (`helm template`, `envsubst`), or write the value.
    Commands, environments, annotations and user data are left alone: shells and other programs expand them.
    """
    del context
    known = {problem.path for problem in (*subject.report.problems, *subject.report.refused)}
    waiting: list[tuple[Path, object]] = [((), subject.raw)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            held = [((*path, key), inner) for key, inner in value.items() if isinstance(key, str)]
            waiting.extend((at, inner) for at, inner in reversed(held) if at[-1] not in _OF_PROGRAMS)
            keys = ((at, found) for at, _ in held if (found := placeholder_in(str(at[-1]))))
            yield from (Note(at, f"the key {found} was left open", _FILL, at_key=True) for at, found in keys)
        elif isinstance(value, list):
            waiting.extend(((*path, number), inner) for number, inner in reversed(list(enumerate(value))))
        elif isinstance(value, str) and path not in known:
            found = placeholder_in(value)
            if found:
                yield Note(path, f"{path_text(path)}: {found} was left open", _FILL)
