"""Nodes with the pods and cards on them, as an onlooker of the simulation sees them.

Kerf's own state is what is to be judged, so the report and the invariants count from the API alone and share nothing
with it but the sharing families' rules.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kerf.model.evidence import ClusterPolicy
from kerf.model.gpu import DeviceState
from kerf.model.instancetypes import InstanceType
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDemand
from kerf.model.snapshot import ConfigMap, DaemonSet, NodeClass
from kerf.sharing.family import Family, Occupant
from kerf.sharing.gathering import Gathered, Witness
from kerf.sharing.registry import FAMILIES, judged, of_plugins, owner_of
from kerf.sim.kubernetes.api import DELETED
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.kubernetes.sharing import readable
from kerf.sim.objects import Json


@dataclass(slots=True)
class NodeBook:
    """A node and the pods that hold something on it: bound, not ended; by key."""

    node: Node | None = None
    pods: dict[str, Pod] = field(default_factory=dict)


class Books:
    """All of them, kept by `note`."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeBook] = {}
        self._pods: dict[str, Pod] = {}
        self._node_count = 0
        self._families: tuple[Family, ...] = FAMILIES
        # Every form of each map, the newest first: plugins go by the last one that can be read.
        self._config_maps: dict[tuple[str, str], list[ConfigMap]] = {}
        self._gathered = Gathered()
        # What was worked out since the node and its pods last changed.
        self._devices: dict[str, tuple[DeviceState, ...]] = {}
        self._demands: dict[str, tuple[Pod, Family, PodDemand | None]] = {}

    def note(self, type_: str, obj: Json) -> Pod | Node | None:
        """Take note of one API event; gives the pod or node it is about, else None."""
        if obj["kind"] not in ("Pod", "Node", "ConfigMap", "DaemonSet", "ClusterPolicy", "EC2NodeClass"):
            return None
        value = decoded(obj)
        if isinstance(value, ConfigMap):
            self._note_config(type_, value)
        elif isinstance(value, DaemonSet | ClusterPolicy | NodeClass):
            is_gone = type_ == DELETED
            self._gather(value if is_gone else None, None if is_gone else value)
        elif isinstance(value, Node):
            self._note_node(type_, value)
            return value
        elif isinstance(value, Pod):
            self._note_pod(type_, value)
            return value
        return None

    def _note_node(self, type_: str, node: Node) -> None:
        book = self._book(node.name)
        self._devices.pop(node.name, None)
        self._gather(book.node, None if type_ == DELETED else node)
        self._node_count += (type_ != DELETED) - (book.node is not None)
        book.node = None if type_ == DELETED else node
        self._close(node.name)

    def _note_config(self, type_: str, config_map: ConfigMap) -> None:
        key = config_map.namespace, config_map.name
        forms = self._config_maps.pop(key, [])
        if type_ != DELETED:
            self._config_maps[key] = [config_map, *forms]
        self._judge()

    def _gather(self, before: Witness | None, after: Witness | None) -> None:
        if self._gathered.note(before, after):
            self._judge()

    def _judge(self) -> None:
        latest = of_plugins(forms[0] for _, forms in sorted(self._config_maps.items()))
        forms = [self._config_maps[(each.namespace, each.name)] for each in latest]
        held = readable(forms, self._gathered.evidence(()))
        self._families, _ = judged(held, self._gathered)
        self._devices.clear()

    def _note_pod(self, type_: str, pod: Pod) -> None:
        old = self._pods.pop(pod.key, None)
        for each in (old, pod):
            if each is not None:
                self._devices.pop(each.node_name, None)
        if type_ == DELETED:
            self._demands.pop(pod.key, None)
        self._gather(old, None if type_ == DELETED else pod)
        if old is not None and old.node_name:
            self._book(old.node_name).pods.pop(pod.key, None)
            self._close(old.node_name)
        if type_ != DELETED:
            self._pods[pod.key] = pod
            if pod.node_name and not pod.is_ended:
                self._book(pod.node_name).pods[pod.key] = pod

    def _book(self, name: str) -> NodeBook:
        return self._nodes.setdefault(name, NodeBook())

    def _close(self, name: str) -> None:
        """Forget a node that is gone, once nothing holds anything on it: a month has ten thousand of them."""
        book = self._nodes.get(name)
        if book is not None and book.node is None and not book.pods:
            del self._nodes[name]

    def pods(self) -> Iterable[Pod]:
        """Every pod there is, in no order."""
        return self._pods.values()

    def pod(self, key: str) -> Pod | None:
        """The pod; None when there is none."""
        return self._pods.get(key)

    def nodes(self) -> list[Node]:
        """Every node there is, by name."""
        return [book.node for _, book in sorted(self._nodes.items()) if book.node is not None]

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return self._node_count

    def node(self, name: str) -> Node | None:
        """The node; None when there is none."""
        return self._nodes[name].node if name in self._nodes else None

    def pods_on(self, name: str) -> list[Pod]:
        """The pods that hold something on a node, by key; also when its Node object is gone."""
        return [pod for _, pod in sorted(self._nodes.get(name, NodeBook()).pods.items())]

    def hidden_resources(self) -> frozenset[str]:
        """What kubelet does not show and some family counts."""
        return frozenset(name for family in self._families for name in family.resources)

    def family_of(self, node: Node) -> Family:
        """The sharing family that manages the node's cards."""
        return owner_of(node.labels, node.annotations, self._families)

    def devices(self, name: str) -> tuple[DeviceState, ...]:
        """The cards of a node with what its pods hold; empty while none are registered."""
        node = self.node(name)
        if node is None:
            return ()
        if name not in self._devices:
            self._devices[name] = self._found(node)
        return self._devices[name]

    def _found(self, node: Node) -> tuple[DeviceState, ...]:
        family = self.family_of(node)
        devices = family.inventory(node)
        if devices is None:
            return ()
        occupants = [
            Occupant(pod, None if family.has_record(pod) else self._demand(family, pod))
            for pod in self.pods_on(node.name)
        ]
        return family.occupied(devices, occupants)

    def _demand(self, family: Family, pod: Pod) -> PodDemand | None:
        known = self._demands.get(pod.key)
        if known is None or known[0] is not pod or known[1] is not family:
            demand = family.demand(pod)
            known = self._demands[pod.key] = pod, family, demand if isinstance(demand, PodDemand) else None
        return known[2]


def allocated(devices: Iterable[DeviceState], kind: InstanceType) -> int:
    """How much of the cards of a machine is used, in 1/10000 of a physical card; a broken card counts as it was."""
    return sum(device.allocated_percent_points * kind.eighths_of(device.index) // 8 for device in devices)
