"""RuntimeClasses: what admission adds to a pod that names one."""

from dataclasses import dataclass, replace

from kerf.model.causes import Cause, Name
from kerf.model.constraints import ANYTHING, Requirement, Requirements, Toleration
from kerf.model.pods import PodSpec
from kerf.model.quantities import NOTHING, Resources


@dataclass(frozen=True, slots=True)
class RuntimeClass:
    """What pods of the class take beside their containers, and on which nodes they run."""

    name: str
    overhead: Resources = NOTHING
    node_selector: Requirements = ANYTHING
    tolerations: tuple[Toleration, ...] = ()

    def conflict(self, spec: PodSpec) -> "RuntimeClassConflict | None":
        """Why the server refuses a new pod of the class: both select nodes by one label, with other values."""
        keys = sorted(key for key, asked in self.node_selector.items() if spec.node_selector.get(key, asked) != asked)
        if not keys:
            return None
        own, others = (tuple(held[key] for key in keys) for held in (spec.node_selector, self.node_selector))
        return RuntimeClassConflict(Name(self.name), own, others)

    def admitted(self, spec: PodSpec) -> PodSpec:
        """The spec as the server stores it (kubernetes plugin/pkg/admission/runtimeclass, setOverhead, setScheduling).

        An overhead that the pod states itself stays.
        """
        added = tuple(each for each in self.tolerations if each not in spec.tolerations)
        return replace(
            spec,
            overhead=spec.overhead or self.overhead,
            node_selector=spec.node_selector.intersect(self.node_selector),
            tolerations=(*spec.tolerations, *added),
        )


@dataclass(frozen=True, slots=True)
class RuntimeClassConflict(Cause):
    """The pod's nodeSelector and that of its RuntimeClass ask other values of the same labels, each in their order."""

    name: Name
    asked: tuple[Requirement, ...]
    held: tuple[Requirement, ...]

    @property
    def agreed(self) -> dict[str, str]:
        """The nodeSelector that the server would take, for these labels."""
        return {each.key: min(each.values) for each in self.held}


@dataclass(frozen=True, slots=True)
class RuntimeClassMissing(Cause):
    """The pod names a RuntimeClass that is not there."""

    name: Name
