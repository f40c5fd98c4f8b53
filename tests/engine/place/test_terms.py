"""Pods with many terms of node affinity: the same answer as term by term, and few of them asked."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.place.fit import label_misfit, narrowed
from kerf.engine.place.target import Room
from kerf.engine.place.terms import FEW, TermIndex
from kerf.model.constraints import (
    ARCH,
    HOSTNAME,
    INSTANCE_TYPE,
    NEVER,
    NODE_NAME,
    ZONE,
    Requirement,
    Requirements,
    all_of,
)
from kerf.model.plan import Misfit
from kerf.model.quantities import NOTHING
from kerf.testing.builders import a_pod, a_pool
from tests.engine.worlds import G5, M5, offer, shape_of

KEYS = (ZONE, ARCH, INSTANCE_TYPE, HOSTNAME, NODE_NAME, "team", "size", "absent")
VALUES = ("us-east-1a", "us-east-1b", "amd64", "m5.xlarge", "g5.xlarge", "ai", "7", "12", "-3", "007")


def asked(key: str, operator: str, values: list[str]) -> Requirement:
    """One requirement, of what its operator takes."""
    if operator in ("Gt", "Lt", "Gte", "Lte"):
        return Requirement.of(key, operator, (str(len(values)),))
    return Requirement.of(key, operator, values if operator in ("In", "NotIn") else ())


REQUIREMENTS = st.builds(
    asked,
    st.sampled_from(KEYS),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")),
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
)
TERMS = st.lists(st.lists(REQUIREMENTS, min_size=1, max_size=3).map(all_of), min_size=FEW + 1, max_size=40)
LABELS: dict[str, Any] = {"team": "ai", "size": "12"}


def one_by_one(pod: Any, offered: Any) -> Requirements | Misfit:
    """What `narrowed` says, each term asked in its turn by a pod that has no other."""
    found: Requirements | Misfit | None = None
    for term in pod.spec.alternatives_new:
        mine = narrowed(offered.target, offered.room, shape_of(a_pod(affinity=(term,))))
        if not isinstance(mine, Misfit) and (not term or is_sold(mine, offered)):
            return mine
        found = mine if found is None or (isinstance(found, Misfit) and not isinstance(mine, Misfit)) else found
    assert found is not None
    return found


def is_sold(agreed: Requirements, offered: Any) -> bool:
    """Whether a zone that may be had is among those that are asked."""
    zone = agreed.get(ZONE)
    return not offered.target.sold or any(zone is None or zone.has(each) for each, _, _ in offered.target.sold)


@given(TERMS)
def test_many_terms_say_what_each_says_in_its_turn(terms: list[Requirements]) -> None:
    """Which node may be bought, with which labels, and of the first term why none may."""
    pod = a_pod(affinity=tuple(terms))
    for kind in (G5, M5):
        offered = offer(a_pool(labels=LABELS), kind)
        assert one_by_one(pod, offered) == narrowed(offered.target, offered.room, shape_of(pod))


@given(TERMS)
def test_the_index_leaves_out_no_term_that_a_node_satisfies(terms: list[Requirements]) -> None:
    """Of a node to be bought; those that it names come in their order."""
    offered = offer(a_pool(labels=LABELS), M5)
    named = TermIndex(terms).may_agree(offered.target.requirements, is_open=True)
    agreeing = [n for n, term in enumerate(terms) if label_misfit(offered.target, Room(NOTHING), term) is None]

    assert named == sorted(named)
    assert set(agreeing) <= set(named)


def test_of_a_thousand_terms_a_node_is_asked_about_those_alone_that_its_labels_may_meet() -> None:
    """Whether they differ by a label that the pool has not, by a zone, or by how large a machine has to be."""
    target = offer(a_pool(labels=LABELS), M5).target.requirements
    for key, operator, prefix in (("absent", "In", "v"), ("team", "In", "v"), ("size", "Gt", "9")):
        terms = [all_of((Requirement.of(key, operator, (f"{prefix}{n}",)),)) for n in range(10, 1010)]
        assert [] == TermIndex(terms).may_agree(target, is_open=True), key
    mixed = [all_of((Requirement.of("team", "In", (f"t{n}" if n != 500 else "ai",)),)) for n in range(1000)]

    assert [500] == TermIndex(mixed).may_agree(target, is_open=True)


def test_what_nothing_satisfies_is_never_asked() -> None:
    """A term that contradicts itself."""
    assert [] == TermIndex([NEVER] * 20).may_agree(offer(a_pool(), M5).target.requirements, is_open=True)


def test_equal_terms_are_one() -> None:
    """However often a manifest repeats it."""
    assert 1 == len(a_pod(affinity=(Requirements.of_labels({"team": "ai"}),) * 1000).spec.alternatives)
