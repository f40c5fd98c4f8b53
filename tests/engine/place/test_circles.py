"""Pods that must be with each other in a circle are named: none of them can ever be the first."""

import pytest

from kerf.model.causes import Name
from kerf.model.constraints import HOSTNAME, ZONE, Requirements
from kerf.model.plan import Plan, Stage
from kerf.model.pods import RUNNING, Pod
from kerf.model.topology import AffinityCircle, NotNear
from kerf.testing.builders import a_node, a_pod, a_pool, an_instance_type
from tests.engine.place.test_topology import near
from tests.engine.worlds import planned

M5 = an_instance_type("m5.xlarge")


def seeking(name: str, *, of: str = "", key: str = HOSTNAME, **given: object) -> Pod:
    """A pod with its name as the label app, which must be with the pods of another app."""
    asked = near(key, Requirements.of_labels({"app": of})) if of else {}
    return a_pod(name, labels={"app": name}, cpu="100m", **asked, **given)  # type: ignore[arg-type]


def made(*pods: Pod, **given: object) -> Plan:
    """The plan with one type."""
    return planned(pods, [a_pool()], [M5], **given)  # type: ignore[arg-type]


def circles(plan: Plan) -> dict[str, AffinityCircle]:
    """By pod."""
    return {each.pod: each.cause for each in plan.unplaced if isinstance(each.cause, AffinityCircle)}


@pytest.mark.parametrize("nodes", [[], [a_node("n")]])
@pytest.mark.parametrize("key", [HOSTNAME, ZONE])
def test_two_that_seek_each_other_are_named(key: str, nodes: list[object]) -> None:
    """Neither runs, so neither can come first; each reason begins with its own pod, and nothing is bought."""
    plan = made(seeking("a", of="b", key=key), seeking("b", of="a", key=key), nodes=nodes)

    a, b = Name("default/a"), Name("default/b")
    assert {a: AffinityCircle((a, b), 2, True), b: AffinityCircle((b, a), 2, True)} == circles(plan)
    assert ((), {Stage.AFFINITY}) == (plan.launches, {each.stage for each in plan.unplaced})


def test_the_words_name_the_circle_and_what_would_help() -> None:
    """No node would: one of them must give way."""
    first = made(seeking("a", of="b"), seeking("b", of="a")).unplaced[0]

    assert (
        "pod affinity in a circle: default/a, which must be with default/b, which must be with default/a; none of them "
        "runs, so none can be the first"
    ) == first.reason
    assert "no node would help: take the required pod affinity off one of them, or make it preferred" == first.hint


def test_one_that_waits_for_a_circle_names_it() -> None:
    """It is none of them, and waits as long as they do."""
    plan = made(seeking("a", of="b"), seeking("b", of="a"), seeking("c", of="a"))

    assert AffinityCircle((Name("default/a"), Name("default/b")), 2, False) == circles(plan)["default/c"]


def test_a_circle_of_which_one_runs_is_none() -> None:
    """b can come to the node of a."""
    there = seeking("there", node_name="n", phase=RUNNING)

    assert {} == circles(made(seeking("a", of="there"), seeking("there-2", of="a"), there, nodes=[a_node("n")]))


def test_a_pod_of_the_same_label_that_seeks_none_opens_the_circle() -> None:
    """All three share a node."""
    plan = made(seeking("a", of="b"), seeking("b", of="a"), a_pod("free", labels={"app": "a"}, cpu="100m"))

    assert ((), 1) == (plan.unplaced, len(plan.launches))


def test_a_pod_that_is_its_own_company_is_no_circle() -> None:
    """The first of them may come alone."""
    assert () == made(seeking("a", of="a")).unplaced


def test_who_waits_for_a_pod_that_does_not_exist_waits_in_no_circle() -> None:
    """Its reason is what it lacks."""
    plan = made(seeking("a", of="b"), seeking("b", of="none"))

    assert {NotNear} == {type(each.cause) for each in plan.unplaced}


def test_a_gated_pod_may_still_open_a_circle() -> None:
    """It seeks no other, and comes once its gate is removed."""
    gated = a_pod("free", labels={"app": "a"}, cpu="100m", scheduling_gates=("wait",))

    assert {} == circles(made(seeking("a", of="b"), seeking("b", of="a"), gated))


def test_a_long_circle_is_found_without_recursion() -> None:
    """Of 200 the first few are named, from the pod that is refused on."""
    count = 200
    plan = made(*(seeking(f"x-{number}", of=f"x-{(number + 1) % count}") for number in range(count)))

    found = circles(plan)
    assert count == len(found)
    assert (count, ("default/x-198", "default/x-199", "default/x-0", "default/x-1", "default/x-2")) == (
        found["default/x-198"].count,
        found["default/x-198"].pods,
    )
