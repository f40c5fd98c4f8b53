"""The words for several nodes that stay for causes of one kind, such as a pod of each that may not be evicted.

A table of a large fleet would have a row for each of them, equal except for a name.
"""

from collections.abc import Hashable, Sequence

from kerf.engine.disruption.causes import (
    BudgetPrevents,
    Due,
    Keeping,
    LocalVolume,
    NothingElseHasRoom,
    NotQuietYet,
    OnlyWhenEmpty,
    PodComes,
    ProtectedPod,
    ReplacementOf,
    SeveralBudgets,
    SuccessorComes,
)
from kerf.engine.explain.causes import some
from kerf.engine.explain.disruption import SPOT_KEPT, due_text, keeping_text
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from kerf.model.times import duration_text

_ALIKE = (
    ProtectedPod,
    SeveralBudgets,
    BudgetPrevents,
    PodComes,
    SuccessorComes,
    ReplacementOf,
    LocalVolume,
)


def kind_of(cause: Keeping) -> Hashable:
    """What causes that are said together have in common: all but the pods, the nodes and the times that they name."""
    match cause:
        case Due(why, holds, _) if holds is not None:
            return Due, why, kind_of(holds)
        case NotQuietYet(after_s, _):
            return NotQuietYet, after_s
        case OnlyWhenEmpty(_, pool):
            return OnlyWhenEmpty, pool
        case NothingElseHasRoom(_, is_spot):
            return NothingElseHasRoom, is_spot
        case _:
            return type(cause).__name__ if isinstance(cause, _ALIKE) else cause


def alike_text(causes: Sequence[Keeping]) -> str:
    """Why nodes stay, for one cause or several of one kind, in the order of the nodes."""
    texts = dict.fromkeys(map(keeping_text, causes))
    return next(iter(texts)) if len(texts) == 1 else _several_text(causes)


def _several_text(causes: Sequence[Keeping]) -> str:
    match causes[0]:
        case Due(why):
            holds = [each.holds for each in causes if isinstance(each, Due) and each.holds is not None]
            return f"{due_text(why)}, and stay: {alike_text(holds)}"
        case ProtectedPod():
            return f'pods have "{DO_NOT_DISRUPT}" annotation: {_named(causes)}'
        case SeveralBudgets():
            return f"eviction does not support multiple PDBs (pods {_named(causes)})"
        case BudgetPrevents():
            return f"pdbs {_named(causes)} prevent pod evictions"
        case LocalVolume():
            return f"pods have volumes that are a part of their nodes and would stay behind: {_named(causes)}"
        case PodComes():
            return f"pods are to go on them: {_named(causes)}"
        case SuccessorComes():
            return f"pods are being made again, and their places are here: {_named(causes)}"
        case ReplacementOf():
            return f"they were bought in place of nodes {_named(causes)}, whose pods are still to come"
        case NotQuietYet(after_s, _):
            left = sorted(int(each.left_s) for each in causes if isinstance(each, NotQuietYet))
            when = f"in {duration_text(left[0])} to {duration_text(left[-1])}"
            return (
                f"consolidateAfter is {duration_text(after_s)}: they may go {when}, unless a pod comes or goes on them"
            )
        case OnlyWhenEmpty(_, pool):
            return f"{_counts(causes)} pods are on each and consolidationPolicy of NodePool {pool} is WhenEmpty"
        case NothingElseHasRoom(is_spot=True):
            return f"{_counts(causes)} pods are on each and would find no place on other nodes{SPOT_KEPT}"
        case _:
            return f"{_counts(causes)} pods are on each and would find no place on other nodes"


def _named(causes: Sequence[Keeping]) -> str:
    """The pods, nodes or budgets that the causes name, each once."""
    names = dict[str, None]()
    for each in causes:
        match each:
            case ProtectedPod(name) | SeveralBudgets(name) | PodComes(name) | SuccessorComes(name):
                names[name] = None
            case ReplacementOf(name) | LocalVolume(name):
                names[name] = None
            case BudgetPrevents(namespace, name):
                names[f"{namespace}/{name}"] = None
            case _:
                continue
    return some(list(names))


def _counts(causes: Sequence[Keeping]) -> str:
    """The least and the most pods of a node: `1 to 4`."""
    pods = sorted(each.pods for each in causes if isinstance(each, NothingElseHasRoom | OnlyWhenEmpty))
    return f"{pods[0]} to {pods[-1]}"
