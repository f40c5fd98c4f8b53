"""Labels of a NodePool's template are requirements, as in Karpenter: no type with another value is the pool's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.supply.allowed import allowed_types, excluding, unsatisfiable
from kerf.model.constraints import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.testing.builders import a_pod, a_pool, an_instance_type, cards
from tests.engine.worlds import bought, only_unplaced, planned, supply_of

FAMILY, MODEL, CPUS = (f"karpenter.k8s.aws/instance-{name}" for name in ("family", "gpu-name", "cpu"))
TEAM = "example.com/team"
G5 = an_instance_type("g5.xlarge", devices=cards(1), price="1.00", labels={FAMILY: "g5", MODEL: "a10g", CPUS: "4"})
G5G = an_instance_type(
    "g5g.xlarge", devices=cards(1), price="0.40", labels={FAMILY: "g5g", MODEL: "t4g", CPUS: "4", ARCH: "arm64"}
)
G6 = an_instance_type("g6.2xlarge", devices=cards(1), price="0.80", labels={FAMILY: "g6", MODEL: "l4", CPUS: "8"})
M5 = an_instance_type("m5.xlarge", price="0.20", labels={FAMILY: "m5", CPUS: "4"})
TYPES = (G5, G5G, G6, M5)


def asking(key: str, *values: str, operator: str = "In") -> Requirements:
    """One requirement."""
    return Requirements([Requirement.of(key, operator, values)])


@pytest.mark.parametrize(
    "label, names",
    [
        ({FAMILY: "g6"}, ["g6.2xlarge"]),
        ({MODEL: "a10g"}, ["g5.xlarge"]),
        ({CPUS: "4"}, ["g5.xlarge", "g5g.xlarge", "m5.xlarge"]),
        ({ARCH: "arm64"}, ["g5g.xlarge"]),
        ({"beta.kubernetes.io/arch": "arm64"}, ["g5g.xlarge"]),
        ({INSTANCE_TYPE: "m5.xlarge"}, ["m5.xlarge"]),
        ({ZONE: "us-east-1z"}, []),
        ({CAPACITY_TYPE: "spot"}, []),
    ],
)
def test_a_label_of_the_template_admits_types_with_its_value_alone(label: dict[str, str], names: list[str]) -> None:
    """Without a requirement on it, and in an old spelling too; a type that lacks a label of its cloud has not the
    value."""
    assert names == [kind.name for kind in allowed_types(a_pool(capacity_types=(), labels=label), TYPES)]


@pytest.mark.parametrize("label", [{TEAM: "ml"}, {"gpu": "on"}, {"nvidia.com/mig.config": "all-1g.5gb"}])
def test_a_label_that_no_type_has_says_nothing_of_types(label: dict[str, str]) -> None:
    """The owner's labels and those of plugins come with the node."""
    assert TYPES == allowed_types(a_pool(labels=label), TYPES)


@given(st.sets(st.sampled_from(["g5", "g5g", "g6", "m5"]), min_size=1), st.sampled_from(["g5", "g5g", "g6", "m5"]))
def test_a_label_and_a_requirement_are_intersected(families: set[str], family: str) -> None:
    """As two requirements of one label are; nothing is left where they contradict each other."""
    labelled = a_pool(requirements=asking(FAMILY, *families), labels={FAMILY: family})
    asked = a_pool(requirements=asking(FAMILY, *families & {family})) if family in families else None

    assert allowed_types(labelled, TYPES) == (() if asked is None else allowed_types(asked, TYPES))


def test_a_label_that_contradicts_a_requirement_admits_nothing_also_where_no_type_has_it() -> None:
    """A node with it would not satisfy the pool: Karpenter would replace it as drifted at once."""
    assert () == allowed_types(a_pool(requirements=asking(TEAM, "web"), labels={TEAM: "ml"}), TYPES)
    assert TYPES == allowed_types(a_pool(requirements=asking(TEAM, "web", "ml"), labels={TEAM: "ml"}), TYPES)


def test_what_keeps_types_out_is_a_label_or_a_requirement() -> None:
    """Both where they contradict each other; else the one that the type has not."""
    pool = a_pool(capacity_types=(), requirements=asking(FAMILY, "g5", "g6"), labels={FAMILY: "g6"})
    apart = a_pool(capacity_types=(), requirements=asking(FAMILY, "g5"), labels={FAMILY: "p5"})
    of_label, found = excluding(pool, G5), unsatisfiable(apart, TYPES)

    assert ((), asking(FAMILY, "g6")) == (of_label.asked, Requirements(of_label.labels))
    assert [FAMILY] == [each.key for each in excluding(pool, M5).asked]
    assert (asking(FAMILY, "g5"), asking(FAMILY, "p5")) == (Requirements(found.asked), Requirements(found.labels))


@pytest.mark.parametrize(
    "label, text, hint",
    [
        (
            {FAMILY: "p5"},
            f"no instance type here satisfies the requirements of NodePool pool: {FAMILY} In [g5, g6] "
            f"and label {FAMILY}=p5 of its template",
            f"drop the label {FAMILY}=p5 from the template of NodePool pool",
        ),
        (
            {INSTANCE_TYPE: "g5.huge"},
            "NodePool pool offers no instance type: unknown instance type g5.huge (nearest known: g5.xlarge)",
            "write g5.xlarge instead of g5.huge among the labels of the template of NodePool pool",
        ),
        (
            {INSTANCE_TYPE: "m5.xlarge"},
            f"NodePool pool offers no instance type: m5.xlarge does not satisfy {FAMILY} In [g5, g6]",
            f"allow {FAMILY} m5 in NodePool pool",
        ),
    ],
)
def test_a_pool_that_its_labels_close_says_so(label: dict[str, str], text: str, hint: str) -> None:
    """The label is named as one, and the hint is what lets the pod in."""
    pool = a_pool(requirements=asking(FAMILY, "g5", "g6"), labels=label)
    found = only_unplaced(planned([a_pod(cpu=1)], pools=[pool], types=TYPES))

    assert (text, hint) == (found.reason, found.hint)


def test_the_type_with_the_label_is_bought_and_not_the_cheapest() -> None:
    """The cheapest that the requirement alone would admit is of another family."""
    pool = a_pool(requirements=asking(FAMILY, "g5g", "g6"), labels={FAMILY: "g6"})

    assert ["g6.2xlarge"] == [each.kind.name for each in supply_of(pool, types=TYPES).available]
    assert [("g6.2xlarge", 1)] == bought(planned([a_pod(gpu=1)], pools=[pool], types=TYPES))
