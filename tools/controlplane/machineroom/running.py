"""A machine room that runs beside a control plane, in a thread of its own."""

import asyncio
import base64
import threading
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kerf.cli.clock import SystemClock
from kerf.clouds.kwok.records import KwokLatencies
from kerf.kube.client import ClusterTarget, KubeClient
from kerf.kube.objects import KubeObjects
from tools.controlplane.machineroom.ec2 import Ec2View
from tools.controlplane.machineroom.nodes import JoinableCluster
from tools.controlplane.machineroom.room import MachineRoom

_TRANSPORTS_CLOSE_S = 0.3


def ca_of(file: Path) -> str:
    """A certificate as EKS and user data have it: the PEM in base64."""
    return base64.b64encode(file.read_bytes()).decode()


class RunningRoom:
    """`with RunningRoom(kubeconfig, cloud, cluster) as room`: acts until the end of the block.

    `kubeconfig` is of a user who may do what kubelets, device plugins and a cloud controller do.
    """

    def __init__(
        self,
        kubeconfig: Path,
        cloud: Ec2View,
        cluster: JoinableCluster,
        *,
        boot_s: float = 1,
        latencies: KwokLatencies | None = None,
    ) -> None:
        self._kubeconfig, self._cloud, self._cluster = kubeconfig, cloud, cluster
        self._boot_s, self._latencies = boot_s, latencies
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        """Connect and begin."""
        self._thread.start()
        self._client = self._call(KubeClient.connect(ClusterTarget(str(self._kubeconfig))))
        store = KubeObjects(self._client)
        self._room = MachineRoom(
            store, SystemClock(), self._cloud, self._cluster, boot_s=self._boot_s, latencies=self._latencies
        )
        self._acting = asyncio.run_coroutine_threadsafe(self._room.run(), self._loop)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop acting; Nodes stay as they are. Raises what has ended the room, which is a bug of its own."""
        failed = self._acting.exception() if self._acting.done() else None
        self._acting.cancel()
        self._call(self._client.close())
        # aiohttp does not wait until the transports of TLS connections have closed.
        self._call(asyncio.sleep(_TRANSPORTS_CLOSE_S))
        self._call(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if failed is not None:
            raise failed

    @property
    def refusals(self) -> dict[str, str]:
        """Why an instance never joins, by its id."""
        return dict(self._room.refusals)

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)
