"""Karpenter's objects as a server has them: all that it takes is read, and what cannot be carried out says why."""

from typing import Any

import pytest

from kerf.manifests.decode import decode_object
from kerf.manifests.rules import schedule_of
from kerf.model.constraints import CAPACITY_TYPE, Requirement, Requirements, Taint
from kerf.model.instancetypes import NodeOverlay
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import Budget, NodePool
from kerf.model.quantities import Resources

LONG = "x" * 64
DIGITS = "9" * 5000
LABEL_VALUE = "text that is a label value (at most 63 letters, digits, -, _ and .)"
NAME = "a name of at most 63 letters, digits, -, _ and ., with a domain before it or none"
CRON = "a cron expression of five fields in UTC that is due some day, or a macro such as @daily"


def live(kind: str, spec: dict[str, Any]) -> Any:
    """An object with a uid, decoded."""
    version = "karpenter.sh/v1alpha1" if kind == "NodeOverlay" else "karpenter.sh/v1"
    return decode_object({"apiVersion": version, "kind": kind, "metadata": {"name": "p", "uid": "u"}, "spec": spec})


def node(**given: Any) -> dict[str, Any]:
    """What a pool's template and a claim have alike."""
    return {"nodeClassRef": {"group": "g", "kind": "K", "name": "n"}, "requirements": [], **given}


def pool(labels: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, **given: Any) -> NodePool:
    """A live NodePool with these parts of its template and of its spec."""
    read = live("NodePool", {"template": {"metadata": {"labels": labels}, "spec": node(**given)}, **(spec or {})})
    assert isinstance(read, NodePool)
    return read


def overlay(**spec: Any) -> NodeOverlay:
    """A live NodeOverlay."""
    read = live("NodeOverlay", {"requirements": [], **spec})
    assert isinstance(read, NodeOverlay)
    return read


def asks(operator: str, *values: str, key: str = "a/b", **given: Any) -> dict[str, Any]:
    """One requirement."""
    return {"requirements": [{"key": key, "operator": operator, "values": list(values), **given}]}


def budget(**given: Any) -> dict[str, Any]:
    """A spec with one budget."""
    return {"disruption": {"budgets": [given]}}


def test_values_of_exists_are_ignored() -> None:
    """As in Karpenter, in all three kinds."""
    wanted = Requirements([Requirement.of("a/b", "Exists")])

    read = pool(**asks("Exists", "x")), overlay(**asks("Exists", "x")), live("NodeClaim", node(**asks("Exists", "x")))
    assert [(wanted, "")] * 2 == [(r.requirements, r.invalid) for r in read[:2]]
    assert wanted == read[2].requirements


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (asks("In", "a b"), f"requirements[0].values[0]: expected {LABEL_VALUE}, got 'a b'"),
        (asks("Gt", "+1"), f"requirements[0].values[0]: expected {LABEL_VALUE}, got '+1'"),
        (asks("Exists", key=LONG), f"requirements[0].key: expected a label key such as example.com/name, got '{LONG}'"),
        (
            asks("In", "spot", "spott", key=CAPACITY_TYPE, minValues=2),
            "requirements[0].values: expected at least 2 of reserved, spot, on-demand, got <a list of 2>",
        ),
        ({"taints": [{"key": LONG, "effect": "NoExecute"}]}, f"taints[0].key: expected {NAME}, got '{LONG}'"),
        (
            {"taints": [{"key": "a", "value": LONG, "effect": "NoExecute"}]},
            f"taints[0].value: expected {NAME}, got '{LONG}'",
        ),
        (
            {"startupTaints": [{"key": "a", "value": value, "effect": "NoExecute"} for value in ("x", "y")]},
            "startupTaints[1]: expected one taint of a key and an effect, got 'a:NoExecute'",
        ),
    ],
)
def test_what_karpenter_refuses_when_it_runs_makes_the_pool_invalid(given: dict[str, Any], expected: str) -> None:
    """Field, what was expected, what came; a claim with the same is read as it is."""
    assert f"spec.template.spec.{expected}" == pool(**given).invalid
    assert isinstance(live("NodeClaim", node(**given)), NodeClaim)


def test_labels_and_limits_can_make_a_pool_invalid() -> None:
    """Keys that are none, and quantities that only the CRD's pattern takes."""
    assert pool({"a b": "c"}).invalid.startswith('spec.template.metadata.labels["a b"]: expected a label key')
    read = pool(spec={"limits": {"cpu": "1e1.5", "memory": "1Gi"}})

    assert "spec.limits.cpu: expected a quantity, got '1e1.5'" == read.invalid
    assert Resources({"memory": 2**30}) == read.limits


def test_a_verdict_is_short() -> None:
    """The API takes no endless message: three problems, none with a key of any length."""
    verdict = pool({"k" * 100_000 + str(number): "v" for number in range(5)}).invalid

    assert len(verdict) < 1000
    assert verdict.endswith("; and 2 more")


def test_some_unknown_capacity_types_do_no_harm() -> None:
    """Karpenter goes on with those that it knows."""
    assert "" == pool(**asks("In", "spot", "spott", key=CAPACITY_TYPE)).invalid


def test_a_taint_may_have_a_value_with_a_domain() -> None:
    """`a/b` is a qualified name, which is what the CRD and Karpenter ask for."""
    read = pool(taints=[{"key": "a", "value": "b/c", "effect": "NoExecute"}])

    assert ((Taint("a", "b/c", "NoExecute"),), "") == (read.taints, read.invalid)


@pytest.mark.parametrize(("text", "expected"), [("007", 8), ("-0", 1), ("0" * 5000 + "1", 2)])
def test_a_bound_is_read_as_go_reads_it(text: str, expected: int) -> None:
    """Any number of zeros, and a sign."""
    (read,) = pool(**asks("Gt", text)).requirements.values()

    assert expected == read.at_least


def test_null_is_absent_and_less_than_nothing_is_less() -> None:
    """A negative limit leaves no room, as in Karpenter; null would be dropped by the server."""
    read = pool({"a": None, "b": "c"}, {"limits": {"cpu": -1, "memory": None}})

    assert ({"b": "c"}, Resources({"cpu": -1000}), "") == (read.labels, read.limits, read.invalid)
    assert Resources({"nvidia.com/gpu": -1}) == overlay(capacity={"nvidia.com/gpu": "-1"}).capacity


def test_numbers_of_any_length_are_read() -> None:
    """They are cut to ones that are as good as endless."""
    read = pool(spec={"limits": {"cpu": "1e999999999"}, **budget(nodes=DIGITS)}, expireAfter=f"{DIGITS}h")

    assert ("1000000000",) == tuple(b.nodes for b in read.disruption.budgets)
    assert 2**63 // 10**9 == read.expire_after_s
    assert Resources({"cpu": 10**40}) == read.limits
    assert f"{'9' * 15}.{'9' * 15}" == overlay(price=f"{DIGITS}.{DIGITS}").price
    assert f"+{'9' * 15}%" == overlay(priceAdjustment=f"+{DIGITS}%").price_adjustment


@pytest.mark.parametrize("text", ["+.5", "-.5", "+.5%", "-10%", "-100%"])
def test_a_price_may_begin_with_its_point(text: str) -> None:
    """As the pattern of the CRD has it."""
    assert text == overlay(priceAdjustment=text).price_adjustment


def test_an_overlay_that_karpenter_refuses_when_it_runs_is_invalid() -> None:
    """Values that are no labels, and amounts that cannot be read."""
    assert f"spec.requirements[0].values[0]: expected {LABEL_VALUE}, got 'a b'" == overlay(**asks("In", "a b")).invalid
    assert "spec.capacity.a: expected a quantity, got '1e1.5'" == overlay(capacity={"a": "1e1.5"}).invalid


def test_every_reason_of_a_disruption_is_known() -> None:
    """Unhealthy came with Karpenter 1.15."""
    reasons = ["Underutilized", "Empty", "Drifted", "Unhealthy"]

    assert (Budget("1", tuple(reasons)),) == pool(spec=budget(nodes="1", reasons=reasons)).disruption.budgets


@pytest.mark.parametrize(
    "text", ["TZ=UTC 0 9 * * 1", "0 0 9 * * 1", "99 * * * *", "a b c d e", "@dailyfoo", "@every 1h"]
)
def test_a_broken_schedule_forbids_all_disruption(text: str) -> None:
    """Karpenter lets no node of the pool go then, whatever the reason; it still launches some."""
    read = pool(spec=budget(nodes="5", reasons=["Empty"], schedule=text, duration="1h"))

    assert (Budget("0"),) == read.disruption.budgets
    assert "" == read.invalid
    assert f"spec.disruption.budgets[0].schedule: expected {CRON}, got {text!r}" == read.invalid_schedule


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@daily", "@daily"),
        ("0 9 * * mon-FRI", "0 9 * * 1,2,3,4,5"),
        ("*/20 ? 1,,2 Jan */3", "0,20,40 * 1,2 1 0,3,6"),
        ("5/30 * */1 * ?", "5,35 * * * *"),
        ("0 0 * * 7", None),
        ("0 0 30 2 *", None),
        ("0 5-1 * * *", None),
        ("0 1/0 * * *", None),
        ("0 1/2/3 * * *", None),
        (", * * * *", None),
        ("0 0 L * *", None),
    ],
)
def test_a_schedule_is_read_as_karpenter_reads_it(text: str, expected: str | None) -> None:
    """By robfig/cron: no 7 for Sunday, no L; `?` is `*`, and `*/2` restricts the days as numbers would."""
    assert expected == schedule_of(text)
