"""Causes: why the volumes of a pod keep it from running."""

from dataclasses import dataclass
from enum import StrEnum

from kerf.model.causes import Cause, Name, OverResourceQuota, TargetName
from kerf.model.constraints import Requirement

_NONE = Name("")


class ClaimProblem(StrEnum):
    """What is wrong with a claim, whatever node there is."""

    MISSING = "missing"
    NOT_READ = "not read"
    """The input has no claim at all, and the pod runs: where its volume is, is not known."""
    LOST = "lost"
    DELETING = "deleting"
    OF_ANOTHER_POD = "of another pod"
    WITHOUT_CLASS = "without class"
    CLASS_MISSING = "class missing"
    NOT_BOUND = "not bound"
    VOLUME_MISSING = "volume missing"


@dataclass(frozen=True, slots=True)
class ClaimUnusable(Cause):
    """A claim of the pod keeps it from every node; `other` is the volume or the StorageClass that it names."""

    claim: Name
    problem: ClaimProblem
    other: Name = _NONE


@dataclass(frozen=True, slots=True)
class ClaimOverQuota(Cause):
    """The API server would refuse the claim: its namespace has no more of a ResourceQuota.

    The pod of a StatefulSet does not come to be then; any other pod that uses the claim waits for it.
    """

    claim: Name
    over: OverResourceQuota


@dataclass(frozen=True, slots=True)
class ClaimInUse(Cause):
    """Only one pod may use the claim (ReadWriteOncePod), and another one does or comes before."""

    claim: Name
    pod: Name


@dataclass(frozen=True, slots=True)
class SharedElsewhere(Cause):
    """Other pods with the claim are to run in `zones`, so its volume is made there, and not in `domain`.

    `key` is the label of zones, or of nodes by their names; an empty `domain` is a node without it.
    """

    claim: Name
    key: Name
    zones: tuple[Name, ...]
    domain: Name


@dataclass(frozen=True, slots=True)
class VolumesApart(Cause):
    """No node can be where all volumes of the pod are."""

    claims: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class TooManyChoices(Cause):
    """The terms of the pod and of its volumes have more combinations than are tried."""

    choices: int
    most: int


@dataclass(frozen=True, slots=True)
class VolumeElsewhere(Cause):
    """The volumes of the pod ask for a label that the target does not have; `held` is what it has of that key."""

    asked: Requirement
    held: Requirement | None
    owner: TargetName


@dataclass(frozen=True, slots=True)
class VolumesAgainstPod(Cause):
    """The pod itself asks for values of a label (`own`) of which its volumes can be with none (`volumes`)."""

    own: Requirement
    volumes: Requirement


@dataclass(frozen=True, slots=True)
class NoVolumeHere(Cause):
    """The target can have no volume for a claim of the pod: none is free there, or it is made for another node."""


@dataclass(frozen=True, slots=True)
class TooManyVolumes(Cause):
    """The driver attaches no more volumes to the node."""

    driver: Name
    limit: int
    attached: int
    more: int
