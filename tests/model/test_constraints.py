"""Requirements as sets: laws of their algebra; taints and tolerations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.model.constraints import OPERATORS, ZONE, Requirement, Requirements, Taint, Toleration, untolerated
from tests.examples import examples

VALUES = ("x", "y", "z", "0", "3", "7", "-1", "3.5")
lawful = examples(300, derandomize=True, database=None)


@st.composite
def stated(draw: st.DrawFn) -> Requirement:
    """A requirement on `k` as a manifest states it."""
    operator = draw(st.sampled_from(OPERATORS))
    if operator in ("In", "NotIn"):
        return Requirement.of("k", operator, draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=4)))
    if operator in ("Exists", "DoesNotExist"):
        return Requirement.of("k", operator)
    return Requirement.of("k", operator, [str(draw(st.integers(0, 8)))])


@lawful
@given(stated(), stated(), st.sampled_from(VALUES))
def test_an_intersection_has_what_both_have(one: Requirement, other: Requirement, value: str) -> None:
    """The definition of an intersection."""
    assert (one.has(value) and other.has(value)) == one.intersect(other).has(value)


@lawful
@given(stated(), stated(), stated())
def test_intersections_commute_and_associate(one: Requirement, two: Requirement, three: Requirement) -> None:
    """So that the order in which pod, pool and type are met cannot matter."""
    assert one.intersect(two) == two.intersect(one)
    assert one.intersect(two).intersect(three) == one.intersect(two.intersect(three))
    assert one == one.intersect(one)


@lawful
@given(stated(), stated())
def test_an_empty_intersection_has_no_value(one: Requirement, other: Requirement) -> None:
    """`is_empty` never hides a value that would do."""
    both = one.intersect(other)

    assert not (both.is_empty and any(both.has(value) for value in VALUES))


@lawful
@given(stated(), stated())
def test_what_excludes_another_has_no_value_in_common_with_it(one: Requirement, other: Requirement) -> None:
    """Nor do both hold without the label; it is said without making the intersection."""
    without_label = one.allows_absence and other.allows_absence

    assert (one.intersect(other).is_empty and not without_label) == one.excludes(other)


def test_what_is_said_of_labels_that_a_node_will_not_have_decides_nothing() -> None:
    """Of labels that every node gets, and of those that its pool defines, all is kept."""
    said = {"zone": ("In", ["a"]), "team": ("NotIn", ["b"]), "other": ("DoesNotExist", []), "mine": ("NotIn", ["c"])}
    asked = Requirements(Requirement.of(key, operator, values) for key, (operator, values) in said.items())
    defined = Requirements([Requirement.of("team", "Exists")])

    assert {"zone", "team"} == set(asked.decided(defined, frozenset({"zone"})))
    assert asked.decided(asked) is asked


@lawful
@given(st.lists(stated(), max_size=3), st.lists(stated(), max_size=3), st.sampled_from((*VALUES, None)))
def test_labels_that_satisfy_both_satisfy_the_intersection(
    one: list[Requirement], other: list[Requirement], value: str | None
) -> None:
    """And no others, also for a label that is absent."""
    left, right = Requirements(one), Requirements(other)
    labels = {} if value is None else {"k": value}
    satisfy_both = all(Requirements((each,)).unsatisfied_by(labels) is None for each in (*one, *other))

    assert satisfy_both == (left.intersect(right).unsatisfied_by(labels) is None)
    assert not satisfy_both or left.conflict(right) is None


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (("In", ["a"]), ("In", ["b"]), "k DoesNotExist and k Exists"),
        (("Exists", []), ("DoesNotExist", []), "k DoesNotExist and k Exists"),
        (("Exists", []), ("NotIn", ["a"]), "k Exists and k NotIn [a]"),
    ],
)
def test_what_one_side_needs_the_intersection_needs(
    one: tuple[str, list[str]], other: tuple[str, list[str]], text: str
) -> None:
    """Though its values alone would let a node without the label pass."""
    both = Requirement.of("k", *one).intersect(Requirement.of("k", *other))

    assert (False, text) == (both.allows_absence, str(both))
    assert {"Exists"} <= {operator for operator, _ in both.forms()}


@pytest.mark.parametrize(
    "operator, values, allowed, absent",
    [
        ("In", ["3", "x"], {"3", "x"}, False),
        ("NotIn", ["3", "x"], {"y", "z", "0", "7", "-1", "3.5"}, True),
        ("Exists", [], set(VALUES), False),
        ("DoesNotExist", [], set(), True),
        ("Gt", ["3"], {"7"}, False),
        ("Lt", ["3"], {"0", "-1"}, False),
        ("Gte", ["3"], {"3", "7"}, False),
        ("Lte", ["3"], {"0", "3", "-1"}, False),
    ],
)
def test_operators_mean_what_kubernetes_says(operator: str, values: list[str], allowed: set[str], absent: bool) -> None:
    """Which values, and whether a node without the label will do; a bound holds for integers only."""
    requirement = Requirement.of("k", operator, values)

    assert allowed == {value for value in VALUES if requirement.has(value)}
    assert absent is requirement.allows_absence


@pytest.mark.parametrize("value", ["1_0", "9" * 20, "0x10", "1e3", ""])
def test_a_label_that_go_reads_as_no_number_is_within_no_bounds(value: str) -> None:
    """strconv.ParseInt takes digits alone, and 64 bits of them."""
    assert not any(Requirement.of("k", operator, ["7"]).has(value) for operator in ("Gt", "Lt", "Gte", "Lte"))


def test_old_spellings_of_labels_are_read_as_the_new_ones() -> None:
    """A pod that says beta.kubernetes.io/arch means kubernetes.io/arch."""
    assert "kubernetes.io/arch" == Requirement.of("beta.kubernetes.io/arch", "In", ["arm64"]).key


def test_two_requirements_of_one_key_are_met_together() -> None:
    """As two entries of one manifest are."""
    both = Requirements([Requirement.of("k", "In", ["a", "b"]), Requirement.of("k", "NotIn", ["a"])])

    assert {"k": "b"} == both.labels()


def test_a_conflict_names_both_sides() -> None:
    """The pair that explain shows, the first by key."""
    pod = Requirements.of_labels({"zone": "c", "arch": "arm64"})
    pool = Requirements.of_labels({"zone": "a", "arch": "amd64"})

    assert (Requirement.of("arch", "In", ["arm64"]), Requirement.of("arch", "In", ["amd64"])) == pod.conflict(pool)


@pytest.mark.parametrize(
    "operator, is_undefined", [("In", True), ("Exists", True), ("Gt", True), ("NotIn", False), ("DoesNotExist", False)]
)
def test_an_undefined_label_refuses_only_what_needs_it(operator: str, is_undefined: bool) -> None:
    """A new node has no label that neither its pool nor its type mentions."""
    values = {"In": ["1"], "NotIn": ["1"], "Gt": ["1"]}.get(operator, [])
    asked = Requirements([Requirement.of("example.com/k", operator, values)])

    assert is_undefined is (asked.undefined(Requirements()) is not None)
    assert asked.undefined(Requirements.of_labels({"example.com/k": "1"})) is None


def test_the_stricter_number_of_distinct_values_stays() -> None:
    """minValues of pool and claim."""
    one, other = (Requirement.of("k", "In", ["a", "b"], least) for least in (1, 2))

    assert 2 == one.intersect(other).min_values


@pytest.mark.parametrize(
    "requirement, text",
    [
        (Requirement.of("k", "In", ["b", "a"]), "k In [a, b]"),
        (Requirement.of("k", "DoesNotExist"), "k DoesNotExist"),
        (Requirement.of("k", "Exists"), "k Exists"),
        (Requirement("k", True, frozenset({"5"}), 3, 9), "k Gte 3 and k Lte 9 and k NotIn [5]"),
    ],
)
def test_a_requirement_reads_like_a_manifest(requirement: Requirement, text: str) -> None:
    """In the same words for every hash seed."""
    assert text == str(requirement)


@pytest.mark.parametrize(
    "toleration, is_tolerated",
    [
        (Toleration("gpu", "Equal", "a10", "NoSchedule"), True),
        (Toleration("gpu", "Equal", "a10"), True),
        (Toleration("gpu", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("gpu", "Equal", "t4"), False),
        (Toleration("gpu", "Exists", "", "NoExecute"), False),
        (Toleration("cpu", "Exists"), False),
        (Toleration("", "Equal", "a10"), False),
    ],
)
def test_a_toleration_matches_key_value_and_effect(toleration: Toleration, is_tolerated: bool) -> None:
    """core/v1: an empty effect means any; an empty key tolerates everything only with Exists."""
    assert is_tolerated is toleration.tolerates(Taint("gpu", "a10", "NoSchedule"))


def test_the_first_untolerated_taint_is_the_reason() -> None:
    """In the order of their names; a preference keeps no pod off."""
    taints = [Taint("z"), Taint("a", "", "PreferNoSchedule"), Taint("b")]

    assert Taint("b") == untolerated(taints, [])
    assert Taint("z") == untolerated(taints, [Toleration("b", "Exists")])
    assert None is untolerated(taints, [Toleration("", "Exists")])


@pytest.mark.parametrize(
    ("operator", "values", "label"),
    [
        ("In", ["b", "a"], "a"),
        ("Exists", [], "0"),
        ("Gt", ["7"], "8"),
        ("Lt", ["-7"], "-8"),
        ("Lt", ["7"], "0"),
        ("NotIn", ["a"], None),
        ("DoesNotExist", [], None),
    ],
)
def test_a_node_is_labelled_by_what_its_claim_must_have(operator: str, values: list[str], label: str | None) -> None:
    """The value satisfies the requirement; what need not be there is left out, as is what kubelet or a cloud sets."""
    asked = Requirements([Requirement.of("k", operator, values), Requirement.of(ZONE, "In", ["a"])])
    found = asked.own_labels()

    assert ({} if label is None else {"k": label}) == found
    assert asked.without((ZONE,)).unsatisfied_by(found) is None


def test_the_least_number_that_is_not_excluded_is_taken() -> None:
    """A node must have the label, and not with these values."""
    both = Requirement.of("k", "NotIn", ["0", "1"]).intersect(Requirement.of("k", "Exists"))

    assert {"k": "2"} == Requirements([both]).own_labels()
