"""Room that CapacityBuffers keep free: virtual pods that come after all others, as many as there is room for.

Every decision plans them again. A pod that exists and comes takes of the same free room first, and what the
buffer then lacks is bought again. No pod has to leave for one of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kerf.engine.headroom.grants import Grants
from kerf.model.buffercauses import NothingNamed, ScalableInvalid, ScalableMissing, ScalableUnknown, StrategiesIgnored
from kerf.model.capacitybuffers import ACTIVE, LEAST_PRIORITY, CapacityBuffer, Scalable
from kerf.model.causes import (
    Cause,
    Name,
    RoomLimited,
    TemplateInvalid,
    TemplateMissing,
)
from kerf.model.groups import COSCHEDULING_LABEL, KUEUE_LABEL, POD_GROUP, VOLCANO_ANNOTATION
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.placeholders import Keeper, Placeholder
from kerf.model.pods import Pod, PodSpec
from kerf.model.provisioningrequests import CONSUMES, PodTemplate
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.uses import Use
from kerf.model.windows import WINDOW_LABEL

_LAST_RANK = -1
_OF_LABELS = frozenset({POD_GROUP, COSCHEDULING_LABEL, KUEUE_LABEL, WINDOW_LABEL, OPPORTUNISTIC})
_OF_ANNOTATIONS = frozenset({VOLCANO_ANNOTATION, DO_NOT_DISRUPT, *CONSUMES})
"""What a pod says of itself alone: a place for it belongs to no group, and nothing is taken away from it."""


@dataclass(frozen=True, eq=False)
class Buffered:
    """A buffer that is kept: for how many pods room is `wanted`, and the virtual `pods` for which it is granted.

    `problem` is what it names and is not there, or makes no sense; `limited` why its namespace may not have all of it.
    `template` is the PodTemplate that it was read from, where it was one.
    """

    buffer: CapacityBuffer
    wanted: int = 0
    pods: tuple[Pod, ...] = ()
    template: PodTemplate | None = None
    problem: Cause | None = None
    limited: RoomLimited | None = None


def buffered(snapshot: ClusterSnapshot, grants: Grants | None = None) -> tuple[Buffered, ...]:
    """The buffers that are kept, the oldest first; room is granted to them in this order."""
    kept = [each for each in snapshot.capacity_buffers if each.is_kept]
    if not kept:
        return ()
    grants = grants or Grants(snapshot)
    templates = {f"{each.namespace}/{each.name}": each for each in snapshot.pod_templates}
    scalables = {each.key: each for each in snapshot.scalables}
    kept.sort(key=lambda each: (each.created_s, each.key))
    return tuple(_buffered(each, templates, scalables, grants) for each in kept)


def ignored(snapshot: ClusterSnapshot) -> StrategiesIgnored | None:
    """The buffers of other strategies; None where there is none."""
    found = tuple(Name(each.key) for each in snapshot.capacity_buffers if not each.is_ours)
    return StrategiesIgnored(found, Name(ACTIVE)) if found else None


def _buffered(
    buffer: CapacityBuffer, templates: Mapping[str, PodTemplate], scalables: Mapping[str, Scalable], grants: Grants
) -> Buffered:
    template = templates.get(f"{buffer.namespace}/{buffer.pod_template}") if buffer.pod_template else None
    scalable = scalables.get(buffer.scalable_key) if buffer.scalable_key else None
    problem = _problem(buffer, template, scalable)
    if problem is not None:
        return Buffered(buffer, problem=problem)
    held = template if template is not None else scalable
    assert held is not None
    pod, scale = _bare(held.pod), scalable.replicas if scalable is not None else None
    wanted = buffer.wanted(pod.spec.requests, scale)
    if not wanted:
        return Buffered(buffer, template=template)
    kept = Placeholder(Keeper.BUFFER, buffer.key)
    granted = grants.grant(Use.BUFFER, kept, pod, wanted, buffer.namespace)
    pods = tuple(_virtual(buffer, kept, replace(pod, spec=granted.spec), granted.number))
    return Buffered(buffer, wanted, pods, template, limited=granted.limited)


def _problem(buffer: CapacityBuffer, template: PodTemplate | None, scalable: Scalable | None) -> Cause | None:
    if buffer.pod_template:
        named = Name(f"{buffer.namespace}/{buffer.pod_template}")
        if template is None:
            return TemplateMissing(Name(buffer.key), named)
        invalid = template.pod.invalid
        return None if invalid is None else TemplateInvalid(Name(buffer.key), named, invalid)
    ref = buffer.scalable
    if ref is None:
        return NothingNamed()
    if not ref.is_known:
        return ScalableUnknown(Name(f"{ref.kind}.{ref.group}" if ref.group else ref.kind))
    named = Name(f"{ref.kind} {buffer.namespace}/{ref.name}")
    if scalable is None:
        return ScalableMissing(named)
    invalid = scalable.pod.invalid
    return None if invalid is None else ScalableInvalid(named, invalid)


def _bare(pod: Pod) -> Pod:
    """The pod as a place for it: without owner and group, without volumes, which are made with the pod, without gates.

    Karpenter leaves the volumes out as well: no claim of them is there that would say in which zone they are.
    """
    spec = replace(
        pod.spec,
        claims=(),
        claim_templates=(),
        scheduling_gates=(),
        workload_ref="",
        priority=LEAST_PRIORITY,
        priority_class="",
    )
    labels = {key: text for key, text in pod.labels.items() if key not in _OF_LABELS}
    own = {key: text for key, text in pod.annotations.items() if key not in _OF_ANNOTATIONS}
    return replace(pod, spec=spec, labels=labels, annotations=own, owner=None, node_name="", uid="")


def _virtual(buffer: CapacityBuffer, kept: Placeholder, pod: Pod, number: int) -> Iterator[Pod]:
    held = replace(pod, namespace=kept.namespace, created_s=buffer.created_s, queue_priority=_LAST_RANK)
    yield from (replace(held, name=f"0-{each}") for each in range(number))


def unmade_buffer(found: Buffered) -> Pod:
    """One virtual pod that there would be, were it not for the buffer's problem."""
    return Pod(Placeholder(Keeper.BUFFER, found.buffer.key).namespace, "0-0", PodSpec(()))


def is_of_buffer(key: str) -> bool:
    """Whether a pod's `namespace/name` stands for room that a CapacityBuffer keeps."""
    kept = Placeholder.of(key)
    return kept is not None and kept.keeper == Keeper.BUFFER
