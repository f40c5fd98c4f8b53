"""Figures of a live cluster: what reading it costs, and what it costs to hold it while nothing happens.

Run as `python -m benchmarks.bench_live pods` or `... cluster`: a process of its own for each set, which prints its
figures as JSON. The bytes are made by another process, as those of an API server are, and neither its time nor its
memory counts. Waiting is in virtual time, with the controllers of `kerf run` on a cloud and a writer that only agree.
"""

import asyncio
import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import generate, live_objects
from benchmarks.bench_openb import loop_s
from kerf.catalog import aws
from kerf.cloudprovider import CloudProvider, Instance
from kerf.config import Settings
from kerf.controllers.composition import compose
from kerf.controllers.runtime import Ports
from kerf.manifests.decode import decode_object
from kerf.manifests.live import decode_list, decode_live
from kerf.model.instancetypes import OfferingKey
from kerf.model.market import Market
from kerf.model.nodeclaim import CONSOLIDATABLE, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.snapshot import Event, Synced, Upserted, Watched
from kerf.sim.clock import VirtualClock, VirtualLoop
from kerf.state import ClusterState

_PAGE = 500
_START_S = 1767657600  # a day after the objects were made
_KINDS = {"pod": ("Pod", "v1"), "node": ("Node", "v1"), "claim": ("NodeClaim", "karpenter.sh/v1")}
_SURROUNDINGS = {
    "namespace": ("Namespace", "v1"),
    "service": ("Service", "v1"),
    "volume_claim": ("PersistentVolumeClaim", "v1"),
    "volume": ("PersistentVolume", "v1"),
    "storage_class": ("StorageClass", "storage.k8s.io/v1"),
    "csi_node": ("CSINode", "storage.k8s.io/v1"),
    "runtime_class": ("RuntimeClass", "node.k8s.io/v1"),
}
_TYPE = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.4xlarge"]}


def write(made: str, count: int) -> None:
    """The pages of a list to standard output, each after its length in eight bytes."""
    shapes = {"shapes": min(2_000, max(1, count // 20))} if made == "pod" else {}
    make = partial(getattr(live_objects, made), **shapes)
    for start in range(0, count, _PAGE):
        items = [make(number) for number in range(start, min(start + _PAGE, count))]
        page = json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}, separators=(",", ":")).encode()
        sys.stdout.buffer.write(len(page).to_bytes(8, "big") + page)


def _pages(made: str, count: int) -> Iterator[bytes]:
    arguments = [sys.executable, "-m", "benchmarks.bench_live", "write", made, str(count)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while length := process.stdout.read(8):
            yield process.stdout.read(int.from_bytes(length, "big"))


def _values(made: str, count: int) -> Iterator[tuple[float, list[Watched]]]:
    """(CPU seconds, values) page by page; without the collector, as the reader does it."""
    kind, version = (_KINDS | _SURROUNDINGS)[made]
    for page in _pages(made, count):
        gc.disable()
        start = time.process_time()
        values = [value for raw in decode_list(page).items if (value := decode_live(raw, kind, version)) is not None]
        seconds = time.process_time() - start
        gc.enable()
        yield seconds, values


def _rss_mib() -> float:
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * resource.getpagesize() / 2**20


def pods(count: int = 10_000) -> dict[str, float]:
    """CPU to read so many pods of 8 KB, in loops of `bench_openb`, and MiB that all of them take with what is
    remembered to decode them."""
    gc.collect()
    before, seconds = _rss_mib(), 0.0
    held: list[Watched] = []
    for spent, values in _values("pod", count):
        seconds += spent
        held += values
    gc.collect()
    return {f"live_{count}_pods_loops": seconds / loop_s(), f"live_{count}_pods_mib": _rss_mib() - before}


def surroundings(count: int = 5_000) -> dict[str, float]:
    """CPU microseconds for each of so many objects of the seven kinds that pods lead to, and MiB that a state takes."""
    gc.collect()
    before, seconds, state = _rss_mib(), 0.0, ClusterState()
    for made in _SURROUNDINGS:
        for spent, values in _values(made, count):
            start = time.process_time()
            for value in values:
                state.apply(Upserted(value))
            seconds += spent + time.process_time() - start
    state.snapshot(0)
    gc.collect()
    objects = count * len(_SURROUNDINGS)
    return {"live_surrounding_us": seconds / objects * 1e6, f"live_{objects}_surroundings_mib": _rss_mib() - before}


class _Reader:
    """What there is; then each node's status once in five minutes, as kubelet sends it, which takes it `others_s`."""

    def __init__(self, clock: VirtualClock, pods_: int, nodes: int) -> None:
        self._clock, self._counts = clock, {"pod": pods_, "node": nodes, "claim": nodes}
        self.others_s = 0.0

    async def events(self) -> AsyncIterator[Event]:
        """See `kerf.ports.KubeReader`."""
        yield Upserted(_pool())
        for made, count in self._counts.items():
            for _, values in _values(made, count):
                for value in values:
                    yield Upserted(value)
        yield Synced()
        nodes = self._counts["node"]
        for number in range(10**9):
            await self._clock.sleep_until(self._clock.now_s() + 300 / nodes)
            start = time.process_time()
            node = live_objects.node(number % nodes)
            node["metadata"]["resourceVersion"] = str(10**9 + number)
            text = json.dumps(node).encode()
            self.others_s += time.process_time() - start
            heartbeat = decode_live(text, "Node", "v1")
            assert heartbeat is not None
            yield Upserted(heartbeat)


def _pool() -> NodePool:
    """A pool whose nodes are full and of the only type it allows, so that nothing is to be bought or sold."""
    pool = generate.pool()
    pool["metadata"]["uid"] = "pool"
    pool["spec"]["template"]["spec"]["requirements"].append(_TYPE)
    value = decode_object(pool)
    assert isinstance(value, NodePool)
    return value


class _Agreeing:
    """A writer, recorder and feed to which everything is right; it gives back what it was given."""

    def __getattr__(self, name: str) -> Any:
        async def agree(value: Any, *_: Any, **__: Any) -> Any:
            return value

        return (lambda *_: None) if name in ("record", "publish") else agree


class _Cloud(CloudProvider):
    """A cloud that has launched an instance for each claim."""

    name, currency = "aws", "USD"

    def __init__(self, market: Market, count: int) -> None:
        self._market, self._instances = market, tuple(_instance(number) for number in range(count))

    async def instance_types(self, pool: object) -> Any:
        """See `kerf.cloudprovider.CloudProvider`."""
        return self._market.types

    async def list_instances(self) -> tuple[Instance, ...]:
        """See `kerf.cloudprovider.CloudProvider`."""
        return self._instances

    async def create(self, claim: NodeClaim) -> Instance:
        """Nothing is bought while nothing happens."""
        raise NotImplementedError

    async def delete(self, provider_id: str) -> None:
        """Nothing goes while nothing happens."""
        raise NotImplementedError


def _instance(number: int) -> Instance:
    claim = live_objects.claim(number)
    identity, offering = claim["metadata"], OfferingKey("m5.4xlarge", "us-east-1a", "on-demand")
    return Instance(claim["status"]["providerID"], identity["uid"], identity["name"], offering)


async def _idle(pods_: int, nodes: int) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    clock = VirtualClock(loop, _START_S)
    agreeing: Any = _Agreeing()
    cloud: Any = _Cloud(aws.load(), nodes)
    reader = _Reader(clock, pods_, nodes)
    runtime = compose(Ports(clock, reader, agreeing, agreeing, cloud, agreeing), Settings())
    began = time.process_time()
    runtime.start()
    runtime.lead()
    await clock.sleep_until(_START_S + 60)
    started = time.process_time() - reader.others_s
    await clock.sleep_until(_START_S + 660)
    idle = time.process_time() - reader.others_s - started
    runtime.stop()
    gc.collect()
    return {
        "live_start_s": started - began,
        "live_idle_percent": idle / 600 * 100,
        "live_cluster_rss_mib": _rss_mib(),
        **_snapshots(runtime.state),
    }


def _snapshots(state: ClusterState) -> dict[str, float]:
    """Milliseconds of a snapshot after one claim, and so one node, has changed; the best of five."""
    best = float("inf")
    for claim in state.claims()[:5]:
        state.snapshot(0)
        state.apply(Upserted(replace(claim.without_condition(CONSOLIDATABLE), resource_version="changed")))
        start = time.perf_counter()
        state.snapshot(0)
        best = min(best, time.perf_counter() - start)
    return {"live_snapshot_ms": best * 1e3}


def cluster(pods_: int = 100_000, nodes: int = 5_000) -> dict[str, float]:
    """CPU seconds of the start and its first minute, MiB of the process, and percent of a core in ten quiet minutes."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_idle(pods_, nodes))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], int(sys.argv[3]))
    else:
        measured: dict[str, Callable[..., dict[str, float]]] = {
            "pods": pods,
            "surroundings": surroundings,
            "cluster": cluster,
        }
        print(json.dumps(measured[sys.argv[1]](*map(int, sys.argv[2:]))))
