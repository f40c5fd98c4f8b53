"""Random clusters with pods that wait and nodes that may go: what is decided of both is feasible, and the cheapest."""

import pytest

from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.disruption.candidates import candidates
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.first import first_command
from kerf.model.gpu import DeviceState, Partition, Slice
from tests.examples import IS_ALL
from tests.wholeclusters import Case, case, cheapest, problems, settled_cost

SEEDS = 3_000 if IS_ALL else 180
"""Of each law."""


def decided(held: Case) -> tuple[Decision, Command | None]:
    """The plan for the pods that wait, and what is taken away beside it."""
    made = decide(held.world)
    found, _ = candidates(held.snapshot)
    return made, first_command(held.world, found, lambda: made.placements, plan=lambda: made)[0]


@pytest.mark.parametrize("is_limited", [False, True], ids=["free", "limited"])
def test_a_plan_can_be_carried_out_as_a_whole(is_limited: bool) -> None:
    """Each card holds what is on it and what comes, each pod has one place, limits and budgets hold; and no bound is
    above what is bought."""
    wrong = dict[int, list[str]]()
    for seed in range(SEEDS):
        held = case(seed, is_limited=is_limited)
        made, command = decided(held)
        found = problems(held, made, command)
        bought = sum(launch.price_micro for launch in made.launches)
        if made.cost.bound is not None and made.cost.bound.micro > bought:
            found.append(f"{bought} is below the bound")
        if found:
            wrong[seed] = found

    assert {} == wrong


def test_consolidation_ends_at_the_cheapest_nodes() -> None:
    """After provisioning and all steps of consolidation no other nodes would cost less, with few exceptions."""
    dearer, compared = dict[int, float](), 0
    for seed in range(SEEDS):
        held = case(seed)
        made = decide(held.world)
        if made.refusals:
            continue
        best = cheapest(held, {each.pod.pod: each.node for each in made.placements})
        assert best is not None
        cost = settled_cost(held, made)
        assert cost >= best, (seed, cost, best)
        compared += 1
        if cost > best:
            dearer[seed] = cost / best

    assert compared > SEEDS // 2
    assert len(dearer) <= compared // 100, dearer


@pytest.mark.parametrize("seed", [565, 2618])
def test_two_nodes_go_that_leave_each_other_room(seed: int) -> None:
    """Each node could go alone, and its pods would take the room that the pods of another need."""
    held = case(seed)
    made = decide(held.world)

    assert cheapest(held, {each.pod.pod: each.node for each in made.placements}) == settled_cost(held, made)


def test_a_slice_of_a_card_that_was_cut_takes_one_of_its_parts() -> None:
    """Of two replicas one is left; a part of another name, or of none, takes none of them."""
    card = DeviceState("gpu-0", 0, "A10G", 10_000, 100, 2, partitions=(Partition("nvidia.com/gpu", 2, 0, 0),))

    def after(resource: str) -> int:
        part = Slice("default/p", "main", 0, "gpu-0", 0, 0, resource=resource)
        return card.holding(part).partitions[0].free

    assert [1, 2, 2] == [after(name) for name in ("nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "")]
