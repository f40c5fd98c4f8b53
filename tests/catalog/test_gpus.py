"""The memory that a plan counts on: the least of what is known."""

import pytest

from kerf.catalog.gpus import device_shape, model_of


@pytest.mark.parametrize(
    "name, registered_as",
    [
        ("A10G", "NVIDIA A10G"),
        ("NVIDIA A10", "NVIDIA A10"),
        ("T4", "Tesla T4"),
        ("V100 32GB", "Tesla V100-SXM2-16GB"),
        ("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
        ("H999", "NVIDIA H999"),
    ],
)
def test_model_knows_the_name_a_driver_reports(name: str, registered_as: str) -> None:
    """Spellings of clouds and drivers lead to one card; an unknown name stands as it is, without size the smallest."""
    assert registered_as == model_of(name).registered_as


def test_size_picks_among_cards_of_one_name() -> None:
    """An A100 of 81920 MiB is the 80 GB card."""
    assert "NVIDIA A100-SXM4-80GB" == model_of("A100", 81920).registered_as


def test_least_of_api_and_driver_counts() -> None:
    """T4: the API says 16384, the driver 15360; A10G: the API's 22888 is the smaller one."""
    assert 15360 == device_shape("T4", api_mib=16384, origin="EC2 API").memory_mib
    assert 22888 == device_shape("A10G", api_mib=22888, origin="EC2 API").memory_mib


def test_api_alone_is_taken_with_a_margin() -> None:
    """Where nothing but the API is known, 92 % of it counts, and the source says so."""
    shape = device_shape("B200", api_mib=183359, origin="EC2 API")

    assert 168690 == shape.memory_mib
    assert "92 % of 183359 MiB, EC2 API; no driver's total is known" == shape.memory_source


def test_observed_figure_needs_no_margin() -> None:
    """What a driver registered on this cloud counts as it is."""
    assert 16280 == device_shape("P100", observed_mib=16280, origin="ECS").memory_mib


def test_share_of_a_card_is_held_against_the_same_share_of_the_driver() -> None:
    """An eighth of an L4: 2861 MiB by the API, below an eighth of the driver's 23034."""
    shape = device_shape("L4", api_mib=2861, origin="EC2 API", eighths=1)

    assert (2861, True) == (shape.memory_mib, shape.is_fraction)
