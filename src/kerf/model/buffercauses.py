"""Causes: why no room is kept for a CapacityBuffer."""

from dataclasses import dataclass

from kerf.model.causes import Cause, FieldRefusal, Name


@dataclass(frozen=True, slots=True)
class ScalableMissing(Cause):
    """A CapacityBuffer names a workload that is not there, `Deployment team/web`."""

    scalable: Name


@dataclass(frozen=True, slots=True)
class ScalableUnknown(Cause):
    """A CapacityBuffer names something to be scaled whose pods Kerf does not know: its kind with its group."""

    kind: Name


@dataclass(frozen=True, slots=True)
class ScalableInvalid(Cause):
    """The pods of a workload that a CapacityBuffer names make no sense."""

    scalable: Name
    problem: FieldRefusal


@dataclass(frozen=True, slots=True)
class NothingNamed(Cause):
    """A CapacityBuffer names neither a PodTemplate nor anything to be scaled."""


@dataclass(frozen=True, slots=True)
class StrategiesIgnored(Cause):
    """CapacityBuffers of other strategies than the one that Kerf follows: no room is kept for them."""

    buffers: tuple[Name, ...]
    followed: Name
