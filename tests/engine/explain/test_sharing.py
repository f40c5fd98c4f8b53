"""The words of what sharing families refuse."""

import pytest

from kerf.engine.explain.sharing import detail, hint, missing_text, reason
from kerf.model.causes import Cause, Lack, Name, Quoted
from kerf.sharing.family import PluginKeptOff, Unreadable
from kerf.sharing.hami.config import ConfigsDiffer
from kerf.sharing.hami.family import NoProfileAllowed
from kerf.sharing.hami.fit import (
    CORDONED,
    CORES_EXHAUSTED,
    EXCLUSIVE,
    NO_CORES,
    NO_MEMORY,
    NO_MIG_PLACE,
    NO_SLOT,
    NOT_HEALTHY,
    OVER_QUOTA,
    TOO_FEW,
    WRONG_ID,
    WRONG_TYPE,
)
from kerf.sharing.hami.misrecorded import RecordElsewhere, RecordEmpty, RecordUnread
from kerf.sharing.hami.options import WordUnknown
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
from kerf.sharing.nvidia.partitions import TooFewParts, TooManyAtOnce
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
from kerf.sharing.wiring import (
    ConfigMapAbsent,
    ConfigurationUnread,
    DefaultAbsent,
    ImageCuts,
    ImageSettingIdle,
    PassedOver,
    VersionAssumed,
)
from tests.sharing.test_causes import causes

GPU, SHARED, GPUMEM = Name("nvidia.com/gpu"), Name("nvidia.com/gpu.shared"), Name("nvidia.com/gpumem")
PLUGIN, MIG = Name("nvidia.com/device-plugin.config"), Name("nvidia.com/mig.config")
A100, WANTED, ONE_G, TWO_G = Name("A100"), Name("wanted"), Name("1g.5gb"), Name("2g.10gb")
LEFT = (ProfileStarts(ONE_G, (2, 3, 6)), ProfileStarts(TWO_G, (2,)))
HERE = (Name("NVIDIA-A10G"), Name("NVIDIA-L4"))

DETAILS: list[tuple[Cause, str, str]] = [
    (NoCardTakes((NO_MEMORY, NO_SLOT)), "CardInsufficientMemory, CardTimeSlicingExhausted", ""),
    (TooFewCards((TOO_FEW,), 5, 1), "NodeInsufficientDevice", "needs 5 GPUs on one node; this one has 1"),
    (TooFewCards((TOO_FEW,), 1, 0), "NodeInsufficientDevice", "needs 1 GPU on one node; this one has 0"),
    (
        MemoryShort((NO_MEMORY,), 40000, 1, 22888),
        "CardInsufficientMemory",
        "needs 40000 MiB on one GPU; the largest free is 22888",
    ),
    (
        MemoryShort((NO_MEMORY,), 4864, 2, 1024, ()),
        "CardInsufficientMemory",
        "needs 4864 MiB on each of 2 GPUs; the largest free is 1024; no profile has a free start",
    ),
    (
        CoresShort((NO_CORES,), 50, 1, 30, LEFT),
        "CardInsufficientCore",
        "needs 50 cores on one GPU; the most free is 30; free starts: 1g.5gb at 2/3/6, 2g.10gb at 2",
    ),
    (
        CardsOut((NO_SLOT,), NO_SLOT),
        "CardTimeSlicingExhausted",
        "needs a free slot of a GPU; every slot is taken",
    ),
    (
        CardsOut((EXCLUSIVE,), EXCLUSIVE, ()),
        "ExclusiveDeviceAllocateConflict",
        "needs a GPU for itself; none is idle; no profile has a free start",
    ),
    (
        CardsOut((CORES_EXHAUSTED,), CORES_EXHAUSTED),
        "CardComputeUnitsExhausted",
        "needs a GPU with cores left; all of them are booked",
    ),
    (
        CardsOut((OVER_QUOTA,), OVER_QUOTA),
        "ResourceQuotaNotFit",
        "the ResourceQuota of its namespace does not leave that much",
    ),
    (CardsOut((CORDONED,), CORDONED), "CardCordoned", "every GPU that would do is cordoned"),
    (CardsOut((NOT_HEALTHY,), NOT_HEALTHY), "CardNotHealth", "every GPU that would do is unhealthy"),
    (
        WrongCards((WRONG_TYPE,), CardRule.USE_TYPES, (Name("H100"), Name("A100")), HERE),
        "CardTypeMismatch",
        "asks for a GPU type with H100 or A100 in its name; here is NVIDIA-A10G, NVIDIA-L4",
    ),
    (
        WrongCards((WRONG_TYPE,), CardRule.USE_TYPES, (), HERE[:1]),
        "CardTypeMismatch",
        "asks for a GPU type with nothing in its name; here is NVIDIA-A10G",
    ),
    # HAMi looks at all three annotations; where one is as it asks, another is not.
    (
        WrongCards((WRONG_TYPE,), CardRule.USE_TYPES, (Name("a10"),), HERE),
        "CardTypeMismatch",
        "asks for a GPU type with a10 in its name; here is NVIDIA-A10G, NVIDIA-L4; NVIDIA-A10G is kept out by its "
        "nvidia.com/nouse-gputype or nvidia.com/vgpu-mode",
    ),
    (
        WrongCards((WRONG_TYPE,), CardRule.MODE, (Name("hami-core"),), (Name("hami-core"),)),
        "CardTypeMismatch",
        "asks for the sharing mode hami-core; here is hami-core; hami-core is kept out by its nvidia.com/nouse-gputype",
    ),
    (
        WrongCards((WRONG_TYPE,), CardRule.MODE, (Name("mps"),), (Name("hami-core"), Name("mig"))),
        "CardTypeMismatch",
        "asks for the sharing mode mps; here is hami-core, mig",
    ),
    (
        WrongCards((WRONG_TYPE,), CardRule.MODE, (), (Name("mig"),)),
        "CardTypeMismatch",
        "asks for the sharing mode nothing; here is mig",
    ),
    (
        WrongCards((WRONG_TYPE,), CardRule.AVOID_TYPES, (Name("A10G"), Name("L4")), HERE),
        "CardTypeMismatch",
        "excludes GPU types with A10G or L4 in their name; here is NVIDIA-A10G, NVIDIA-L4",
    ),
    (
        CardsNotNamed((WRONG_ID,), (Name("GPU-1"), Name("GPU-2"))),
        "CardUuidMismatch",
        "asks for the GPU GPU-1, GPU-2, which is not here",
    ),
    (CardsNotNamed((WRONG_ID,), ()), "CardUuidMismatch", "excludes each of these GPUs by its UUID"),
    (
        ProfilesTooSmall((NO_MIG_PLACE,), 41000, 40192),
        "CardMigTopologyInfeasible",
        "needs 41000 MiB in one MIG instance; the largest profile has 40192",
    ),
    (
        NoFreeStart((NO_MIG_PLACE,), 19968, (ProfileStarts(Name("3g.20gb"), (0, 4)),), LEFT),
        "CardMigTopologyInfeasible",
        "needs 19968 MiB in one MIG instance (3g.20gb at 0/4): none of these starts is free; "
        "free starts: 1g.5gb at 2/3/6, 2g.10gb at 2",
    ),
    (TooFewGpus(6, 4, 4), "Insufficient nvidia.com/gpu", "needs 6 whole GPUs; 4 of 4 are idle"),
    (TooFewGpus(1, 0, 2), "Insufficient nvidia.com/gpu", "needs 1 whole GPU; 0 of 2 are idle"),
    (
        TooFewParts(SHARED, 3, 1, 4, (SHARED,)),
        "Insufficient nvidia.com/gpu.shared",
        "needs 3 nvidia.com/gpu.shared; 1 of 4 are free",
    ),
    (
        TooFewParts(GPU, 1, 0, 0, (SHARED,)),
        "Insufficient nvidia.com/gpu",
        "needs 1 nvidia.com/gpu; these GPUs are shown as nvidia.com/gpu.shared",
    ),
    (
        TooManyAtOnce(GPU, 2, 1, 4, 5722, 25),
        "UnexpectedAdmissionError",
        "asks 2 of nvidia.com/gpu in one container; kubelet refuses more than 1 where it is shared; "
        "each of 4 is 5722 MiB and 25 cores",
    ),
    (
        TooManyAtOnce(GPU, 2, 1, 4, 0, 0),
        "UnexpectedAdmissionError",
        "asks 2 of nvidia.com/gpu in one container; kubelet refuses more than 1 where it is shared",
    ),
]

SENTENCES: list[tuple[Cause, str]] = [
    (
        PluginKeptOff(Name("HAMi's device plugin"), Name("DaemonSet kube-system/hami"), Name("a:NoSchedule")),
        "HAMi's device plugin does not tolerate the taint a:NoSchedule, by DaemonSet kube-system/hami, so it never "
        "starts there; give it that toleration",
    ),
    (
        ConfigsDiffer((Name("kube-system/a"), Name("kube-system/b"))),
        "ConfigMaps kube-system/a, kube-system/b have different device configurations of HAMi, and nothing in the "
        "input says which of them it reads: its DaemonSet would, by what it mounts",
    ),
    (
        ConfigMapAbsent(Name("ClusterPolicy p"), Name("m"), Name(""), (Name("kube-system"),)),
        "ClusterPolicy p reads the ConfigMap m of its own namespace, and none was read there; the one of "
        "namespace kube-system is not mounted; without one its pods do not start, and new nodes show no GPU",
    ),
    (
        ConfigMapAbsent(Name("DaemonSet a/b"), Name("m"), Name("a"), (), (Name("n"),)),
        "DaemonSet a/b reads the ConfigMap m of namespace a, and none was read there; there is n; without one "
        "its pods do not start, and new nodes show no GPU",
    ),
    (
        DefaultAbsent(Name("ClusterPolicy p"), Name("m"), Name("four"), (Name("two"),)),
        "ClusterPolicy p gives nodes without a label the configuration four, which the ConfigMap m does not have (two)",
    ),
    (
        PassedOver(Name("HAMi"), (Name("a/old"),), (Name("a/new"),)),
        "ConfigMap a/old: passed over, because HAMi reads a/new",
    ),
    (
        PassedOver(Name("HAMi"), (Name("a/old"),), (Name("a/new"),), is_guess=True),
        "ConfigMap a/old: passed over, on the guess that HAMi reads a/new, which is set otherwise: no program of HAMi "
        "is seen that mounts either",
    ),
    (
        ConfigurationUnread(Name("a/m"), Name("k"), Quoted("ConfigMap a/m: no YAML")),
        "ConfigMap a/m: no YAML; NVIDIA's device plugin does not start on a node that has this configuration",
    ),
    (
        RecordUnread(Name("n"), Quoted("it is broken")),
        "HAMi's record cannot be read, so on n what the pod asks for counts instead: it is broken",
    ),
    (
        RecordEmpty(Name("n"), Quoted("xx,yy")),
        "HAMi's record 'xx,yy' names no card, so on n HAMi counts nothing for the pod",
    ),
    (
        RecordElsewhere(Name("n"), tuple(map(Quoted, "abcd"))),
        "HAMi's record names 'a', 'b', 'c' and 1 more, which n has not registered, so HAMi counts nothing for it",
    ),
    (
        RenameUnheeded(Name("a/m, any"), GPU, Quoted("gpu.light"), Name("nvidia.com/gpu.shared")),
        "configuration a/m, any: NVIDIA's device plugin passes over rename: 'gpu.light', so nodes show "
        "nvidia.com/gpu.shared, and pods that ask for another name wait",
    ),
    (
        DevicesUnheeded(Name("a/m, any"), GPU, 4),
        "configuration a/m, any: NVIDIA's device plugin passes over devices, so it shows every nvidia.com/gpu of a "
        "node 4 times",
    ),
    (
        NamesUnheeded(Name("a/m, any")),
        "configuration a/m, any: NVIDIA's device plugin passes over resources, so cards keep its own names",
    ),
    (
        GeometriesUnheeded(Name("a/m")),
        "ConfigMap a/m: HAMi reads knownMigGeometries no more since 2.10, and this plan goes by its own list of MIG "
        "profiles; migProfileAllowlist gives another",
    ),
    (
        NodesSetAlone(Name("a/m"), tuple(map(Name, ("n1", "n2", "n3", "n4")))),
        "ConfigMap a/m: HAMi's settings for single nodes go by their names (n1, n2, n3 and 1 more), which no new node "
        "has, so new nodes have the settings of all nodes",
    ),
    (
        NodeSettingsUnread(Name("a/m"), Quoted("no mapping")),
        "ConfigMap a/m: HAMi does without its settings for single nodes (config.json: no mapping)",
    ),
    (
        WordUnknown(Name("hami.io/x"), Quoted("binpak"), (Name("binpack"), Name("spread")), Name("spread")),
        "hami.io/x: HAMi does not know 'binpak' (binpack, spread) and goes by spread",
    ),
    (
        ImageCuts(Name("EC2NodeClass gpu")),
        "EC2NodeClass gpu: its user data has Bottlerocket cut cards into MIG instances, which Kerf does not read: its "
        "cards are planned as whole ones",
    ),
    (
        ImageSettingIdle(Name("EC2NodeClass gpu"), (Name("time-slicing"), Name("mig"))),
        "EC2NodeClass gpu: time-slicing and mig in its user data do nothing, because neither device-sharing-strategy "
        "nor device-partitioning-strategy says so",
    ),
    (
        VersionAssumed(Name("quarter"), Name("0.20")),
        "configuration quarter: NVIDIA's device plugin heeds failRequestsGreaterThanOne: false for MPS from version "
        "0.20 on; the input does not say which version runs, and this plan assumes such a one",
    ),
    (WebhookRefuses(Quoted("container a is privileged")), "HAMi's webhook refuses the pod: container a is privileged"),
    (WeightsUnreadable(Quoted("no")), "HAMi's scheduler answers with an error whatever the node: no"),
    (
        RequestDropped(Name("main"), GPUMEM, 4 * 2**30, 1, 4096),
        "container main: HAMi reads nvidia.com/gpumem as a plain number of MiB; 4Gi = 4294967296 does not fit in 31 "
        "bits, so HAMi drops the whole request and the pod would run without any limit on its GPU memory",
    ),
    (
        RequestDropped(Name("main"), GPUMEM, -1, 1024, None),
        "container main: HAMi reads nvidia.com/gpumem as a plain number of 1024 MiB; -1 does not fit in 31 "
        "bits, so HAMi drops the whole request and the pod would run without any limit on its GPU memory",
    ),
    (
        CountOverflows(Name("main"), GPU, 2**31),
        "container main: HAMi counts nvidia.com/gpu in 31 bits, where 2147483648 becomes another number; kubelet "
        "counts all of it, so no node admits the pod",
    ),
    (
        ForeignScheduler(Name("")),
        "asks for GPUs of HAMi, but its schedulerName is default-scheduler, not hami-scheduler: HAMi's webhook did not "
        "take it over (it was not running, or the pod or its namespace has the label hami.io/webhook=ignore)",
    ),
    (
        ForeignScheduler(Name("volcano")),
        "asks for GPUs of HAMi, but its schedulerName is volcano, and HAMi's webhook leaves such a pod alone",
    ),
    (
        NoGpuAsked(GPUMEM, GPU, Name("")),
        "no container asks for nvidia.com/gpu: HAMi's webhook leaves the pod to default-scheduler, and HAMi gives it "
        "no nvidia.com/gpumem",
    ),
    (
        UnknownConfig(PLUGIN, Name("half"), (Name("fifth"), Name("quarter"))),
        "label nvidia.com/device-plugin.config: expected a configuration of NVIDIA's device plugin (fifth, quarter), "
        "got half",
    ),
    (
        UnknownConfig(PLUGIN, Name("half"), ()),
        "label nvidia.com/device-plugin.config: expected a configuration of NVIDIA's device plugin (none is known), "
        "got half",
    ),
    (
        UnknownConfig(MIG, Name("half"), (), Name("kerf.dev/mig-configs")),
        "annotation kerf.dev/mig-configs: expected a configuration of mig-parted (no ConfigMap of mig-parted is "
        "known), got half",
    ),
    (
        TornConfig(MIG, Name("half")),
        "label nvidia.com/mig.config: two ConfigMaps have different configurations of the name half",
    ),
    (
        NoConfig(Name("MPS")),
        "no configuration of NVIDIA's device plugin with MPS is known; label nvidia.com/device-plugin.config names one",
    ),
    (NoProfileAllowed(Name("A10G")), "kerf.dev/hami-mode: mig, and A10G has no MIG profile that HAMi may cut"),
    (NoLayoutNamed(), "no layout is named; label nvidia.com/mig.config names one"),
    (NoMig(WANTED, Name("A10G")), "MIG configuration wanted: A10G has no MIG"),
    (
        NoSuchProfile(WANTED, A100, Name("1g.6gb"), (ONE_G, TWO_G)),
        "MIG configuration wanted: A100 has no profile 1g.6gb; it has 1g.5gb, 2g.10gb",
    ),
    (
        NoPlace(WANTED, A100, ONE_G, ((ONE_G, 1), (Name("3g.20gb"), 2)), ()),
        "MIG configuration wanted: 1g.5gb has no place on A100 beside 1 x 1g.5gb + 2 x 3g.20gb; free: nothing",
    ),
    (
        NoPlace(WANTED, A100, Name("7g.40gb"), (), LEFT),
        "MIG configuration wanted: 7g.40gb has no place on A100 beside an empty card; "
        "free: 1g.5gb at 2/3/6, 2g.10gb at 2",
    ),
    (InstancesTooMany(WANTED, A100), "MIG configuration wanted: the instances do not fit A100 together"),
    (
        MpsOnInstances(WANTED, PLUGIN, Name("shared")),
        "MIG configuration wanted: NVIDIA's device plugin refuses MPS on MIG instances "
        "(label nvidia.com/device-plugin.config: shared)",
    ),
    (
        MpsOnInstances(WANTED, PLUGIN, Name("shared"), Name("kerf.dev/device-plugin-configs")),
        "MIG configuration wanted: NVIDIA's device plugin refuses MPS on MIG instances "
        "(annotation kerf.dev/device-plugin-configs: shared)",
    ),
    (
        InstancesHidden(WANTED),
        "MIG configuration wanted: the device plugin's migStrategy is none, so it shows no instance",
    ),
    (
        UnequalInstances(WANTED),
        "MIG configuration wanted: with migStrategy single all instances of a node must have one profile, else no GPU "
        "is shown",
    ),
    (
        DoubleBooked((Name("HAMi"), Name("MPS")), ((Name("gpu"), Name("on")), (PLUGIN, Name("shared")))),
        "its labels give the same cards to HAMi and MPS (gpu=on, nvidia.com/device-plugin.config=shared), "
        "and each would book them in full: take one away",
    ),
    (
        UnknownSharing((Name("hami"), Name("none")), Quoted("kai")),
        "annotation kerf.dev/gpu-sharing: expected one of hami, none, got kai",
    ),
    (Unreadable(Quoted("a: expected b, got c")), "a: expected b, got c"),
    (
        UnsupportedSharing(Name("Koordinator"), Name("koordinator.sh/gpu-core")),
        "asks for GPUs by koordinator.sh/gpu-core, which Koordinator gives out; Kerf does not plan for Koordinator and "
        "buys nothing",
    ),
    (
        UnsupportedSharing(Name(""), Name("acme.com/gpu-core")),
        "asks for acme.com/gpu-core, by its name a share of a card that Kerf does not know; Kerf buys nothing for it",
    ),
]

HINTS: list[tuple[Cause, str]] = [
    (RequestDropped(Name("main"), GPUMEM, 4 * 2**30, 1, 4096), "write nvidia.com/gpumem: 4096"),
    (RequestDropped(Name("main"), GPUMEM, -1, 1, None), ""),
    (CountOverflows(Name("main"), GPU, 2**31), "ask for as many nvidia.com/gpu as one node has"),
    (ForeignScheduler(Name("volcano")), "set schedulerName: hami-scheduler, or leave it out"),
    (
        NoGpuAsked(GPUMEM, GPU, Name("")),
        "ask for nvidia.com/gpu in the limits of the container that uses the GPU",
    ),
    (
        ForeignScheduler(Name("default-scheduler")),
        "create the pod again while HAMi's webhook runs, without hami.io/webhook=ignore, or set schedulerName: "
        "hami-scheduler",
    ),
    (TooFewParts(GPU, 1, 0, 0, (SHARED, Name("x"))), "ask for nvidia.com/gpu.shared or x instead of nvidia.com/gpu"),
    (TooFewParts(SHARED, 3, 1, 4, (SHARED,)), ""),
    (
        TooManyAtOnce(GPU, 2, 1, 4, 0, 0),
        "ask for 1 of nvidia.com/gpu in each container: several replicas may be of one GPU anyway",
    ),
    (TooFewGpus(6, 4, 4), ""),
]


@pytest.mark.parametrize(("cause", "short", "long"), DETAILS)
def test_a_refusal_of_devices_has_a_code_and_a_sentence(cause: Cause, short: str, long: str) -> None:
    """The code as the real scheduler words it, and the figures that it does not say."""
    assert (short, long) == (reason(cause), detail(cause))


@pytest.mark.parametrize(("cause", "expected"), SENTENCES)
def test_every_other_cause_is_one_sentence(cause: Cause, expected: str) -> None:
    """What is wrong, where, and what was expected."""
    assert (expected, "") == (reason(cause), detail(cause))


@pytest.mark.parametrize(("cause", "expected"), HINTS)
def test_what_the_pod_should_ask_instead(cause: Cause, expected: str) -> None:
    """Where the family knows; else nothing."""
    assert expected == hint(cause)


def test_quantities_of_devices_have_their_unit() -> None:
    """Only GPUs have a plural."""
    lacks = [Lack(17112, Name("MiB")), Lack(1, Name("GPU")), Lack(2, Name("GPU")), Lack(2, SHARED)]

    assert "17112 MiB, 1 GPU, 2 GPUs, 2 nvidia.com/gpu.shared" == missing_text(lacks)
    assert "" == missing_text([])


def test_every_cause_of_a_family_has_words() -> None:
    """The tables above have each of them, and the base of refused layouts alone is never given."""
    shown = {type(row[0]) for row in (*DETAILS, *SENTENCES)}

    assert set(causes()) - {LayoutRefused} == shown


def test_a_cause_without_words_is_an_error() -> None:
    """Of another room: it is not passed over in silence."""
    with pytest.raises(TypeError, match="no words for Cause"):
        reason(Cause())
