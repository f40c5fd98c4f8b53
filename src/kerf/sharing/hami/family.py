"""HAMi: parts of NVIDIA cards by memory, cores and slots, chosen by HAMi's own scheduler.

Kerf does not decide where a slice goes; it must foresee what HAMi will decide, because HAMi takes the node and the
card in one step and nothing can be moved afterwards. This file is the family; what HAMi's webhook makes of a pod is in
`admission`, which cards its scheduler takes in `fit`, and how it keeps its books in `records`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property

from kerf.errors import DecodeError
from kerf.model.causes import Cause, Name, Quoted
from kerf.model.evidence import NO_EVIDENCE, DevicePlugin, PluginEvidence, Project
from kerf.model.gpu import NVIDIA_GPU, DeviceShape, DeviceState, Slice
from kerf.model.nodes import Node
from kerf.model.plan import Stage
from kerf.model.pods import HAMI_SCHEDULER, Pod, PodDemand
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap, ResourceQuota
from kerf.sharing.family import SHARING, Fit, NoFit, Occupant, Refused
from kerf.sharing.hami.admission import (
    IGNORE_LABEL,
    Admitted,
    Denied,
    admit,
    asked,
    is_dropped,
    limits_of,
    overflows,
    requests_of,
)
from kerf.sharing.hami.config import (
    CHART_DEFAULTS,
    ConfigsDiffer,
    HamiConfig,
    HeldConfig,
    chosen,
    find_configs,
    with_mounted,
)
from kerf.sharing.hami.fit import Headroom, Request, Segment, Shortage, node_score, place
from kerf.sharing.hami.mig import HAMI_MODE, allowed_profiles
from kerf.sharing.hami.occupancy import booked, record_of, recorded_use, with_occupants
from kerf.sharing.hami.options import MIG_MODE, HamiOptions, WeightsError, read_options
from kerf.sharing.hami.records import NODE, is_registered, node_devices, node_pair_scores
from kerf.sharing.hami.refusals import (
    WebhookRefuses,
    WeightsUnreadable,
    dropped_request,
    foreign_scheduler,
    no_gpu_asked,
    overflowing_count,
)
from kerf.sharing.hami.shortage import unfit
from kerf.sharing.installed import runs_on
from kerf.sharing.nvidia.device_plugin import states_configuration
from kerf.sharing.nvidia.mig_geometry import most_of
from kerf.sharing.nvidia.mig_parted import states_layouts


@dataclass(frozen=True, slots=True)
class NoProfileAllowed(Cause):
    """The pool's HAMi runs in MIG mode, and its allowlist has no profile for a GPU model of the node."""

    model: Name


class Basis(IntEnum):
    """What says that HAMi is in the cluster, from the least to the best: the label alone is an assumption."""

    LABEL = 0
    ASKED = 1
    INSTALLED = 2


@dataclass(frozen=True)
class Hami:
    """The family, as the cluster configures HAMi.

    `selector` is the node label by which its device plugin chooses its nodes: the chart's, or that of its DaemonSet.
    `honours_pins` is for a stand-in of the scheduler: it obeys `use-gpuuuid` also where Kerf wrote it, which planning
    ignores. `has_config` and `has_rival_config` say whether a ConfigMap of HAMi, and of NVIDIA's plugins, is in the
    cluster. `own` are its DaemonSets. `rivals` are those of NVIDIA's that beat the label, and `yields` that a rival's
    ConfigMap does; `basis` is what they are weighed against. `held` are those of all `maps` that could be HAMi's,
    `unconfigured` is what counts without any of them, and `fault` is why its programs would not start with the one that
    they read.
    """

    config: HamiConfig = CHART_DEFAULTS
    selector: tuple[str, str] | None = ("gpu", "on")
    honours_pins: bool = False
    name: str = "hami"
    title: str = "HAMi"
    has_config: bool = False
    has_rival_config: bool = False
    own: tuple[DevicePlugin, ...] = ()
    rivals: tuple[DevicePlugin, ...] = ()
    yields: bool = False
    # Not compared: a pod that comes or goes must not make the state join every node again.
    basis: Basis = field(default=Basis.LABEL, compare=False)
    fault: Cause | None = None
    unconfigured: HamiConfig = field(default=CHART_DEFAULTS, repr=False)
    held: tuple[HeldConfig, ...] = field(default=(), compare=False, repr=False)
    maps: tuple[ConfigMap, ...] = field(default=(), compare=False, repr=False)

    @cached_property
    def resources(self) -> frozenset[str]:
        """Memory, percentage, cores and priority; the number of GPUs is kubelet's."""
        return self.config.slice_resources

    @property
    def counted(self) -> str:
        """As the ConfigMap names it."""
        return self.config.count

    @cached_property
    def claimed(self) -> frozenset[str]:
        """Its own resources, and the number of GPUs where it has a name of its own."""
        return self.resources | ({self.config.count} - {NVIDIA_GPU})

    @property
    def plugins(self) -> tuple[DevicePlugin, ...]:
        """Its DaemonSets."""
        return self.own

    def configured(self, config_maps: Sequence[ConfigMap], faults: list[DecodeError] | None = None) -> "Hami":
        """With the settings of HAMi's ConfigMap. Raises DecodeError when it cannot be read, or adds it to `faults`."""
        is_rival = states_configuration(config_maps) or states_layouts(config_maps)
        held = find_configs(config_maps, faults)
        maps = tuple(config_maps)
        changed = replace(self, held=held, maps=maps, unconfigured=self.config, has_rival_config=is_rival)
        return changed.installed(NO_EVIDENCE)

    def installed(self, evidence: PluginEvidence) -> "Hami":
        """With its ConfigMap, the label by which its DaemonSet chooses nodes, and what of the cluster beats it."""
        own, rivals = evidence.of(Project.HAMI), evidence.of(Project.NVIDIA)
        read = chosen(with_mounted(self.held, self.maps, evidence), evidence)
        config = read[0].config if read else self.unconfigured
        fault: Cause | None = next((each.fault for each in read if each.fault is not None), None)
        if fault is None and any(each.config != config for each in read):
            fault = ConfigsDiffer(tuple(Name(each.config_map.key) for each in read))
        basis = Basis.ASKED if evidence.asked & config.slice_resources else Basis.LABEL
        if evidence.has_register or read or own:
            basis, rivals = Basis.INSTALLED, ()
        return replace(
            self,
            config=config,
            fault=fault,
            has_config=bool(read),
            selector=next((plugin.selector[0] for plugin in own if plugin.selector), self.selector),
            own=own,
            rivals=rivals,
            yields=basis is Basis.LABEL and self.has_rival_config,
            basis=basis,
        )

    def selects(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
        """Whether HAMi's device plugin runs there.

        As `kerf.dev/gpu-sharing` says; else by the register that it has written on the node, whatever label let it
        there; else by the node labels that its DaemonSet asks for, or the chart's. A label counts only where nothing
        that says more speaks for NVIDIA's plugin: its DaemonSet beats what pods ask for, which any tenant may write,
        and its ConfigMaps beat the label alone.
        """
        stated = annotations.get(SHARING)
        if stated is not None:
            return stated == self.name
        if is_registered(annotations):
            return True
        if self.own:
            return any(runs_on(plugin, labels) for plugin in self.own)
        if self.selector is None or labels.get(self.selector[0]) != self.selector[1]:
            return False
        return not self.yields and not any(runs_on(plugin, labels) for plugin in self.rivals)

    def claims(self, pod: Pod) -> bool:
        """Whether it asks for GPU memory, cores or priority by HAMi's names, or for cards by a name of its own."""
        return _asks_any(pod, self.claimed)

    def demand(self, pod: Pod) -> PodDemand | Refused:
        """What HAMi's scheduler will read from the pod; its webhook is emulated for a pod without uid.

        Refused where HAMi would never serve it, or would let it run without the GPU it asks for.
        """
        if not _asks_any(pod, self.resources | {self.config.count}):
            return PodDemand(self.name, requests_of(pod.spec.init_containers, pod.spec.containers, self.config))
        admitted = self._admitted(pod)
        if isinstance(admitted, Refused):
            return admitted
        beyond = next((c for c in admitted.containers if overflows(asked(c, self.config), self.config)), None)
        if beyond is not None:
            return overflowing_count(beyond, self.config)
        dropped = next((c for c in admitted.containers if is_dropped(asked(c, self.config), self.config)), None)
        if dropped is not None:
            return dropped_request(dropped, self.config, is_init=dropped in admitted.init)
        containers = requests_of(admitted.init, admitted.apps, self.config)
        if all(container.request is None for container in containers):
            asked_in_vain = self._asked_in_vain(pod)
            if admitted.scheduler_name != HAMI_SCHEDULER and asked_in_vain:
                return no_gpu_asked(asked_in_vain, admitted.scheduler_name, self.config)
            return PodDemand(self.name, containers)
        if admitted.scheduler_name != HAMI_SCHEDULER:
            return foreign_scheduler(admitted.scheduler_name)
        try:
            options = read_options(pod.annotations, self.config, honours_pins=self.honours_pins)
        except WeightsError as error:
            return Refused(Stage.INVALID, WeightsUnreadable(Quoted(str(error))))
        return PodDemand(self.name, containers, options)

    def _asked_in_vain(self, pod: Pod) -> str:
        """The first resource of HAMi's, by name, of which the pod asks some; empty for none."""
        names = self.resources | {self.config.count}
        return min((name for name, amount in pod.spec.requests.items() if name in names and amount > 0), default="")

    def _admitted(self, pod: Pod) -> Admitted | Refused:
        """The pod as its admission leaves it, or has left it."""
        spec = pod.spec
        ignored = pod.labels.get(IGNORE_LABEL[0]) == IGNORE_LABEL[1]
        if pod.uid or ignored:
            return Admitted(spec.init_containers, spec.containers, spec.scheduler_name)
        admitted = admit(spec.init_containers, spec.containers, spec.scheduler_name, self.config)
        if isinstance(admitted, Denied):
            return Refused(Stage.INVALID, WebhookRefuses(admitted.message))
        return admitted

    def assumptions(self, labels: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
        """Nothing is."""
        del labels
        return ({},)

    def configurations(self, pod: Pod) -> tuple[Mapping[str, str], ...]:
        """None: who asks for its slices needs its label, and no other pod does."""
        del pod
        return ()

    def obstacle(
        self, shapes: Sequence[DeviceShape], labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> Cause | None:
        """That its ConfigMap cannot be read, or that cards are to be cut by MIG and have no profile that is allowed."""
        del labels
        if self.fault is not None:
            return self.fault
        if annotations.get(HAMI_MODE) != MIG_MODE:
            return None
        bare = next((s for s in shapes if not allowed_profiles(s, self.config)), None)
        return None if bare is None else NoProfileAllowed(Name(bare.model.name))

    def predict(
        self, shapes: Sequence[DeviceShape], labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> tuple[DeviceState, ...]:
        """One idle card a shape, as HAMi's device plugin will register it without NUMA."""
        if self.obstacle(shapes, labels, annotations) is not None:
            return ()
        predicted = self._cut if annotations.get(HAMI_MODE) == MIG_MODE else self._predicted
        return tuple(predicted(index, shape) for index, shape in enumerate(shapes))

    def _cut(self, index: int, shape: DeviceShape) -> DeviceState:
        """A card in MIG mode: no scaling, and as many slots as it can have instances of one profile."""
        profiles = allowed_profiles(shape, self.config)
        slots = max(most_of(profile, profiles) for profile in profiles)
        plain = self._predicted(index, shape)
        return replace(plain, memory_mib=shape.memory_mib, cores=100, slots=slots, mode=MIG_MODE, profiles=profiles)

    def _predicted(self, index: int, shape: DeviceShape) -> DeviceState:
        config, name = self.config, shape.model.registered_as or shape.model.name
        memory = shape.memory_mib or config.preconfigured_memory_mib
        return DeviceState(
            id=f"gpu-{index}",
            index=index,
            model=name if "NVIDIA" in name else f"NVIDIA-{name}",
            memory_mib=int(memory * config.memory_scaling),
            cores=int(100 * config.core_scaling),
            slots=config.split_count,
            mode="hami-core",
        )

    def kubelet_capacity(self, devices: Sequence[DeviceState]) -> Resources:
        """`nvidia.com/gpu`: one for each slot of each healthy card."""
        return Resources({self.config.count: sum(d.slots for d in devices if d.healthy)})

    def divided(self, devices: Sequence[DeviceState], jobs: int) -> Resources:
        """Slices of the smallest card, as many a card as the fullest must hold: memory is a card's, not the node's."""
        if len(devices) >= jobs:
            return Resources({self.config.count: len(devices) // jobs})
        slices = -(-jobs // len(devices)) if devices else 0
        if not slices or slices > min(device.slots for device in devices):
            return Resources()
        memory_mib = min(device.memory_mib for device in devices) // slices
        memory, cores = memory_mib // self.config.memory_factor, 100 // slices
        return Resources({self.config.count: 1, self.config.memory: memory, self.config.cores: cores})

    def inventory(self, node: Node) -> tuple[DeviceState, ...] | None:
        """The cards in the node's register annotation; None while there is none. Raises DecodeError."""
        return node_devices(node)

    def has_record(self, pod: Pod) -> bool:
        """Whether HAMi's scheduler has written on it what it was given."""
        return record_of(pod) is not None

    def occupied(self, devices: Sequence[DeviceState], occupants: Sequence[Occupant]) -> tuple[DeviceState, ...]:
        """`devices` with the shares that HAMi has written on the pods.

        A pod without a readable record is booked from its demand on the cards with most free memory, so what is
        left is never overrated. A MIG card with a share whose place is not known can take nothing more.
        """
        return with_occupants(devices, occupants)

    def fit(
        self,
        devices: Sequence[DeviceState],
        demand: PodDemand,
        pod: Pod,
        node: Node | None,
        quotas: Sequence[ResourceQuota],
    ) -> Fit | NoFit:
        """The cards that HAMi's scheduler would take on this node, or what is lacking."""
        decided = self.decide(devices, demand, pod, node, quotas)
        return decided if isinstance(decided, Fit) else unfit(decided, _options(demand))

    def decide(
        self,
        devices: Sequence[DeviceState],
        demand: PodDemand,
        pod: Pod,
        node: Node | None,
        quotas: Sequence[ResourceQuota],
    ) -> Fit | Shortage:
        """`fit` as HAMi's own scheduler answers it: a shortage has its codes and their counts."""
        options = _options(demand)
        needs_pairs = options.is_topology_aware and node is not None
        pairs = node_pair_scores(node, devices) if needs_pairs and node is not None else None
        headroom = self._headroom(pod.namespace, quotas) if quotas else None
        placed = place(devices, demand.containers, Request(options, headroom, pairs))
        if isinstance(placed, Shortage):
            return placed
        slices = _slices(devices, demand, pod, placed)
        init_count = sum(c.is_init for c in demand.containers)
        return Fit(slices, booked(devices, placed, init_count), node_score(devices))

    def _headroom(self, namespace: str, quotas: Sequence[ResourceQuota]) -> Headroom | None:
        memory_key, cores_key = f"limits.{self.config.memory}", f"limits.{self.config.cores}"
        own = [quota for quota in quotas if quota.namespace == namespace]
        factor = self.config.memory_factor
        memory = [q.hard[memory_key] * factor - q.used.get(memory_key, 0) for q in own if memory_key in q.hard]
        cores = [q.hard[cores_key] - q.used.get(cores_key, 0) for q in own if cores_key in q.hard]
        if not memory and not cores:
            return None
        return Headroom(min(memory, default=None), min(cores, default=None))

    def distinguishes(self, demand: PodDemand) -> bool:
        """For a pod that names cards by UUID, or whose containers share cards out by how they are linked."""
        options = _options(demand)
        if options.use_ids is not None or options.avoid_ids is not None:
            return True
        # What the first container takes is no matter where no other asks for a card.
        return options.is_topology_aware and sum(c.request is not None for c in demand.containers) > 1

    def booked_node(self, pod: Pod) -> str:
        """The node in the annotation that HAMi's filter writes, before anything is bound."""
        return "" if pod.is_ended else pod.annotations.get(NODE, "")

    def quota_used(self, occupants: Sequence[Occupant]) -> Resources:
        """MiB and cores that these pods of one namespace hold by HAMi's record, under the keys of a ResourceQuota."""
        uses = [recorded_use(occupant.pod) for occupant in occupants if not occupant.pod.is_ended]
        memory, cores = sum(use[0] for use in uses), sum(use[1] for use in uses)
        return Resources({f"limits.{self.config.memory}": memory, f"limits.{self.config.cores}": cores})

    def quota_asked(self, demand: PodDemand) -> Resources:
        """As HAMi's webhook counts it: the sum of its containers, or its largest init container; a percentage is 0."""
        apps = [c.request for c in demand.containers if c.request is not None and not c.is_init]
        first = [c.request for c in demand.containers if c.request is not None and c.is_init]
        memory = max(sum(r.memory_mib * r.count for r in apps), *(r.memory_mib * r.count for r in first), 0)
        cores = max(sum(r.cores * r.count for r in apps), *(r.cores * r.count for r in first), 0)
        return Resources({f"limits.{self.config.memory}": memory, f"limits.{self.config.cores}": cores})

    def quota_held(self, demand: PodDemand, cards: int) -> Resources:
        """On one card what HAMi's record comes to; on several each container may be on its own, so all that it asks.

        The record has a part for each container that asks for a card, init containers first, and HAMi takes as many of
        the first parts for init containers as the pod has (`CollapseInitContainerUsage`, pkg/device, v2.10.0). So
        beside an init container that asks for none, the first app container counts as one: not the sum is booked, but
        the larger of it and the rest.
        """
        if cards != 1:
            return self.quota_asked(demand)
        requests = [c.request for c in demand.containers if c.request is not None]
        init_count = sum(c.is_init for c in demand.containers)
        first, rest = requests[:init_count], requests[init_count:]
        memory = max(sum(r.memory_mib for r in rest), *(r.memory_mib for r in first), 0)
        cores = max(sum(r.cores for r in rest), *(r.cores for r in first), 0)
        return Resources({f"limits.{self.config.memory}": memory, f"limits.{self.config.cores}": cores})

    def quota_limits(self, quota: ResourceQuota) -> Resources:
        """Memory in MiB, although the quota states it by HAMi's memory factor; cores."""
        held = (limits_of(quota, resource, self.config) for resource in (self.config.memory, self.config.cores))
        return Resources(pair for pairs in held for pair in pairs)

    def node_score_order(self, demand: PodDemand, score: float) -> float:
        """HAMi takes the node with the highest score, or with the lowest where the policy is exactly `spread`."""
        options = _options(demand)
        return score if options.node_policy == "spread" else -score


def _options(demand: PodDemand) -> HamiOptions:
    return demand.options if isinstance(demand.options, HamiOptions) else HamiOptions()


def _asks_any(pod: Pod, names: frozenset[str]) -> bool:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    if pod.spec.overhead and any(name in names for name in pod.spec.overhead):
        return True
    return any(name in names for c in containers for name in (*c.limits, *c.requests))


def _slices(
    devices: Sequence[DeviceState], demand: PodDemand, pod: Pod, segments: Sequence[Segment]
) -> tuple[Slice, ...]:
    filled = [segment for segment in segments if segment]
    names = [c.name for c in demand.containers if c.request is not None]
    return tuple(
        Slice(pod.key, name, devices[s.position].index, devices[s.position].id, s.memory_mib, s.cores, s.placement)
        for name, segment in zip(names, filled, strict=True)
        for s in segment
    )
