"""Words of what sharing families refuse: each kind of cause has its own, found by its type.

A pod that no device takes has a short `reason` for a row, as the real scheduler words it, and a `detail` with the
figures. Every other cause of a family is one sentence, its `reason`. All of it is for people, and no code reads it.
"""

from collections.abc import Iterable, Sequence
from functools import singledispatch

from kerf.errors import brief
from kerf.model.causes import Cause, Lack, Name
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.pods import DEFAULT_SCHEDULER, HAMI_SCHEDULER
from kerf.model.quantities import MEMORY, quantity_text
from kerf.sharing.family import SHARING, PluginKeptOff, Unreadable
from kerf.sharing.hami import fit as hami
from kerf.sharing.hami.admission import IGNORE_LABEL
from kerf.sharing.hami.config import ConfigsDiffer
from kerf.sharing.hami.family import NoProfileAllowed
from kerf.sharing.hami.mig import HAMI_MODE
from kerf.sharing.hami.misrecorded import RecordElsewhere, RecordEmpty, RecordUnread
from kerf.sharing.hami.options import AVOID_TYPE, MODE, WordUnknown
from kerf.sharing.hami.refusals import (
    CountOverflows,
    ForeignScheduler,
    NoGpuAsked,
    RequestDropped,
    WebhookRefuses,
    WeightsUnreadable,
)
from kerf.sharing.hami.shortage import (
    CardRule,
    CardsNotNamed,
    CardsOut,
    CoresShort,
    MemoryShort,
    NoCardTakes,
    NoFreeStart,
    ProfilesTooSmall,
    TooFewCards,
    WrongCards,
)
from kerf.sharing.nvidia.config_names import TornConfig, UnknownConfig
from kerf.sharing.nvidia.device_plugin import CONFIG_LABEL
from kerf.sharing.nvidia.mig import (
    InstancesHidden,
    InstancesTooMany,
    LayoutRefused,
    MpsOnInstances,
    NoLayoutNamed,
    NoMig,
    NoPlace,
    NoSuchProfile,
    UnequalInstances,
)
from kerf.sharing.nvidia.mig_geometry import ProfileStarts
from kerf.sharing.nvidia.mig_parted import MIG_CONFIG
from kerf.sharing.nvidia.partitions import ADMISSION_ERROR, TooFewParts, TooManyAtOnce
from kerf.sharing.nvidia.replicas import NoConfig
from kerf.sharing.nvidia.whole import TooFewGpus
from kerf.sharing.registry import DoubleBooked, UnknownSharing
from kerf.sharing.unheeded import (
    DevicesUnheeded,
    GeometriesUnheeded,
    NamesUnheeded,
    NodeSettingsUnread,
    NodesSetAlone,
    RenameUnheeded,
)
from kerf.sharing.unsupported import UnsupportedSharing
from kerf.sharing.vendors import title_of
from kerf.sharing.wiring import (
    ConfigMapAbsent,
    ConfigurationUnread,
    DefaultAbsent,
    ImageCuts,
    ImageSettingIdle,
    PassedOver,
    VersionAssumed,
)

_CARDS_OUT = {
    hami.NO_SLOT: "needs a free slot of a GPU; every slot is taken",
    hami.EXCLUSIVE: "needs a GPU for itself; none is idle",
    hami.CORES_EXHAUSTED: "needs a GPU with cores left; all of them are booked",
    hami.OVER_QUOTA: "the ResourceQuota of its namespace does not leave that much",
    hami.CORDONED: "every GPU that would do is cordoned",
    hami.NOT_HEALTHY: "every GPU that would do is unhealthy",
}
_CONFIGS = {
    CONFIG_LABEL: ("NVIDIA's device plugin", "none is known"),
    MIG_CONFIG: ("mig-parted", "no ConfigMap of mig-parted is known"),
}
"""Whose configurations a label names, and what is said where none is known."""


@singledispatch
def reason(cause: Cause) -> str:
    """In short: the real scheduler's codes, else one sentence. Raises TypeError for a cause that is no family's."""
    raise TypeError(f"no words for {type(cause).__name__}")


@singledispatch
def detail(cause: Cause) -> str:
    """The sentence with the figures, for a cause whose `reason` is a code; empty for every other."""
    del cause
    return ""


@singledispatch
def hint(cause: Cause) -> str:
    """What the pod should ask instead, where the family knows; else empty."""
    del cause
    return ""


PLANNED_FOR = "ask for whole GPUs (nvidia.com/gpu), or for shares of them by HAMi, MIG, MPS or time-slicing"
"""What to do where a way of sharing is none that Kerf plans for."""


def missing_text(lacks: Iterable[Lack]) -> str:
    """Quantities of devices: `17112 MiB`, `2 GPUs`; empty for none."""
    return ", ".join(gpus(lack.amount) if lack.of == "GPU" else f"{lack.amount} {lack.of}" for lack in lacks)


def gpus(count: int) -> str:
    """`1 GPU`, `2 GPUs`."""
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


# Pods that no card of a HAMi node takes.


@reason.register
def _(cause: NoCardTakes) -> str:
    return ", ".join(cause.codes)


@detail.register
def _(cause: TooFewCards) -> str:
    return f"needs {gpus(cause.wanted)} on one node; this one has {cause.there}"


@detail.register
def _(cause: MemoryShort) -> str:
    needs = f"needs {cause.need_mib} MiB {_each(cause.gpus)}; the largest free is {cause.largest_free_mib}"
    return needs + _besides(cause.free_starts)


@detail.register
def _(cause: CoresShort) -> str:
    needs = f"needs {cause.need} cores {_each(cause.gpus)}; the most free is {cause.most_free}"
    return needs + _besides(cause.free_starts)


@detail.register
def _(cause: CardsOut) -> str:
    return _CARDS_OUT[cause.code] + _besides(cause.free_starts)


@detail.register
def _(cause: WrongCards) -> str:
    asked, here = " or ".join(cause.asked), ", ".join(cause.here)
    match cause.rule:
        case CardRule.USE_TYPES:
            named = (each for each in cause.here if any(word.upper() in each.upper() for word in cause.asked))
            others = _kept_out(named, AVOID_TYPE, MODE)
            return f"asks for a GPU type with {asked or 'nothing'} in its name; here is {here}{others}"
        case CardRule.MODE:
            named = (each for each in cause.here if any(each in mode for mode in cause.asked))
            return f"asks for the sharing mode {asked or 'nothing'}; here is {here}{_kept_out(named, AVOID_TYPE)}"
        case CardRule.AVOID_TYPES:
            return f"excludes GPU types with {asked} in their name; here is {here}"


@detail.register
def _(cause: CardsNotNamed) -> str:
    if not cause.asked:
        return "excludes each of these GPUs by its UUID"
    return f"asks for the GPU {', '.join(cause.asked)}, which is not here"


@detail.register
def _(cause: ProfilesTooSmall) -> str:
    return f"needs {cause.need_mib} MiB in one MIG instance; the largest profile has {cause.largest_mib}"


@detail.register
def _(cause: NoFreeStart) -> str:
    needs = f"needs {cause.need_mib} MiB in one MIG instance ({_starts(cause.profiles)})"
    return f"{needs}: none of these starts is free{_besides(cause.free_starts)}"


def _kept_out(named: Iterable[str], *others: str) -> str:
    """Of cards that are as one annotation asks it is another that keeps them from the pod."""
    found = " and ".join(named)
    return f"; {found} is kept out by its {' or '.join(others)}" if found else ""


def _each(count: int) -> str:
    return "on one GPU" if count == 1 else f"on each of {count} GPUs"


def _besides(free: tuple[ProfileStarts, ...] | None) -> str:
    if free is None:
        return ""
    return f"; free starts: {_starts(free)}" if free else "; no profile has a free start"


def _starts(profiles: Iterable[ProfileStarts]) -> str:
    return ", ".join(f"{each.profile} at {'/'.join(map(str, each.starts))}" for each in profiles)


# Pods that HAMi would never serve as they are written.


@reason.register
def _(cause: WebhookRefuses) -> str:
    return f"HAMi's webhook refuses the pod: {cause.message}"


@reason.register
def _(cause: WeightsUnreadable) -> str:
    return f"HAMi's scheduler answers with an error whatever the node: {cause.error}"


@reason.register
def _(cause: RequestDropped) -> str:
    written = quantity_text(MEMORY, cause.amount)
    equals = f" = {cause.amount}" if written != str(cause.amount) else ""
    unit = "MiB" if cause.unit_mib == 1 else f"{cause.unit_mib} MiB"
    return (
        f"container {cause.container}: HAMi reads {cause.resource} as a plain number of {unit}; {written}{equals} does "
        "not fit in 31 bits, so HAMi drops the whole request and the pod would run without any limit on its GPU memory"
    )


@hint.register
def _(cause: RequestDropped) -> str:
    return "" if cause.meant is None else f"write {cause.resource}: {cause.meant}"


@reason.register
def _(cause: CountOverflows) -> str:
    return (
        f"container {cause.container}: HAMi counts {cause.resource} in 31 bits, where {cause.amount} becomes another "
        "number; kubelet counts all of it, so no node admits the pod"
    )


@hint.register
def _(cause: CountOverflows) -> str:
    return f"ask for as many {cause.resource} as one node has"


@reason.register
def _(cause: ForeignScheduler) -> str:
    what = "asks for GPUs of HAMi, but its schedulerName is"
    if not _is_default(cause.scheduler):
        return f"{what} {cause.scheduler}, and HAMi's webhook leaves such a pod alone"
    return (
        f"{what} {DEFAULT_SCHEDULER}, not {HAMI_SCHEDULER}: HAMi's webhook did not take it over (it was not running, "
        f"or the pod or its namespace has the label {'='.join(IGNORE_LABEL)})"
    )


@hint.register
def _(cause: ForeignScheduler) -> str:
    named = f"set schedulerName: {HAMI_SCHEDULER}"
    if not _is_default(cause.scheduler):
        return f"{named}, or leave it out"
    return f"create the pod again while HAMi's webhook runs, without {'='.join(IGNORE_LABEL)}, or {named}"


@reason.register
def _(cause: NoGpuAsked) -> str:
    scheduler = DEFAULT_SCHEDULER if _is_default(cause.scheduler) else cause.scheduler
    return (
        f"no container asks for {cause.count}: HAMi's webhook leaves the pod to {scheduler}, and HAMi gives it no "
        f"{cause.resource}"
    )


@hint.register
def _(cause: NoGpuAsked) -> str:
    return f"ask for {cause.count} in the limits of the container that uses the GPU"


def _is_default(scheduler: Name) -> bool:
    return scheduler in (DEFAULT_SCHEDULER, "")


@reason.register
def _(cause: UnsupportedSharing) -> str:
    if not cause.title:
        whose = title_of(cause.asked)
        card = f"one of {whose} that Kerf does not plan for" if whose else "a card that Kerf does not know"
        what = f"asks for {cause.asked}, by its name a share of {card}"
        return f"{what}; Kerf buys nothing for it"
    whose = f"asks for GPUs by {cause.asked}, which {cause.title} gives out"
    return f"{whose}; Kerf does not plan for {cause.title} and buys nothing"


# Pods for which kubelet shows too few cards, or parts of them.


@reason.register
def _(cause: TooFewGpus) -> str:
    del cause
    return f"Insufficient {NVIDIA_GPU}"


@detail.register
def _(cause: TooFewGpus) -> str:
    what = "GPU" if cause.wanted == 1 else "GPUs"
    return f"needs {cause.wanted} whole {what}; {cause.idle} of {cause.there} are idle"


@reason.register
def _(cause: TooFewParts) -> str:
    return f"Insufficient {cause.resource}"


@detail.register
def _(cause: TooFewParts) -> str:
    if cause.there:
        return f"needs {cause.wanted} {cause.resource}; {cause.free} of {cause.there} are free"
    return f"needs {cause.wanted} {cause.resource}; these GPUs are shown as {', '.join(cause.shown) or 'nothing'}"


@hint.register
def _(cause: UnsupportedSharing) -> str:
    nodes = f"nodes for {cause.title}" if cause.title else "nodes that show it"
    return f"{PLANNED_FOR}; or add {nodes} yourself, and its pods run there without Kerf"


@hint.register
def _(cause: TooFewParts) -> str:
    return f"ask for {' or '.join(cause.shown)} instead of {cause.resource}" if cause.shown and not cause.there else ""


@hint.register
def _(cause: CardsOut) -> str:
    return "no node would help: raise the ResourceQuota of its namespace" if cause.code == hami.OVER_QUOTA else ""


@hint.register
def _(cause: CardsNotNamed) -> str:
    return "no new node has a GPU that is known by its UUID: take the annotation off the pod" if cause.asked else ""


@reason.register
def _(cause: TooManyAtOnce) -> str:
    del cause
    return ADMISSION_ERROR


@detail.register
def _(cause: TooManyAtOnce) -> str:
    asks = f"asks {cause.asked} of {cause.resource} in one container"
    refuses = f"{asks}; kubelet refuses more than {cause.most} where it is shared"
    if not cause.part_mib:
        return refuses
    return f"{refuses}; each of {cause.parts} is {cause.part_mib} MiB and {cause.part_cores} cores"


@hint.register
def _(cause: TooManyAtOnce) -> str:
    return f"ask for {cause.most} of {cause.resource} in each container: several replicas may be of one GPU anyway"


# Nodes whose cards would never be shown.


@reason.register
def _(cause: PluginKeptOff) -> str:
    return (
        f"{cause.plugin} does not tolerate the taint {cause.taint}, by {cause.daemon_set}, so it never starts there; "
        "give it that toleration"
    )


@reason.register
def _(cause: ConfigsDiffer) -> str:
    return (
        f"ConfigMaps {', '.join(cause.config_maps)} have different device configurations of HAMi, and nothing in the "
        "input says which of them it reads: its DaemonSet would, by what it mounts"
    )


# Plugins whose configuration is not where they look.


@reason.register
def _(cause: ConfigMapAbsent) -> str:
    place = f"namespace {cause.namespace}" if cause.namespace else "its own namespace"
    text = f"{cause.reader} reads the ConfigMap {cause.config_map} of {place}, and none was read there"
    if cause.elsewhere:
        text += f"; the one of namespace {', '.join(cause.elsewhere)} is not mounted"
    elif cause.instead:
        text += f"; there is {', '.join(cause.instead)}"
    return f"{text}; without one its pods do not start, and new nodes show no GPU"


@reason.register
def _(cause: DefaultAbsent) -> str:
    return (
        f"{cause.reader} gives nodes without a label the configuration {cause.default}, which the ConfigMap "
        f"{cause.config_map} does not have ({', '.join(cause.known) or 'it has none'})"
    )


@reason.register
def _(cause: RecordUnread) -> str:
    return f"HAMi's record cannot be read, so on {cause.node} what the pod asks for counts instead: {cause.error}"


@reason.register
def _(cause: RecordEmpty) -> str:
    return f"HAMi's record {brief(cause.got)} names no card, so on {cause.node} HAMi counts nothing for the pod"


@reason.register
def _(cause: RecordElsewhere) -> str:
    more = f" and {len(cause.ids) - 3} more" if len(cause.ids) > 3 else ""
    cards = ", ".join(brief(each) for each in cause.ids[:3]) + more
    return f"HAMi's record names {cards}, which {cause.node} has not registered, so HAMi counts nothing for it"


@reason.register
def _(cause: ConfigurationUnread) -> str:
    return f"{cause.error}; NVIDIA's device plugin does not start on a node that has this configuration"


@reason.register
def _(cause: PassedOver) -> str:
    word = "ConfigMap" if len(cause.config_maps) == 1 else "ConfigMaps"
    passed, read = f"{word} {', '.join(cause.config_maps)}: passed over", ", ".join(cause.read)
    if cause.is_guess:
        seen = f"no program of {cause.whose} is seen that mounts either"
        return f"{passed}, on the guess that {cause.whose} reads {read}, which is set otherwise: {seen}"
    return f"{passed}, because {cause.whose} reads {read}"


@reason.register
def _(cause: RenameUnheeded) -> str:
    return (
        f"configuration {cause.config}: NVIDIA's device plugin passes over rename: {brief(cause.asked)}, so nodes show "
        f"{cause.shown}, and pods that ask for another name wait"
    )


@reason.register
def _(cause: DevicesUnheeded) -> str:
    return (
        f"configuration {cause.config}: NVIDIA's device plugin passes over devices, so it shows every {cause.resource} "
        f"of a node {cause.replicas} times"
    )


@reason.register
def _(cause: NamesUnheeded) -> str:
    return f"configuration {cause.config}: NVIDIA's device plugin passes over resources, so cards keep its own names"


@reason.register
def _(cause: WordUnknown) -> str:
    return (
        f"{cause.annotation}: HAMi does not know {brief(cause.got)} ({', '.join(cause.known)}) and goes by "
        f"{cause.taken}"
    )


@reason.register
def _(cause: GeometriesUnheeded) -> str:
    return (
        f"ConfigMap {cause.config_map}: HAMi reads knownMigGeometries no more since 2.10, and this plan goes by its "
        "own list of MIG profiles; migProfileAllowlist gives another"
    )


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


@reason.register
def _(cause: NodesSetAlone) -> str:
    return (
        f"ConfigMap {cause.config_map}: HAMi's settings for single nodes go by their names ({_few(cause.nodes)}), "
        "which no new node has, so new nodes have the settings of all nodes"
    )


@reason.register
def _(cause: NodeSettingsUnread) -> str:
    return (
        f"ConfigMap {cause.config_map}: HAMi does without its settings for single nodes (config.json: {cause.problem})"
    )


@reason.register
def _(cause: ImageCuts) -> str:
    return (
        f"{cause.node_class}: its user data has Bottlerocket cut cards into MIG instances, which Kerf does not read: "
        "its cards are planned as whole ones"
    )


@reason.register
def _(cause: ImageSettingIdle) -> str:
    does = "does" if len(cause.sections) == 1 else "do"
    return (
        f"{cause.node_class}: {' and '.join(cause.sections)} in its user data {does} nothing, because neither "
        "device-sharing-strategy nor device-partitioning-strategy says so"
    )


@reason.register
def _(cause: VersionAssumed) -> str:
    return (
        f"configuration {cause.config}: NVIDIA's device plugin heeds failRequestsGreaterThanOne: false for MPS from "
        f"version {cause.since} on; the input does not say which version runs, and this plan assumes such a one"
    )


@reason.register
def _(cause: UnknownConfig) -> str:
    whose, none = _CONFIGS[cause.label]
    known = ", ".join(cause.known) or none
    return f"{_named_by(cause)}: expected a configuration of {whose} ({known}), got {cause.got}"


@reason.register
def _(cause: TornConfig) -> str:
    return f"{_named_by(cause)}: two ConfigMaps have different configurations of the name {cause.got}"


@reason.register
def _(cause: NoConfig) -> str:
    return f"no configuration of NVIDIA's device plugin with {cause.way} is known; label {CONFIG_LABEL} names one"


@reason.register
def _(cause: NoProfileAllowed) -> str:
    return f"{HAMI_MODE}: mig, and {cause.model} has no MIG profile that HAMi may cut"


@reason.register
def _(cause: NoLayoutNamed) -> str:
    del cause
    return f"no layout is named; label {MIG_CONFIG} names one"


@reason.register
def _(cause: LayoutRefused) -> str:
    return f"MIG configuration {cause.layout}: {_layout_problem(cause)}"


def _layout_problem(cause: LayoutRefused) -> str:
    match cause:
        case NoMig():
            return f"{cause.model} has no MIG"
        case NoSuchProfile():
            return f"{cause.model} has no profile {cause.profile}; it has {', '.join(cause.known)}"
        case NoPlace():
            beside = " + ".join(f"{count} x {name}" for name, count in cause.beside) or "an empty card"
            free = _starts(cause.free) or "nothing"
            return f"{cause.profile} has no place on {cause.model} beside {beside}; free: {free}"
        case InstancesTooMany():
            return f"the instances do not fit {cause.model} together"
        case MpsOnInstances():
            return f"NVIDIA's device plugin refuses MPS on MIG instances ({_named_by(cause)}: {cause.got})"
        case InstancesHidden():
            return "the device plugin's migStrategy is none, so it shows no instance"
        case UnequalInstances():
            return "with migStrategy single all instances of a node must have one profile, else no GPU is shown"
        case _:
            raise TypeError(f"no words for {type(cause).__name__}")


def _named_by(cause: UnknownConfig | TornConfig | MpsOnInstances) -> str:
    """What names the configuration, as people can change it."""
    return f"label {cause.label}" if cause.annotation is None else f"annotation {cause.annotation}"


# Nodes and pools for which it is unknown which family owns their cards.


@reason.register
def _(cause: DoubleBooked) -> str:
    names, stated = " and ".join(cause.families), ", ".join(f"{key}={value}" for key, value in cause.labels)
    return f"its labels give the same cards to {names} ({stated}), and each would book them in full: take one away"


@reason.register
def _(cause: UnknownSharing) -> str:
    return f"annotation {SHARING}: expected one of {', '.join(cause.known)}, got {cause.got}"


@reason.register
def _(cause: Unreadable) -> str:
    return cause.error
