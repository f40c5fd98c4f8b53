"""The first command that takes nodes away: each method is asked in turn, and one is carried out at a time.

The controller acts on this command, and the command line shows the same one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from kerf.engine.decision import Decision
from kerf.engine.disruption import consolidation, drift, emptiness, pricecaps, repacking, repair, staticdrift
from kerf.engine.disruption.asked import Asked
from kerf.engine.disruption.buffers import held_candidates, keeps_buffers, with_buffers, without_held
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import Blocked, Nominated
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.departing import candidates_in, holds_now, once_ended
from kerf.engine.disruption.settled import Settled
from kerf.engine.disruption.successors import Successors, replaced
from kerf.engine.headroom.buffers import is_of_buffer
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.placeholders import is_virtual
from kerf.model.plan import NodePlacement

_Method = Callable[[World, Sequence[Candidate]], Iterator[Command]]

METHODS: tuple[_Method, ...] = (
    repair.propose,
    repacking.propose_above_floors,
    emptiness.propose,
    staticdrift.propose,
    drift.propose,
    pricecaps.propose,
    repacking.propose,
    consolidation.propose,
)
"""In the order in which they are asked, as Karpenter's; what is above a price cap goes before what is only wasted."""
_DESPITE_BUFFERS = (repair.propose, staticdrift.propose, drift.propose)
"""These take a node also where the room that a buffer has there is found nowhere else."""

_TO_SAVE = (pricecaps.propose, repacking.propose, consolidation.propose)
"""These save money, so they wait for room that pods which end are about to leave (`departing`)."""
_MOST_LATER = 20
"""So many commands that need such room are passed over in a look, each by one trial of the nodes that they fill."""


def first_command(
    world: World,
    candidates: Sequence[Candidate],
    placements: Callable[[], Iterable[NodePlacement]],
    *,
    repacks: bool = True,
    asked: Asked | None = None,
    plan: Callable[[], Decision] | None = None,
) -> tuple[Command | None, tuple[Blocked, ...]]:
    """The first command of the first method that has one, or None; and nodes that stay only for a pod that waits.

    `placements` are where the present plan puts pods on nodes. They are asked for only when a node is about to go. A
    node that gets one is no candidate, as in Karpenter, whose plans nominate nodes: a scheduler tries a pod again only
    after a while, and until then the node looks empty. Room that is kept for pods to be holds its node, too, and is no
    news; but that of a CapacityBuffer only keeps a node from going as empty, and is found elsewhere where it goes.
    Without `repacks` the method that costs most is not asked; `asked` is what the last looks have found of nodes that
    go alone. `plan` is the present plan itself, where the caller has it: what is decided is feasible beside it.
    """
    settled = Settled(world, plan)
    settled.given_to(world)
    successors = Successors(world.snapshot)
    may_go = [each for each in candidates if not replaced(each, world.snapshot) and not successors.awaited_by(each)]
    methods = METHODS if repacks else tuple(each for each in METHODS if each is not repacking.propose)
    present = placements() if may_go and keeps_buffers(world) else None
    held_world = world if present is None else with_buffers(world, present)
    settled.given_to(held_world)
    command = _first(methods, world, held_world, may_go, asked)
    if command is None:
        return None, ()
    pods: dict[str, list[str]] = {}
    for placement in placements() if present is None else present:
        if not is_of_buffer(placement.pod.pod):
            pods.setdefault(placement.node, []).append(placement.pod.pod)
    held = [deletion.node for deletion in command.deletions if deletion.node in pods]
    if not held:
        return command, ()
    real = ((node, next((pod for pod in pods[node] if not is_virtual(pod)), "")) for node in held)
    blocked = tuple(Blocked(Name(node), Nominated(Name(pod))) for node, pod in real if pod)
    left = [each for each in may_go if each.node.name not in pods]
    return _first(methods, world, held_world, left, asked), blocked


def _first(
    methods: Iterable[_Method],
    world: World,
    held_world: World,
    candidates: Sequence[Candidate],
    asked: Asked | None,
) -> Command | None:
    """`held_world` has the pods of buffers on their nodes; it is `world` itself where there are none."""
    has_held, command = held_world is not world, None
    held = held_candidates(candidates, held_world) if has_held else candidates
    later = once_ended(held_world)
    in_later = held if later is held_world else candidates_in(later, held)
    for method in methods:
        if method is consolidation.propose:
            commands = consolidation.propose(later, in_later, asked)
        elif method in _TO_SAVE:
            commands = method(later, in_later)
        else:
            commands = method(held_world, held)
        if method in _TO_SAVE and later is not held_world:
            commands = (each for each in islice(commands, _MOST_LATER) if holds_now(each, later, held_world))
        command = next(commands, None)
        if command is None and has_held and method in _DESPITE_BUFFERS:
            left = candidates if method is repair.propose else without_held(candidates, held_world)
            command = next(method(world, left), None)
        if command is not None:
            break
    if asked is not None:
        asked.staying = candidates if command is None else ()
    return command
