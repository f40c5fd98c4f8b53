"""Situations in which sums over a node mislead, each with what HAMi really does (replayed against HAMi's own rules)."""

from dataclasses import replace
from fractions import Fraction

import pytest

from kerf.model.gpu import DeviceState, Profile
from kerf.model.pods import Pod
from kerf.sharing.family import Fit, Occupant
from kerf.sharing.hami.config import HamiConfig
from kerf.sharing.hami.family import Hami
from tests.sharing.builders import cards, container, decided, pod, registered, verdicts

NO_MEMORY = "CardInsufficientMemory"
BINPACK = {"hami.io/gpu-scheduler-policy": "binpack"}
THREE_SIZES = [pod(gpus=1, mib=mib) for mib in (10240, 10240, 20480)]

ONE_NODE = [
    ("sixty percent twice a card", (16384,) * 2, [pod(gpus=1, percent=60)] * 3, ["1", "0", f"2/2 {NO_MEMORY}"]),
    ("free memory is in two places", (16384,) * 2, [pod(gpus=1, mib=10000)] * 3, ["1", "0", f"2/2 {NO_MEMORY}"]),
    (
        "five that need more than half of four",
        (22888,) * 4,
        [pod(gpus=1, mib=12000)] * 5,
        [*"3210", f"4/4 {NO_MEMORY}"],
    ),
    (
        "just over a half, one a card",
        (81920,) * 8,
        [pod(gpus=1, mib=41000)] * 9,
        [*"76543210", f"8/8 {NO_MEMORY}"],
    ),
    (
        "cores are a card's too",
        (16384,) * 2,
        [pod(gpus=1, mib=1000, cores=60)] * 3,
        ["1", "0", "2/2 CardInsufficientCore"],
    ),
    ("one card, sixty cores", (16384,), [pod(gpus=1, mib=1000, cores=60)] * 2, ["0", "1/1 CardInsufficientCore"]),
    (
        "exactly full",
        (24576,),
        [*[pod(gpus=1, mib=12288, cores=50)] * 2, pod(gpus=1, mib=1)],
        ["0", "0", f"1/1 {NO_MEMORY}"],
    ),
    ("a third, rounded down", (15109,), [pod(gpus=1, percent=34)] * 3, ["0", "0", f"1/1 {NO_MEMORY}"]),
    ("half of unequal cards", (16384, 24576), [pod(gpus=1, percent=50)] * 4, ["1", "0", "1", "0"]),
    ("a T4 registers less than 16 GiB", (15360,), [pod(gpus=1, mib=16000)], [f"1/1 {NO_MEMORY}"]),
    ("spread leaves no whole card", (24576,) * 2, THREE_SIZES, ["1", "0", f"2/2 {NO_MEMORY}"]),
    (
        "binpack does",
        (24576,) * 2,
        [replace(asking, annotations=BINPACK) for asking in THREE_SIZES],
        ["1", "1", "0"],
    ),
    ("order matters", (24576,) * 2, THREE_SIZES[::-1], ["1", "0", "0"]),
    ("two GPUs are two cards", (24576,), [pod(gpus=2, mib=4096)], ["NodeInsufficientDevice"]),
    (
        "each GPU is charged",
        (24576,) * 2,
        [pod(gpus=2, mib=16384), pod(gpus=1, mib=16384)],
        ["1,0", f"2/2 {NO_MEMORY}"],
    ),
    (
        "whole cards leave nothing",
        (81920,) * 8,
        [pod(gpus=4), pod(gpus=4), pod(gpus=1, mib=1024)],
        ["7,6,5,4", "3,2,1,0", f"8/8 {NO_MEMORY}"],
    ),
    (
        "one MiB short",
        (24576,),
        [pod(gpus=1, percent=50), pod(gpus=1, mib=12289)],
        ["0", f"1/1 {NO_MEMORY}"],
    ),
    ("a whole card is exclusive", (24576,), [pod(gpus=1), pod(gpus=1, mib=1024)], ["0", f"1/1 {NO_MEMORY}"]),
    (
        "all cores want an idle card",
        (24576,),
        [pod(gpus=1, mib=1024), pod(gpus=1, mib=2048, cores=100)],
        ["0", "1/1 ExclusiveDeviceAllocateConflict"],
    ),
    (
        "no cores left, none asked",
        (24576,),
        [*[pod(gpus=1, mib=1000, cores=50)] * 2, pod(gpus=1, mib=1000)],
        ["0", "0", "1/1 CardComputeUnitsExhausted"],
    ),
    (
        "two whole cards, one shared",
        (24576,) * 2,
        [pod(gpus=1, mib=1024), pod(gpus=2)],
        ["1", f"1/2 AllocatedCardsInsufficientRequest, 1/2 {NO_MEMORY}"],
    ),
    (
        "ten slots",
        (81920,),
        [pod(gpus=1, mib=1024, cores=1)] * 11,
        ["0"] * 10 + ["1/1 CardTimeSlicingExhausted"],
    ),
]


@pytest.mark.parametrize(("memories", "pods", "expected"), [row[1:] for row in ONE_NODE], ids=[r[0] for r in ONE_NODE])
def test_pods_that_arrive_in_turn_get_the_cards_hami_gives_them(
    memories: tuple[int, ...], pods: list[Pod], expected: list[str]
) -> None:
    """A slice lives on one card: what is free in sum decides nothing (003-1)."""
    assert expected == verdicts(cards(*memories), pods)


def test_containers_of_one_pod_need_a_packing_that_spread_does_not_find() -> None:
    """10240, 10240 and 20480 fit on two cards of 24576 in principle; HAMi finds it with binpack only."""
    asking = pod(*(container(str(i), gpus=1, mib=mib) for i, mib in enumerate((10240, 10240, 20480))))

    assert [f"2/2 {NO_MEMORY}"] == verdicts(cards(24576, 24576), [asking])
    assert verdicts(cards(24576, 24576), [replace(asking, annotations=BINPACK)]) == ["1,1,0"]


CONFIGURED = [
    (HamiConfig(memory_scaling=Fraction(2)), (24576,), [pod(gpus=1, mib=24576)] * 2, ["0", "0"]),
    (HamiConfig(memory_factor=1024), (24576,), [pod(gpus=1, mib=10)] * 3, ["0", "0", f"1/1 {NO_MEMORY}"]),
    (
        HamiConfig(split_count=1),
        (24576,) * 2,
        [pod(gpus=1, mib=100)] * 3,
        ["1", "0", "2/2 CardTimeSlicingExhausted"],
    ),
    (HamiConfig(core_scaling=Fraction("0.5")), (24576,), [pod(gpus=1)], ["1/1 CardInsufficientCore"]),
]


@pytest.mark.parametrize(("config", "memories", "pods", "expected"), CONFIGURED)
def test_the_clusters_settings_decide_what_fits(
    config: HamiConfig, memories: tuple[int, ...], pods: list[Pod], expected: list[str]
) -> None:
    """Memory scaling oversells, a memory factor makes units, the split count limits the slots of each card."""
    hami = Hami(config)

    assert expected == verdicts(cards(*memories, family=hami), pods, hami)


FILTERS = [
    ("nvidia.com/use-gputype", "A10", "Tesla T4", "1/1 CardTypeMismatch"),
    ("nvidia.com/use-gputype", "A10", "NVIDIA A100-SXM4-40GB", "0"),
    ("nvidia.com/use-gpuuuid", "GPU-x", "A10G", "1/1 CardUuidMismatch"),
    ("nvidia.com/vgpu-mode", "mig", "A10G", "1/1 CardTypeMismatch"),
]


@pytest.mark.parametrize(("annotation", "value", "model", "expected"), FILTERS)
def test_annotations_exclude_cards(annotation: str, value: str, model: str, expected: str) -> None:
    """Types are compared as substrings, so that A10 takes an A100; a UUID no new node can have."""
    assert [expected] == verdicts(cards(24576, model=model), [pod(gpus=1, mib=100, annotations={annotation: value})])


UNUSABLE = [
    (replace(cards(24576, 24576)[1], healthy=False), f"1/2 {NO_MEMORY}, 1/2 CardNotHealth"),
    (replace(cards(24576, 24576)[1], cordoned=True), f"1/2 CardCordoned, 1/2 {NO_MEMORY}"),
]


@pytest.mark.parametrize(("unusable", "expected"), UNUSABLE)
def test_an_unhealthy_or_cordoned_card_takes_nothing(unusable: DeviceState, expected: str) -> None:
    """Of two cards one is out of use: one pod of two fits."""
    assert ["0", expected] == verdicts((cards(24576)[0], unusable), [pod(gpus=1, mib=20000)] * 2)


def test_an_init_container_blocks_its_memory_only_until_it_has_ended() -> None:
    """Init 20000 and app 8000 hold 20000 first and 8000 later; then another 8000 fits."""
    asking = pod(container("app", gpus=1, mib=8000), init=[container("init", gpus=1, mib=20000)])
    fit = decided(cards(24576), asking)
    assert isinstance(fit, Fit)

    other = pod(gpus=1, mib=8000)
    assert [f"1/1 {NO_MEMORY}"] == verdicts(fit.devices, [other])
    started = Occupant(replace(asking, initialised=True, annotations=recorded("20000", "8000")), None)
    assert verdicts(Hami().occupied(cards(24576), [started]), [other]) == ["0"]


def recorded(*amounts: str) -> dict[str, str]:
    """HAMi's record of shares of gpu-0, one a container."""
    return {"hami.io/vgpu-devices-allocated": "".join(f"gpu-0,NVIDIA,{mib},0:;" for mib in amounts)}


def test_a_pod_that_has_ended_holds_nothing() -> None:
    """Its annotation stays, its share does not count."""
    ended = Occupant(replace(pod(), phase="Succeeded", annotations=recorded("20000")), None)

    assert verdicts(Hami().occupied(cards(24576), [ended]), [pod(gpus=1, mib=20000)]) == ["0"]


A100_PROFILES = (
    Profile("1g.5gb", 1, (0, 1, 2, 3, 4, 5, 6), 4864, 15, 1),
    Profile("2g.10gb", 2, (0, 2, 4), 9856, 29, 2),
    Profile("3g.20gb", 4, (0, 4), 19968, 43, 3),
    Profile("7g.40gb", 8, (0,), 40192, 100, 7),
)


def test_a_mig_card_is_cut_into_the_smallest_profile_with_a_free_place() -> None:
    """6000 MiB three times is 2g.10gb at 0, 2 and 4; a fourth finds no place, 4000 MiB get the 1g.5gb at 6."""
    card = DeviceState("GPU-a", 0, "NVIDIA A100-SXM4-40GB", 40960, 100, 7, mode="mig", profiles=A100_PROFILES)
    (mig,) = Hami().inventory(registered([card])) or ()
    six, four = pod(gpus=1, mib=6000), pod(gpus=1, mib=4000)

    assert verdicts((mig,), [six, six, six, six, four]) == ["0", "0", "0", "1/1 CardMigTopologyInfeasible", "0"]
