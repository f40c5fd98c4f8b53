"""What families have in common whose cards, or parts of them, are counted by kubelet and given out by kubelet.

kube-scheduler sees only numbers and kubelet picks the card, so no API shows which one a pod holds: no record
is written, and every way of dealing the same numbers out is as good as another.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kerf.model.gpu import NVIDIA_GPU, SliceRequest
from kerf.model.nodes import Node
from kerf.model.pods import Container, ContainerDemand, Pod, PodDemand
from kerf.model.quantities import Resources
from kerf.model.snapshot import ResourceQuota
from kerf.sharing.family import Occupant

MEMORY_LABELS = ("nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory")
"""Node labels that state the MiB of each card: NVIDIA's feature discovery, else Karpenter's AWS provider."""
_OVERHEAD = "overhead"
"""What holds the cards of a pod's overhead, among its containers."""
PRODUCT_LABELS = ("nvidia.com/gpu.product", "karpenter.k8s.aws/instance-gpu-name")


class KubeletCounted:
    """The half of a `Family` that is alike for all of them: there are no records, no quotas and no preferences."""

    selector: tuple[str, str] | None = None

    @property
    def resources(self) -> frozenset[str]:
        """None: kubelet shows all it counts."""
        return frozenset()

    @property
    def counted(self) -> str:
        """NVIDIA's own name."""
        return NVIDIA_GPU

    @property
    def claimed(self) -> frozenset[str]:
        """None: what kubelet shows, any node may show."""
        return frozenset()

    def assumptions(self, labels: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
        """Nothing is."""
        del labels
        return ({},)

    def configurations(self, pod: Pod) -> tuple[Mapping[str, str], ...]:
        """None: whole cards need no label."""
        del pod
        return ()

    def claims(self, pod: Pod) -> bool:
        """Never: what kubelet shows, any pod may have announced."""
        del pod
        return False

    def distinguishes(self, demand: PodDemand) -> bool:
        """Never: kubelet takes whichever it likes."""
        del demand
        return False

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

    def quota_held(self, demand: PodDemand, cards: int) -> Resources:
        """Nothing, as `quota_asked`."""
        del demand, cards
        return Resources()

    def quota_limits(self, quota: ResourceQuota) -> Resources:
        """None."""
        del quota
        return Resources()

    def node_score_order(self, demand: PodDemand, score: float) -> float:
        """No preference: kube-scheduler's own scores decide."""
        del demand, score
        return 0.0


def demanded(pod: Pod, family: str, names: Iterable[str], cores: int = 0) -> PodDemand:
    """What each container asks of these resources, one entry a name; of a container that asks none, one without.

    `cores` is what each of them stands for: 100 for whole cards, 0 where that is the configuration's business. What the
    pod's overhead has of them counts beside its containers: kubelet gives it to none, and no other pod gets it.
    """
    ordered, spec = sorted(names), pod.spec
    containers = tuple(
        ContainerDemand(container.name, request, is_init, is_init and container.is_sidecar)
        for is_init, containers in ((True, spec.init_containers), (False, spec.containers))
        for container in containers
        for request in _requests(container, ordered, cores)
    )
    if any(spec.overhead.get(name, 0) > 0 for name in ordered):
        beside = _requests(Container(_OVERHEAD, spec.overhead), ordered, cores)
        containers += tuple(ContainerDemand(_OVERHEAD, request) for request in beside)
    return PodDemand(family, containers)


def _requests(container: Container, names: Sequence[str], cores: int) -> list[SliceRequest | None]:
    counts = {name: container.requests.get(name, container.limits.get(name, 0)) for name in names}
    found = [SliceRequest(count, cores=cores, resource=name) for name, count in counts.items() if count > 0]
    return [*found] if found else [None]


def asked_resources(demand: PodDemand) -> list[str]:
    """The names that a demand counts, each once, sorted."""
    return sorted({c.request.resource for c in demand.containers if c.request is not None})


def peak(demand: PodDemand, resource: str, *, init_done: bool) -> int:
    """The most parts that the pod holds at a time, as kubelet counts (sidecars stay, other init containers end)."""
    sidecars, starting, running = 0, 0, 0
    for container in demand.containers:
        count = _count(container, resource)
        if not container.is_init:
            running += count
        elif container.is_sidecar:
            sidecars += count
            starting = max(starting, sidecars)
        else:
            starting = max(starting, sidecars + count)
    return running + sidecars if init_done else max(running + sidecars, starting)


def dealt(demand: PodDemand, resource: str) -> Iterator[tuple[str, range]]:
    """Which of the parts that a pod holds each container has, by position: app containers reuse those of init ones."""
    first_free, sidecars = 0, 0
    for container in demand.containers:
        count = _count(container, resource)
        if container.is_init:
            start = sidecars
            sidecars += count if container.is_sidecar else 0
            first_free = sidecars
        else:
            start, first_free = first_free, first_free + count
        yield container.name, range(start, start + count)


def _count(container: ContainerDemand, resource: str) -> int:
    request = container.request
    return request.count if request is not None and request.resource == resource else 0


def first_label(labels: Mapping[str, str], names: Sequence[str]) -> str:
    """The first of the labels that is there; empty when none is."""
    return next((labels[name] for name in names if name in labels), "")


def stated_number(labels: Mapping[str, str], *names: str) -> int:
    """The whole number in the first of the labels that is there; 0 without one, or where it is none."""
    text = first_label(labels, names)
    return int(text) if text.isascii() and text.isdecimal() else 0


def stated_memory(node: Node) -> int:
    """The MiB of each card as a label states them; 0 where none does."""
    return stated_number(node.labels, *MEMORY_LABELS)


def shared_out(capacity: Resources, jobs: int) -> Resources:
    """What each of so many containers may ask of the resource that is there most often; empty where it is too few."""
    name = max(sorted(capacity), key=lambda resource: capacity[resource], default="")
    each = capacity.get(name, 0) // jobs
    return Resources({name: each}) if each else Resources()
