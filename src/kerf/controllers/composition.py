"""All controllers on one set of ports: what `kerf run` and the simulator start."""

from kerf.config import Settings
from kerf.controllers.actuator import Actuator
from kerf.controllers.conditions import Consolidatable, OverlayStatus, PodEvents, PoolStatus
from kerf.controllers.disruption import Disruption
from kerf.controllers.garbagecollection import GarbageCollection
from kerf.controllers.lifecycle import Lifecycle
from kerf.controllers.market import MarketBook
from kerf.controllers.pins import Pins
from kerf.controllers.provisioning import Provisioning
from kerf.controllers.runtime import Controller, Ports, Runtime
from kerf.state import ClusterState


def compose(ports: Ports, settings: Settings, *, assume_node_classes: bool = False) -> Runtime:
    """A runtime that knows nothing yet; `start` it on a running loop.

    `assume_node_classes` takes NodeClasses that do not exist for ready: the simulator has no provider to make them.
    """
    state = ClusterState(assume_node_classes=assume_node_classes)
    book = MarketBook(ports.cloud, ports.clock, settings)
    actuator = Actuator(state, ports.writer, ports.recorder, ports.clock)
    controllers: tuple[Controller, ...] = (
        PodEvents(state, ports),
        Lifecycle(state, ports, book, settings),
        Pins(state, ports, settings),
        Consolidatable(state, ports),
        PoolStatus(state, ports),
        OverlayStatus(state, ports, book),
        Provisioning(state, ports, book, actuator, settings),
        Disruption(state, ports, book, actuator, settings),
        GarbageCollection(state, ports, settings),
    )
    return Runtime(ports, state, controllers)
