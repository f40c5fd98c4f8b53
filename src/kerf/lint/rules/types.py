"""Instance types that objects name, and the types that a pool admits."""

from collections.abc import Iterator
from dataclasses import replace

from kerf.catalog.select import known_types, why_not_sold
from kerf.lint.context import UNPRICED, LintContext, some_names
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.spelling import nearest
from kerf.lint.subject import NODE_LABELS, WORKLOADS, Subject
from kerf.manifests.schema import Path
from kerf.manifests.unfilled import placeholder_in
from kerf.model.constraints import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, WINDOWS_BUILD, Requirements
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.instancetypes import SPOT, InstanceType
from kerf.model.nodepool import NodePool

_NAMERS = ("NodePool", "Provisioner", "NodeOverlay", *WORKLOADS)
_AMD64 = Requirements.of_labels({ARCH: "amd64"})
_FEW = 5
"""Karpenter's own advice: below it a shortage of one type is a shortage of nodes."""


def _named(subject: Subject) -> Iterator[tuple[Path, str]]:
    """The instance types that an object asks for, each with its path."""
    found: list[tuple[Path, object]] = []
    for path, requirement in (*subject.requirements, *subject.node_affinity):
        if requirement.get("key") == INSTANCE_TYPE and requirement.get("operator") == "In":
            values = requirement.get("values")
            found += [((*path, "values", i), v) for i, v in enumerate(values if isinstance(values, list) else ())]
    provided = subject.get("spec", "provider", "instanceTypes")
    if isinstance(provided, list):
        found += [(("spec", "provider", "instanceTypes", index), value) for index, value in enumerate(provided)]
    if subject.kind == "NodePool":
        # Karpenter takes a label of the template for a requirement.
        path = (*NODE_LABELS, INSTANCE_TYPE)
        found.append((path, subject.get(*path)))
    if subject.template is not None:
        path = (*subject.pod, "nodeSelector", INSTANCE_TYPE)
        found.append((path, subject.get(*path)))
    return ((path, value) for path, value in found if isinstance(value, str) and value and not placeholder_in(value))


@rule("KL018", "type-not-sold", Severity.ERROR, _NAMERS)
def type_not_sold(subject: Subject, context: LintContext) -> Notes:
    """An instance type is named that cannot be bought.

    The catalogue knows it, and no zone of the region sells it: `p3.2xlarge` still has a price and no offering. A pool
    of such types alone launches nothing, and one among others is one less to fall back to. Which region is meant is
    said by `--region`. Document 001, line 9.
    """
    for path, name in _named(subject):
        market = context.market_for(subject, name)
        why = why_not_sold(market.provider, market.region, name) if market.find(name) is None else None
        if why and not why.startswith(UNPRICED):
            yield Note(path, why, _like(name, market.types))


@rule("KL019", "unknown-type", Severity.ERROR, _NAMERS)
def unknown_type(subject: Subject, context: LintContext) -> Notes:
    """An instance type is named that is not known, by a requirement, a selector or a label of a NodePool's template.

    Mostly a typing error. A type that is newer than the catalogue (`kerf plan` prints its date) is unknown too:
    suppress the finding then, or give a catalogue of your own with `--catalog`.
    """
    for path, name in _named(subject):
        market = context.market_for(subject, name)
        known = known_types(market.provider) or frozenset(kind.name for kind in market.types)
        if market.types and name not in known and market.find(name) is None:
            close = nearest(name, sorted(known), 0.7)
            yield Note(path, f"unknown instance type {name}", f"is {close} meant?" if close else "")


def _like(name: str, kinds: tuple[InstanceType, ...]) -> str:
    """Sold types with as many cards of NVIDIA as the name's size suggests: the cheapest with one."""
    with_one = [
        kind
        for kind in kinds
        if kind.capacity.get(NVIDIA_GPU) == 1 and not kind.is_fractional and _AMD64.conflict(kind.requirements) is None
    ]
    is_gpu = name.partition(".")[0].startswith(("p", "g", "ecs"))
    return f"sold with one GPU: {some_names(with_one)}" if is_gpu and with_one else ""


@rule("KL023", "no-type-admitted", Severity.ERROR, ("NodePool",))
def no_type_admitted(subject: Subject, context: LintContext) -> Notes:
    """The requirements of a pool leave no instance type.

    A label of the template counts as one of them. Each may be right, together they admit nothing that is sold:
    Karpenter's event is
    `NoCompatibleInstanceTypes`, and the pool's pods stay pending. The requirement without which most types are left is
    the one to look at.
    """
    pool = subject.value
    if not isinstance(pool, NodePool) or context.types(pool):
        return
    # The catalogues know machines by Linux; what they cost and are with Windows is not known.
    if not _may_be_linux(pool):
        return
    market = context.market_of(pool)
    if not market.types:
        return
    best: tuple[int, str] = (0, "")
    for key in sorted(pool.requirements):
        without = _without(pool, key)
        count = len(context.types(without))
        best = max(best, (count, key), key=lambda pair: pair[0])
    number, key = best
    hint = f"without the requirement on {key} it admits {number}" if number else ""
    for label in sorted(pool.labels):
        kept = {held: value for held, value in pool.labels.items() if held != label}
        count = len(context.types(replace(pool, labels=kept)))
        if count > number:
            number, hint = count, f"without the label {label} of the template it admits {count}"
    where = f"{market.provider} {market.region}".strip()
    message = f"the requirements admit none of the {len(market.types)} types that the catalogue has of {where}"
    yield Note(("spec", "template", "spec", "requirements"), message, hint, at_key=True)


def _may_be_linux(pool: NodePool) -> bool:
    system, build = pool.requirements.get(OS), pool.requirements.get(WINDOWS_BUILD)
    return (system is None or system.has("linux")) and (build is None or build.allows_absence)


def _without(pool: NodePool, key: str) -> NodePool:
    return replace(pool, requirements=pool.requirements.without([key]))


@rule("KL016", "few-spot-types", Severity.WARNING, ("NodePool",))
def few_spot_types(subject: Subject, context: LintContext) -> Notes:
    """A pool of spot machines admits fewer than five types.

    Spot capacity of one type in one zone comes and goes; the more types a pool admits, the less a shortage of one of
    them is a shortage of nodes, and the cheaper is what it gets. Karpenter advises the same of pools below five types.
    Document 001, line 29: fewer types make no decision faster that a user would notice.
    """
    pool = subject.value
    if isinstance(pool, NodePool) and _is_spot_only(pool):
        yield from _few(pool, context, "spot")


@rule("KL017", "few-gpu-types", Severity.INFO, ("NodePool",))
def few_gpu_types(subject: Subject, context: LintContext) -> Notes:
    """A pool of GPU machines admits fewer than five types.

    Machines with GPUs are what clouds run out of. A pool of one type launches nothing while that type is sold out;
    document 004 says the same of ACK: several types raise the success rate. Where pods need one model of card, its
    larger and smaller machines count too (`g5.xlarge`, `g5.2xlarge`, `g5.4xlarge` all have one A10G).
    """
    pool = subject.value
    if not isinstance(pool, NodePool) or _is_spot_only(pool):
        return
    kinds = context.types(pool)
    if kinds and all(kind.gpu_count > 0 for kind in kinds):
        yield from _few(pool, context, "GPU")


def _is_spot_only(pool: NodePool) -> bool:
    asked = pool.requirements.get(CAPACITY_TYPE)
    return asked is not None and not asked.complement and asked.values == {SPOT}


def _few(pool: NodePool, context: LintContext, what: str) -> Iterator[Note]:
    kinds = context.types(pool)
    if not 0 < len(kinds) < _FEW:
        return
    number = "1 instance type" if len(kinds) == 1 else f"{len(kinds)} instance types"
    models = {shape.model for kind in kinds for shape in kind.devices}
    held = {kind.name for kind in kinds}
    alike = [
        kind
        for kind in context.market_of(pool).types
        if kind.name not in held and kind.devices and not kind.is_fractional and kind.devices[0].model in models
    ]
    hint = f"with the same card: {some_names(alike)}" if alike else ""
    path: Path = ("spec", "template", "spec", "requirements")
    yield Note(path, f"{what} pool of {number}: {some_names(kinds)}", hint, at_key=True)
