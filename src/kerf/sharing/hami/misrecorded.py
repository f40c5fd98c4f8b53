"""Records on pods that HAMi counts as nothing, or cannot read: the pod runs on cards that look free.

HAMi says nothing of either. Kerf counts as HAMi does, since that is where HAMi puts the next pod, and names the pod.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kerf.errors import DecodeError
from kerf.model.causes import Cause, Name, Quoted
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterNode
from kerf.sharing.hami.records import ALLOCATED, is_registered, parse_allocation


@dataclass(frozen=True, slots=True)
class RecordUnread(Cause):
    """The record of a pod on a node cannot be read, so what the pod asks for counts instead."""

    node: Name
    error: Quoted


@dataclass(frozen=True, slots=True)
class RecordEmpty(Cause):
    """The record of a pod on a node has text and names no card, so nothing counts."""

    node: Name
    got: Quoted


@dataclass(frozen=True, slots=True)
class RecordElsewhere(Cause):
    """The record of a pod on a node names cards that the node has not registered, so nothing of these counts."""

    node: Name
    ids: tuple[Quoted, ...]


Misrecord = RecordUnread | RecordEmpty | RecordElsewhere


def misrecorded(node: ClusterNode) -> Iterator[tuple[Pod, Misrecord]]:
    """The pods of a node with HAMi's cards whose record does not say which of them they hold; in the node's order."""
    if node.node is None or not is_registered(node.node.annotations):
        return
    there = {device.id for device in node.devices}
    for pod in node.pods:
        text = pod.annotations.get(ALLOCATED, "")
        # An empty part stands for a container without a GPU.
        if pod.is_ended or not text.strip("; "):
            continue
        name = Name(node.name)
        try:
            recorded = {share.device_id for segment in parse_allocation(pod.annotations) or () for share in segment}
        except DecodeError as error:
            yield pod, RecordUnread(name, Quoted(str(error)))
            continue
        if not recorded:
            yield pod, RecordEmpty(name, Quoted(text))
        elif node.devices and recorded - there:
            yield pod, RecordElsewhere(name, tuple(map(Quoted, sorted(recorded - there))))
