"""What a scenario says will happen and what it expects: one value for each kind of step.

Times are seconds from the start of the scenario. `place` and `path` are where the step stands, for a message about it
that only the run can give (a pod that is not there).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kerf.sim.kubernetes.device_plugins import DeviceFault
from kerf.sim.objects import Json


@dataclass(frozen=True, slots=True)
class Scale:
    """Set the replicas of a workload; `kind` is Deployment, StatefulSet or ReplicaSet."""

    kind: str
    namespace: str
    name: str
    replicas: int


@dataclass(frozen=True, slots=True)
class StockOut:
    """The cloud is sold out of these offerings; None: of all. `for_s` None: until the end."""

    instance_type: str | None = None
    zone: str | None = None
    capacity_type: str | None = None
    for_s: int | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """Offerings of a type cost so much an hour from now, in millionths; None: in all zones, of all capacity types."""

    instance_type: str
    price_micro: int
    zone: str | None = None
    capacity_type: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """The devices of nodes misbehave, see `DeviceFault`."""

    kind: str
    node_pool: str
    nodes: int
    memory_percent: int

    def made(self) -> DeviceFault:
        """As the device plugins take it."""
        return DeviceFault(self.kind, self.node_pool, self.nodes, self.memory_percent)


@dataclass(frozen=True, slots=True)
class Interrupt:
    """The cloud takes back running instances of a pool, the longest running first."""

    node_pool: str
    nodes: int


@dataclass(frozen=True, slots=True)
class Throttle:
    """The cloud refuses every call for a while."""

    for_s: int
    retry_after_s: int


@dataclass(frozen=True)
class Refuse:
    """kube-scheduler takes no node for pods with these labels, as a plugin or extender would that Kerf does not know.

    `for_s` None: until the end.
    """

    namespace: str
    labels: Mapping[str, str]
    message: str
    for_s: int | None = None


@dataclass(frozen=True, slots=True)
class LostReply:
    """The next launches succeed, and Kerf does not learn of it."""

    launches: int


@dataclass(frozen=True)
class Apply:
    """Create objects, or replace their spec, labels and annotations where they exist."""

    objects: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object; the namespace of a cluster-wide one is empty."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """A condition of a Node becomes what an agent on it would report."""

    node: str
    type: str
    status: str


@dataclass(frozen=True, slots=True)
class Restart:
    """Kerf is killed and started again."""


Action = (
    Scale
    | StockOut
    | Price
    | Fault
    | Interrupt
    | Throttle
    | Refuse
    | LostReply
    | Apply
    | Delete
    | NodeCondition
    | Restart
)


@dataclass(frozen=True)
class Step:
    """An action and its time."""

    at_s: int
    action: Action
    place: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class NodesExpected:
    """So many nodes of a pool (of all when empty), of a type if one is named; `most` is the largest number so far,
    counted in instances that exist."""

    node_pool: str = ""
    instance_type: str = ""
    capacity_type: str = ""
    count: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class PodsExpected:
    """So many pods wait for a node, or run; daemons do not count."""

    namespace: str = ""
    pending: int | None = None
    running: int | None = None


@dataclass(frozen=True, slots=True)
class CostExpected:
    """What is paid per hour, and what has been paid in total, in millionths."""

    per_hour_micro: int | None = None
    total_micro: int | None = None


@dataclass(frozen=True, slots=True)
class EventExpected:
    """Kerf has posted an event of this reason whose text contains `contains`, `count` times (None: at least once).

    `regards` is `Kind/namespace/name` or `Kind/name`; empty: any object.
    """

    reason: str
    contains: str = ""
    regards: str = ""
    count: int | None = None


Expected = NodesExpected | PodsExpected | CostExpected | EventExpected


@dataclass(frozen=True)
class Expectation:
    """What should be true at a time; `written` is how the scenario says it."""

    at_s: int
    expected: Expected
    written: Json
    place: str = ""
