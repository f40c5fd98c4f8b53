"""Pods, cards and nodes of the sharing tests; what a case does not care for has a plain default."""

from collections.abc import Mapping, Sequence

from kerf.model.gpu import DeviceShape, DeviceState, GPUModel
from kerf.model.nodes import Node
from kerf.model.pods import Container, Pod, PodSpec
from kerf.model.quantities import Resources
from kerf.sharing.family import Fit, NoFit, Refused
from kerf.sharing.hami.family import Hami
from kerf.sharing.hami.records import REGISTER, register_annotation

NAMES = {
    "gpus": "nvidia.com/gpu",
    "mib": "nvidia.com/gpumem",
    "percent": "nvidia.com/gpumem-percentage",
    "cores": "nvidia.com/gpucores",
    "priority": "nvidia.com/priority",
}


def container(name: str, *, is_sidecar: bool = False, **amounts: int) -> Container:
    """A container with limits by the short names above, and requests equal to them."""
    return _container(name, amounts, is_sidecar)


def _container(name: str, amounts: Mapping[str, int], is_sidecar: bool = False) -> Container:
    limits = Resources({NAMES[short]: amount for short, amount in amounts.items()})
    return Container(name, limits, limits, is_sidecar=is_sidecar)


def pod(
    *containers: Container,
    init: Sequence[Container] = (),
    annotations: Mapping[str, str] | None = None,
    scheduler: str = "default-scheduler",
    uid: str = "",
    **amounts: int,
) -> Pod:
    """A pod as a manifest states it; with one container of those amounts when no container is given."""
    spec = PodSpec(containers or (_container("main", amounts),), tuple(init), scheduler_name=scheduler)
    return Pod("default", "pod", spec, annotations=annotations or {}, uid=uid)


def cards(*memories: int, family: Hami | None = None, model: str = "A10G") -> tuple[DeviceState, ...]:
    """Idle cards of these sizes in MiB, as HAMi registers them."""
    return (family or Hami()).predict([DeviceShape(GPUModel(model), memory) for memory in memories], {}, {})


def registered(devices: Sequence[DeviceState], name: str = "node", **annotations: str) -> Node:
    """A node on which HAMi's device plugin has registered these cards."""
    return Node(name, annotations={REGISTER: register_annotation(devices), **annotations})


def verdicts(devices: tuple[DeviceState, ...], pods: Sequence[Pod], family: Hami | None = None) -> list[str]:
    """What becomes of pods that arrive one after the other: the indices of their cards, or HAMi's own reason."""
    hami, found = family or Hami(), []
    for asking in pods:
        demand = hami.demand(asking)
        assert not isinstance(demand, Refused)
        result = hami.decide(devices, demand, asking, None, ())
        if isinstance(result, Fit):
            devices = result.devices
            found.append(",".join(str(share.device) for share in result.slices))
        else:
            found.append(result.reason)
    return found


def decided(devices: tuple[DeviceState, ...], asking: Pod, family: Hami | None = None) -> Fit | NoFit | Refused:
    """HAMi's decision about one pod on one new node."""
    hami = family or Hami()
    demand = hami.demand(asking)
    return demand if isinstance(demand, Refused) else hami.fit(devices, demand, asking, None, ())
