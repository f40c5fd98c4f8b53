"""One running replica of Kerf: what `kerf run` puts together, starts, watches over and stops. The composition root:
nothing is put together anywhere else.

Every replica reads the cluster all the time; the one that holds the Lease acts, and one that loses it goes on as a
follower, so neither an API server that restarts nor a frozen process needs an operator to start it again. Whether it
acts for real or as a dry run is decided again whenever Karpenter's own Lease says that another controller owns the same
objects.
"""

import asyncio
import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from kerf.cli.clock import SystemClock
from kerf.cli.exits import DONE, ClusterUnreachable
from kerf.cli.inputs.selectors import parse_selector
from kerf.cli.run.clouds import check_cloud, the_cloud
from kerf.cli.run.decisions import Decisions, answer
from kerf.cli.run.gauges import measure_gpus
from kerf.cli.run.options import RunOptions
from kerf.cli.run.serving import METRICS_PATH, Asking, Serving
from kerf.cloudprovider import CloudProvider
from kerf.clouds.kwok.cloud import Catalogue
from kerf.config import Settings
from kerf.controllers.composition import compose
from kerf.controllers.deciding import Threaded
from kerf.controllers.managed import ManagedReader
from kerf.controllers.market import MarketBook
from kerf.controllers.nodeclaim.garbagecollection import nobodys
from kerf.controllers.runtime import Ports, Runtime
from kerf.controllers.shadow import ShadowBook
from kerf.errors import ApiError
from kerf.kube.client import ClusterTarget, Forbidden, KubeClient, Unauthorized, Unreachable
from kerf.kube.decisions import Doorkeeper
from kerf.kube.election import DRY_RUN_LEASE, LEASE, Election, ElectionSettings, Leadership, karpenter_leader
from kerf.kube.health import measure, problems
from kerf.kube.nodeclasses import KubeEC2NodeClasses
from kerf.kube.preflight import Unsuitable, preflight
from kerf.kube.rbac import needed
from kerf.kube.reader import KubeReader, of_plugins
from kerf.kube.recorder import KubeRecorder
from kerf.kube.resources import OWN, Access, Resource
from kerf.kube.scalables import KubeScalables
from kerf.kube.usage import KubeUsage
from kerf.kube.writer import KubeWriter
from kerf.model.market import Market
from kerf.model.plan import Launch, Plan
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.violations import Violation
from kerf.ports import KubeReader as Reader
from kerf.telemetry import LEADING, PENDING_PODS, logger

_KARPENTER_POLL_S = 10.0
_STOP_S = 5.0
_RETRY_S = 1.0
_SWITCH_S = 0.001
"""The deciding thread gives the interpreter to the loop after so long; Python's own 5 ms add up over one answer."""


def _running_s() -> float:
    """Seconds that no clock change moves and that go on while the machine sleeps, where the system can tell."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LoggedPlans:
    """`kerf.ports.PlanFeed`: one log line a plan that does something."""

    def launching(self, launches: Sequence[Launch]) -> None:
        """Nothing yet: the plan that follows has the words."""

    def publish(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        """Log what is launched, deleted and left."""
        if not plan.is_empty or plan.unplaced:
            logger("plan").info(
                "planned",
                launches=[f"{launch.node_pool}: {launch.offering}" for launch in plan.launches],
                deletions=[deletion.node for deletion in plan.deletions],
                relabels=[relabel.node for relabel in plan.relabels],
                placed=sum(len(launch.pods) for launch in plan.launches) + len(plan.placements),
                unplaced=len(plan.unplaced),
            )

    def refuse(self, snapshot: ClusterSnapshot, market: Market, breaches: Sequence[Violation]) -> None:
        """Nothing: the controller that decided says it."""


async def main(options: RunOptions, settings: Settings) -> int:
    """Run until a signal asks to stop. Raises InputError, and ClusterUnreachable for a cluster Kerf cannot run in.

    A cloud that does not answer at the start is no cluster to run in either.
    """
    leadership, catalogue = Leadership(_running_s), Catalogue(options.catalog, options.region)
    # A mistake of the user's is said as one, whether or not the API server answers.
    check_cloud(options)
    try:
        client = await KubeClient.connect(ClusterTarget(options.kubeconfig, options.context))
        try:
            server = await preflight(client, _needed(options), _granting(options))
            for text in server.degraded:
                logger("kerf").warning("degraded", detail=text)
            logger("kerf").info("connected", server=client.server, version=server.version, follow=settings.follow)
            async with the_cloud(client, options, leadership, catalogue) as cloud:
                return await Replica(client, options, settings, cloud, leadership).run()
        finally:
            await client.close()
    except (Unreachable, Unsuitable) as error:
        raise ClusterUnreachable(str(error)) from error
    except (Unauthorized, Forbidden) as error:
        raise ClusterUnreachable(f"{client.server}: {error}") from error


def _needed(options: RunOptions) -> Iterator[tuple[Access, str]]:
    """What the role must grant, each with its namespace: the same that `kerf manifests` puts into it."""
    for each in needed(options.cloud, is_dry_run=options.is_dry_run, elects=options.elects):
        yield each, options.namespace if each.namespace == OWN else each.namespace


def _granting(options: RunOptions) -> str:
    """The command that prints the roles of `_needed`."""
    return f"kerf manifests --rbac --cloud {options.cloud}{' --dry-run' if options.is_dry_run else ''}"


class Replica:
    """Everything of one process, from start to stop."""

    def __init__(
        self,
        client: KubeClient,
        options: RunOptions,
        settings: Settings,
        cloud: CloudProvider,
        leadership: Leadership,
    ) -> None:
        self._client, self._options, self._settings = client, options, settings
        self._leadership, self._cloud = leadership, cloud
        acting = client.guarded(self._leadership.check) if options.elects else client
        clock = SystemClock(client.clock.now_s)
        self._reader = KubeReader(
            client, decode=of_plugins(settings.plugin_namespaces), on_undecodable=self._undecodable
        )
        self._recorder = KubeRecorder(acting, clock, self._uid)
        classes = cloud.node_classes
        kind = None if classes is None else (classes.group, classes.kind)
        managed = ManagedReader(self._reader, parse_selector(options.managed_selector), kind)
        hides = bool(options.managed_selector) or kind is not None
        reader: Reader = managed if hides else self._reader
        is_foreign = managed.is_foreign if hides else nobodys
        usage = KubeUsage(acting, options.namespace)
        self._decisions = Decisions(LoggedPlans())
        self._deciding = Threaded()
        acts = KubeWriter(acting), self._recorder, self._cloud, self._decisions
        kinds = KubeEC2NodeClasses(acting) if options.cloud == "aws" else None
        ports = Ports(clock, reader, *acts, usage, self._deciding, kinds, KubeScalables(client))
        self._book = MarketBook(self._cloud, clock, settings)
        self._shadow = ShadowBook()
        assumes = options.cloud == "kwok"
        self._runtime: Runtime = compose(
            ports,
            settings,
            assume_node_classes=assumes,
            is_foreign=is_foreign,
            book=self._book,
            shadow_book=self._shadow,
        )
        asking = Asking(Doorkeeper(client).refusal, self._last_decisions)
        refusing = Doorkeeper(client, METRICS_PATH).refusal if options.metrics_auth else None
        self._serving = Serving(self.problems, self._measure, asking, refusing)
        self._is_leading = False
        # Who holds Karpenter's Lease; None until that is known.
        self._karpenter: str | None = None

    # From start to stop.

    async def run(self) -> int:
        """Serve, read, compete for the lead; until SIGTERM or SIGINT. Raises KerfError for an address in use."""
        sys.setswitchinterval(_SWITCH_S)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_log_bug)
        stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        election = self._election()
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(stopping.wait())]
        try:
            health, metrics = await self._serving.start(self._options.health_address, self._options.metrics_address)
            logger("kerf").info("started", health=health, metrics=metrics, dry_run=self._options.is_dry_run)
            await self._look_for_karpenter()
            self._runtime.start()
            self._recorder.start()
            tasks.append(asyncio.create_task(self._watch_karpenter()))
            if election is not None:
                tasks.append(asyncio.create_task(election.run(self._lead, self._follow)))
            else:
                self._lead()
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await self._stop(tasks, election)
        return DONE

    def _election(self) -> Election | None:
        options = self._options
        if not options.elects:
            return None
        name = DRY_RUN_LEASE if options.is_dry_run else LEASE
        identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4()}"
        times = (options.lease_s, options.renew_s, options.retry_s)
        return Election(self._client, ElectionSettings(options.namespace, name, identity, *times), self._leadership)

    async def _stop(self, tasks: Iterable[asyncio.Task[Any]], election: Election | None) -> None:
        logger("kerf").info("stopping")
        self._runtime.stop()
        with suppress(TimeoutError):
            # Said while the lead still holds, because the guard refuses it afterwards.
            async with asyncio.timeout(_STOP_S):
                await self._recorder.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if election is not None:
            await election.release()
        await self._serving.stop()
        self._deciding.close()

    # Leading.

    @property
    def _is_dry_run(self) -> bool:
        return self._options.is_dry_run or (self._karpenter != "" and not self._options.managed_selector)

    def _lead(self) -> None:
        self._is_leading = True
        LEADING.set(1)
        logger("kerf").info("leading", dry_run=self._is_dry_run)
        self._runtime.lead(is_dry_run=self._is_dry_run)

    def _follow(self) -> None:
        self._is_leading = False
        LEADING.set(0)
        logger("kerf").info("following")
        self._runtime.follow()

    # Beside Karpenter.

    async def _watch_karpenter(self) -> None:
        while True:
            await asyncio.sleep(_RETRY_S if self._karpenter is None else _KARPENTER_POLL_S)
            was_dry_run = self._is_dry_run
            await self._look_for_karpenter()
            if self._is_leading and was_dry_run != self._is_dry_run:
                self._follow()
                self._lead()

    async def _look_for_karpenter(self) -> None:
        """Who owns the objects besides us; what cannot be seen stays as it was seen last."""
        try:
            holder = await karpenter_leader(self._client)
        except ApiError as error:
            logger("kerf").info("Karpenter's lease cannot be read", error=str(error))
            return
        # It is the first answer, or another than before; that no other is there at first is no news.
        is_news = holder != (self._karpenter or "")
        self._karpenter = holder
        if is_news and self._options.managed_selector:
            logger("kerf").info("Karpenter's lease", holder=holder, ours=self._options.managed_selector)
        elif is_news:
            logger("kerf").warning("Karpenter leads here: dry run" if holder else "Karpenter leads no more")

    # What others ask.

    def problems(self) -> list[str]:
        """Why this replica is not ready, one line each; empty when it is."""
        lost_s, unready_s = self._client.contact.lost_s, self._options.unready_s
        unanswered = [f"{self._client.server}: no answer for {lost_s:.0f} s"] if lost_s > unready_s else []
        return [*unanswered, *problems(self._reader.health(), unready_s)]

    def _last_decisions(self) -> dict[str, Any] | None:
        """What only this process knows; None while another leads."""
        if not self._is_leading:
            return None
        catalogue = (self._options.catalog or "", self._options.region or "")
        return answer(self._settings, catalogue, self._book, self._decisions, self._shadow)

    def _measure(self) -> None:
        measure(self._reader.health())
        PENDING_PODS.set(len(self._runtime.state.pending()))
        measure_gpus(self._runtime.state.snapshot(time.time()))

    def _uid(self, kind: str, key: str) -> str | None:
        found = self._runtime.state.find(kind, key)
        return getattr(found, "uid", None) or None

    def _undecodable(self, resource: Resource, namespace: str, name: str, _uid: str, error: Exception) -> None:
        self._runtime.misread(resource.kind, f"{namespace}/{name}" if namespace else name, str(error))


def _log_bug(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    logger("kerf").error(context.get("message", "bug"), exc_info=context.get("exception"))
