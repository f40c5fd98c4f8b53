"""KWOK's generic types, and catalogue files of that shape, good and bad."""

import json
import math
from typing import Any

import pytest

from kerf.catalog import kwok
from kerf.errors import DecodeError
from kerf.model.instancetypes import ON_DEMAND, SPOT, InstanceType
from kerf.model.quantities import MIB


def offering(**changed: Any) -> dict[str, Any]:
    """An on-demand offering in zone z1 at 0.5 an hour."""
    requirements = [
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    return {"Price": 0.5, "Available": True, "Requirements": requirements, **changed}


def entry(**changed: Any) -> dict[str, Any]:
    """A machine of 8 CPUs and 32 GiB."""
    return {
        "name": "rack-a",
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "8", "memory": "32Gi"},
        "offerings": [offering()],
        **changed,
    }


def decoded(**changed: Any) -> InstanceType:
    """The one type of a file with that entry."""
    (kind,) = kwok.decode(json.dumps([entry(**changed)]), "rack.json").types
    return kind


def test_generic_types_follow_the_generator() -> None:
    """144 types; c-4x-amd64-linux: 4 CPUs, 8 GiB, 64 pods, 20 GiB of disk; 0.1 + 8.589934592 x 0.001 an hour."""
    market = kwok.generic()
    kind = market.find("c-4x-amd64-linux")

    assert kind is not None
    assert 144 == len(market.types)
    assert (4000, 8192 * MIB, 64) == (kind.capacity["cpu"], kind.capacity["memory"], kind.capacity["pods"])
    assert {ON_DEMAND: 108_590, SPOT: 76_013} == {offer.capacity_type: offer.price_micro for offer in kind.offerings}
    assert 8 == len(kind.offerings)


def test_generic_labels_are_kwoks() -> None:
    """Size falls back to the CPUs, family is what stands before the dash."""
    kind = kwok.generic().find("m-2x-arm64-windows")
    assert kind is not None
    labels = kind.requirements.labels()

    assert ("2", "m") == tuple(labels[f"karpenter.kwok.sh/instance-{name}"] for name in ("size", "family"))
    assert ("16Gi", "windows") == (labels["karpenter.kwok.sh/instance-memory"], labels["kubernetes.io/os"])


def test_resources_of_a_file_are_capacity() -> None:
    """KWOK's 100m and 10Mi are taken off, 110 pods assumed."""
    assert {"cpu": 7900, "memory": (32768 - 10) * MIB, "pods": 110} == dict(decoded().allocatable)


def test_overhead_of_a_file_replaces_kwoks() -> None:
    """`overhead` is taken off instead; an empty one means none."""
    assert 7500 == decoded(overhead={"cpu": "500m"}).allocatable["cpu"]
    assert 8000 == decoded(overhead={}).allocatable["cpu"]


def test_devices_register_what_the_file_says() -> None:
    """No margin is taken off `memoryMiB`; the count fills in nvidia.com/gpu; a known model gets its driver's name."""
    kind = decoded(devices=[{"model": "A10G", "memoryMiB": 23028, "count": 2}])

    assert [("NVIDIA A10G", 23028)] * 2 == [(card.model.registered_as, card.memory_mib) for card in kind.devices]
    assert 2 == kind.capacity["nvidia.com/gpu"]


def test_labels_of_a_file_are_added() -> None:
    """`labels` become labels of the type's nodes."""
    assert "b7" == decoded(labels={"example.com/row": "b7"}).requirements.labels()["example.com/row"]


def test_offering_with_several_zones_is_several_offerings() -> None:
    """Price and availability hold for each zone that the requirement names."""
    several = offering(
        Available=False,
        Requirements=[
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1", "z2"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
        ],
    )

    found = [(offer.zone, offer.capacity_type, offer.is_available) for offer in decoded(offerings=[several]).offerings]
    assert [("z1", SPOT, False), ("z2", SPOT, False)] == found


def test_type_without_offering_is_left_out() -> None:
    """What cannot be bought is in no market; a note says so."""
    market = kwok.decode(json.dumps([entry(offerings=[])]), "rack.json")

    assert ((), ("rack.json: rack-a has no offering and is left out",)) == (market.types, market.notes)


@pytest.mark.parametrize(
    "price, got", [(None, "<nothing>"), (-1, "-1"), (-0.25, "-0.25"), (math.nan, "nan"), (math.inf, "inf")]
)
def test_an_offering_whose_price_is_none_is_left_out(price: float | None, got: str) -> None:
    """One such offering takes no plan away: the others stay, and a note names type, capacity type and zone."""
    market = kwok.decode(json.dumps([entry(offerings=[offering(Price=price), offering()])]), "rack.json")

    assert [500_000] == [offer.price_micro for offer in market.types[0].offerings]
    assert (f"rack.json: rack-a, on-demand in z1, has no price (got {got}) and is left out",) == market.notes


def test_an_offering_without_a_price_is_left_out() -> None:
    """And its type, if no other is left."""
    bare = {key: value for key, value in offering().items() if key != "Price"}

    market = kwok.decode(json.dumps([entry(offerings=[bare])]), "rack.json")

    assert () == market.types
    assert (
        "rack.json: rack-a, on-demand in z1, has no price (got <nothing>) and is left out",
        "rack.json: rack-a has no offering and is left out",
    ) == market.notes


def test_of_many_offerings_without_a_price_the_first_are_named() -> None:
    """A whole file without prices is said in a few lines."""
    entries = [entry(name=f"t{number:02}", offerings=[offering(), offering(Price=None)]) for number in range(12)]

    *first, last = kwok.decode(json.dumps(entries), "rack.json").notes

    assert 4 == len(first)
    assert "rack.json: 8 offerings more have no price and are left out" == last


def test_price_is_exact() -> None:
    """Money is taken from the digits of the file: 0.1234565 is 123457 millionths."""
    assert (
        123_457 == kwok.decode(json.dumps([entry()]).replace("0.5", "0.1234565"), "x").types[0].offerings[0].price_micro
    )


@pytest.mark.parametrize("text, micro", [("0.000000001", 1), ("1e-300", 1), ("0", 0), ("0.0", 0)])
def test_what_costs_anything_is_not_free(text: str, micro: int) -> None:
    """A plan says of what costs nothing that it may be a mistake: that would be wrong of the smallest price."""
    market = kwok.decode(json.dumps([entry()]).replace("0.5", text), "x")

    assert micro == market.types[0].offerings[0].price_micro


def test_keys_that_nothing_reads_are_noted() -> None:
    """Go drops them silently; here the market says which."""
    market = kwok.decode(json.dumps([entry(colour="red")]), "rack.json")

    assert ("rack.json: [0].colour is not read",) == market.notes


OLD = {"price": 0.5, "capacityType": "on-demand", "zone": "z1"}
OLD_HINT = '(hint: write "requirements": [{"key", "operator", "values"}] as the KWOK generator does)'
CARD = {"model": "T4", "memoryMiB": 15360}


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"name": 3}, "name: expected a text, got 3"),
        ({"resources": {"cpu": "8x"}}, "resources.cpu: expected a quantity like 4, 500m or 16Gi, got '8x'"),
        ({"resources": {"cpu": "-8"}}, "resources.cpu: expected a quantity that is not negative, got '-8'"),
        ({"resources": {"cpu": [8]}}, "resources.cpu: expected a quantity, got <a list>"),
        ({"resources": None}, "resources: expected an object, got <nothing>"),
        ({"resources": {}}, "resources.cpu: expected a quantity, got <nothing>"),
        ({"offerings": {}}, "offerings: expected a list, got <an object>"),
        (
            {"offerings": [offering(Price=10**9 + 1)]},
            "offerings[0].price: expected a price per hour from 0 to 1000000000, got 1000000001",
        ),
        ({"offerings": [offering(Available=1)]}, "offerings[0].available: expected true or false, got 1"),
        (
            {"offerings": [offering(Price="1")]},
            "offerings[0].price: expected a price per hour from 0 to 1000000000, got '1'",
        ),
        ({"offerings": [OLD]}, f"offerings[0].requirements: expected a list, got <nothing> {OLD_HINT}"),
        ({"operatingSystems": []}, "operatingSystems: expected at least one text, got <an empty list>"),
        ({"labels": {"a": 1}}, "labels.a: expected a text, got 1"),
        (
            {"devices": [{"model": "T4"}]},
            "devices[0].memoryMiB: expected a whole number from 1 to 2147483647, got <nothing>",
        ),
        ({"devices": [CARD | {"count": 0}]}, "devices[0].count: expected a whole number from 1 to 1024, got 0"),
    ],
)
def test_mistake_is_reported_with_its_place(changed: dict[str, Any], message: str) -> None:
    """Place, path, expected, got, and a hint where the fix is known."""
    with pytest.raises(DecodeError) as error:
        decoded(**changed)

    assert f"rack.json: [0].{message}" == str(error.value)


def test_devices_and_gpu_count_must_agree() -> None:
    """`nvidia.com/gpu` in resources is the number of devices, where there are some."""
    with pytest.raises(DecodeError, match=r"nvidia.com/gpu: expected 1, the number of devices, got 4"):
        decoded(devices=[CARD], resources={"cpu": 8, "memory": "32Gi", "nvidia.com/gpu": 4})


@pytest.mark.parametrize(
    "requirement, message",
    [
        ({"key": "example.com/row"}, "key: expected topology.kubernetes.io/zone or karpenter.sh/capacity-type"),
        ({"operator": "NotIn"}, "operator: expected In, got 'NotIn'"),
        ({"key": "karpenter.sh/capacity-type", "values": ["cheap"]}, "expected a capacity type: reserved, spot or"),
        ({"values": []}, "values: expected at least one text, got <an empty list>"),
    ],
)
def test_offering_must_say_where_and_how(requirement: dict[str, Any], message: str) -> None:
    """Requirements of an offering name zones and capacity types, by `In`."""
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]}
    bad = offering(Requirements=[zone, {**zone, **requirement}])

    with pytest.raises(DecodeError) as error:
        decoded(offerings=[bad])

    assert message in str(error.value)


@pytest.mark.parametrize(
    "text, message",
    [
        ('[{"name": }]', "rack.json:1:11: expected JSON, got <Expecting value>"),
        ('{"name": "a"}', "rack.json: expected a list, got <an object>"),
        ('[{"name": "a", "name": "b"}]', "rack.json: name: expected each key once, got 'name'"),
        ("[" * 100_000, "rack.json: expected JSON, got <too many levels>"),
        ("9" * 5_000, "rack.json: expected JSON, got <a number of too many digits>"),
    ],
)
def test_text_that_is_no_catalogue(text: str, message: str) -> None:
    """Text that does not parse is told with line and column."""
    with pytest.raises(DecodeError) as error:
        kwok.decode(text, "rack.json")

    assert message == str(error.value)


def test_two_types_of_one_name_are_refused() -> None:
    """Offerings of one type stand in one entry."""
    with pytest.raises(
        DecodeError, match=r"rack.json: \[1\].name: expected a name other than that of \[0\], got 'rack-a'"
    ):
        kwok.decode(json.dumps([entry(), entry()]), "rack.json")


RESERVED_IN_Z1 = [
    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]},
    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]},
    {"key": "karpenter.k8s.aws/capacity-reservation-id", "operator": "In", "values": ["cr-1"]},
]


def test_a_reserved_offering_has_an_id_and_a_number() -> None:
    """As Karpenter's types state both."""
    kind = decoded(offerings=[offering(Requirements=RESERVED_IN_Z1, ReservationCapacity=2)])

    assert [("reserved", "cr-1", 2)] == [(each.capacity_type, each.reservation, each.most) for each in kind.offerings]


@pytest.mark.parametrize("stated", [{}, {"ReservationCapacity": -1}, {"ReservationCapacity": "2"}])
def test_a_reservation_without_a_number_is_a_mistake(stated: dict[str, Any]) -> None:
    """It would be used without end."""
    with pytest.raises(DecodeError, match="reservationCapacity: expected how many instances the reservation has"):
        decoded(offerings=[offering(Requirements=RESERVED_IN_Z1, **stated)])
