"""RuntimeClasses: what admission adds to a pod that names one."""

from dataclasses import dataclass, replace

from kerf.model.causes import Cause, Name
from kerf.model.constraints import ANYTHING, Requirements, Toleration
from kerf.model.pods import PodSpec
from kerf.model.quantities import NOTHING, Resources


@dataclass(frozen=True, slots=True)
class RuntimeClass:
    """What pods of the class take beside their containers, and on which nodes they run."""

    name: str
    overhead: Resources = NOTHING
    node_selector: Requirements = ANYTHING
    tolerations: tuple[Toleration, ...] = ()

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
class RuntimeClassMissing(Cause):
    """The pod names a RuntimeClass that is not there."""

    name: Name
