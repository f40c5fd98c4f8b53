"""Decisions beside the loop: one at a time, and nothing is done that no longer holds."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from kerf.controllers.deciding import MOST_DROPPED, Buyers, Inline, Threaded, still_goes, still_holds
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.disruption.candidates import candidates
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.first import first_command
from kerf.engine.world import World
from kerf.model.bounds import MAX_PRICE
from kerf.model.constraints import Taint
from kerf.model.instancetypes import OfferingKey
from kerf.model.nodepool import Budget, Disruption
from kerf.model.nodes import Node, reservation
from kerf.model.pods import Owner, Pod
from kerf.model.promises import Promises, written
from kerf.model.snapshot import Deleted, Event, Upserted, Watched
from kerf.sharing.hami.records import REGISTER
from kerf.state import ClusterState
from kerf.testing.builders import NOON_S, a_claim, a_market, a_node, a_pod, a_pool, an_instance_type
from tests.engine.disruption.clusters import ours
from tests.engine.worlds import a_daemon_set, a_hami_node, a_hami_pool

MARKET = a_market(an_instance_type("m5.xlarge", cpu=4))
REFUSED = "0/1 nodes are available"
OFFERED = OfferingKey("m5.xlarge", "us-east-1a", "on-demand")
NOTHING: dict[str, int] = {}


def state_of(*objects: Watched) -> ClusterState:
    """What the controllers know."""
    state = ClusterState(assume_node_classes=True)
    for value in objects:
        state.apply(Upserted(value))
    return state


def test_the_loop_goes_on_while_a_decision_is_made() -> None:
    """What waits for the loop is not kept waiting by the thread."""
    begun, release = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        assert release.wait(10)
        return "decided"

    async def main() -> tuple[str, bool]:
        deciding = Threaded()
        made = asyncio.create_task(deciding.run(work))
        while not begun.is_set():
            await asyncio.sleep(0)
        was_free = not made.done()
        release.set()
        found = await made
        deciding.close()
        return found, was_free

    assert ("decided", True) == asyncio.run(main())


def test_decisions_go_before_explanations() -> None:
    """An explanation that waits lets a later decision pass; two never run at once."""
    order: list[str] = []
    gate = threading.Event()

    async def main() -> None:
        deciding = Threaded()

        async def asked(name: str, *, is_urgent: bool) -> None:
            await deciding.run(lambda: order.append(name) if gate.wait(10) else None, is_urgent=is_urgent)

        tasks = [asyncio.create_task(asked("first", is_urgent=True))]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(asked("explanation", is_urgent=False)))
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(asked("second", is_urgent=True)))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*tasks)
        deciding.close()

    asyncio.run(main())

    assert ["first", "second", "explanation"] == order


def test_inline_work_is_done_at_once() -> None:
    """In virtual time nothing goes on meanwhile."""
    assert 7 == asyncio.run(Inline().run(lambda: 7))


def test_a_node_that_was_tainted_meanwhile_takes_no_pod() -> None:
    """What was decided on it does not hold; without the taint it does."""
    node, claim = a_node("n"), a_claim("c", node_name="n")
    state = state_of(a_pool(), node, claim, a_pod("p", cpu=1, uid="p", unschedulable=REFUSED))
    decision = decide(World(state.snapshot(NOON_S, state.pending()), MARKET))
    assert ["n"] == [placement.node for placement in decision.placements]
    assert still_holds(decision, state)

    state.apply(Upserted(replace(node, taints=(Taint("maintenance", "", "NoSchedule"),), resource_version="2")))

    assert not still_holds(decision, state)


def decided_on(node: Node, *others: Watched) -> tuple[ClusterState, Decision]:
    """A decision that puts a pod on the node, where a pod of the DaemonSet `agent` is to come."""
    claim = a_claim("c", node_name=node.name)
    state = state_of(
        a_pool(), node, claim, a_daemon_set("agent"), a_pod("p", cpu=1, uid="p", unschedulable=REFUSED), *others
    )
    decision = decide(World(state.snapshot(NOON_S, state.pending()), MARKET))
    assert (["n"], True) == ([placement.node for placement in decision.placements], still_holds(decision, state))
    return state, decision


@pytest.mark.parametrize(
    "change",
    [
        lambda node: replace(node, allocatable=node.allocatable.replaced({"cpu": 500})),
        lambda node: replace(node, labels={**node.labels, "topology.kubernetes.io/zone": "elsewhere"}),
        lambda node: replace(node, labels={"kubernetes.io/hostname": "n"}),
        lambda node: replace(node, is_ready=False),
    ],
    ids=["shrunk", "in another zone", "without its labels", "not ready"],
)
def test_a_node_that_has_changed_meanwhile_takes_no_pod(change: Callable[[Node], Node]) -> None:
    """Less of a resource, another label: what was decided may not be true of it any more."""
    node = a_node("n")
    state, decision = decided_on(node)

    state.apply(Upserted(replace(change(node), resource_version="2")))

    assert not still_holds(decision, state)


@pytest.mark.parametrize(
    "comes, holds",
    [
        (a_pod("late", cpu=3, uid="late", node_name="n"), False),
        (a_pod("p", cpu=1, uid="p", node_name="n"), True),
        (a_pod("agent", cpu=3, uid="agent", node_name="n", owner=Owner("DaemonSet", "agent", "")), True),
    ],
    ids=["a pod from elsewhere", "the planned pod itself", "a pod of a DaemonSet"],
)
def test_a_node_that_was_filled_meanwhile_takes_no_pod(comes: Pod, holds: bool) -> None:
    """Its room may be gone; the pod that it was meant for may have come, and pods of DaemonSets were reckoned with."""
    state, decision = decided_on(a_node("n"))

    state.apply(Upserted(comes))

    assert holds == still_holds(decision, state)


def test_a_pod_that_was_resized_in_place_takes_room() -> None:
    """The API lets a running pod grow."""
    running = a_pod("old", cpu=1, uid="old", node_name="n")
    state, decision = decided_on(a_node("n"), running)

    state.apply(Upserted(replace(running, spec=a_pod(cpu=3).spec, resource_version="2")))

    assert not still_holds(decision, state)


def test_a_pod_of_a_daemon_set_that_was_not_there_is_like_any_other() -> None:
    """Room was kept for pods of those that were."""
    state, decision = decided_on(a_node("n"))

    state.apply(Upserted(a_pod("new", cpu=3, uid="new", node_name="n", owner=Owner("DaemonSet", "new"))))

    assert not still_holds(decision, state)


def test_a_pod_that_was_made_again_is_another() -> None:
    """It has the name of the planned one, and may ask for more."""
    state, decision = decided_on(a_node("n"))

    state.apply(Upserted(a_pod("p", cpu=3, uid="again", unschedulable=REFUSED)))

    assert not still_holds(decision, state)


def test_cards_that_were_lost_meanwhile_take_no_pod() -> None:
    """HAMi's register says so; what kubelet shows stays as it was."""
    node = a_hami_node(a_node("n", instance_type="g5.xlarge"))
    pod = a_pod("p", gpu=1, gpumem=1000, uid="p", unschedulable=REFUSED, scheduler_name="hami-scheduler")
    state = state_of(a_hami_pool(), node, pod)
    decision = decide(World(state.snapshot(NOON_S, state.pending()), MARKET))
    assert (["n"], True) == ([placement.node for placement in decision.placements], still_holds(decision, state))

    state.apply(Upserted(replace(node, annotations={**node.annotations, REGISTER: "[]"}, resource_version="2")))

    assert not still_holds(decision, state)


@pytest.mark.parametrize(
    "change",
    [
        Upserted(a_pod("p", cpu=3, uid="again", unschedulable=REFUSED)),
        Upserted(a_pod("p", cpu=3, uid="p", unschedulable=REFUSED)),
        Upserted(a_pod("p", cpu=1, uid="p", node_name="elsewhere")),
        Upserted(a_pod("p", cpu=1, uid="p", deleted_s=NOON_S)),
        Deleted(a_pod("p", cpu=1, uid="p")),
    ],
    ids=["made again", "resized", "bound", "going", "gone"],
)
def test_nothing_is_bought_for_a_pod_that_waits_no_more_as_it_did(change: Event) -> None:
    """It is decided again; after three such decisions the fourth is acted on, and the launch is left out then."""
    state = state_of(a_pool(), *(a_pod(name, cpu=3, uid=name, unschedulable=REFUSED) for name in ("p", "q")))
    state.apply(Upserted(a_pod("p", cpu=1, uid="p", unschedulable=REFUSED)))
    decision = decide(World(state.snapshot(NOON_S, state.pending()), MARKET))
    assert (True, True) == (bool(decision.launches), still_holds(decision, state))

    state.apply(change)

    buyers = Buyers(decision.world.snapshot, state)
    assert [False, True] == [still_holds(decision, state, dropped) for dropped in (0, MOST_DROPPED)]
    assert (False, True) == (buyers.waits("default/p"), buyers.waits("default/q"))


@pytest.mark.parametrize(
    "annotations, holds",
    [({MAX_PRICE: "0.01"}, False), ({"someone.dev/note": "1"}, True)],
    ids=["a price cap", "someone else's"],
)
def test_an_annotation_of_a_pool_that_plans_read_changes_what_is_bought(
    annotations: dict[str, str], holds: bool
) -> None:
    """Annotations are no part of its generation."""
    pool = a_pool()
    state = state_of(pool, a_pod("p", cpu=1, uid="p", unschedulable=REFUSED))
    decision = decide(World(state.snapshot(NOON_S, state.pending()), MARKET))

    state.apply(Upserted(replace(pool, own_annotations=annotations)))

    assert holds == still_holds(decision, state, MOST_DROPPED)


def test_a_node_that_opens_for_its_plan_is_the_same() -> None:
    """Kerf's own taints of those seconds keep no planned pod off."""
    node = a_node("n")
    state, decision = decided_on(node)

    state.apply(Upserted(replace(node, taints=(reservation("c"),), resource_version="2")))

    assert still_holds(decision, state)


def test_nodes_that_change_during_each_decision_do_not_stop_launches() -> None:
    """After three decisions in a row that did not hold, the fourth is acted on."""
    state, decision = decided_on(a_node("n"))

    state.apply(Upserted(a_pod("late", cpu=3, uid="late", node_name="n")))

    assert [False, False, False, True] == [still_holds(decision, state, dropped) for dropped in range(4)]


def test_a_pool_that_was_changed_meanwhile_buys_nothing() -> None:
    """Its new generation may allow other types, or none."""
    pool = a_pool(generation=1)
    state = state_of(pool, a_pod("p", cpu=1, uid="p", unschedulable=REFUSED))
    decision = decide(World(state.snapshot(NOON_S, state.pending()), MARKET))
    assert (1, True) == (len(decision.launches), still_holds(decision, state))

    state.apply(Upserted(replace(pool, generation=2)))

    assert not still_holds(decision, state)


@pytest.mark.parametrize("dropped", [0, MOST_DROPPED])
@pytest.mark.parametrize("most, holds", [(1, False), (2, True)])
def test_what_another_controller_has_bought_meanwhile_counts_against_limits(
    most: int, holds: bool, dropped: int
) -> None:
    """A claim came while it was decided, in the place of another node: the pool may have one more then, or none."""
    pool = a_pool(limits={"nodes": most})
    state = state_of(pool, a_pod("p", cpu=1, uid="p", unschedulable=REFUSED))
    decision = decide(World(state.snapshot(NOON_S, state.pending()), MARKET))
    assert (1, True) == (len(decision.launches), still_holds(decision, state, dropped))

    state.apply(Upserted(a_claim("other", pool="pool", instance_type="m5.xlarge")))

    assert holds == still_holds(decision, state, dropped)


def two_empty_nodes() -> tuple[ClusterState, World, Command]:
    """A command that takes both away, and what it was made from."""
    pool = a_pool(disruption=Disruption(0, budgets=(Budget("100%"),)))
    nodes = [each for name in ("a", "b") for each in ours(name)]
    state = state_of(pool, *nodes)
    world = World(state.snapshot(NOON_S), MARKET)
    command, _ = first_command(world, candidates(world.snapshot)[0], tuple)
    assert command is not None
    return state, world, command


def test_a_command_is_carried_out_where_nothing_has_changed() -> None:
    """Nothing is looked at then."""
    state, world, command = two_empty_nodes()

    assert command is still_goes(command, world, state, NOON_S)


def test_a_node_that_a_pod_came_to_meanwhile_stays() -> None:
    """The command is decided again; the fourth in a row takes the other node, and never this one."""
    state, world, command = two_empty_nodes()

    state.apply(Upserted(a_pod("late", cpu=1, uid="late", node_name="a")))

    found = [still_goes(command, world, state, NOON_S, dropped) for dropped in range(4)]
    assert [None, None, None, ["b"]] == [held and [each.node for each in held.deletions] for held in found]


def test_a_command_of_which_nothing_is_left_is_never_carried_out() -> None:
    """However many were dropped before."""
    state, world, command = two_empty_nodes()

    for name in ("a", "b"):
        state.apply(Upserted(a_pod(f"late-{name}", cpu=1, uid=name, node_name=name)))

    assert still_goes(command, world, state, NOON_S, MOST_DROPPED) is None


def test_what_is_cancelled_is_dropped_and_the_next_waits_for_the_thread() -> None:
    """A lead that ended gets nothing; the next lead's work begins once the thread has ended what it had begun."""
    begun, release = threading.Event(), threading.Event()
    order: list[str] = []

    def work() -> str:
        begun.set()
        assert release.wait(10)
        order.append("dropped")
        return "stale"

    def anew() -> str:
        order.append("anew")
        return "fresh"

    async def main() -> tuple[bool, str]:
        deciding = Threaded()
        lost = asyncio.create_task(deciding.run(work))
        while not begun.is_set():
            await asyncio.sleep(0)
        lost.cancel()
        await asyncio.wait([lost])
        again = asyncio.create_task(deciding.run(anew))
        await asyncio.sleep(0)
        release.set()
        found = await again
        deciding.close()
        return lost.cancelled(), found

    assert ((True, "fresh"), ["dropped", "anew"]) == (asyncio.run(main()), order)


def test_work_that_is_cancelled_before_its_turn_is_never_begun() -> None:
    """Nor does it keep an explanation waiting."""
    order: list[str] = []
    gate = threading.Event()

    async def main() -> None:
        deciding = Threaded()
        first = asyncio.create_task(deciding.run(lambda: gate.wait(10)))
        await asyncio.sleep(0)
        explanation = asyncio.create_task(deciding.run(lambda: order.append("explained"), is_urgent=False))
        urgent = asyncio.create_task(deciding.run(lambda: order.append("decided")))
        await asyncio.sleep(0)
        urgent.cancel()
        gate.set()
        await first
        await asyncio.wait_for(explanation, 10)
        deciding.close()

    asyncio.run(main())

    assert ["explained"] == order


def test_work_that_is_done_learns_that_urgent_work_waits() -> None:
    """So it can leave out what nobody needs at once."""
    gate = threading.Event()

    async def main() -> tuple[bool, bool]:
        deciding = Threaded()
        before = deciding.is_awaited()
        explanation = asyncio.create_task(
            deciding.run(lambda: gate.wait(10) and deciding.is_awaited(), is_urgent=False)
        )
        await asyncio.sleep(0)
        urgent = asyncio.create_task(deciding.run(gate.is_set))
        await asyncio.sleep(0)
        gate.set()
        learnt = await explanation
        await urgent
        deciding.close()
        return before, learnt

    assert (False, True) == asyncio.run(main())


def test_what_the_work_raises_is_the_askers() -> None:
    """The thread goes on."""

    async def main() -> tuple[str, int]:
        deciding = Threaded()
        failed = await asyncio.gather(deciding.run(lambda: NOTHING["absent"]), return_exceptions=True)
        found = await deciding.run(lambda: 7)
        deciding.close()
        return repr(failed[0]), found

    assert ("KeyError('absent')", 7) == asyncio.run(main())


def test_a_claim_that_is_gone_takes_no_pod() -> None:
    """It was capacity on its way when it was decided."""
    claim = a_claim("c", reached=(), annotations=written(Promises({"default/p": ()}, OFFERED)))
    state = state_of(a_pool(), claim, a_pod("p", cpu=1, uid="p", unschedulable=REFUSED))
    decision = decide(World(state.snapshot(NOON_S, state.pending()), MARKET))
    assert (["c"], True) == ([placement.node for placement in decision.placements], still_holds(decision, state))

    state.apply(Deleted(claim))

    assert not still_holds(decision, state)
