"""Keys and values by which nodes are chosen: requirements of pools, selectors and affinity of pods, labels."""

import re
from collections.abc import Iterator, Sequence

from kerf.errors import brief
from kerf.lint.context import LintContext
from kerf.lint.findings import Edit, Note, Notes, Severity
from kerf.lint.knowledge import labels
from kerf.lint.registry import rule
from kerf.lint.spelling import nearest, nearest_values
from kerf.lint.subject import NODE_LABELS, WORKLOADS, Subject
from kerf.manifests.schema import LABEL_KEY, LABEL_VALUE, Path
from kerf.manifests.unfilled import placeholder_in
from kerf.model.constraints import ALIASES, CAPACITY_TYPE, INSTANCE_TYPE, REGION, WELL_KNOWN, WINDOWS_BUILD, ZONE

_CHOOSERS = ("NodePool", "Provisioner", "NodeClaim", "NodeOverlay", *WORKLOADS)
_OF_OTHER_RULES = {CAPACITY_TYPE, INSTANCE_TYPE, REGION, WINDOWS_BUILD}
"""Labels whose values rules of their own judge, and such as a catalogue does not have all of."""
_FEW = 8
"""So many values are listed where none is like the one that is asked."""
_CAPACITY_TYPES = ("on-demand", "reserved", "spot")


def asked_keys(subject: Subject) -> Iterator[tuple[Path, str, bool]]:
    """(path, key, whether the key is itself a key of YAML) of each label by which the object chooses nodes."""
    for path, requirement in (*subject.requirements, *subject.node_affinity):
        key = requirement.get("key")
        if isinstance(key, str):
            yield (*path, "key"), key, False
    if subject.template is not None:
        for key in subject.mapping(*subject.pod, "nodeSelector"):
            yield (*subject.pod, "nodeSelector", key), key, True


def _asked_values(subject: Subject) -> Iterator[tuple[Path, str, str]]:
    """(path, key, value) of each value that a label of its nodes is to have, one of several or alone."""
    for path, requirement in (*subject.requirements, *subject.node_affinity):
        key, values = requirement.get("key"), requirement.get("values")
        if isinstance(key, str) and requirement.get("operator") == "In" and isinstance(values, list):
            yield from (((*path, "values", n), key, value) for n, value in enumerate(values) if isinstance(value, str))
    if subject.template is not None:
        for key, value in subject.mapping(*subject.pod, "nodeSelector").items():
            if isinstance(key, str) and isinstance(value, str):
                yield (*subject.pod, "nodeSelector", key), key, value
    if subject.kind == "NodePool":
        # Karpenter takes a label of the template for a requirement.
        for key, value in subject.mapping(*NODE_LABELS).items():
            if isinstance(key, str) and isinstance(value, str):
                yield (*NODE_LABELS, key), key, value


@rule("KL010", "unknown-label", Severity.ERROR, _CHOOSERS)
def unknown_label(subject: Subject, context: LintContext) -> Notes:
    """Nodes are chosen by a label that no node has.

    `accelerator/type` is the usual one: no cloud and no version of Karpenter sets it. A requirement on it makes
    Karpenter put the label on its nodes, which says nothing about their cards; a pod that asks for it waits for ever.
    In the domains `karpenter.sh`, `karpenter.k8s.aws`, `topology.kubernetes.io` and `kubernetes.io` every name is
    known, so another one is a typing error, which Karpenter refuses. Document 001, line 6.

    A key of your own is fine where a NodePool of the input sets it as a label, and in any other domain.
    """
    own = {key for _, pool in context.pools for key in pool.labels}
    known = labels()
    for path, key, is_key in asked_keys(subject):
        domain, slash, name = key.partition("/")
        meant = known.never.get(key, "")
        if meant:
            if key in own or (subject.template is not None and not context.judged_pools):
                continue
            hint = meant if " " in meant else f"use {meant}"
            yield Note(path, f"no node has a label {key} of itself", hint, at_key=is_key)
        elif slash and domain in known.domains and name not in known.domains[domain] and key not in own:
            close = nearest(key, known.known, 0.75)
            hint = f"is {close} meant?" if close else f"{domain} has {', '.join(known.domains[domain])}"
            yield Note(path, f"there is no label {key}", hint, at_key=is_key)
        elif key not in own and key not in WELL_KNOWN and key not in ALIASES and not (slash and "." in domain):
            close = nearest(key, [*known.known, *WELL_KNOWN], 0.92)
            if close:
                yield Note(path, f"no node has a label {key} of itself", f"is {close} meant?", at_key=is_key)


@rule("KL011", "illegal-label", Severity.ERROR)
def illegal_label(subject: Subject, context: LintContext) -> Notes:
    """A label has a key or value that no label can have.

    Values have at most 63 letters, digits, `-`, `_` and `.`, and begin and end with a letter or digit; `/` is allowed
    in keys only, where it ends the domain. `accelerator/type In [nvidia.com/gpu]` is therefore refused, and a node
    selector with such a value would never match. A resource such as `nvidia.com/gpu` is asked for in the limits of a
    container, not by a label. Document 001, line 6.
    """
    del context
    hint = "a resource such as nvidia.com/gpu is asked for in the limits of a container"
    for path, requirement in (*subject.requirements, *subject.node_affinity):
        values = requirement.get("values")
        for index, value in enumerate(values if isinstance(values, list) else ()):
            if isinstance(value, str) and not LABEL_VALUE.accepts(value) and not placeholder_in(value):
                more = hint if "/" in value else ""
                yield Note((*path, "values", index), f"{brief(value)} can be no value of a label: {_why(value)}", more)
    for at in _label_maps(subject):
        for key, value in subject.mapping(*at).items():
            if not LABEL_KEY.accepts(key):
                yield Note((*at, key), f"{brief(key)} can be no key of a label", at_key=True)
            if isinstance(value, str) and not LABEL_VALUE.accepts(value) and not placeholder_in(value):
                yield Note(
                    (*at, key),
                    f"{brief(value)} can be no value of a label: {_why(value)}",
                    hint if "/" in value else "",
                )


def _label_maps(subject: Subject) -> Iterator[Path]:
    yield ("metadata", "labels")
    if subject.kind == "NodePool":
        yield NODE_LABELS
    if subject.template:
        yield (*subject.template, "metadata", "labels")
    if subject.template is not None:
        yield (*subject.pod, "nodeSelector")


def _why(value: str) -> str:
    wrong = sorted({letter for letter in value if not (letter.isascii() and (letter.isalnum() or letter in "-_."))})
    if wrong:
        return f"{' '.join(map(repr, wrong))} is not allowed in it"
    if len(value) > 63:
        return f"it has {len(value)} characters, 63 are allowed"
    return "it must begin and end with a letter or digit"


@rule("KL015", "retired-label", Severity.WARNING, _CHOOSERS, is_fixable=True)
def retired_label(subject: Subject, context: LintContext) -> Notes:
    """A label has a newer name.

    `beta.kubernetes.io/arch`, `beta.kubernetes.io/instance-type` and `failure-domain.beta.kubernetes.io/zone` became
    `kubernetes.io/arch`, `node.kubernetes.io/instance-type` and `topology.kubernetes.io/zone` by Kubernetes 1.17.
    Karpenter reads the old ones as the new ones; other programs that look at nodes do not. `--fix` renames them.
    """
    del context
    for path, key, is_key in asked_keys(subject):
        today = ALIASES.get(key)
        if today is not None:
            has_both = is_key and today in subject.mapping(*path[:-1])
            fix = () if has_both else (Edit(path, today, at_key=is_key),)
            yield Note(path, f"label {key} has a newer name", f"write {today}", at_key=is_key, fix=fix)


@rule("KL024", "unknown-capacity-type", Severity.ERROR, _CHOOSERS)
def unknown_capacity_type(subject: Subject, context: LintContext) -> Notes:
    """A capacity type is none.

    There are `on-demand`, `spot` and `reserved`. Karpenter refuses a requirement on `karpenter.sh/capacity-type` none
    of whose values is one of them, and passes over the others with a line in its log; a pod that asks for another one
    waits for ever.
    """
    del context
    for path, requirement in (*subject.requirements, *subject.node_affinity):
        values = requirement.get("values")
        if requirement.get("key") != CAPACITY_TYPE or not isinstance(values, list):
            continue
        for index, value in enumerate(values):
            if isinstance(value, str) and value not in _CAPACITY_TYPES and LABEL_VALUE.accepts(value):
                close = nearest(value.lower().replace("_", "-"), list(_CAPACITY_TYPES), 0.6)
                hint = f"is {close} meant?" if close else f"one of {', '.join(_CAPACITY_TYPES)}"
                yield Note((*path, "values", index), f"{value} is no capacity type", hint)
    places = [(*NODE_LABELS, CAPACITY_TYPE)] if subject.kind == "NodePool" else []
    if subject.template is not None:
        places.append((*subject.pod, "nodeSelector", CAPACITY_TYPE))
    for place in places:
        value = subject.get(*place)
        if isinstance(value, str) and value not in _CAPACITY_TYPES:
            yield Note(place, f"{value} is no capacity type", f"one of {', '.join(_CAPACITY_TYPES)}")


@rule("KL086", "value-of-no-type", Severity.WARNING, _CHOOSERS)
def value_of_no_type(subject: Subject, context: LintContext) -> Notes:
    """A label is to have a value that no instance type has, by a requirement or as a label of a NodePool's template.

    `karpenter.k8s.aws/instance-family In [p6]`: there are `p6-b200` and `p6-b300`. Karpenter takes every value, so
    among others it does nothing, and alone it leaves no machine. The rule looks at labels whose values the catalogue
    knows: families, sizes, numbers of CPUs and GPUs, models of GPUs, architectures, zones of the region. A value that
    a node of the input has is fine. Instance types and capacity types have rules of their own (KL018, KL019,
    KL024). A value that is newer than the catalogue is unknown too: suppress the finding then.
    """
    for path, key, value in _asked_values(subject):
        key = ALIASES.get(key, key)
        known = context.values_of(subject, key)
        if not known or value in known or not _is_judged(subject, context, key, value) or _is_had(context, key, value):
            continue
        close = nearest_values(value, known)
        listed = f"there is {', '.join(sorted(known))}" if len(known) <= _FEW else ""
        yield Note(path, f"no instance type has {key} {value}", f"{_either(close)} meant?" if close else listed)


def _is_judged(subject: Subject, context: LintContext, key: str, value: str) -> bool:
    """Whether the catalogue knows all values of the label; of zones it does in its own region alone."""
    if not LABEL_VALUE.accepts(value):
        return False
    if key == ZONE:
        region = context.market_chosen_from(subject, key).region
        return bool(region) and re.fullmatch(re.escape(region) + "[a-z]", value) is not None
    return key not in _OF_OTHER_RULES


def _is_had(context: LintContext, key: str, value: str) -> bool:
    """Whether a node of the input has it; a pool that says so of its nodes gets none."""
    return any(node.labels.get(key) == value for node in context.nodes)


def _either(values: Sequence[str]) -> str:
    return f"is {values[0]}" if len(values) == 1 else f"is {', '.join(values[:-1])} or {values[-1]}"
