"""Parts of cards: HAMi's memory and nodes, NodeOverlays that speak of cards, MIG."""

import re
from collections.abc import Iterator, Mapping

from kerf.engine.explain import sharing as words
from kerf.lint.context import Held, LintContext, asks_cards, held_by, some_names
from kerf.lint.findings import Edit, Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.rules.requests import amounts
from kerf.lint.spelling import nearest
from kerf.lint.subject import WORKLOADS, Subject
from kerf.manifests.schema import Path, is_quantity
from kerf.model.causes import Cause
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.instancetypes import InstanceType, NodeOverlay
from kerf.model.nodepool import NodePool
from kerf.model.quantities import MIB, quantity_of
from kerf.sharing.family import SHARING, Family
from kerf.sharing.nvidia.choice import MIG_CONFIGS, label_choices
from kerf.sharing.nvidia.device_plugin import CONFIG_LABEL
from kerf.sharing.nvidia.mig import PREFIX, Mig
from kerf.sharing.nvidia.mig_parted import MIG_CONFIG
from kerf.sharing.registry import owner_of, unknown_sharing

_ANY_AWS = "any.type"
"""An overlay that names no type is of AWS, unless a pool says otherwise."""
_SUFFIX = re.compile(r"[0-9.]+[KMGTP]i?", re.ASCII)
"""A unit of memory. `12k` is how an API server writes 12000."""


@rule("KL033", "gpu-memory-with-unit", Severity.ERROR, WORKLOADS, is_fixable=True)
def memory_with_unit(subject: Subject, context: LintContext) -> Notes:
    """GPU memory is asked for with a unit.

    HAMi counts `nvidia.com/gpumem` in MiB as a bare number. `4Gi` is read as 4294967296, that is four million GiB:
    beyond what HAMi's scheduler reads, so it drops the request and the pod runs without a limit or waits for ever.
    `12k` is no unit: a server writes 12000 so. `--fix` writes the MiB that were meant, where they are a whole number.
    """
    hami = context.hami.config
    for path, _ in subject.containers:
        found = [each for kind in ("limits", "requests") for each in _with_unit(subject, path, kind, hami.memory)]
        # A server gives a pod the request that its limit has: said once, corrected in both.
        for amount in dict.fromkeys(amount for _, amount in found):
            places = [at for at, each in found if each == amount]
            number = quantity_of(hami.memory, amount)
            mib = number // MIB
            is_exact = number % MIB == 0 and mib > 0 and hami.memory_factor == 1
            fix = tuple(Edit(at, f'"{mib}"') for at in places) if is_exact else ()
            hint = f'write "{mib}"' if is_exact else "write the number of MiB without a unit"
            text = f"{hami.memory}: {amount} is read as {number} MiB: the unit is MiB already"
            yield Note(places[0], text, hint, fix=fix)


def _with_unit(subject: Subject, path: Path, kind: str, memory: str) -> Iterator[tuple[Path, str]]:
    for at, name, amount in amounts(subject, path, kind):
        has_unit = name == memory and isinstance(amount, str) and _SUFFIX.fullmatch(amount) is not None
        if has_unit and is_quantity(name, amount):
            yield at, str(amount)


@rule("KL034", "nodes-without-hami", Severity.ERROR, ("NodePool", *WORKLOADS))
def nodes_without_hami(subject: Subject, context: LintContext) -> Notes:
    """Pods ask for slices of HAMi on nodes where its device plugin does not run.

    HAMi's chart starts the device plugin on nodes with the label `gpu: "on"`. A pool without it in its template
    launches nodes that never register a card: the slices stay pending, and a NodeClaim that waits for them never
    becomes initialised. Where the chart's `nodeSelector` is another one, say so with the annotation
    `kerf.dev/gpu-sharing: hami`. Document 003, line 10.
    """
    pool = subject.value
    if context.hami.selector is None:
        return
    if not isinstance(pool, NodePool):
        yield from _on_nodes(subject, context, context.hami.selector)
        return
    if context.is_hamis(pool):
        return
    if not context.judged_pools or all(kind.gpu_count == 0 for kind in context.types(pool)):
        return
    for held in context.workloads:
        if not context.hami.claims(held.pod) or not context.agrees(held.pod, pool):
            continue
        if any(context.is_hamis(other) and context.agrees(held.pod, other) for _, other in context.pools):
            continue
        key, value = context.hami.selector
        asked = sorted(name for name in held.pod.spec.requests if name in context.hami.resources)
        message = (
            f'{held.subject.title} asks for {", ".join(asked)}, and nodes of this pool have no label {key}: "{value}"'
        )
        patch = f'{{"spec": {{"template": {{"metadata": {{"labels": {{"{key}": "{value}"}}}}}}}}}}'
        hint = f"kubectl patch nodepool {pool.name} --type merge -p '{patch}'"
        yield Note(("spec", "template", "metadata", "labels"), message, hint, at_key=True)
        return


def _on_nodes(subject: Subject, context: LintContext, selector: tuple[str, str]) -> Notes:
    """Where the input has nodes and no pool: slices of nodes none of which HAMi looks at."""
    held = held_by(subject)
    if held is None or context.pools or not context.hami.claims(held.pod):
        return
    with_cards = [node for node in context.nodes if asks_cards(node.allocatable)]
    if with_cards and not any(context.hami.selects(node.labels, {}) for node in with_cards):
        key, value = selector
        number = "the node with GPUs has" if len(with_cards) == 1 else f"none of {len(with_cards)} nodes with GPUs has"
        message = f'asks for slices of HAMi, and {number} {"no " if len(with_cards) == 1 else ""}label {key}: "{value}"'
        yield Note((*subject.pod, "containers", 0), message, f"kubectl label node {with_cards[0].name} {key}={value}")


@rule("KL035", "overlay-exceeds-cards", Severity.ERROR, ("NodeOverlay",))
def overlay_exceeds_cards(subject: Subject, context: LintContext) -> Notes:
    """A NodeOverlay announces other GPU memory or cores, or another number of GPUs, than the cards of its types have.

    What a card registers is less than the number on its box: an A10G has 24 GB, its driver registers 23028 MiB, EC2
    states 22888. Karpenter plans pods onto what the overlay announces, the node never takes them, and they wait for
    ever. On machines with several cards the overlay is a sum, and a pod still gets its memory from one card. Kerf takes
    cards from its catalogue and needs no overlay. A number of GPUs that is a multiple of the cards may mean cards that
    are shown several times; any other is wrong however they are shared. Document 003, lines 3 and 11.
    """
    overlay = subject.value
    if not isinstance(overlay, NodeOverlay):
        return
    hami = context.hami.config
    for name, shown in ((hami.memory, "MiB"), (hami.cores, "cores")):
        announced = overlay.capacity.get(name)
        if announced is None:
            continue
        all_kinds = list(_overlaid(overlay, subject, context))
        wrong = [kind for kind in all_kinds if announced > _sum(kind, name == hami.memory)]
        if not wrong:
            continue
        kind = min(wrong, key=lambda kind: (_sum(kind, name == hami.memory), kind.name))
        least, cards = _sum(kind, name == hami.memory), len(kind.devices)
        each = f" ({least // cards} on each of {cards} cards)" if cards > 1 else ""
        model = kind.devices[0].model.name
        message = f"{name} {announced}: {kind.name} has {cards} x {model}, which registers {least} {shown}{each}"
        hint = f'announce "{least}", or leave the overlay away: Kerf needs none'
        # A sum over cards would be the next finding, KL025.
        if any(len(each.devices) > 1 for each in all_kinds):
            hint = "leave the overlay away: Kerf needs none"
        yield Note(("spec", "capacity", name), message, hint)
    yield from _uneven(overlay, subject, context)


def _uneven(overlay: NodeOverlay, subject: Subject, context: LintContext) -> Notes:
    """The first type, by cards and name, whose GPUs are announced with a number that is no multiple of them."""
    announced = overlay.capacity.get(NVIDIA_GPU)
    # What is cut by MIG may be cut differently on each card.
    kinds = [kind for kind in _overlaid(overlay, subject, context) if not _can_mig(kind)]
    wrong = [kind for kind in kinds if announced is not None and (announced % len(kind.devices) or not announced)]
    if wrong:
        kind = min(wrong, key=lambda kind: (len(kind.devices), kind.name))
        cards, model = len(kind.devices), kind.devices[0].model.name
        message = f"{NVIDIA_GPU} {announced}: {kind.name} has {cards} x {model}, and {announced} is no multiple of that"
        hint = f'announce "{cards}", or leave the overlay away: Kerf needs none'
        yield Note(("spec", "capacity", NVIDIA_GPU), message, hint)


@rule("KL025", "overlay-sums-cards", Severity.WARNING, ("NodeOverlay",))
def overlay_sums_cards(subject: Subject, context: LintContext) -> Notes:
    """A NodeOverlay announces the memory of several cards as one number.

    Karpenter adds up: a machine with four cards of 22888 MiB has 91552 in its eyes, so it launches one for a pod
    of 40000 MiB, which no card holds, and packs three pods of 30000 where none fits. The node comes, HAMi refuses, the
    pods wait, and the next node is launched. Kerf keeps a list of cards and needs no overlay. Document 003, line 4.
    """
    overlay = subject.value
    if not isinstance(overlay, NodeOverlay):
        return
    name = context.hami.config.memory
    announced = overlay.capacity.get(name, 0)
    several = [kind for kind in _overlaid(overlay, subject, context) if len(kind.devices) > 1]
    summed = [kind for kind in several if kind.devices[0].memory_mib < announced <= _sum(kind, True)]
    if summed:
        kind = min(summed, key=lambda kind: (_sum(kind, True), kind.name))
        cards, each = len(kind.devices), kind.devices[0].memory_mib
        message = f"{name} {announced} is a sum: {kind.name} has {cards} cards of {each} MiB, and a slice is of one"
        yield Note(("spec", "capacity", name), message, "leave the overlay away: Kerf plans card by card")


def _overlaid(overlay: NodeOverlay, subject: Subject, context: LintContext) -> Iterator[InstanceType]:
    named = overlay.requirements.get(INSTANCE_TYPE)
    first = min(named.values, default="") if named is not None and not named.complement else ""
    for kind in context.market_for(subject, first or _ANY_AWS).types:
        if kind.devices and overlay.requirements.conflict(kind.requirements) is None:
            yield kind


def _sum(kind: InstanceType, is_memory: bool) -> int:
    return sum(shape.memory_mib for shape in kind.devices) if is_memory else 100 * len(kind.devices)


def _can_mig(kind: InstanceType) -> bool:
    return any(shape.profiles for shape in kind.devices)


@rule("KL036", "no-mig-on-card", Severity.ERROR, ("NodePool", *WORKLOADS))
def no_mig_on_card(subject: Subject, context: LintContext) -> Notes:
    """MIG is asked of cards that cannot be cut.

    Multi-Instance GPU exists from the Ampere generation on and only on some of its cards: A30, A100, H100, H200, B200,
    B300 and some RTX PRO. T4, V100, A10G, L4 and L40S have none; they are shared by time-slicing, MPS or HAMi. The
    finding names types that can. Document 001, line 25.
    """
    pool = subject.value
    if isinstance(pool, NodePool):
        kinds = _with_cards(pool, context)
        for at, wanted in _mig_asked(subject) if kinds and not any(map(_can_mig, kinds)) else ():
            yield Note(at, f"MIG ({wanted}) of a pool whose cards cannot be cut: {_cards(kinds)}", _able(pool, context))
        return
    held = held_by(subject)
    if held is not None:
        yield from _asked_of_pools(held, context)


def _with_cards(pool: NodePool, context: LintContext) -> list[InstanceType]:
    return [kind for kind in context.types(pool) if kind.gpu_count > 0]


def _mig_asked(subject: Subject) -> Iterator[tuple[Path, str]]:
    """Where a pool asks for MIG, and how."""
    label: Path = ("spec", "template", "metadata", "labels", MIG_CONFIG)
    if subject.text(*label) not in ("", "all-disabled"):
        yield label, subject.text(*label)
    for at in _annotations(subject, SHARING):
        if subject.text(*at) == "mig":
            yield at, "mig"
    for at in _annotations(subject, MIG_CONFIGS):
        yield at, subject.text(*at)


def _annotations(subject: Subject, key: str) -> Iterator[Path]:
    """Where a pool states an annotation: on its template, on itself."""
    for start in (("spec", "template", "metadata"), ("metadata",)):
        if subject.text(*start, "annotations", key):
            yield (*start, "annotations", key)


@rule("KL037", "sharing-shows-no-card", Severity.ERROR, ("NodePool",))
def sharing_shows_no_card(subject: Subject, context: LintContext) -> Notes:
    """Labels and annotations of a pool ask for a way of sharing that its nodes can never show.

    A layout of MIG that names a profile the card does not have, MPS on MIG instances, which NVIDIA's device plugin
    refuses: the nodes come up and show no GPU. The finding says which. Layouts and configurations of one's own are
    known by the ConfigMaps of the input; where it has none, a name that is not built in is taken to be right.
    """
    pool = subject.value
    if not isinstance(pool, NodePool):
        return
    kinds = [kind for kind in context.types(pool) if kind.devices]
    is_mig = any(True for _ in _mig_asked(subject))
    if not kinds or (is_mig and not any(map(_can_mig, kinds))):
        return
    obstacles = {kind.name: _obstacle(pool, kind, context) for kind in kinds}
    if all(obstacles.values()):
        path: Path = ("spec", "template", "metadata", "labels")
        stated = [at for at, _ in _mig_asked(subject)]
        says = _each_reason(obstacles)
        yield Note(stated[0] if stated else path, says, "its nodes would show no GPU", at_key=True)


def _each_reason(obstacles: Mapping[str, Cause | None]) -> str:
    """The reasons, each once, with the first type by name that has it; no more than three."""
    having: dict[str, list[str]] = {}
    for name, why in sorted(obstacles.items()):
        if why is not None:
            having.setdefault(words.reason(why), []).append(name)
    found = [
        f"{names[0]}{f' (and {len(names) - 1} more types)' if len(names) > 1 else ''}: {text}"
        for text, names in having.items()
    ]
    return "; ".join([*found[:3], *([f"and {len(found) - 3} more reasons"] if len(found) > 3 else [])])


def _obstacle(pool: NodePool, kind: InstanceType, context: LintContext) -> Cause | None:
    """What keeps every choice of labels that the pool leaves from the cards of a type; None when one is possible."""
    annotations = pool.stated_annotations
    found = None
    for choice in label_choices(pool.labels, annotations, has_mig=_can_mig(kind)):
        labels = {**pool.node_labels, **choice}
        family = owner_of(labels, annotations, context.families)
        why = family.obstacle(kind.devices, labels, annotations)
        if why is None or (not context.of_kind("ConfigMap") and _names_unknown(family, labels)):
            return None
        found = found or why
    return found


def _names_unknown(family: Family, labels: Mapping[str, str]) -> bool:
    """Whether a label names a configuration that only a ConfigMap could explain."""
    if isinstance(family, Mig) and labels.get(MIG_CONFIG) and not family.mig.knows(labels[MIG_CONFIG]):
        return True
    return CONFIG_LABEL in labels


@rule("KL038", "unknown-sharing", Severity.ERROR, ("NodePool",))
def unknown_family(subject: Subject, context: LintContext) -> Notes:
    """The annotation `kerf.dev/gpu-sharing` names no way of sharing.

    It says who divides the cards of a pool's nodes where no label says it: `hami`, `mig`, `mps`, `time-slicing`,
    `whole`, or `none`. Another word counts as if it were not there.
    """
    pool = subject.value
    if isinstance(pool, NodePool):
        unknown = unknown_sharing(pool.stated_annotations, context.families)
        if unknown is None:
            return
        for at in _annotations(subject, SHARING):
            known = [*(family.name for family in context.families), "none"]
            close = nearest(subject.text(*at), known, 0.6)
            yield Note(at, words.reason(unknown), f"is {close} meant?" if close else "")
            return


def _asked_of_pools(held: Held, context: LintContext) -> Notes:
    if not any(name.startswith(PREFIX) for name in held.pod.spec.requests):
        return
    pools = [pool for _, pool in context.pools if context.agrees(held.pod, pool)]
    kinds = [kind for pool in pools for kind in context.types(pool) if kind.gpu_count > 0]
    if not kinds or any(map(_can_mig, kinds)):
        return
    subject = held.subject
    for path, _ in subject.containers:
        for at, name, amount in amounts(subject, path, "limits"):
            if name.startswith(PREFIX) and is_quantity(name, str(amount)):
                yield Note(
                    at, f"{name} of cards that cannot be cut: {_cards(kinds)}", _able(pools[0], context), at_key=True
                )


def _cards(kinds: list[InstanceType]) -> str:
    models = sorted({shape.model.name for kind in kinds for shape in kind.devices})
    return f"{', '.join(models[:4])} of {some_names(kinds, 2)}"


def _able(pool: NodePool, context: LintContext) -> str:
    able = [kind for kind in context.market_of(pool).types if _can_mig(kind)]
    return f"MIG can be had with {some_names(able, 6)}" if able else "no type of this cloud has MIG"
