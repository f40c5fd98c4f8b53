"""What is said of several nodes that stay for causes of one kind."""

from collections.abc import Sequence

import pytest

from kerf.engine.disruption.causes import (
    BudgetPrevents,
    DoNotDisrupt,
    Drifts,
    Due,
    Keeping,
    LocalVolume,
    NeverConsolidated,
    NothingElseHasRoom,
    NotQuietYet,
    OnlyWhenEmpty,
    PodComes,
    ProtectedPod,
    ReplacementOf,
    SeveralBudgets,
    SuccessorComes,
)
from kerf.engine.explain.alike import alike_text, kind_of
from kerf.engine.explain.disruption import keeping_text
from kerf.model.causes import Name

PODS = [Name(f"default/p-{number}") for number in range(5)]
POOL, OTHER = Name("pool"), Name("other")
OLD = Drifts(Name("NodePoolDrifted"))
SEVERAL = "default/p-0, default/p-1, default/p-2 and 2 more"


@pytest.mark.parametrize(
    ("causes", "said"),
    [
        ([ProtectedPod(each) for each in PODS], f'pods have "karpenter.sh/do-not-disrupt" annotation: {SEVERAL}'),
        (
            [LocalVolume(each, Name("pv")) for each in PODS],
            f"pods have volumes that are a part of their nodes and would stay behind: {SEVERAL}",
        ),
        ([SeveralBudgets(each) for each in PODS], f"eviction does not support multiple PDBs (pods {SEVERAL})"),
        (
            [BudgetPrevents(Name("default"), Name(each)) for each in ("a", "b", "a")],
            "pdbs default/a, default/b prevent pod evictions",
        ),
        ([PodComes(each) for each in PODS], f"pods are to go on them: {SEVERAL}"),
        (
            [SuccessorComes(each) for each in PODS],
            f"pods are being made again, and their places are here: {SEVERAL}",
        ),
        (
            [ReplacementOf(Name(each)) for each in ("a", "b")],
            "they were bought in place of nodes a, b, whose pods are still to come",
        ),
        (
            [NothingElseHasRoom(pods) for pods in (2, 10, 1)],
            "1 to 10 pods are on each and would find no place on other nodes",
        ),
        (
            [OnlyWhenEmpty(pods, POOL) for pods in (3, 1)],
            "1 to 3 pods are on each and consolidationPolicy of NodePool pool is WhenEmpty",
        ),
        (
            [NotQuietYet(600, left_s) for left_s in (90, 30.5)],
            "consolidateAfter is 10m: they may go in 30s to 1m30s, unless a pod comes or goes on them",
        ),
        (
            [Due(OLD, ProtectedPod(each)) for each in PODS],
            "the template of its NodePool has changed (NodePoolDrifted), and stay: pods have "
            f'"karpenter.sh/do-not-disrupt" annotation: {SEVERAL}',
        ),
    ],
    ids=lambda value: type(value[0]).__name__ if isinstance(value, list) else "",
)
def test_causes_of_one_kind_are_one_sentence(causes: Sequence[Keeping], said: str) -> None:
    """With what each names, the first few of many; causes that are all the same are worded as one is."""
    assert 1 == len({kind_of(each) for each in causes})
    assert said == alike_text(causes)
    assert keeping_text(causes[0]) == alike_text([causes[0]] * 40)


def test_causes_that_ask_for_different_answers_are_of_different_kinds() -> None:
    """Another pool, another reason to go, another thing that holds it."""
    causes: list[Keeping] = [
        ProtectedPod(PODS[0]),
        PodComes(PODS[0]),
        NeverConsolidated(POOL),
        NeverConsolidated(OTHER),
        OnlyWhenEmpty(1, POOL),
        OnlyWhenEmpty(1, OTHER),
        NotQuietYet(60, 5),
        NotQuietYet(600, 5),
        DoNotDisrupt(),
        DoNotDisrupt(is_of_claim=True),
        Due(OLD, None),
        Due(OLD, ProtectedPod(PODS[0])),
        Due(OLD, SeveralBudgets(PODS[0])),
        Due(Drifts(Name("Other")), ProtectedPod(PODS[0])),
    ]

    assert len(causes) == len({kind_of(each) for each in causes})
