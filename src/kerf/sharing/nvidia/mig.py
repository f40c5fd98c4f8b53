"""MIG as the MIG manager sets it up: the node's label names a layout, and NVIDIA's device plugin shows the instances.

With the strategy `mixed` each profile is a resource of its own (`nvidia.com/mig-3g.20gb`); with `single` every instance
is a `nvidia.com/gpu`, for which all cards must have the same profile, else none is shown at all (MIG support in
Kubernetes, "MIG strategies"). Instances may be time-sliced; MPS on them the plugin refuses.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kerf.errors import DecodeError
from kerf.model.causes import Cause, Name
from kerf.model.evidence import DevicePlugin, PluginEvidence
from kerf.model.gpu import NVIDIA_GPU, DeviceShape, DeviceState, Partition, Profile
from kerf.model.nodes import Node
from kerf.model.pods import Container, Pod, PodDemand
from kerf.model.snapshot import ConfigMap
from kerf.sharing.family import SHARING
from kerf.sharing.nvidia.device_plugin import CONFIG_LABEL, MIXED, MPS, NO_STRATEGY, SINGLE, PluginConfig, PluginConfigs
from kerf.sharing.nvidia.device_plugin import find_plugin_configs as plugin_configs
from kerf.sharing.nvidia.kubelet import PRODUCT_LABELS, demanded, first_label, stated_memory, stated_number
from kerf.sharing.nvidia.mig_geometry import ProfileStarts, arranged, free_starts, most_of
from kerf.sharing.nvidia.mig_parted import MIG_CONFIG, MIG_DONE, MIG_STATE, Layout, MigConfigs, find_mig_configs
from kerf.sharing.nvidia.partitions import Partitioned

STRATEGY_LABEL = "nvidia.com/mig.strategy"
PREFIX, _SHARED = "nvidia.com/mig-", ".shared"
_COMPUTE = re.compile(r"(\d+)g\.")
_FOUR_SLICES = ("A30", "RTX PRO")
_NO_CONFIG = PluginConfig("")


@dataclass(frozen=True, slots=True)
class NoLayoutNamed(Cause):
    """MIG without the label that names a layout."""


@dataclass(frozen=True, slots=True)
class LayoutRefused(Cause):
    """The card, or the device plugin, does not take the layout of this name."""

    layout: Name


@dataclass(frozen=True, slots=True)
class NoMig(LayoutRefused):
    """The GPU model cannot be cut."""

    model: Name


@dataclass(frozen=True, slots=True)
class NoSuchProfile(LayoutRefused):
    """The GPU model has no such profile; `known` are those that it has, in the card's order."""

    model: Name
    profile: Name
    known: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class NoPlace(LayoutRefused):
    """An instance has no place beside those before it, by profile and number; `free` is what still has one."""

    model: Name
    profile: Name
    beside: tuple[tuple[Name, int], ...]
    free: tuple[ProfileStarts, ...]


@dataclass(frozen=True, slots=True)
class InstancesTooMany(LayoutRefused):
    """The instances do not fit a card of the model together."""

    model: Name


@dataclass(frozen=True, slots=True)
class MpsOnInstances(LayoutRefused):
    """The device plugin refuses MPS on MIG instances, which the configuration `got` asks for.

    `label` names the configuration; `annotation` is the pool's, where the label was chosen from one, else None.
    """

    label: Name
    got: Name
    annotation: Name | None = None


@dataclass(frozen=True, slots=True)
class InstancesHidden(LayoutRefused):
    """The device plugin's `migStrategy` is `none`: it shows no instance."""


@dataclass(frozen=True, slots=True)
class UnequalInstances(LayoutRefused):
    """With the `migStrategy` `single` no GPU is shown, because the instances of the node have several profiles."""


@dataclass(frozen=True)
class Mig(Partitioned):
    """The family, as the cluster's configurations of mig-parted and of the device plugin say."""

    plugin: PluginConfigs = field(default_factory=PluginConfigs)
    mig: MigConfigs = field(default_factory=MigConfigs)
    name: str = "mig"
    title: str = "MIG"

    @property
    def plugins(self) -> tuple[DevicePlugin, ...]:
        """NVIDIA's own, and the operator's."""
        return self.plugin.plugins

    def configured(self, config_maps: Sequence[ConfigMap], faults: list[DecodeError] | None = None) -> "Mig":
        """With the configurations of the cluster's ConfigMaps. Raises DecodeError, or adds it to `faults`."""
        return replace(self, plugin=plugin_configs(config_maps, faults), mig=find_mig_configs(config_maps, faults))

    def installed(self, evidence: PluginEvidence) -> "Mig":
        """With how the device plugin was started."""
        return replace(self, plugin=self.plugin.installed(evidence))

    def selects(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
        """Whether the node's layout makes instances, or feature discovery has seen some."""
        stated = annotations.get(SHARING)
        if stated is not None:
            return stated == self.name
        named = labels.get(MIG_CONFIG)
        if named is not None:
            return not self.mig.knows(named) or self.mig.cuts(named)
        return any(key.startswith(PREFIX) and key.endswith(".count") for key in labels)

    def demand(self, pod: Pod) -> PodDemand:
        """The instances of each container by profile, and its `nvidia.com/gpu`."""
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        return demanded(pod, self.name, {NVIDIA_GPU, *(name for c in containers for name in _instances(c))})

    def assumptions(self, labels: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
        """The strategy, where neither the plugin's start, its configuration nor a label states it."""
        if self.plugin.mig_strategy(labels) or STRATEGY_LABEL in labels:
            return ({},)
        return ({STRATEGY_LABEL: MIXED}, {STRATEGY_LABEL: SINGLE})

    def configurations(self, pod: Pod) -> tuple[Mapping[str, str], ...]:
        """The layouts of mig-parted's ConfigMaps that cut cards, by name; then all of one profile that the pod asks."""
        asked = sorted({name for c in (*pod.spec.init_containers, *pod.spec.containers) for name in _instances(c)})
        known = [name for name in sorted(self.mig.by_name) if self.mig.cuts(name)]
        return tuple({MIG_CONFIG: name} for name in (*known, *(f"all-{_profile_of(name, '')}" for name in asked)))

    def obstacle(
        self, shapes: Sequence[DeviceShape], labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> Cause | None:
        """What keeps the layout from these cards: no MIG, no such profile, no room, or a strategy that shows none."""
        del annotations
        named = labels.get(MIG_CONFIG)
        if named is None:
            return NoLayoutNamed()
        problem = self.mig.problem(named) or self.plugin.problem(labels)
        if problem is not None:
            return problem
        layouts = self.mig.layouts(named, shapes)
        # What holds whatever the cards are comes before what one model lacks, unless the model has no MIG at all.
        problem = _without_mig(Name(named), shapes, layouts) or self._shown_problem(Name(named), layouts, labels)
        found = (_layout_problem(Name(named), *each) for each in zip(shapes, layouts, strict=True))
        return problem or next((each for each in found if each is not None), None)

    def _shown_problem(self, named: Name, layouts: Sequence[Layout], labels: Mapping[str, str]) -> Cause | None:
        config = self.plugin.of(labels) or _NO_CONFIG
        if config.sharing == MPS:
            return MpsOnInstances(named, Name(CONFIG_LABEL), Name(config.name))
        strategy = self._strategy(labels)
        if strategy == NO_STRATEGY:
            return InstancesHidden(named)
        if strategy == SINGLE and not _is_uniform(layouts):
            return UnequalInstances(named)
        return None

    def _strategy(self, labels: Mapping[str, str]) -> str:
        """The plugin's word, else the label's: feature discovery writes it, and a pool may state it."""
        return self.plugin.mig_strategy(labels) or labels.get(STRATEGY_LABEL, MIXED)

    def predict(
        self, shapes: Sequence[DeviceShape], labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> tuple[DeviceState, ...]:
        """One idle card a shape with the instances of the layout; none where there is an obstacle."""
        if self.obstacle(shapes, labels, annotations) is not None:
            return ()
        config = self.plugin.of(labels) or _NO_CONFIG
        layouts = self.mig.layouts(labels[MIG_CONFIG], shapes)
        strategy = self._strategy(labels)
        return tuple(
            _card(index, shape, _parts(shape, layout, strategy, config))
            for index, (shape, layout) in enumerate(zip(shapes, layouts, strict=True))
        )

    def inventory(self, node: Node) -> tuple[DeviceState, ...] | None:
        """The instances that kubelet shows; None while it shows none, or the MIG manager is not done.

        Which card an instance is on is not shown: they are dealt out evenly over as many cards as are labelled.
        """
        if node.labels.get(MIG_STATE, MIG_DONE) != MIG_DONE:
            return None
        config = self.plugin.of(node.labels) or _NO_CONFIG
        stated = config.mig_strategy or node.labels.get(STRATEGY_LABEL) or self.plugin.mig_strategy(node.labels)
        shown = {
            name: amount
            for name, amount in sorted(node.allocatable.items())
            if amount > 0 and (name.startswith(PREFIX) or (name.removesuffix(_SHARED) == NVIDIA_GPU))
        }
        # Before the MIG manager has come to the node, its cards are shown whole.
        is_single = not any(name.startswith(PREFIX) for name in shown)
        if is_single and stated not in ("", SINGLE):
            return None
        return _dealt_out(node, shown, is_single=is_single) if shown else None


def resource_of(profile: str) -> str:
    """The resource of a profile with the strategy `mixed`: `nvidia.com/mig-1g.5gb.me` of `1g.5gb+me`."""
    return PREFIX + profile.replace("+", ".")


def _instances(container: Container) -> Iterator[str]:
    return (name for name in (*container.limits, *container.requests) if name.startswith(PREFIX))


def _is_uniform(layouts: Sequence[Layout]) -> bool:
    """Whether all instances of a node have one profile, as `single` demands."""
    kinds = {(layout.is_enabled, layout.fills or tuple(sorted(layout.counts))) for layout in layouts}
    return len(kinds) < 2 and all(len(layout.counts) < 2 for layout in layouts)


def _without_mig(named: Name, shapes: Sequence[DeviceShape], layouts: Sequence[Layout]) -> Cause | None:
    """The first card that is to be cut and has no MIG; None where each has it."""
    cut = (shape for shape, layout in zip(shapes, layouts, strict=True) if layout.is_enabled)
    return next((NoMig(named, Name(shape.model.name)) for shape in cut if not shape.profiles), None)


def _layout_problem(named: Name, shape: DeviceShape, layout: Layout) -> Cause | None:
    """Why the card cannot have the layout; None when it can."""
    if not layout.is_enabled:
        return None
    model, known = Name(shape.model.name), tuple(Name(profile.name) for profile in shape.profiles)
    unknown = next((name for name in (*layout.counts, layout.fills) if name and name not in known), None)
    if unknown is not None:
        return NoSuchProfile(named, model, Name(unknown), known)
    if layout.fills or arranged(shape.profiles, layout.counts) is not None:
        return None
    return _no_room(named, shape, layout)


def _no_room(named: Name, shape: DeviceShape, layout: Layout) -> Cause:
    """The first instance that has no place beside those before it, largest first, and what would have one."""
    fitting: dict[str, int] = {}
    order = {profile.name: -profile.size for profile in shape.profiles}
    for name in sorted(layout.counts, key=lambda n: (order[n], n)):
        for _ in range(layout.counts[name]):
            more = {**fitting, name: fitting.get(name, 0) + 1}
            if arranged(shape.profiles, more) is None:
                starts = free_starts(shape.profiles, arranged(shape.profiles, fitting) or ())
                free = tuple(ProfileStarts(Name(n), at) for n, at in starts.items())
                beside = tuple((Name(n), count) for n, count in sorted(fitting.items()))
                return NoPlace(named, Name(shape.model.name), Name(name), beside, free)
            fitting = more
    return InstancesTooMany(named, Name(shape.model.name))


def _parts(shape: DeviceShape, layout: Layout, strategy: str, config: PluginConfig) -> tuple[Partition, ...]:
    if not layout.is_enabled:
        return (Partition(NVIDIA_GPU, 1, shape.memory_mib, 100),)
    by_name = {profile.name: profile for profile in shape.profiles}
    counts = {layout.fills: most_of(by_name[layout.fills], shape.profiles)} if layout.fills else layout.counts
    return tuple(
        _part(by_name[name], count, NVIDIA_GPU if strategy == SINGLE else resource_of(name), config)
        for name, count in sorted(counts.items())
        if count
    )


def _part(profile: Profile, count: int, resource: str, config: PluginConfig) -> Partition:
    replicas = config.replicas.get(resource, 1)
    return Partition(
        config.shown_as(resource),
        count * replicas,
        profile.memory_mib // replicas,
        profile.cores // replicas,
        most=config.most if replicas > 1 else 0,
        profile=profile.name,
    )


def _card(index: int, shape: DeviceShape, parts: tuple[Partition, ...]) -> DeviceState:
    # Slots are no measure here: a card cut into a 4g and three 1g is not four quarters.
    name = shape.model.registered_as or shape.model.name
    return DeviceState(f"gpu-{index}", index, name, shape.memory_mib, slots=0, mode="mig", partitions=parts)


def _dealt_out(node: Node, shown: Mapping[str, int], *, is_single: bool) -> tuple[DeviceState, ...]:
    model = first_label(node.labels, PRODUCT_LABELS)
    slices = 4 if any(word in model for word in _FOUR_SLICES) else 7
    named = re.search(r"-MIG-(.+)$", model)
    count = 1 if is_single else max(1, stated_number(node.labels, "nvidia.com/gpu.count"))
    cards = []
    for index in range(count):
        parts = []
        for name, amount in shown.items():
            mine = amount // count + (index < amount % count)
            profile = _profile_of(name, named[1] if named else "")
            compute = _COMPUTE.match(profile)
            memory = stated_memory(node) if is_single else stated_number(node.labels, f"{PREFIX}{profile}.memory")
            cores = int(compute[1]) * 100 // slices if compute else 0
            parts.append(Partition(name, mine, memory, cores, profile=profile))
        # With `single` the label is about one instance.
        memory = 0 if is_single else stated_memory(node)
        card = DeviceState(f"gpu-{index}", index, model, memory, slots=0, mode="mig")
        cards.append(replace(card, partitions=tuple(part for part in parts if part.count)))
    return tuple(cards)


def _profile_of(resource: str, single: str) -> str:
    return resource.removeprefix(PREFIX).removesuffix(_SHARED) if resource.startswith(PREFIX) else single
