"""The device plugins of the acted-out machines: what a node shows the cluster of its cards, and when.

A device plugin is the pod of a DaemonSet, and no GPU can be used before it runs. Where the cluster has HAMi's
DaemonSet, the cards therefore register only once its pod on the node is Running; a DaemonSet without tolerations that a
taint keeps off means cards that never come, here as on real machines. Without such a DaemonSet the taints alone decide.

What is registered follows from the instance, the faults that struck it and the clock; it is written when the node shows
something else. So nothing is lost by a restart, and a fault that is taken off the list heals.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kerf.clouds.device_plugins import (
    LOSS_DELAY_S,
    LOST,
    NEVER_REGISTERS,
    REGISTERS_LESS,
    UNHEALTHY,
    cards_of,
    first_unhealthy,
    may_start,
    mock_amounts,
    registering_less,
    registration,
)
from kerf.clouds.kwok.controls import Complaints, ControlBook, Controls
from kerf.clouds.kwok.records import PLUGIN_STARTED, REGISTERED, InstanceRecord, Json, ObjectStore, date_text
from kerf.errors import DecodeError
from kerf.manifests.decode import decode_object
from kerf.model.constraints import Taint, untolerated
from kerf.model.evidence import NO_EVIDENCE, PluginEvidence
from kerf.model.gpu import DeviceState
from kerf.model.nodeclaim import UNREGISTERED_TAINT
from kerf.model.pluginnamespaces import PLUGIN_NAMESPACES
from kerf.model.quantities import quantity, quantity_text
from kerf.model.snapshot import ConfigMap, DaemonSet
from kerf.model.times import instant_s
from kerf.ports import Clock, NotFound
from kerf.sharing.family import Family
from kerf.sharing.gathering import Gathered
from kerf.sharing.hami.config import HamiConfig
from kerf.sharing.hami.family import Hami
from kerf.sharing.hami.records import BIND_PHASE, HANDSHAKE, LOCK, TO_ALLOCATE
from kerf.sharing.registry import CONFIG_MAPS, configured, owner_of, problem_in

HANDSHAKE_S = 30
"""How often HAMi's device plugin says that it is alive."""

_REPORTED = "Reported_"
_COMPONENT = "app.kubernetes.io/component"
_GPU_NAMES = "nvidia.com/"


@dataclass(frozen=True, slots=True)
class _Installed:
    """What the cluster has of device plugins, as it was at `read_s`: HAMi's configuration, and DaemonSets."""

    read_s: float
    config_maps: tuple[ConfigMap, ...] = ()
    evidence: PluginEvidence = NO_EVIDENCE
    hami: tuple[Json, ...] = ()
    mock: tuple[Json, ...] = ()


Note = Callable[[InstanceRecord, str, float], Awaitable[None]]
"""Keeps the date of a step (PLUGIN_STARTED, REGISTERED) with an instance, wherever its record is kept."""


class DevicePlugins:
    """The device plugins of all machines. What they remember goes through `note`, so any cloud can act them out."""

    def __init__(
        self, store: ObjectStore, clock: Clock, controls: ControlBook, complaints: Complaints, note: Note
    ) -> None:
        self._store, self._clock, self._controls, self._note = store, clock, controls, note
        self._complain = complaints.about
        self._installed = _Installed(float("-inf"))

    async def step(self, record: InstanceRecord, node: Json, controls: Controls) -> float | None:
        """Do what is due on a node; when to look again, None for not before something changes. Raises ApiError."""
        if not record.devices or UNREGISTERED_TAINT in taints_of(node):
            return None
        now, poll_s = self._clock.now_s(), controls.latencies.poll_s
        await self._look_around(poll_s)
        family = self._family(node)
        if family is None:
            return now + poll_s
        started_s = record.plugin_started_s
        if started_s is None:
            if not await self._has_started(family, node):
                return now + poll_s
            started_s = now
            await self._note(record, PLUGIN_STARTED, now)
        registers_s = started_s + controls.latencies.devices_ready_s
        if now < registers_s:
            return registers_s
        return await self._registered(record, node, family, poll_s)

    async def strike(self, records: Iterable[InstanceRecord]) -> None:
        """Let faults that have nodes left strike cards that work already, by the name of their node."""
        working = (record for record in records if record.registered_s is not None)
        for record in sorted(working, key=lambda record: record.node_name):
            for kind in (UNHEALTHY, LOST):
                await self._controls.strike(kind, record, self._clock.now_s(), is_new=True)

    async def allocate(self, namespace: str, name: str, is_ours: Callable[[Json], bool]) -> None:
        """The plugin's part of a bind by HAMi: free the node for the next one, and say that it went well.

        Nothing where the pod waits for no plugin, or for that of a node that is not ours.
        """
        try:
            pod = await self._store.get("Pod", namespace, name)
            node = await self._store.get("Node", "", pod["spec"].get("nodeName") or "-")
        except NotFound:
            return
        if not is_allocating(pod) or not is_ours(node):
            return
        lock = _texts_of(node, "annotations").get(LOCK, "")
        # HAMi's lock is `time,namespace,pod`; older ones are the time alone.
        if lock and lock.partition(",")[2] in ("", f"{namespace},{name}"):
            await self._store.patch("Node", "", node["metadata"]["name"], {"metadata": {"annotations": {LOCK: None}}})
        change = {"uid": pod["metadata"]["uid"], "annotations": {BIND_PHASE: "success", TO_ALLOCATE: ""}}
        await self._store.patch("Pod", namespace, name, {"metadata": change})

    async def _look_around(self, poll_s: float) -> None:
        """Read what is installed, for all nodes together: it seldom changes, and every node asks."""
        now = self._clock.now_s()
        if now < self._installed.read_s + poll_s:
            return
        maps = [
            config_map
            for name in CONFIG_MAPS
            for config_map in await self._store.list("ConfigMap", fields=f"metadata.name={name}")
            # A tenant may give one the same name, anywhere.
            if config_map["metadata"]["namespace"] in PLUGIN_NAMESPACES
        ]
        daemons = await self._store.list("DaemonSet")
        mock = tuple(daemon for daemon in daemons if "mock-device-plugin" in daemon["metadata"]["name"])
        hami = tuple(daemon for daemon in daemons if daemon not in mock and _is_hami(daemon))
        self._installed = _Installed(now, tuple(map(_config_map, maps)), _evidence(daemons), hami, mock)

    def _family(self, node: Json) -> Family | None:
        """The family of the node's cards; None when its plugin cannot start because its configuration is broken."""
        labels, annotations = _texts_of(node, "labels"), _texts_of(node, "annotations")
        maps, evidence = self._installed.config_maps, self._installed.evidence
        problem = problem_in(maps, evidence)
        if problem is not None:
            self._complain(problem)
        family = owner_of(labels, annotations, configured(maps, evidence))
        return None if isinstance(family, Hami) and family.fault is not None else family

    async def _has_started(self, family: Family, node: Json) -> bool:
        if family.selector is None:
            return True
        if self._installed.hami:
            return await self._runs(self._installed.hami, node)
        return may_start(family, taints_of(node))

    async def _registered(self, record: InstanceRecord, node: Json, family: Family, poll_s: float) -> float | None:
        devices, changes_s = await self._devices(record, node, family)
        if devices is None:
            return None
        # What a configuration before this one has shown is there no more.
        before = [name for name in (node.get("status") or {}).get("allocatable") or {} if name.startswith(_GPU_NAMES)]
        registered = registration(family, devices, before)
        amounts = dict(registered.amounts)
        due = [changes_s]
        if isinstance(family, Hami):
            mock, is_coming = await self._mock_amounts(family.config, devices, node)
            amounts |= mock
            due.append(self._clock.now_s() + poll_s if is_coming else None)
            due.append(await self._report(node, registered.annotations))
        await self._show(node, amounts)
        if record.registered_s is None:
            await self._note(record, REGISTERED, self._clock.now_s())
        return min((due_s for due_s in due if due_s is not None), default=None)

    async def _devices(
        self, record: InstanceRecord, node: Json, family: Family
    ) -> tuple[tuple[DeviceState, ...] | None, float | None]:
        """The cards as they register now, and when that changes by itself; None while the plugin reports none."""
        now, is_new = self._clock.now_s(), record.registered_s is None
        if is_new and await self._controls.strike(NEVER_REGISTERS, record, now, is_new=True):
            return None, None
        name = node["metadata"]["name"]
        labels, annotations = _texts_of(node, "labels"), _texts_of(node, "annotations")
        devices = cards_of(family, record.devices, name, labels, annotations)
        struck = {
            kind: await self._controls.strike(kind, record, now, is_new=is_new)
            for kind in (REGISTERS_LESS, UNHEALTHY, LOST)
        }
        less, lost = struck[REGISTERS_LESS], struck[LOST]
        if less is not None:
            devices = registering_less(family, devices, less[0].memory_percent)
        if struck[UNHEALTHY] is not None:
            devices = first_unhealthy(devices)
        if lost is None:
            return devices, None
        registered_s = now if record.registered_s is None else record.registered_s
        works_until_s = lost[1] if lost[1] > registered_s else registered_s + LOSS_DELAY_S
        return ((), None) if now >= works_until_s else (devices, works_until_s)

    async def _mock_amounts(
        self, config: HamiConfig, devices: Sequence[DeviceState], node: Json
    ) -> tuple[Mapping[str, int], bool]:
        """What a mock device plugin adds up on the node, and whether its pod is still to come."""
        daemons = self._installed.mock
        if not daemons:
            return {}, False
        if not await self._runs(daemons, node):
            return {}, any(_fits(daemon, node) for daemon in daemons)
        return mock_amounts(config, devices), False

    async def _runs(self, daemons: Sequence[Json], node: Json) -> bool:
        """Whether a pod of one of them is Running on the node."""
        uids = {daemon["metadata"]["uid"] for daemon in daemons}
        pods = await self._store.list("Pod", fields=f"spec.nodeName={node['metadata']['name']}")
        return any(
            (pod.get("status") or {}).get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
            and any(owner["uid"] in uids for owner in pod["metadata"].get("ownerReferences") or ())
            for pod in pods
        )

    async def _report(self, node: Json, annotations: Mapping[str, str]) -> float:
        """HAMi's register and handshake; when the next one is due."""
        now, held = self._clock.now_s(), _texts_of(node, "annotations")
        wanted = dict(annotations)
        due_s = _reported_s(held.get(HANDSHAKE, "")) + HANDSHAKE_S
        if now >= due_s:
            wanted[HANDSHAKE] = _REPORTED + date_text(now)
            due_s = now + HANDSHAKE_S
        if any(held.get(key) != text for key, text in wanted.items()):
            await self._store.patch("Node", "", node["metadata"]["name"], {"metadata": {"annotations": wanted}})
        return due_s

    async def _show(self, node: Json, amounts: Mapping[str, int]) -> None:
        """What kubelet shows of the cards."""
        status = node.get("status") or {}
        parts = ("capacity", "allocatable")
        texts = {name: quantity_text(name, amount) for name, amount in sorted(amounts.items())}
        if any(_amount(status, part, name) != amounts[name] for part in parts for name in amounts):
            change = {"status": dict.fromkeys(parts, texts)}
            await self._store.patch("Node", "", node["metadata"]["name"], change, subresource="status")


def is_allocating(pod: Json) -> bool:
    """Whether HAMi has bound the pod and waits for the device plugin."""
    return _texts_of(pod, "annotations").get(BIND_PHASE) == "allocating" and bool(pod["spec"].get("nodeName"))


def taints_of(node: Json) -> tuple[Taint, ...]:
    """The taints of a Node."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return tuple(Taint(taint["key"], taint.get("value") or "", taint["effect"]) for taint in taints)


def _texts_of(obj: Json, part: str) -> dict[str, str]:
    return obj["metadata"].get(part) or {}


def _config_map(obj: Json) -> ConfigMap:
    metadata = obj["metadata"]
    labels = metadata.get("labels") or {}
    return ConfigMap(metadata.get("namespace", ""), metadata["name"], obj.get("data") or {}, labels)


def _evidence(daemons: Iterable[Json]) -> PluginEvidence:
    """What the DaemonSets say of device plugins. Nodes say it of themselves; what pods ask is not looked at."""
    gathered = Gathered()
    for daemon in daemons:
        try:
            value = decode_object(daemon)
        except DecodeError:
            continue
        if isinstance(value, DaemonSet):
            gathered.note(None, value)
    return gathered.evidence(())


def _is_hami(daemon: Json) -> bool:
    name = daemon["metadata"]["name"]
    is_named = "hami" in name and "device-plugin" in name
    return is_named or _texts_of(daemon, "labels").get(_COMPONENT) == "hami-device-plugin"


def _fits(daemon: Json, node: Json) -> bool:
    """Whether the DaemonSet would put a pod on the node."""
    try:
        value = decode_object(daemon)
    except DecodeError:
        return False
    if not isinstance(value, DaemonSet):
        return False
    spec, labels = value.pod.spec, _texts_of(node, "labels")
    is_selected = any(terms.unsatisfied_by(labels) is None for terms in spec.alternatives)
    return is_selected and untolerated(taints_of(node), spec.tolerations) is None


def _amount(status: Json, part: str, name: str) -> int | None:
    text = (status.get(part) or {}).get(name)
    return None if text is None else quantity(text)


def _reported_s(handshake: str) -> float:
    """When HAMi's plugin has last reported; long ago when it has not, or was asked since."""
    try:
        return instant_s(handshake.removeprefix(_REPORTED)) if handshake.startswith(_REPORTED) else float("-inf")
    except ValueError:
        return float("-inf")
