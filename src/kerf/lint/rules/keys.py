"""Keys of settings that never existed, wherever they stand, and those that are read no more."""

from collections.abc import Iterator
from functools import lru_cache

from kerf.lint.context import LintContext
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.knowledge import keys_that_never_existed
from kerf.lint.registry import rule
from kerf.lint.subject import Subject, walk
from kerf.manifests.schema import Path

_KARPENTERS = ("karpenter.sh", "karpenter.k8s.aws", "karpenter.alibabacloud.com", "karpenter.k8s.alibabacloud")
VALUES = ("controller", "settings", "aws", "clusterEndpoint", "serviceAccount")
"""Keys at the top of the values of Karpenter's charts, old and new, and of Kerf's."""
_SETTINGS = ("karpenter", "kerf")


def never_existed(key: object) -> bool:
    """Whether a rule of this module speaks of the key."""
    return key in keys_that_never_existed()


def _keys(subject: Subject) -> Iterator[Path]:
    """Paths of all keys that could be meant for the autoscaler: of its kinds, its settings and its charts."""
    is_settings = subject.kind == "ConfigMap" and any(word in subject.name for word in _SETTINGS)
    is_values = not subject.kind and any(key in subject.raw for key in VALUES)
    if subject.kind == "NodeOverlay" or not (subject.group in _KARPENTERS or is_settings or is_values):
        return
    for path, _ in walk(subject.raw):
        is_free = any(step in ("labels", "annotations", "status", "tags") for step in path[:-1])
        if isinstance(path[-1], str) and not is_free:
            yield path


@lru_cache(maxsize=1)
def _that_never_existed(subject: Subject) -> tuple[Path, ...]:
    # Several rules ask it of one object in turn, and each walk goes through all of it.
    return tuple(path for path in _keys(subject) if never_existed(path[-1]))


def _of_key(subject: Subject, key: str, what: str) -> Notes:
    for path in _that_never_existed(subject):
        if path[-1] == key:
            yield Note(path, f"{key}: {what}", keys_that_never_existed()[key], at_key=True)


_CHART_VALUES: tuple[Path, ...] = (
    ("controller", "clusterName"),
    ("controller", "clusterEndpoint"),
    ("clusterEndpoint",),
    ("aws", "defaultInstanceProfile"),
    ("settings", "aws"),
)
"""Values that no other chart has, of the charts 0.5 to 0.31 (their README files)."""
_GLOBAL_SETTINGS = "karpenter-global-settings"


@rule("KL007", "retired-settings", Severity.ERROR, ("", "ConfigMap"))
def retired_settings(subject: Subject, context: LintContext) -> Notes:
    """Values of an old chart, or the ConfigMap it made.

    `controller.clusterName` and `controller.clusterEndpoint` (chart 0.5), `clusterEndpoint` and `aws.*` (0.7 to 0.19),
    `settings.aws.*` and the ConfigMap `karpenter-global-settings` (0.20 to 0.31) are read no more: Helm takes such
    values without a word, and Karpenter starts without its cluster's name. Today they are `settings.clusterName` and
    `settings.interruptionQueue`; the endpoint is found out. `kerf migrate` rewrites a file of values. Document 001,
    line 4.
    """
    del context
    if subject.kind == "ConfigMap":
        if subject.name == _GLOBAL_SETTINGS:
            message = f"ConfigMap {_GLOBAL_SETTINGS} is read no more since Karpenter 0.32"
            yield Note(("metadata", "name"), message, "settings.* of the chart, or variables of the controller")
        return
    for path in _CHART_VALUES:
        if subject.get(*path) is not None:
            message = f"{'.'.join(map(str, path))} is a value of an old chart, and read no more"
            yield Note(path, message, "`kerf migrate` rewrites it", at_key=True)


@rule("KL020", "no-max-tasks-per-node", Severity.ERROR)
def max_tasks_per_node(subject: Subject, context: LintContext) -> Notes:
    """`maxTasksPerNode` never existed.

    No version of Karpenter's API has had it: the field is dropped, and nothing is limited. How many pods share a card
    is said to the device plugin (`sharing.timeSlicing.resources[].replicas`), how many run on a node to the kubelet
    (`maxPods` of the EC2NodeClass), and that two pods stay apart by their anti-affinity. Document 001, line 24.
    """
    del context
    return _of_key(subject, "maxTasksPerNode", "no such setting exists, and nothing is limited by it")


@rule("KL021", "no-poll-interval", Severity.ERROR)
def poll_interval(subject: Subject, context: LintContext) -> Notes:
    """`pollInterval` never existed.

    Karpenter and Kerf watch, they do not poll. What delays a decision is the batch window: pods are gathered until none
    has come for a second, and for ten at most. Kerf's settings are `batch-idle` and `batch-max`.
    Document 001, line 28.
    """
    del context
    return _of_key(subject, "pollInterval", "no such setting exists: nothing is polled")


@rule("KL022", "no-price-parameter", Severity.ERROR)
def price(subject: Subject, context: LintContext) -> Notes:
    """`price` is no setting of a pool.

    There are no bids on EC2 spot any more, and Karpenter sets no maximum. A cap on what a node may cost an hour is the
    annotation `kerf.dev/max-price-per-hour` of the NodePool. (`price` of a NodeOverlay exists and is another thing: it
    corrects what the catalogue says.) Document 001, line 22.
    """
    del context
    return _of_key(subject, "price", "no such setting exists: no price is capped by it")
