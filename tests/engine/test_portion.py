"""F6: a pass plans for a bounded number of shapes, in turn from each namespace."""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from kerf.engine.place.shapes import Readings
from kerf.engine.place.weights import weight_of
from kerf.engine.portion import Portion, portion
from kerf.model.constraints import Requirements
from kerf.model.groups import POD_GROUP
from kerf.model.pods import Pod
from kerf.model.topology import PodAffinity, PodAffinityTerm
from kerf.testing.builders import a_pod


def flood(namespace: str, number: int, *, kinds: int = 10**9, **given: Any) -> list[Pod]:
    """Pods that ask for one MiB more each, the first the oldest; equal to none of another namespace."""
    found = []
    for n in range(number):
        asked: Any = {"cpu": ord(namespace), "memory": f"{1 + n % kinds}Mi", **given}
        found.append(a_pod(f"p-{n}", namespace=namespace, uid=f"{namespace}-{n}", created_s=n, **asked))
    return found


def taken(found: Portion) -> Counter[str]:
    """How many pods of each namespace are planned for."""
    return Counter(pod.namespace for pod in found.pods)


def test_pods_of_few_shapes_are_all_planned_for() -> None:
    """However many there are: only shapes cost."""
    assert 5000 == len(portion(flood("a", 5000, kinds=3), 4).pods)


def test_namespaces_take_turns_and_the_oldest_come_first() -> None:
    """One that asks for little gets all of it; the others share the rest; nothing is lost, in any order of input."""
    pods = [*flood("a", 900), *flood("b", 700), *flood("c", 3)]
    found = portion(Random(1).sample(pods, len(pods)), 101)

    assert {"a": 49, "b": 49, "c": 3} == taken(found)
    assert {f"a/p-{n}" for n in range(49)} <= {pod.key for pod in found.pods}
    assert sorted(pod.key for pod in pods) == sorted(pod.key for pod in (*found.pods, *found.left))


def test_what_was_left_comes_first_in_the_next_pass() -> None:
    """So each pod has its turn, those that are refused each time do not stand before the others."""
    pods, tried = flood("a", 10), set[str]()
    for _ in range(3):
        tried |= {pod.uid for pod in portion(pods, 4, tried=tried).pods}

    assert 10 == len(tried)


def test_what_was_bought_for_stays_in_and_counts_as_turns() -> None:
    """Its node is on its way. A namespace that has had its share lets another have it, though all turns are used."""
    pods = [*flood("a", 50), *flood("b", 50)]
    promised = {f"a/p-{n}" for n in range(30, 50)}
    found = portion(pods, 20, lambda pod: pod.key in promised)

    assert {"a": 20, "b": 10} == taken(found)
    assert promised == {pod.key for pod in found.pods if pod.namespace == "a"}


def group(namespace: str, number: int, name: str = "g", **given: Any) -> list[Pod]:
    """One group of pods that all differ."""
    pods = flood(namespace, number, labels={POD_GROUP: name}, **given)
    return [replace(pod, name=f"{name}-{pod.name}", uid=f"{name}-{pod.uid}") for pod in pods]


def test_a_group_is_taken_whole_or_not_at_all() -> None:
    """Also one with more shapes than a pass has: as the first it is all that the namespace gets."""
    alone = [a_pod(f"q-{n}", namespace="a", uid=f"q-{n}", created_s=9 + n, cpu=1 + n) for n in range(6)]
    whole, larger = (portion([*group("a", 6), *alone], most) for most in (8, 5))

    assert {"g": 6, "q": 2} == Counter(pod.name[0] for pod in whole.pods)
    assert {"g": 6} == Counter(pod.name[0] for pod in larger.pods)


@pytest.mark.parametrize("number", [9, 10, 11, 12, 60])
@pytest.mark.parametrize("others", [0, 3, 30])
def test_a_group_of_any_number_of_shapes_has_its_turn(number: int, others: int) -> None:
    """Though it is the youngest. Nothing is left in each pass, and the other namespace gets its share beside it."""
    pods = [*flood("b", others), *(replace(pod, created_s=99) for pod in group("a", number))]
    tried = set[str]()
    for _ in range(6):
        part = portion(pods, 10, tried=tried)
        tried |= {pod.uid for pod in part.pods}
        assert taken(part)["a"] in (0, number)
        assert taken(part)["b"] >= min(others, 5)

    assert number + others == len(tried)


def test_a_namespace_of_large_groups_lets_others_go_first_once_one_had_its_turn() -> None:
    """Though its groups are the oldest, and more namespaces wait than a pass has turns."""
    large = [pod for n in range(20) for pod in group("a", 9, f"g{n:02}", cpu=100 + n)]
    others = [a_pod("p", namespace=f"n{n}", uid=str(n), created_s=50 + n, memory=f"{n + 1}Mi") for n in range(12)]
    tried, passes = set[str](), []
    for _ in range(5):
        part = portion([*large, *others], 6, tried=tried)
        tried |= {pod.uid for pod in part.pods}
        passes.append((taken(part)["a"], len(part.pods) - taken(part)["a"]))

    assert [(9, 0), (0, 6), (0, 6), (9, 0), (9, 0)] == passes


def test_a_large_group_has_its_turn_while_nodes_of_others_are_on_their_way() -> None:
    """What is bought for comes on top, so it may fill the pass each time."""
    pods, large = flood("b", 20), group("a", 12)
    found = portion([*pods, *large], 10, lambda pod: pod.namespace == "b")

    assert {"a": 12, "b": 20} == taken(found)


def test_a_shape_of_two_namespaces_costs_once() -> None:
    """Equal pods are planned for together, whoever owns them."""
    first = flood("a", 8)
    found = portion([*first, *(replace(pod, namespace="b") for pod in first)], 8)

    assert ({"a": 8, "b": 8}, ()) == (taken(found), found.left)


def test_more_namespaces_than_turns_wait_for_a_later_pass() -> None:
    """The one whose pod is the oldest first."""
    pods = [a_pod("p", namespace=f"n{n}", uid=str(n), created_s=-n, memory=f"{n + 1}Mi") for n in range(9)]

    assert {"n8": 1, "n7": 1} == taken(portion(pods, 2))


def test_pods_that_differ_for_a_selector_are_shapes_of_their_own() -> None:
    """Of one spec, each with a value of its own of a label that some selector reads: a plan costs by these."""
    pods = [replace(pod, labels={"app": pod.name}) for pod in flood("a", 9, kinds=1)]

    assert 4 == len(portion(pods, 4, read=lambda: Readings(labels=frozenset({"app"}))).pods)
    assert 9 == len(portion(pods, 4).pods)


def long_spec(terms: int) -> PodAffinity:
    """Anti-affinity of so many terms; a thousand weigh about as much as five hundred kinds of pods."""
    return PodAffinity(tuple(PodAffinityTerm("host", Requirements.of_labels({"app": f"a{n}"})) for n in range(terms)))


def test_a_pod_whose_spec_is_long_counts_as_several_shapes() -> None:
    """Forty of them do not fill a pass with what forty others cost; another namespace has its turn in each pass."""
    heavy = [replace(pod, spec=replace(pod.spec, pod_anti_affinity=long_spec(200))) for pod in flood("a", 40)]
    weight = weight_of(heavy[0].spec)
    found = portion([*heavy, *flood("b", 3)], 400)

    assert {"a": (400 - 3) // weight, "b": 3} == taken(found)
    assert 4 >= taken(found)["a"]


def test_a_pod_that_is_longer_than_a_pass_is_planned_for_alone_and_with_others() -> None:
    """On an idle cluster at once; beside others it has its turn when these have had theirs."""
    first, *others = flood("a", 6)
    heavy = replace(first, spec=replace(first.spec, pod_anti_affinity=long_spec(1200)))
    assert weight_of(heavy.spec) > 400
    assert (heavy,) == portion([heavy], 400).pods

    pods, tried = [heavy, *others, *flood("b", 5)], set[str]()
    for _ in range(2):
        tried |= {pod.uid for pod in portion(pods, 400, tried=tried).pods}
    assert {pod.uid for pod in pods} == tried


def test_what_asks_too_much_to_be_planned_for_costs_no_turn() -> None:
    """It is refused at once, with its cause, by whichever pass it is in."""
    heavy = [replace(pod, spec=replace(pod.spec, pod_anti_affinity=long_spec(6000))) for pod in flood("a", 2)]

    assert 3 == len(portion([*heavy, *flood("b", 1)], 400).pods)
