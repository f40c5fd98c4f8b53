"""Which pods a node to be can still have by their labels: on arrays as one by one."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.buy.wants import Wants
from kerf.engine.place.fit import narrowed
from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Room
from kerf.engine.supply.offered import OfferedType
from kerf.model.constraints import CAPACITY_TYPE, ZONE, Requirement, Requirements
from kerf.model.plan import Misfit
from kerf.model.quantities import NOTHING
from kerf.testing.builders import a_pod, a_pool, an_instance_type
from tests.engine.worlds import supply_of
from tests.examples import examples

POOL = a_pool(
    requirements=Requirements([Requirement.of("team", "Exists"), Requirement.of("rank", "In", ["1", "2", "3"])]),
    capacity_types=(),
)
OFFERED = supply_of(POOL, types=(an_instance_type("m5.large"), an_instance_type("m5.xlarge"))).available
VALUES = {
    "team": ("a", "b", "c"),
    "rank": ("1", "2", "3", "9"),
    "absent": ("x", "y"),
    ZONE: ("us-east-1a", "us-east-1b", "us-east-1z"),
    CAPACITY_TYPE: ("spot", "on-demand"),
    "node.kubernetes.io/instance-type": ("m5.large", "m5.xlarge", "m5.none"),
}


@st.composite
def required(draw: st.DrawFn) -> Requirement:
    """Of a label that the pool defines, that every node has, or that none has."""
    key = draw(st.sampled_from(sorted(VALUES)))
    operator = draw(st.sampled_from(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")))
    if operator in ("Gt", "Lt"):
        return Requirement.of("rank", operator, [draw(st.sampled_from(("1", "2", "3")))])
    is_list = operator in ("In", "NotIn")
    values = draw(st.lists(st.sampled_from(VALUES[key]), min_size=1, max_size=2)) if is_list else ()
    return Requirement.of(key, operator, values)


@st.composite
def shapes(draw: st.DrawFn) -> Sequence[Shape]:
    """Pods whose terms are alternatives."""
    terms = st.lists(st.builds(Requirements, st.lists(required(), max_size=3)), max_size=3)
    specs = draw(st.lists(terms, min_size=1, max_size=8))
    return [Shape((a_pod(f"p{number}", affinity=tuple(spec)),)) for number, spec in enumerate(specs)]


def agrees(offered: OfferedType, terms: Requirements, shape: Shape) -> Requirements | None:
    """What the node asks for with one such pod more; None where it cannot have it."""
    found = narrowed(offered.target, Room(NOTHING, (), (), terms), shape)
    return None if isinstance(found, Misfit) or offered.offering_for(found) is None else found


@examples(200, derandomize=True, database=None)
@given(shapes(), st.lists(st.integers(0, 7), max_size=5))
def test_all_at_once_agree_as_each_by_itself(pods: Sequence[Shape], order: Sequence[int]) -> None:
    """On an empty node, and on one that asks for what the pods on it ask."""
    wants = Wants(pods)
    for row, offered in enumerate(OFFERED):
        terms = offered.room.requirements
        for number in (0, *order):
            expected = [agrees(offered, terms, shape) for shape in pods]
            assert [each is not None for each in expected] == wants.agreeing(row, offered, terms).tolist()
            terms = expected[number % len(pods)] or terms
