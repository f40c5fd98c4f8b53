"""HAMi in MIG mode: which profiles it may cut of a new card, and what its pods then find there."""

import pytest

from kerf.catalog.gpus import shape_of
from kerf.errors import DecodeError
from kerf.model.causes import Name
from kerf.model.gpu import DeviceShape, DeviceState, Placement
from kerf.model.snapshot import ConfigMap
from kerf.sharing.family import Fit, NoFit
from kerf.sharing.hami.family import Hami, NoProfileAllowed
from kerf.sharing.hami.fit import NO_MEMORY, NO_MIG_PLACE
from kerf.sharing.hami.shortage import MemoryShort, NoFreeStart
from kerf.sharing.nvidia.mig_geometry import ProfileStarts
from tests.sharing.builders import decided, pod, verdicts
from tests.sharing.nvidia.builders import A10G, A30, A100

H100 = shape_of("H100", 81559, "stated")
MODE = {"kerf.dev/hami-mode": "mig"}
ALL = "1g.5gb, 1g.5gb+me, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb"


def hami(profiles: str = "", models: str = "A100-SXM4-40GB") -> Hami:
    """With an allowlist; without profiles with HAMi's own."""
    listed = f"[{{models: [{models}], profiles: [{profiles}]}}]" if profiles else "[]"
    text = f"nvidia: {{migProfileAllowlist: {listed}}}"
    return Hami().configured([ConfigMap("kube-system", "hami-scheduler-device", {"device-config.yaml": text})])


def card(family: Hami, shape: DeviceShape = A100) -> tuple[DeviceState, ...]:
    """A new card in MIG mode."""
    return family.predict([shape], {}, MODE)


@pytest.mark.parametrize(
    ("shape", "expected", "slots"),
    [
        (A100, ["1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"], 7),
        (H100, ["1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"], 7),
        (A30, ["1g.6gb", "2g.12gb", "4g.24gb"], 4),
    ],
)
def test_without_a_list_hami_takes_one_profile_of_each_size(
    shape: DeviceShape, expected: list[str], slots: int
) -> None:
    """Neither double memory nor media engine nor a 4g of seven; as many slots as instances of the smallest."""
    (device,) = card(hami(), shape)

    assert (expected, slots, "mig") == ([p.name for p in device.profiles], device.slots, device.mode)


def test_the_allowlist_is_by_a_part_of_the_models_name() -> None:
    """A model that it does not name may not be cut, and nothing is planned on it."""
    only = hami("3g.20gb, 4g.20gb")

    assert ["3g.20gb", "4g.20gb"] == [p.name for p in card(only)[0].profiles]
    assert () == card(hami("1g.5gb", "H100"))
    assert NoProfileAllowed(Name("A10G")) == only.obstacle([A10G], {}, MODE)
    assert None is only.obstacle([A10G], {}, {})


@pytest.mark.parametrize(
    ("profiles", "amounts", "expected"),
    [
        (ALL, (19968, 19968, 4864), ["0", "0", "1/1 CardInsufficientMemory"]),
        ("1g.5gb", (4864,) * 8, ["0"] * 7 + ["1/1 CardTimeSlicingExhausted"]),
        (ALL, (19968, 19968), ["0", "0"]),
        ("", (6000, 6000, 6000, 6000, 4000), ["0", "0", "0", "1/1 CardMigTopologyInfeasible", "0"]),
    ],
)
def test_what_one_card_holds(profiles: str, amounts: tuple[int, ...], expected: list[str]) -> None:
    """Scenarios 48, 49, 52 and 56: by places, not by sums; HAMi takes the smallest profile that has one."""
    family = hami(profiles)

    assert expected == verdicts(card(family), [pod(gpus=1, mib=mib) for mib in amounts], family)


@pytest.mark.parametrize(
    ("starts", "expected"),
    [((0, 2), None), ((0, 4), {"1g.5gb": (2, 3, 6), "2g.10gb": (2,)})],
)
def test_a_refusal_names_the_free_starts(starts: tuple[int, int], expected: dict[str, tuple[int, ...]] | None) -> None:
    """Scenario 51: two 2g at 0 and 2 leave a place for a 3g, at 0 and 4 they do not."""
    family = hami("1g.5gb, 2g.10gb, 3g.20gb")
    (device,) = card(family)
    for start in starts:
        device = device.taking(9856, 28, 1, Placement("2g.10gb", start, 2))
    found = decided((device,), pod(gpus=1, mib=19968), family)

    assert (expected is None) == isinstance(found, Fit)
    if expected is not None:
        free = tuple(ProfileStarts(Name(name), at) for name, at in expected.items())
        wanted = (ProfileStarts(Name("3g.20gb"), (0, 4)),)
        assert NoFit(NoFreeStart((NO_MIG_PLACE,), 19968, wanted, free)) == found


def test_free_starts_are_said_whatever_hami_looks_at_first() -> None:
    """HAMi compares the memory of the whole card before places: two 3g leave 1024 MiB and no start."""
    family = hami(ALL)
    (device,) = card(family)
    for start in (0, 4):
        device = device.taking(19968, 42, 1, Placement("3g.20gb", start, 4))
    found = decided((device,), pod(gpus=1, mib=4864), family)

    assert isinstance(found, NoFit)
    assert MemoryShort((NO_MEMORY,), 4864, 1, 1024, free_starts=()) == found.cause


def test_a_list_of_another_form_is_an_error() -> None:
    """With map, key and field."""
    with pytest.raises(DecodeError, match=r"nvidia.migProfileAllowlist: expected a list"):
        Hami().configured(
            [
                ConfigMap(
                    "kube-system", "hami-scheduler-device", {"device-config.yaml": "nvidia: {migProfileAllowlist: 3}"}
                )
            ]
        )
