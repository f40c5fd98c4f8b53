"""Texts of events that people read."""

import pytest

from kerf.model.events import triggered_scale_up
from kerf.testing.builders import a_pool


@pytest.mark.parametrize(
    "limits, most",
    [
        (None, "unlimited"),
        ({}, "unlimited"),
        ({"nodes": 10}, "10"),
        ({"cpu": 100}, "cpu 100"),
        ({"nodes": 3, "nvidia.com/gpu": 8, "memory": "64Gi"}, "3, memory 64Gi, nvidia.com/gpu 8"),
    ],
    ids=str,
)
def test_a_scale_up_says_how_far_its_pool_may_grow(limits: dict[str, int | str] | None, most: str) -> None:
    """Not unlimited where another resource than nodes is limited."""
    occurrence = triggered_scale_up("default/p", "claim", a_pool("gpu", limits=limits), 0, 2)

    assert f"pod triggered scale-up: [{{gpu 0->2 (max: {most})}}]" == occurrence.message
