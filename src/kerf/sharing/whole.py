"""Whole cards: `nvidia.com/gpu` counted by NVIDIA's device plugin without sharing.

kube-scheduler sees only a number and the kubelet picks the card, so nobody outside knows which one a pod holds. Kerf
counts from the lowest index; since whole cards of a node are alike, any other choice fits as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kerf.model.gpu import NVIDIA_GPU, DeviceShape, DeviceState, Slice, SliceRequest
from kerf.model.nodes import Node
from kerf.model.pods import Container, ContainerDemand, Pod, PodDemand
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap, ResourceQuota
from kerf.sharing.family import Fit, NoFit, Occupant, Refused

MEMORY_LABELS = ("nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory")
"""Node labels that state the MiB of each card: NVIDIA's feature discovery, else Karpenter's AWS provider."""

PRODUCT_LABELS = ("nvidia.com/gpu.product", "karpenter.k8s.aws/instance-gpu-name")


@dataclass(frozen=True)
class Whole:
    """The family of last resort: it owns every card that nobody else claims."""

    selector: tuple[str, str] | None = None
    name: str = "whole"
    title: str = "NVIDIA's device plugin"

    @property
    def resources(self) -> frozenset[str]:
        """None: kubelet shows all it counts."""
        return frozenset()

    @property
    def counted(self) -> str:
        """NVIDIA's own name."""
        return NVIDIA_GPU

    def configured(self, config_maps: Sequence[ConfigMap]) -> "Whole":
        """Itself; there is nothing to configure."""
        del config_maps
        return self

    def selects(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
        """Always: it is asked last."""
        del labels, annotations
        return True

    def claims(self, pod: Pod) -> bool:
        """Never: whoever counts `nvidia.com/gpu` can give a whole card."""
        del pod
        return False

    def demand(self, pod: Pod) -> PodDemand | Refused:
        """The `nvidia.com/gpu` of each container; every other GPU resource is some other family's."""
        spec = pod.spec
        containers = (
            *(ContainerDemand(c.name, _cards(c), True, c.is_sidecar) for c in spec.init_containers),
            *(ContainerDemand(c.name, _cards(c)) for c in spec.containers),
        )
        return PodDemand(self.name, containers)

    def predict(self, shapes: Sequence[DeviceShape], annotations: Mapping[str, str]) -> tuple[DeviceState, ...]:
        """One idle card a shape."""
        del annotations
        return tuple(
            DeviceState(f"gpu-{i}", i, shape.model.registered_as or shape.model.name, shape.memory_mib)
            for i, shape in enumerate(shapes)
        )

    def kubelet_capacity(self, devices: Sequence[DeviceState]) -> Resources:
        """One `nvidia.com/gpu` for each healthy card."""
        return Resources({NVIDIA_GPU: sum(d.healthy for d in devices)})

    def inventory(self, node: Node) -> tuple[DeviceState, ...] | None:
        """As many cards as kubelet shows; None while it shows none.

        Kubelet tells neither memory nor model: both are from labels, 0 and empty where the node has none.
        """
        count = node.allocatable.get(NVIDIA_GPU, 0)
        if count <= 0:
            return None
        memory = _first_label(node, MEMORY_LABELS)
        memory_mib = int(memory) if memory.isascii() and memory.isdecimal() else 0
        return tuple(DeviceState(f"gpu-{i}", i, _first_label(node, PRODUCT_LABELS), memory_mib) for i in range(count))

    def occupied(self, devices: Sequence[DeviceState], occupants: Sequence[Occupant]) -> tuple[DeviceState, ...]:
        """`devices` with as many taken, from the lowest index, as the pods hold."""
        count = sum(
            _peak(o.demand, init_done=o.pod.initialised)
            for o in occupants
            if o.demand is not None and not o.pod.is_ended
        )
        free = sorted(d.index for d in devices if d.is_idle and d.healthy)[:count]
        return tuple(_taken(d) if d.index in free else d for d in devices)

    def fit(
        self,
        devices: Sequence[DeviceState],
        demand: PodDemand,
        pod: Pod,
        node: Node | None,
        quotas: Sequence[ResourceQuota],
    ) -> Fit | NoFit:
        """The idle cards with the lowest indices. Init containers reuse the cards of the app containers."""
        del node, quotas
        idle = sorted((d for d in devices if d.is_idle and d.healthy and not d.cordoned), key=lambda d: d.index)
        wanted = _peak(demand, init_done=False)
        if wanted > len(idle):
            return _too_few(wanted, len(idle), len(devices))
        slices: list[Slice] = []
        first_free, sidecars = 0, 0
        for container in demand.containers:
            count = container.request.count if container.request is not None else 0
            if container.is_init:
                start = sidecars
                sidecars += count if container.is_sidecar else 0
                first_free = sidecars
            else:
                start, first_free = first_free, first_free + count
            slices.extend(
                Slice(pod.key, container.name, d.index, d.id, d.memory_mib, 100) for d in idle[start : start + count]
            )
        held = {d.index for d in idle[:wanted]}
        return Fit(tuple(slices), tuple(_taken(d) if d.index in held else d for d in devices))

    def booked_node(self, pod: Pod) -> str:
        """None: kube-scheduler writes nothing before it binds."""
        del pod
        return ""

    def quota_used(self, occupants: Sequence[Occupant]) -> Resources:
        """Nothing: kube-apiserver itself counts what kubelet shows."""
        del occupants
        return Resources()

    def quota_asked(self, demand: PodDemand) -> Resources:
        """Nothing: the API server itself counts `requests.nvidia.com/gpu`."""
        del demand
        return Resources()

    def node_score_order(self, demand: PodDemand, score: float) -> float:
        """No preference: kube-scheduler's own scores decide."""
        del demand, score
        return 0.0


def _cards(container: Container) -> SliceRequest | None:
    count = container.requests.get(NVIDIA_GPU, container.limits.get(NVIDIA_GPU, 0))
    return SliceRequest(count, cores=100) if count > 0 else None


def _peak(demand: PodDemand, *, init_done: bool) -> int:
    """The most cards that the pod holds at a time, as kubelet counts (sidecars stay, other init containers end)."""
    sidecars, starting, running = 0, 0, 0
    for container in demand.containers:
        count = container.request.count if container.request is not None else 0
        if not container.is_init:
            running += count
        elif container.is_sidecar:
            sidecars += count
            starting = max(starting, sidecars)
        else:
            starting = max(starting, sidecars + count)
    return running + sidecars if init_done else max(running + sidecars, starting)


def _taken(device: DeviceState) -> DeviceState:
    return device.taking(device.memory_mib, device.cores)


def _first_label(node: Node, names: Sequence[str]) -> str:
    return next((node.labels[name] for name in names if name in node.labels), "")


def _too_few(wanted: int, idle: int, there: int) -> NoFit:
    more = wanted - idle
    return NoFit(
        f"Insufficient {NVIDIA_GPU}",
        f"{more} GPU" if more == 1 else f"{more} GPUs",
        more,
        f"needs {wanted} whole {'GPU' if wanted == 1 else 'GPUs'}; {idle} of {there} are idle",
    )
