"""In which turns pods come to their cards: one where any order will do, more where it matters."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.place.devices import demand_of, only, reopened
from kerf.engine.place.shapes import Shape
from kerf.engine.place.turns import turns
from kerf.model.gpu import DeviceState
from kerf.model.pods import Pod, PodDemand
from kerf.sharing.family import Fit
from kerf.sharing.registry import configured, family_named
from kerf.testing.builders import a_container, a_pod

HAMI = family_named("hami", configured(()))
CARDS = tuple(DeviceState(f"GPU-{index}", index, "NVIDIA-A10G", 24000, slots=10) for index in range(2))
MUTEX = {"hami.io/gpu-scheduler-policy": "mutex"}


def a_slice(name: str, mib: int = 1000, cores: int = 0, **given: Any) -> Pod:
    """A pod that asks a part of one card."""
    return a_pod(name, gpu=1, gpumem=mib, cores=cores, **given)


def placed(pods: Sequence[Pod], cards: dict[str, frozenset[int]]) -> bool:
    """Whether HAMi takes the pods in this order, each on its cards."""
    devices = CARDS
    for pod in pods:
        demand = demand_of(Shape((pod,)), HAMI)
        assert isinstance(demand, PodDemand)
        result = HAMI.fit(only(devices, cards[pod.key]), demand, pod, None, ())
        if not isinstance(result, Fit):
            return False
        devices = reopened(result.devices, devices)
    return True


def names(found: Sequence[Sequence[Pod]]) -> list[list[str]]:
    """The pods of each turn."""
    return [[pod.name for pod in turn] for turn in found]


def on_card(index: int, *pods: Pod) -> dict[str, frozenset[int]]:
    """A plan that puts the pods on one card."""
    return {pod.key: frozenset({index}) for pod in pods}


def test_slices_that_leave_each_other_room_come_in_any_order() -> None:
    """One turn."""
    pods = [a_slice("a", 8000), a_slice("b", 4000, 25), a_slice("c", 1000, 50)]

    assert [["a", "b", "c"]] == names(turns(HAMI, CARDS, None, on_card(0, *pods), pods))


def test_a_pod_without_cores_comes_before_those_that_take_all_of_them() -> None:
    """HAMi refuses it on a card whose cores are all taken, and takes the others after it."""
    pods = [a_slice("bb"), a_slice("aa-0", cores=50), a_slice("aa-1", cores=50)]
    plan = on_card(0, *pods)

    assert (True, False) == (placed(pods, plan), placed(pods[::-1], plan))
    assert [["bb"], ["aa-0", "aa-1"]] == names(turns(HAMI, CARDS, None, plan, pods))


def test_a_pod_that_wants_an_idle_card_comes_first() -> None:
    """Under the policy `mutex` a card must be idle when the pod comes; afterwards others may join it."""
    pods = [a_slice("first", annotations=MUTEX), a_slice("later", cores=10)]

    assert [["first"], ["later"]] == names(turns(HAMI, CARDS, None, on_card(1, *pods), pods))


def test_cards_without_a_pod_in_common_do_not_wait_for_each_other() -> None:
    """The first turn has pods of both."""
    one = [a_slice("bb"), a_slice("aa-0", cores=50), a_slice("aa-1", cores=50)]
    other = [a_slice("cc", cores=50)]
    plan = {**on_card(0, *one), **on_card(1, *other)}

    assert [["bb", "cc"], ["aa-0", "aa-1"]] == names(turns(HAMI, CARDS, None, plan, [*one, *other]))


def test_pods_of_several_containers_come_in_the_order_of_the_plan() -> None:
    """Which container gets which card depends on who came before."""
    both = tuple(a_container(name, gpu=1, gpumem=mib) for name, mib in (("x", 1000), ("y", 9000)))
    pods = [a_pod("a", containers=both), a_slice("b", 2000)]
    plan = {"default/a": frozenset({0, 1}), "default/b": frozenset({1})}

    assert [["a"], ["b"]] == names(turns(HAMI, CARDS, None, plan, pods))


def test_what_is_on_a_card_already_counts() -> None:
    """Half of the cores are taken: one pod of 50 is enough to keep the pod without cores off."""
    used = (DeviceState("GPU-0", 0, "NVIDIA-A10G", 24000, slots=10, used_cores=50, used_slots=1, used_memory_mib=100),)
    pods = [a_slice("bb"), a_slice("aa", cores=50)]

    assert [["bb"], ["aa"]] == names(turns(HAMI, used, None, on_card(0, *pods), pods))


def test_a_thousand_equal_pods_are_one_turn() -> None:
    """Nothing is tried for them."""
    pods = [a_slice(f"p-{number}", 1) for number in range(1_000)]

    assert [1_000] == [len(turn) for turn in turns(HAMI, CARDS, None, on_card(0, *pods), pods)]


@given(
    st.lists(
        st.tuples(
            st.sampled_from((1000, 6000, 12000)),
            st.sampled_from((0, 25, 50, 100)),
            st.sampled_from(((0,), (1,), (0, 1))),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_within_a_turn_any_order_will_do(asked: list[tuple[int, int, tuple[int, ...]]]) -> None:
    """Of pods that fit in the plan's order each order of each turn fits, as long as the turns come one by one."""
    made = [
        (a_pod(f"p-{number}", gpu=len(on), gpumem=mib, cores=cores), frozenset(on))
        for number, (mib, cores, on) in enumerate(asked)
    ]
    plan: dict[str, frozenset[int]] = {}
    pods: list[Pod] = []
    for pod, on in made:
        if placed([*pods, pod], {**plan, pod.key: on}):
            pods, plan = [*pods, pod], {**plan, pod.key: on}

    before: list[Pod] = []
    for turn in turns(HAMI, CARDS, None, plan, pods):
        for order in permutations(turn):
            assert placed([*before, *order], plan)
        before += turn
    assert sorted(pod.name for pod in pods) == sorted(pod.name for pod in before)
