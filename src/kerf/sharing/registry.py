"""The families Kerf knows, in the order in which they are asked whether a node's cards are theirs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kerf.errors import DecodeError
from kerf.model.causes import Cause, Name, Quoted
from kerf.model.evidence import COPY, NO_EVIDENCE, PluginEvidence
from kerf.model.pluginnamespaces import PLUGIN_NAMESPACES
from kerf.model.pods import Pod, PodDemand
from kerf.model.snapshot import ClusterSnapshot, ConfigMap
from kerf.sharing.family import SHARING, Family, Refused, Unreadable
from kerf.sharing.gathering import Gathered
from kerf.sharing.hami.config import CONFIG_MAP as HAMI_CONFIG_MAP
from kerf.sharing.hami.config import ConfigsDiffer
from kerf.sharing.hami.family import Hami
from kerf.sharing.nvidia.choice import CHOICES, CONFIGURATION_LABELS
from kerf.sharing.nvidia.device_plugin import CONFIG_LABEL
from kerf.sharing.nvidia.mig import Mig
from kerf.sharing.nvidia.mig_parted import MIG_CONFIG
from kerf.sharing.nvidia.mps import Mps
from kerf.sharing.nvidia.timeslicing import TimeSlicing
from kerf.sharing.nvidia.whole import Whole

CONFIG_MAPS = (
    HAMI_CONFIG_MAP,
    "default-mig-parted-config",
    "custom-mig-config",
    "time-slicing-config",
    "mps-config",
    "device-plugin-config",
    "nvidia-device-plugin-configs",
    COPY,
)
"""The ConfigMaps that are read in a cluster, in the namespaces of plugins: the names of HAMi's chart, of NVIDIA's GPU
operator and device plugin and their documentation (2026-11), and one for a copy of what is called otherwise. Offline
all names."""
NO_FAMILY = "none"
"""What a pool's annotation says where no plugin shares cards, whatever its labels."""
FAMILIES: tuple[Family, ...] = (Hami(), Mig(), Mps(), TimeSlicing(), Whole())
"""With default configuration; `Whole` is last and owns every card that no other family claims."""


def of_plugins(config_maps: Iterable[ConfigMap]) -> tuple[ConfigMap, ...]:
    """What the plugins of a simulated cluster read: the maps where plugins usually are; where none is there, all."""
    held = tuple(config_maps)
    return tuple(m for m in held if m.namespace in PLUGIN_NAMESPACES) or held


def configured(config_maps: Iterable[ConfigMap], evidence: PluginEvidence = NO_EVIDENCE) -> tuple[Family, ...]:
    """The families as the cluster configures them, and as what is installed says.

    What cannot be read is left out, and what depends on it has an obstacle; `problem_in` says what it is.
    """
    return _configured(tuple(config_maps), evidence)[0]


def problem_in(config_maps: Iterable[ConfigMap], evidence: PluginEvidence = NO_EVIDENCE) -> DecodeError | None:
    """What is wrong in these maps, the first of it: one that cannot be read, or several of which HAMi reads one."""
    families, faults = _configured(tuple(config_maps), evidence)
    return faults[0] if faults else _difference(families)


def _difference(families: Iterable[Family]) -> DecodeError | None:
    differing = (family.fault for family in families if isinstance(family, Hami))
    fault = next((fault for fault in differing if isinstance(fault, ConfigsDiffer)), None)
    if fault is None:
        return None
    names = ", ".join(str(name) for name in fault.config_maps)
    return DecodeError("", "one device configuration of HAMi", f"<{names} differ>", place="ConfigMap")


def families_of(snapshot: ClusterSnapshot) -> tuple[Family, ...]:
    """The families of a snapshot's cluster."""
    return configured(snapshot.config_maps, snapshot.evidence)


def judged(config_maps: Iterable[ConfigMap], gathered: Gathered) -> tuple[tuple[Family, ...], PluginEvidence]:
    """The families of a cluster with these maps, in which that was gathered, and the evidence that they rest on."""
    held = tuple(config_maps)
    # A ConfigMap may give the resources other names, and only those count; which map it is, what is installed says.
    named = configured(held, gathered.evidence(()))
    evidence = gathered.evidence(name for family in named for name in family.resources)
    return configured(held, evidence), evidence


def configures(config_map: ConfigMap) -> bool:
    """Whether a family would read the map: it says something of sharing, if only who is there, or tries to."""
    return configured((config_map,)) != FAMILIES or problem_in((config_map,)) is not None


@lru_cache(maxsize=16)
def _configured(
    config_maps: tuple[ConfigMap, ...], evidence: PluginEvidence
) -> tuple[tuple[Family, ...], tuple[DecodeError, ...]]:
    faults: list[DecodeError] = []
    families = tuple(_configured_one(family, config_maps, faults).installed(evidence) for family in FAMILIES)
    return families, tuple(faults)


def _configured_one(family: Family, config_maps: tuple[ConfigMap, ...], faults: list[DecodeError]) -> Family:
    try:
        return family.configured(config_maps, faults)
    except Exception as error:
        # Whatever a text does to our reader, it must not stop all plans.
        names = ", ".join(f"{m.namespace}/{m.name}" for m in config_maps)
        expected, got = f"a configuration of {family.title}", f"<what Kerf fails at: {type(error).__name__}>"
        fault = DecodeError("", expected, got, place=f"ConfigMap {names}")
        fault.__cause__ = error
        faults.append(fault)
        return family


def demand_of(pod: Pod, family: Family) -> PodDemand | Refused:
    """What a pod asks of a family, worked out once for each value of both: snapshots ask it of every pod."""
    known, demand = pod.demands.get(family.name, (None, None))
    if (known is not family and known != family) or not isinstance(demand, PodDemand | Refused):
        demand = family.demand(pod)
        pod.demands[family.name] = (family, demand)
    return demand


def owner_of(
    labels: Mapping[str, str], annotations: Mapping[str, str], families: Sequence[Family] = FAMILIES
) -> Family:
    """The family that manages the cards of a node with these labels and annotations.

    An annotation that names no family counts as absent; `unknown_sharing` says so.
    """
    if unknown_sharing(annotations, families) is not None:
        annotations = {key: value for key, value in annotations.items() if key != SHARING}
    return next(family for family in families if family.selects(labels, annotations))


@dataclass(frozen=True, slots=True)
class DoubleBooked(Cause):
    """Labels of a node give the same cards to several families, as people call them; each would book them in full."""

    families: tuple[Name, ...]
    labels: tuple[tuple[Name, Name], ...]


@dataclass(frozen=True, slots=True)
class UnknownSharing(Cause):
    """The annotation that names a pool's family has another word than one of these, sorted."""

    known: tuple[Name, ...]
    got: Quoted


def double_booked(
    labels: Mapping[str, str], annotations: Mapping[str, str], families: Sequence[Family] = FAMILIES
) -> DoubleBooked | None:
    """Why Kerf cannot plan with a node whose cards two device plugins would give out; None for any other node.

    A label for each is needed: what NVIDIA's plugin does without one, it does not do where HAMi's has taken its place.
    """
    if SHARING in annotations or not any(label in labels for label in (CONFIG_LABEL, MIG_CONFIG)):
        return None
    own = [family for family in families[:-1] if family.selects(labels, annotations)]
    if len(own) < 2 or all(family.selector is None for family in own):
        return None
    stated = tuple((Name(key), Name(labels[key])) for key in sorted(labels) if key in _selectors(own))
    return DoubleBooked(tuple(Name(family.title) for family in own), stated)


def _selectors(families: Sequence[Family]) -> frozenset[str]:
    return frozenset({CONFIG_LABEL, MIG_CONFIG, *(f.selector[0] for f in families if f.selector is not None)})


def unreadable_for(
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    families: Sequence[Family],
    config_maps: Sequence[ConfigMap],
    held: Sequence[ConfigMap] = (),
) -> tuple[Unreadable, ...]:
    """What is wrong in those of the ConfigMaps that nodes with these labels and annotations depend on.

    They do where the map is their own family's, or where they name a configuration that may be in it. Cards that no
    node shares need none. A map that can be read may contradict those that are `held`.
    """
    owner = owner_of(labels, annotations, families)
    names_one = any(key in CONFIGURATION_LABELS for key in labels) or any(key in CHOICES for key in annotations)
    found = []
    for config_map in config_maps:
        others = tuple(m for m in held if (m.namespace, m.name) != (config_map.namespace, config_map.name))
        for family in families[:-1]:
            problem = _problem(family, (config_map,)) or _problem(family, (*others, config_map))
            if problem is not None and (names_one or family.name == owner.name):
                found.append(problem)
    return tuple(dict.fromkeys(found))


def _problem(family: Family, config_maps: tuple[ConfigMap, ...]) -> Unreadable | None:
    faults: list[DecodeError] = []
    found = _configured_one(family, config_maps, faults)
    error = faults[0] if faults else _difference((found,))
    return None if error is None else Unreadable(Quoted(str(error)))


def unknown_sharing(annotations: Mapping[str, str], families: Sequence[Family] = FAMILIES) -> UnknownSharing | None:
    """Why the annotation of a pool that names its family is not followed; None where it is, or where none is."""
    stated = annotations.get(SHARING)
    known = {NO_FAMILY, *(family.name for family in families)}
    if stated is None or stated in known:
        return None
    return UnknownSharing(tuple(map(Name, sorted(known))), Quoted(stated))


def family_named(name: str, families: Sequence[Family] = FAMILIES) -> Family:
    """The family of that name. Raises KeyError when there is none."""
    return {family.name: family for family in families}[name]
