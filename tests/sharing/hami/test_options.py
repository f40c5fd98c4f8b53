"""Words in annotations that HAMi does not know."""

import pytest

from kerf.sharing.hami.options import GPU_POLICY, NODE_POLICY, NUMA_BIND, unknown_words


@pytest.mark.parametrize(
    ("key", "text", "got", "taken"),
    [
        (NODE_POLICY, "binpak", "binpak", "binpack"),
        (NODE_POLICY, "Spread", "Spread", "binpack"),
        (NODE_POLICY, "mutex", "mutex", "binpack"),
        (NODE_POLICY, "spread,binpack", "spread,binpack", "binpack"),
        (GPU_POLICY, "binpak", "binpak", "spread"),
        (GPU_POLICY, "", "", "spread"),
        (GPU_POLICY, " binpack", " binpack", "spread"),
        (GPU_POLICY, "binpack, numa", " numa", "binpack"),
        (GPU_POLICY, "topology", "topology", "spread"),
        (NUMA_BIND, "yes", "yes", "false"),
        (NUMA_BIND, "tRue", "tRue", "false"),
    ],
)
def test_a_policy_that_hami_does_not_know_is_named_with_what_it_does(key: str, text: str, got: str, taken: str) -> None:
    """It compares words as they are."""
    (found,) = unknown_words({key: text})

    assert (key, got, taken) == (found.annotation, found.got, found.taken)


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {NODE_POLICY: "spread", GPU_POLICY: "binpack"},
        {GPU_POLICY: "numa,binpack,mutex"},
        {GPU_POLICY: "topology-aware"},
        {NUMA_BIND: "True"},
        {NUMA_BIND: "0"},
        {"other.io/gpu-scheduler-policy": "binpak"},
    ],
)
def test_a_policy_that_hami_knows_is_no_finding(annotations: dict[str, str]) -> None:
    """One, or for cards several."""
    assert () == unknown_words(annotations)
