"""What pods ask against the machines of the pools that are meant for them."""

from kerf.lint.context import Held, LintContext, asks_cards, held_by, price_of
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.rules.placement import names_pool
from kerf.lint.subject import WORKLOADS, Subject
from kerf.manifests.schema import Path
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.instancetypes import InstanceType
from kerf.model.nodepool import NodePool
from kerf.model.quantities import CPU, MEMORY, quantity_text

_COUNTED = (NVIDIA_GPU, CPU, MEMORY)
_BATCH = ("Job", "CronJob")


def _meant(held: Held, context: LintContext) -> list[NodePool]:
    """The pools whose labels agree with the pods, and that the pods are meant for."""
    return [pool for pool in context.judged_pools if context.agrees(held.pod, pool) and names_pool(held, pool)]


@rule("KL039", "larger-than-any-node", Severity.ERROR, WORKLOADS)
def larger_than_any_node(subject: Subject, context: LintContext) -> Notes:
    """A pod asks for more than any machine of its pools has.

    Nothing that could be launched would hold it, so it waits for ever: four GPUs of machines with one, or more
    memory of one card than the card registers. What pods can use is less than the machine has: kubelet keeps some CPU
    and memory for itself. Looked at are pods that ask for GPUs or for a label that a pool sets. Documents 002, line 9,
    and 004, FAQ 1.
    """
    held = held_by(subject)
    pools = _meant(held, context) if held is not None and subject.kind != "DaemonSet" else []
    kinds = [(kind, pool) for pool in pools for kind in context.types(pool)]
    if held is None or not kinds:
        return
    slices = _card_memory(held, kinds, context)
    if slices is not None:
        yield slices
        return
    if any(context.fits(held.pod, pool) for pool in pools) or context.runs_on_a_node(held.pod):
        return
    for name in _COUNTED:
        asked = held.pod.spec.requests.get(name, 0)
        most, kind = max(
            ((context.shown(kind, pool).get(name, 0), kind) for kind, pool in kinds),
            key=lambda pair: (pair[0], pair[1].name),
        )
        if asked > most and not (name == NVIDIA_GPU and any(context.is_hamis(pool) for pool in pools)):
            amounts = quantity_text(name, asked), quantity_text(name, most)
            most_there = f"the most that a node of its pools has is {amounts[1]} ({kind.name})"
            message = f"a pod asks for {amounts[0]} {name}; {most_there}"
            # Where cards are not shown at all, no size is.
            hint = "allow a larger type" if most else ""
            yield Note((*subject.pod, "containers", 0, "resources"), message, hint, at_key=True)
            return


def _card_memory(held: Held, kinds: list[tuple[InstanceType, NodePool]], context: LintContext) -> Note | None:
    """What is wrong where a container asks for more memory of one card than any card registers."""
    config = context.hami.config
    most = max((shape.memory_mib for kind, _ in kinds for shape in kind.devices), default=0)
    for path, container in held.subject.containers:
        found = next((c for c in held.pod.spec.containers if c.name == container.get("name")), None)
        asked = found.limits.get(config.memory, 0) * config.memory_factor if found is not None else 0
        # What is written with a unit is beyond all bounds, and has a rule of its own.
        if most and most * config.memory_scaling < asked < 2**31:
            message = (
                f"{config.memory} {asked}: the largest card of its pools registers {most} MiB, and a slice is of one"
            )
            return Note((*path, "resources", "limits", config.memory), message, "allow a type with a larger card")
    return None


@rule("KL056", "one-more-would-fit", Severity.INFO, _BATCH)
def one_more_would_fit(subject: Subject, context: LintContext) -> Notes:
    """One pod more would fit on a node, except for what kubelet keeps.

    `requests.cpu: 1` on machines of four cores makes three pods a node, not four: 3.92 cores are allocatable. So 25
    jobs need 9 machines, where 25 / 4 promises 7. N jobs a node need requests of the allocatable over N, less what
    DaemonSets take. Looked at are Jobs whose pods could fill a node of the pool's cheapest type. Document 002, line 6.
    """
    held = held_by(subject)
    if held is None or asks_cards(held.pod.spec.requests):
        return
    asked = held.pod.spec.requests
    kinds = [
        kind
        for pool in context.judged_pools
        if context.agrees(held.pod, pool)
        for kind in context.types(pool)
        if not asked.shortfall(kind.allocatable)
    ]
    if not kinds or not asked.get(CPU):
        return
    kind = min(kinds, key=lambda kind: (price_of(kind), kind.name))
    fitting, promised = asked.times_in(kind.allocatable) or 0, kind.capacity[CPU] // asked[CPU]
    roomy = asked.without([CPU]).times_in(kind.allocatable)
    if fitting < promised <= held.replicas and (roomy is None or promised <= roomy):
        free = kind.allocatable[CPU]
        amounts = quantity_text(CPU, asked[CPU]), quantity_text(CPU, free), quantity_text(CPU, free // promised)
        message = (
            f"cpu {amounts[0]}: {fitting} pods fit on {kind.name} with its {amounts[1]} allocatable, not {promised}"
        )
        path: Path = (*subject.pod, "containers", 0, "resources", "requests", CPU)
        yield Note(path, message, f"cpu {amounts[2]} makes it {promised}, less what DaemonSets take")
