"""All controllers on one set of ports: what `kerf run` and the simulator start."""

from collections.abc import Callable
from dataclasses import replace

from kerf.config import Settings
from kerf.controllers.actuator import Actuator
from kerf.controllers.capacitybuffers import CapacityBuffers
from kerf.controllers.cloudloops import CloudLoops
from kerf.controllers.conditions import Consolidatable, OverlayStatus, PodEvents, PoolStatus
from kerf.controllers.disruption import DisruptionController
from kerf.controllers.lastword import LastWord
from kerf.controllers.market import MarketBook
from kerf.controllers.nodeclaim.consistency import Consistency
from kerf.controllers.nodeclaim.drift import Drift
from kerf.controllers.nodeclaim.expiration import Expiration
from kerf.controllers.nodeclaim.following import Followed
from kerf.controllers.nodeclaim.garbagecollection import GarbageCollection, nobodys
from kerf.controllers.nodeclaim.health import Health
from kerf.controllers.nodeclaim.lifecycle import Lifecycle
from kerf.controllers.nodeclaim.overload import Overload
from kerf.controllers.nodeclaim.pricecaps import PriceCaps
from kerf.controllers.nodeclaim.replacing import Replacing
from kerf.controllers.nodeclasses import NodeClassLoop
from kerf.controllers.nodepool.registration import RegistrationHealth
from kerf.controllers.nodepool.sharing import SharingStatus
from kerf.controllers.nodepool.static import StaticPools
from kerf.controllers.options import options_of
from kerf.controllers.pins import Pins
from kerf.controllers.prewarm import Prewarm
from kerf.controllers.provisioning import Provisioning
from kerf.controllers.provisioningrequests import ProvisioningRequests
from kerf.controllers.runtime import Controller, Ports, Runtime
from kerf.controllers.shadow import Shadow, ShadowBook, ShadowComparison, ShadowRecorder
from kerf.controllers.usage import UsageBook, UsageHistory
from kerf.controllers.windows import CapacityWindows
from kerf.state import ClusterState


def compose(
    ports: Ports,
    settings: Settings,
    *,
    assume_node_classes: bool = False,
    is_foreign: Callable[[str], bool] = nobodys,
    book: MarketBook | None = None,
    shadow_book: ShadowBook | None = None,
) -> Runtime:
    """A runtime that knows nothing yet; `start` it on a running loop, and let it `lead`.

    `assume_node_classes` takes NodeClasses that do not exist for ready: the simulator has no provider to make them.
    `is_foreign` knows the uids and provider ids of claims that exist and that the reader hides, because they are
    another's. A dry run plans, explains and publishes; nothing in it writes but the recorder.
    Give a `book` and a `shadow_book` to show what they keep.
    """
    state = ClusterState(assume_node_classes=assume_node_classes, plugin_namespaces=settings.plugin_namespaces)
    book = book or MarketBook(ports.cloud, ports.clock, settings)
    shadow, beside = Shadow(ports.recorder), replace(ports, recorder=ShadowRecorder(ports.recorder))
    actuator = Actuator(state, ports.writer, ports.recorder, ports.clock, settings.one_age_s)
    usage = UsageBook()

    def controllers() -> tuple[Controller, ...]:
        provisioning = Provisioning(state, ports, book, actuator, settings)
        health = RegistrationHealth(state, ports)
        return (
            PodEvents(state, ports),
            health,
            Lifecycle(state, ports, book, settings, health),
            Consistency(state, ports),
            Pins(state, ports, settings),
            Consolidatable(state, ports),
            PoolStatus(state, ports),
            OverlayStatus(state, ports, book),
            SharingStatus(state, ports, book),
            PriceCaps(state, ports, book, settings),
            Prewarm(state, ports),
            provisioning,
            LastWord(state, ports, provisioning.expectations, settings),
            ProvisioningRequests(state, ports, book, settings),
            CapacityBuffers(state, ports, book, settings),
            DisruptionController(state, ports, book, actuator, settings),
            Replacing(state, ports, book, actuator, settings),
            Expiration(state, ports, actuator),
            StaticPools(state, ports, actuator),
            Health(state, ports, repairs=settings.node_repair != "Off"),
            GarbageCollection(state, ports, settings, is_foreign),
            CloudLoops(state, ports, book),
            NodeClassLoop(state, ports),
            Drift(state, ports),
            Followed(state),
            CapacityWindows(state, ports, book, settings),
            UsageHistory(state, ports, usage, settings),
            Overload(state, ports, usage, settings),
        )

    def dry_run() -> tuple[Controller, ...]:
        return (
            Provisioning(state, beside, book, shadow, settings),
            CapacityBuffers(state, beside, book, settings, writes=False),
            DisruptionController(state, beside, book, shadow, settings),
            UsageHistory(state, beside, usage, settings, writes=False),
            ShadowComparison(state, beside, book, shadow_book or ShadowBook(), options_of(settings)),
            CloudLoops(state, beside, book, is_dry_run=True),
            NodeClassLoop(state, beside, is_dry_run=True),
        )

    return Runtime(ports, state, controllers, dry_run)
