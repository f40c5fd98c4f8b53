"""What the acted-out machines do over time: join, run their agents and device plugins, answer HAMi, end.

KWOK makes nodes Ready and pods Running, but it knows no machine: something has to bring the Node, and to take it away
as a kubelet that falls silent and a cloud controller would. All of it can be cut off between any two calls, so a step
reads what there is, does the one thing that is due, and is repeated; the order of the writes is such that a repetition
ends the same. An instance whose ConfigMap is gone has ended, whatever is left of its Node.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from kerf.clouds.device_plugins import NEVER_JOINS
from kerf.clouds.kwok.controls import Complaints, ControlBook, Controls
from kerf.clouds.kwok.nodes import Nodes, deleted, ready_status
from kerf.clouds.kwok.plugins import DevicePlugins, is_allocating
from kerf.clouds.kwok.records import (
    DELETED,
    INSTANCE_LABEL,
    INTERRUPTED,
    LISTED,
    NODE,
    InstanceRecord,
    Json,
    ObjectStore,
    date_text,
    read_record,
    record_of,
)
from kerf.errors import DecodeError, KerfError
from kerf.ports import Clock, Conflict, NotFound
from kerf.sharing.hami.records import HANDSHAKE
from kerf.sharing.hami.records import NODE as HAMI_NODE
from kerf.telemetry import logger

INTERRUPT = "kerf.dev/interrupt"
"""Annotation of a Node: `true` makes the cloud take its instance back after the notice."""

_AT_ONCE = 16
_FIRST_RETRY_S, _LAST_RETRY_S = 0.2, 30.0


class Machines:
    """Every machine of the cloud, while this process acts it out."""

    def __init__(
        self, store: ObjectStore, clock: Clock, controls: ControlBook, namespace: str, complaints: Complaints
    ) -> None:
        self._store, self._clock, self._controls, self._namespace = store, clock, controls, namespace
        self._complaints = complaints
        self._plugins = DevicePlugins(store, clock, controls, complaints, self._note)
        self._nodes = Nodes(store, clock, namespace)
        self._begin()

    def _begin(self) -> None:
        self._queue = _Queue(self._clock, self._step)
        self._records: set[str] = set()
        self._node_of: dict[str, str] = {}
        self._looks: dict[str, int] = {}
        self._startup_since: dict[str, float] = {}

    async def run(self) -> None:
        """Act for ever; all that was under way is taken up where the API says it stands."""
        self._begin()
        try:
            async with asyncio.TaskGroup() as group:
                self._queue.start(group)
                group.create_task(self._follow("ConfigMap", f"{INSTANCE_LABEL}=true", self._on_records))
                group.create_task(self._follow("Node", f"{INSTANCE_LABEL}={self._namespace}", self._on_nodes))
                group.create_task(self._follow("Pod", HAMI_NODE, self._on_pods))
                group.create_task(self._watch_controls())
        finally:
            self._queue.stop()

    # What happens.

    async def _follow(self, kind: str, labels: str, seen: Callable[[str, Sequence[Json]], None]) -> None:
        # Of ConfigMaps those of other namespaces are no instances, and nothing that Kerf may read.
        namespace = self._namespace if kind == "ConfigMap" else ""
        pause_s = _FIRST_RETRY_S
        while True:
            try:
                async for what, objects in self._store.watch(kind, namespace=namespace, labels=labels):
                    seen(what, objects)
                    pause_s = _FIRST_RETRY_S
            except KerfError as error:
                logger("kwok").warning("watch lost", kind=kind, error=str(error))
            except Exception as error:
                _report_bug(f"following {kind} objects failed", error)
            await asyncio.sleep(pause_s)
            pause_s = min(_LAST_RETRY_S, 2 * pause_s)

    async def _watch_controls(self) -> None:
        """A fault that is added strikes what works already; one that is removed heals."""
        seen: Controls | None = None
        while True:
            try:
                # Without instances nothing could be struck, and an idle cluster is left in peace.
                if self._records and (controls := await self._controls.read()) is not seen:
                    is_first, seen = seen is None, controls
                    if controls.faults:
                        await self._plugins.strike(await self._read_all())
                    for name in () if is_first else sorted(self._records):
                        self._queue.touch(name)
            except KerfError as error:
                logger("kwok").warning("faults were not looked at", error=str(error))
            await asyncio.sleep(self._controls.defaults.poll_s)

    async def _read_all(self) -> list[InstanceRecord]:
        found = await self._store.list("ConfigMap", namespace=self._namespace, labels=f"{INSTANCE_LABEL}=true")
        return [record for obj in found if (record := self._decoded(obj)) is not None]

    def _on_records(self, what: str, objects: Sequence[Json]) -> None:
        names = {obj["metadata"]["name"] for obj in objects}
        if what == LISTED:
            touched, self._records = self._records | names, names
        else:
            touched = names
            self._records = self._records - names if what == DELETED else self._records | names
        for name in sorted(touched):
            self._queue.touch(name)

    def _on_nodes(self, what: str, objects: Sequence[Json]) -> None:
        if what == LISTED:
            self._node_of, self._looks = {}, {}
        for node in objects:
            name = record_of((node.get("spec") or {}).get("providerID") or "")
            look = None if what == DELETED else _look(node)
            if not name or look == self._looks.get(name):
                continue
            if look is None:
                self._looks.pop(name, None)
                self._node_of.pop(name, None)
                self._startup_since.pop(name, None)
            else:
                self._looks[name], self._node_of[name] = look, node["metadata"]["name"]
            self._queue.touch(name)

    def _on_pods(self, what: str, objects: Sequence[Json]) -> None:
        for pod in objects:
            if what != DELETED and is_allocating(pod):
                self._queue.touch(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")

    # What is done about it.

    async def _step(self, key: str) -> float | None:
        """The next step of one instance, or of the pod `namespace/name`; when to look again."""
        if "/" in key:
            namespace, _, name = key.partition("/")
            await self._plugins.allocate(namespace, name, self._is_ours)
            return None
        try:
            obj = await self._store.get("ConfigMap", self._namespace, key)
        except NotFound:
            return await self._remains(key)
        record = self._decoded(obj)
        if record is None:
            return None
        controls = await self._controls.read()
        end_s = record.end_s(controls.latencies)
        node = await self._nodes.find(record.node_name)
        if end_s is not None and self._clock.now_s() >= end_s:
            await self._end(record, node)
            return None
        due = await (self._run(record, node, controls) if node else self._join(record, controls))
        return min((due_s for due_s in (end_s, due) if due_s is not None), default=None)

    def _decoded(self, obj: Json) -> InstanceRecord | None:
        try:
            return read_record(obj)
        except DecodeError as error:
            self._complaints.about(error)
            return None

    async def _join(self, record: InstanceRecord, controls: Controls) -> float | None:
        """Bring the Node once its time has come. A Node that was deleted does not come again."""
        if record.node_name or record.terminating_s is not None:
            return None
        now, latencies = self._clock.now_s(), controls.latencies
        joins_s = record.up_s(latencies) + latencies.register_s
        if now < joins_s:
            return joins_s
        if await self._controls.strike(NEVER_JOINS, record, now, is_new=True):
            return None
        name = await self._nodes.create(record)
        await self._store.patch("ConfigMap", self._namespace, record.name, {"data": {NODE: name}})
        return now

    async def _run(self, record: InstanceRecord, node: Json, controls: Controls) -> float | None:
        now = self._clock.now_s()
        annotations = node["metadata"].get("annotations") or {}
        if annotations.get(INTERRUPT) == "true" and record.interrupted_s is None:
            change = {"data": {INTERRUPTED: date_text(now)}}
            await self._store.patch("ConfigMap", self._namespace, record.name, change)
            return now
        started_s = await self._start_up(record, node, controls.latencies.startup_s)
        plugin_s = await self._plugins.step(record, node, controls)
        return min((due_s for due_s in (started_s, plugin_s) if due_s is not None), default=None)

    async def _start_up(self, record: InstanceRecord, node: Json, startup_s: float) -> float | None:
        """What the agents do for which startup taints keep pods off."""
        startup = {(taint.key, taint.effect) for taint in record.startup_taints}
        taints = node["spec"].get("taints") or []
        kept = [taint for taint in taints if (taint["key"], taint["effect"]) not in startup]
        if len(kept) == len(taints):
            return None
        due_s = self._startup_since.setdefault(record.name, self._clock.now_s()) + startup_s
        if self._clock.now_s() < due_s:
            return due_s
        version = node["metadata"]["resourceVersion"]
        change = {"metadata": {"resourceVersion": version}, "spec": {"taints": kept or None}}
        await self._store.patch("Node", "", node["metadata"]["name"], change)
        return None

    async def _end(self, record: InstanceRecord, node: Json | None) -> None:
        if node is not None:
            await self._nodes.bury(node)
        await deleted(self._store, "ConfigMap", self._namespace, record.name)

    async def _remains(self, key: str) -> float | None:
        """What is left of an instance that is gone: its Node, until nothing holds it any more."""
        node = await self._nodes.find(self._node_of.get(key, ""))
        if node is None or record_of(node["spec"].get("providerID", "")) != key:
            return None
        await self._nodes.bury(node)
        return None

    def _is_ours(self, node: Json) -> bool:
        return (node["metadata"].get("labels") or {}).get(INSTANCE_LABEL) == self._namespace

    async def _note(self, record: InstanceRecord, key: str, now_s: float) -> None:
        await self._store.patch("ConfigMap", self._namespace, record.name, {"data": {key: date_text(now_s)}})


class _Queue:
    """Steps by key: one at a time each, again when it was touched meanwhile or its time has come, and after errors."""

    def __init__(self, clock: Clock, step: Callable[[str], Awaitable[float | None]]) -> None:
        self._clock, self._step = clock, step
        self._group: asyncio.TaskGroup | None = None
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._running: set[str] = set()
        self._again: set[str] = set()
        self._due: dict[str, float] = {}
        self._failures: dict[str, int] = {}

    def start(self, group: asyncio.TaskGroup) -> None:
        """Take steps in tasks of the group from now on."""
        self._group = group

    def stop(self) -> None:
        """Take no further step; timers that are set come to nothing."""
        self._group = None

    def touch(self, key: str) -> None:
        """Step now, or once more when a step of the key is under way."""
        self._due.pop(key, None)
        if key in self._running:
            self._again.add(key)
        elif self._group is not None:
            work = self._run(key)
            try:
                self._group.create_task(work)
            except RuntimeError:
                # The group is being cancelled, while a watch still reports something.
                work.close()
                self.stop()
            else:
                self._running.add(key)

    async def _run(self, key: str) -> None:
        async with self._slots:
            self._again.discard(key)
            due_s = await self._attempt(key)
        self._running.discard(key)
        if key in self._again:
            self.touch(key)
        elif due_s is not None:
            self._due[key] = due_s
            self._clock.call_at(due_s, lambda: self.touch(key) if self._due.get(key) == due_s else None)

    async def _attempt(self, key: str) -> float | None:
        try:
            due_s = await self._step(key)
        except KerfError as error:
            # What has changed or gone meanwhile is looked at again.
            if not isinstance(error, Conflict | NotFound):
                logger("kwok").warning("step failed", key=key, error=str(error))
        except Exception as error:
            _report_bug(f"the step of {key!r} failed", error)
        else:
            self._failures.pop(key, None)
            return due_s
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return self._clock.now_s() + min(_LAST_RETRY_S, _FIRST_RETRY_S * 2.0 ** min(failures - 1, 16))


def _report_bug(message: str, error: Exception) -> None:
    """Our own bug on one object must not stop the others: its traceback goes to the log."""
    asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})


def _look(node: Json) -> int:
    """Changes with everything of a node that a step reads; not with heartbeats, HAMi's handshake included."""
    metadata, status = node["metadata"], node.get("status") or {}
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != HANDSHAKE}
    parts = (
        metadata.get("uid"),
        metadata.get("labels"),
        annotations,
        metadata.get("finalizers"),
        "deletionTimestamp" in metadata,
        node["spec"].get("taints"),
        status.get("capacity"),
        status.get("allocatable"),
        ready_status(node),
    )
    return hash(msgspec.json.encode(parts, order="sorted"))
