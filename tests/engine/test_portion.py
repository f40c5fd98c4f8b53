"""F6: a pass plans for a bounded number of shapes, in turn from each namespace."""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from kerf.engine.place.shapes import Readings
from kerf.engine.portion import Portion, portion
from kerf.model.groups import POD_GROUP
from kerf.model.pods import Pod
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


def test_a_group_is_taken_whole_or_not_at_all() -> None:
    """One with more shapes than a pass has never stands before the others."""
    group = flood("a", 6, labels={POD_GROUP: "g"})
    alone = [a_pod(f"q-{n}", namespace="a", uid=f"q-{n}", created_s=9 + n, cpu=1 + n) for n in range(6)]
    whole, never = portion([*group, *alone], 8), portion([*group, *alone], 5)

    assert {"p": 6, "q": 2} == Counter(pod.name[0] for pod in whole.pods)
    assert {"q": 5} == Counter(pod.name[0] for pod in never.pods)


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
