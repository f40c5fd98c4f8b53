"""A thousand nodes with the same fault make no thousand lines."""

from kerf.cli.warnings import grouped

UNKNOWN = "spec.taintz: unknown field, ignored; is `taints` meant?"


def test_what_is_said_of_many_objects_is_counted() -> None:
    """The first two are shown as they are; what is said once stands alone."""
    warnings = [*(f"a.yaml:{line}: {UNKNOWN}" for line in range(1, 1001)), "b.yaml:1: spec.x: unknown field, ignored"]

    assert [
        f"a.yaml:1: {UNKNOWN}",
        f"a.yaml:2: {UNKNOWN}",
        f"998 more warnings of the same: {UNKNOWN}",
        "b.yaml:1: spec.x: unknown field, ignored",
    ] == list(grouped(warnings))


def test_values_that_differ_make_no_other_group() -> None:
    """Nor do places in a list; whether something is left out does."""
    broken = [f"left out: Node n-{at}: status.images[{at}].name: expected text, got {at}" for at in range(5)]
    doubted = "Node n-9: status.images[9].name: expected text, got 9"

    assert [
        *broken[:2],
        "3 more warnings of the same: status.images.name: expected text",
        doubted,
    ] == list(grouped([*broken, doubted]))


def test_three_are_not_many() -> None:
    """Each has its line; so has a text without a place."""
    three = [f"a.yaml:{line}: {UNKNOWN}" for line in range(3)]

    assert [*three, "odd"] == list(grouped([*three, "odd"]))
