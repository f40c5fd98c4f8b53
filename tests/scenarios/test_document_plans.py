"""What the mission's documents must come to, with exactly these numbers (us-east-1 on-demand prices, no DaemonSets)."""

import pytest

from tests.scenarios.documents import ACK, BATCH, GPU_POOLS, HAMI, OVERLAY, Edit, manifests, planned, replicas

BOTH_SIZES: Edit = ('["g5.2xlarge"]', '["g5.xlarge", "g5.2xlarge"]')
ONE_AND_FOUR: Edit = ('["g5.2xlarge"]', '["g5.xlarge", "g5.12xlarge"]')
NO_LIMIT: Edit = ("\n  limits:\n    cpu: 10\n", "\n")
ONLY_FOUR: Edit = ('["g5.xlarge"]', '["g5.12xlarge"]')
FOUR_OR_ONE: Edit = ('["g5.xlarge"]', '["g5.12xlarge", "g5.xlarge"]')
SHANGHAI = ("--catalog", "alibaba:cn-shanghai")


def slices(memory_mib: int, cores: int) -> tuple[Edit, Edit]:
    """Document 003's request with other figures; HAMi reads cores 0 as no share reserved."""
    return ("gpucores: 50", f"gpucores: {cores}"), ("gpumem: 1000", f"gpumem: {memory_mib}")


def test_a_cpu_limit_is_named_as_the_cause_with_its_figures() -> None:
    """000-1, 000-3: one node, four pods at stage limits; 40 is the limit that places all; types are never blamed."""
    outcome = planned(manifests(GPU_POOLS))

    assert (3, ["g5.2xlarge"], 1.212) == (outcome.exit_code, outcome.bought, outcome.per_hour)
    assert ["limits"] * 4 == [pod["stage"] for pod in outcome.plan["unplaced"]]
    first = outcome.plan["unplaced"][0]
    assert "limit cpu 10 of NodePool gpu-pool-1: 8 planned, 8 more needed" == first["reason"]
    assert "40 is the smallest cpu limit of NodePool gpu-pool-1 that places all 5 pods" == first["hint"]
    assert "no instance type has enough resources" not in outcome.text


@pytest.mark.parametrize(
    ("edits", "strategy", "bought", "per_hour", "unplaced"),
    [
        ([("cpu: 10", "cpu: 39")], "cost", ["g5.2xlarge"] * 4, 4.848, 1),
        ([("cpu: 10", "cpu: 40")], "cost", ["g5.2xlarge"] * 5, 6.06, 0),
        ([("cpu: 10", "nodes: 3")], "cost", ["g5.2xlarge"] * 3, 3.636, 2),
        ([BOTH_SIZES], "cost", ["g5.xlarge"] * 2, 2.012, 3),
        ([BOTH_SIZES], "first-fit", ["g5.xlarge"], 1.006, 4),
        ([ONE_AND_FOUR, NO_LIMIT], "cost", ["g5.xlarge"] * 5, 5.03, 0),
        ([ONE_AND_FOUR, NO_LIMIT], "first-fit", ["g5.12xlarge", "g5.xlarge"], 6.678, 0),
        ([ONE_AND_FOUR, NO_LIMIT, ("replicas: 5", "replicas: 2")], "cost", ["g5.xlarge"] * 2, 2.012, 0),
        ([ONE_AND_FOUR, NO_LIMIT, ("replicas: 5", "replicas: 2")], "first-fit", ["g5.12xlarge"], 5.672, 0),
    ],
)
def test_whole_gpus_under_limits_and_with_a_choice_of_sizes(
    edits: list[Edit], strategy: str, bought: list[str], per_hour: float, unplaced: int
) -> None:
    """000-1, 000-4, 000-15: limits count inside the batch; cost buys what is cheap, first-fit what Karpenter buys."""
    outcome = planned(manifests(GPU_POOLS, *edits), "--strategy", strategy)

    assert (bought, per_hour) == (outcome.bought, outcome.per_hour)
    assert unplaced == len(outcome.plan["unplaced"])
    assert (3 if unplaced else 0) == outcome.exit_code


def test_two_slices_share_one_card_and_the_third_gets_its_own() -> None:
    """003-1, 003-2: without any NodeOverlay; 100 of 100 cores and 2000 MiB on one card; a quarter is kerf."""
    outcome = planned(manifests(HAMI), *replicas(3))

    cards = [launch["devices"][0]["slices"] for launch in outcome.plan["launches"]]
    assert ["g5.xlarge"] * 2 == outcome.bought
    assert 2.012 == outcome.per_hour
    assert [(100, 2000), (50, 1000)] == [(sum(s["cores"] for s in c), sum(s["memoryMiB"] for s in c)) for c in cards]
    assert 0.25 == outcome.plan["gpus"]["kerf"]


def test_an_overlay_changes_no_placement_and_is_compared_with_the_card() -> None:
    """003-3, 003-11: the same launches; one note with both numbers."""
    without = planned(manifests(HAMI), *replicas(3))
    overlaid = planned(manifests((*HAMI, OVERLAY)), *replicas(3))

    assert without.plan["launches"] == overlaid.plan["launches"]
    assert [True] == [
        "24000" in note and "22888" in note for note in overlaid.plan["notes"] if "custom-devices" in note
    ]


@pytest.mark.parametrize(
    ("edits", "files", "pods", "bought", "per_hour"),
    [
        (slices(8000, 30), (*HAMI, OVERLAY), 3, ["g5.xlarge"] * 2, 2.012),
        ((*slices(12000, 0), ONLY_FOUR), HAMI, 5, ["g5.12xlarge"] * 2, 11.344),
        ((*slices(12000, 0), FOUR_OR_ONE), HAMI, 5, ["g5.xlarge"] * 5, 5.03),
        ((*slices(16000, 0), FOUR_OR_ONE, ("gpu: 1,", "gpu: 2,")), HAMI, 1, ["g5.12xlarge"], 5.672),
    ],
)
def test_slices_are_counted_per_card_and_never_summed(
    edits: tuple[Edit, ...], files: tuple[str, ...], pods: int, bought: list[str], per_hour: float
) -> None:
    """003-4: 24000 would hold three of 8000, the card holds two; 60000 <= 91552 in sum, but one of 12000 a card."""
    outcome = planned(manifests(files, *edits), *replicas(pods))

    assert (bought, per_hour, []) == (outcome.bought, outcome.per_hour, outcome.plan["unplaced"])


def test_two_gpus_of_one_pod_are_two_different_cards() -> None:
    """gpu-sharing row 18: a count is a number of distinct physical GPUs."""
    outcome = planned(manifests(HAMI, *slices(16000, 0), FOUR_OR_ONE, ("gpu: 1,", "gpu: 2,")), *replicas(1))

    assert [0, 0, 1, 1] == sorted(len(card["slices"]) for card in outcome.plan["launches"][0]["devices"])


def test_a_slice_larger_than_the_card_names_what_is_missing_and_what_would_hold_it() -> None:
    """003-3: 40000 MiB against 22888; g6e.xlarge is the cheapest type with a larger card."""
    outcome = planned(manifests(HAMI, *slices(40000, 50)), *replicas(1))

    (pod,) = outcome.plan["unplaced"]
    assert ("devices", "17112 MiB") == (pod["stage"], pod["misfits"][0]["missing"])
    assert "needs 40000 MiB on one GPU; the largest free is 22888" in pod["reason"]
    assert "g6e.xlarge (1.861 USD/h)" in pod["hint"]


def test_a_pool_that_hami_does_not_select_buys_nothing_until_its_label_is_patched() -> None:
    """003-10: the reason names HAMi's selector; the patch adds the label, and then it works."""
    unlabelled = manifests(HAMI, ('labels: {gpu: "on"}', "labels: {}"))
    outcome = planned(unlabelled, *replicas(3))

    assert (3, []) == (outcome.exit_code, outcome.bought)
    assert (
        'HAMi, whose device plugin does not select these nodes (selector: label gpu: "on")'
        in (outcome.plan["unplaced"][0]["reason"])
    )
    assert (
        '{"spec": {"template": {"metadata": {"labels": {"gpu": "on"}}}}}'
        == (outcome.plan["unplaced"][0]["patch"]["patch"])
    )
    assert ["g5.xlarge"] * 2 == planned(manifests(HAMI), *replicas(3)).bought


def test_an_ack_pool_is_planned_in_its_own_currency() -> None:
    """004 step 3: two nodes of the cheaper type, in CNY."""
    outcome = planned(manifests(ACK), *SHANGHAI)

    assert (["ecs.gn7i-c8g1.2xlarge"] * 2, 19.0652) == (outcome.bought, outcome.per_hour)
    assert "CNY" == outcome.plan["cost"]["currency"]


def test_an_affinity_that_matches_no_pool_shows_both_values_and_the_patch() -> None:
    """004 FAQ 1a: the pod's key and value beside the pool's."""
    outcome = planned(manifests(ACK, ('values: ["NVIDIA-A10"]', 'values: ["NVIDIA-L20"]')), *SHANGHAI)

    pod = outcome.plan["unplaced"][0]
    assert ([], "requirements") == (outcome.bought, pod["stage"])
    assert "the pod asks gpu-spec In [NVIDIA-L20], NodePool gpu-a10 has gpu-spec In [NVIDIA-A10]" == pod["reason"]
    assert ("Deployment", "gpu-auto-scaler") == (pod["patch"]["kind"], pod["patch"]["name"])
    assert "NVIDIA-A10" in pod["patch"]["patch"]


@pytest.mark.parametrize(("cpu", "nodes", "per_hour"), [('"1"', 9, 1.728), ("900m", 7, 1.344)])
def test_batch_jobs_are_packed_by_allocatable_and_not_by_the_number_on_the_box(
    cpu: str, nodes: int, per_hour: float
) -> None:
    """002-6, 002-12: 3920m are allocatable, so that three jobs of 1 cpu fit a node, and four of 900m."""
    asking = ("image: dagster/run:1", f"image: dagster/run:1\n          resources: {{requests: {{cpu: {cpu}}}}}")
    outcome = planned(manifests(BATCH, asking))

    assert (["m5.xlarge"] * nodes, per_hour) == (outcome.bought, outcome.per_hour)


def test_jobs_that_ask_for_nothing_get_one_node_and_a_note() -> None:
    """002-1: 25 pods on one node, and the plan says that they ask for nothing."""
    outcome = planned(manifests(BATCH))

    assert (["m5.xlarge"], 0.192) == (outcome.bought, outcome.per_hour)
    assert [True] == ["25 pods ask for nothing" in note for note in outcome.plan["notes"] if "dagster" in note]


def test_without_a_pool_every_pod_says_so() -> None:
    """Zero NodePools: exit 3 and the reason on each pod."""
    outcome = planned(manifests(GPU_POOLS[1:]))

    assert 3 == outcome.exit_code
    assert {"there is no NodePool, so nothing can be bought"} == {p["reason"] for p in outcome.plan["unplaced"]}
    assert 5 == len(outcome.plan["unplaced"])
