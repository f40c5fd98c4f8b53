"""Pods with many terms of anti-affinity that run already: whom they keep off, and what others pay for it."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.engine.place import topology
from kerf.engine.place.reaches import Reach
from kerf.engine.place.shapes import Shape
from kerf.engine.place.trial import Trial
from kerf.model.constraints import HOSTNAME, ZONE, Requirement, Requirements
from kerf.model.pods import RUNNING, Pod
from kerf.model.topology import PodAffinity, PodAffinityTerm
from kerf.testing.builders import a_market, a_node, a_pod, a_snapshot, an_instance_type

MARKET = a_market(an_instance_type())
NODES = [a_node(name, labels={HOSTNAME: name, ZONE: zone}) for name, zone in (("a", "1"), ("b", "1"), ("c", "2"))]
SPACES = ("mean", "web")


def selector(key: str, operator: str, value: str) -> Requirements:
    """Of one label of pods."""
    return Requirements([Requirement.spelt(key, operator, (value,) if operator in ("In", "NotIn") else ())])


TERM = st.builds(
    PodAffinityTerm,
    st.sampled_from((HOSTNAME, ZONE)),
    st.builds(
        selector,
        st.sampled_from(("app", "tier")),
        st.sampled_from(("In", "In", "In", "NotIn", "Exists", "DoesNotExist")),
        st.sampled_from(("x", "y", "z")),
    ),
    st.sampled_from(((), ("web",), ("mean", "web"))),
)


def many(terms: list[PodAffinityTerm]) -> tuple[PodAffinityTerm, ...]:
    """The terms among so many others, which mean nobody, that they are looked for by labels."""
    others = [PodAffinityTerm(HOSTNAME, selector("nobody", "In", f"v{number}")) for number in range(topology.MANY + 1)]
    return (*terms, *others)


def running(name: str, namespace: str, node: str, terms: list[PodAffinityTerm]) -> Pod:
    """A pod of many terms on a node."""
    averse = PodAffinity(many(terms))
    return a_pod(name, namespace=namespace, node_name=node, phase=RUNNING, pod_anti_affinity=averse, cpu="100m")


def kept_off(pod: Pod, others: list[Pod]) -> set[str]:
    """By plain rules: a node is shut where one of the others has a term that means the pod, in the same domain."""
    labels = {node.name: node.labels for node in NODES}
    shut = set()
    for other in others:
        for term in other.spec.pod_anti_affinity.required:
            reach = Reach.of(term, other.namespace, other.labels, is_of_new=False)
            is_meant = pod.namespace in reach.namespaces and reach.selector.unsatisfied_by(pod.labels) is None
            for node in NODES:
                if is_meant and labels[node.name][term.key] == labels[other.node_name][term.key]:
                    shut.add(node.name)
    return shut


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from(SPACES), st.sampled_from("abc"), st.lists(TERM, max_size=3)), max_size=3),
    st.lists(
        st.tuples(st.sampled_from(SPACES), st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from("xyz"))),
        min_size=1,
        max_size=4,
    ),
)
def test_many_terms_keep_off_whom_each_keeps_off(held: list[Any], asking: list[Any]) -> None:
    """Of several pods that are asked about one after another, with whatever labels."""
    there = [running(f"r-{n}", space, node, terms) for n, (space, node, terms) in enumerate(held)]
    waiting = [a_pod(f"p-{n}", namespace=space, labels=labels, cpu="100m") for n, (space, labels) in enumerate(asking)]
    trial = Trial(a_snapshot(nodes=NODES, pods=[*there, *waiting]), MARKET)
    for pod in waiting:
        assert kept_off(pod, there) == {str(each.target.name) for each in trial.misfits(Shape((pod,)))}, pod


def test_terms_that_mean_no_pod_to_be_placed_are_not_counted() -> None:
    """Forty pods that run with three hundred terms each: for a pod of another tenant none has a tally."""
    terms = [PodAffinityTerm(HOSTNAME, selector("app", "In", f"v{number}")) for number in range(300)]
    there = [running(f"r-{n}", "mean", "abc"[n % 3], terms) for n in range(40)]
    other = a_pod("p", namespace="web", labels={"app": "web"}, cpu="100m")
    trial = Trial(a_snapshot(nodes=NODES, pods=[*there, other]), MARKET)

    assert [] == list(trial.misfits(Shape((other,))))
    assert 0 == len(trial.ledger._tallies)
