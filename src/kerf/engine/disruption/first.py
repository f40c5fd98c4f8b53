"""The first command that takes nodes away: each method is asked in turn, and one is carried out at a time.

The controller acts on this command, and the command line shows the same one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from kerf.engine.disruption import consolidation, drift, emptiness, pricecaps, repacking, repair, staticdrift
from kerf.engine.disruption.asked import Asked
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import Blocked, Nominated
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.successors import Successors, replaced
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.placeholders import is_virtual
from kerf.model.plan import NodePlacement

_Method = Callable[[World, Sequence[Candidate]], Iterator[Command]]

METHODS: tuple[_Method, ...] = (
    repair.propose,
    emptiness.propose,
    staticdrift.propose,
    drift.propose,
    pricecaps.propose,
    repacking.propose,
    consolidation.propose,
)
"""In the order in which they are asked, as Karpenter's; what is above a price cap goes before what is only wasted."""


def first_command(
    world: World,
    candidates: Sequence[Candidate],
    placements: Callable[[], Iterable[NodePlacement]],
    *,
    repacks: bool = True,
    asked: Asked | None = None,
) -> tuple[Command | None, tuple[Blocked, ...]]:
    """The first command of the first method that has one, or None; and nodes that stay only for a pod that waits.

    `placements` are where the present plan puts pods on nodes. They are asked for only when a node is about to go. A
    node that gets one is no candidate, as in Karpenter, whose plans nominate nodes: a scheduler tries a pod again only
    after a while, and until then the node looks empty. Room that is kept for pods to be holds its node, too, and is no
    news. Without `repacks` the method that costs most is not asked; `asked` is what the last looks have found of nodes
    that go alone.
    """
    successors = Successors(world.snapshot)
    may_go = [each for each in candidates if not replaced(each, world.snapshot) and not successors.awaited_by(each)]
    methods = METHODS if repacks else tuple(each for each in METHODS if each is not repacking.propose)
    command = _first(methods, world, may_go, asked)
    if command is None:
        return None, ()
    pods: dict[str, list[str]] = {}
    for placement in placements():
        pods.setdefault(placement.node, []).append(placement.pod.pod)
    held = [deletion.node for deletion in command.deletions if deletion.node in pods]
    if not held:
        return command, ()
    real = ((node, next((pod for pod in pods[node] if not is_virtual(pod)), "")) for node in held)
    blocked = tuple(Blocked(Name(node), Nominated(Name(pod))) for node, pod in real if pod)
    return _first(methods, world, [each for each in may_go if each.node.name not in pods], asked), blocked


def _first(
    methods: Iterable[_Method], world: World, candidates: Sequence[Candidate], asked: Asked | None
) -> Command | None:
    by_method = (
        consolidation.propose(world, candidates, asked) if each is consolidation.propose else each(world, candidates)
        for each in methods
    )
    return next((command for commands in by_method for command in commands), None)
