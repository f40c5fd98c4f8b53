"""`-o name|jsonpath=|custom-columns=`, `--sort-by`, `--no-headers`, and several objects at once."""

import pytest

from tests.cli.program import CLUSTER, POOL_000, WORKLOAD_000, files, kerf

NODES = ("nodes", *files(CLUSTER))
PLAN = files(POOL_000, WORKLOAD_000)
JOBS = ("-f", "examples/002-batch-running/cluster.yaml", "-f", "examples/002-batch-running/usage.yaml")


@pytest.mark.parametrize(
    "command, names",
    [
        (NODES, ["nodeclaim/g5-starting", "node/ip-10-0-0-1", "node/ip-10-0-0-2"]),
        (("gpus", *files(CLUSTER)), ["gpu/ip-10-0-0-1/0", "gpu/ip-10-0-0-2/0"]),
        (("explain", "pod", "gpu-app-0", *PLAN), ["pod/default/gpu-app-0"]),
        (("plan", *files("examples/004-ack/nodepool.yaml")), []),
        (("advise", "pool", "gpu-pool-1", *PLAN), ["nodepool/gpu-pool-1"]),
    ],
)
def test_names_are_those_that_other_commands_take(command: tuple[str, ...], names: list[str]) -> None:
    """KIND/NAME, or KIND/NAMESPACE/NAME."""
    assert names == kerf(*command, "-o", "name").stdout.splitlines()


def test_names_go_into_the_next_command() -> None:
    """`kerf explain $(kerf nodes -o name)`."""
    named = kerf(*NODES, "-o", "name").stdout.split()
    done = kerf("explain", *named, *files(CLUSTER))

    assert 0 == done.returncode
    assert all(name.partition("/")[2] in done.stdout for name in named)


def test_what_has_no_names_says_so() -> None:
    """Families of types are no objects."""
    done = kerf("advise", "instance-types", *PLAN, "-o", "name")

    assert (2, "error: -o name: expected objects with names, and FamilyCosts has none: -o json\n") == (
        done.returncode,
        done.stderr.splitlines(keepends=True)[-1],
    )


def test_columns_of_ones_own() -> None:
    """HEADER:PATH as kubectl takes it; what is not there is <none>."""
    done = kerf(*NODES, "-o", "custom-columns=NODE:.node,PRICE:{.perHour},POD:.pods[0]")

    assert [
        "NODE         PRICE  POD",
        "<none>       1.006  <none>",
        "ip-10-0-0-1  1.006  default/chat-0",
        "ip-10-0-0-2  1.006  <none>",
    ] == done.stdout.splitlines()


def test_a_template_has_the_fields_of_json() -> None:
    """Without an end of line, as kubectl."""
    assert "NodeInventory USD" == kerf(*NODES, "-o", "jsonpath={.kind} {.currency}").stdout


@pytest.mark.parametrize(
    "output, said",
    [
        ("xml", "'xml' is not one of table, wide, json, yaml, name, jsonpath=..., custom-columns=..."),
        ("jsonpath", "expected jsonpath=..., such as -o jsonpath='{.items[*].node}'"),
        ("custom-columns=", "expected custom-columns=..., such as -o custom-columns=NODE:.node,PRICE:.perHour"),
        ("go-template={{.items}}", "-o jsonpath='{.items[*].node}' says the same"),
        ("custom-columns=NODE", "-o custom-columns: expected HEADER:PATH[,HEADER:PATH]..., got 'NODE'"),
    ],
)
def test_another_form_is_refused_with_those_there_are(output: str, said: str) -> None:
    """Wrong usage, and nothing is printed."""
    done = kerf(*NODES, "-o", output)

    assert (2, "") == (done.returncode, done.stdout)
    assert said in done.stderr


@pytest.mark.parametrize("by", [".ageSeconds", "ageSeconds", "{.ageSeconds}"])
def test_rows_have_the_order_that_is_asked(by: str) -> None:
    """By size, in text and JSON alike."""
    lines = kerf(*NODES, "--sort-by", by).stdout.splitlines()[1:4]
    ages = [item["ageSeconds"] for item in kerf(*NODES, "--sort-by", by, "-o", "json").data["items"]]

    assert sorted(ages) == ages
    assert "(g5-starting)" == lines[0].split()[0]


def test_rows_without_the_field_come_last() -> None:
    """A claim has no node yet."""
    items = kerf(*NODES, "--sort-by", ".node", "-o", "json").data["items"]

    assert ["ip-10-0-0-1", "ip-10-0-0-2", None] == [item["node"] for item in items]


def test_a_field_that_no_row_has_is_refused() -> None:
    """With those there are."""
    done = kerf(*NODES, "--sort-by", ".prize")

    assert 2 == done.returncode
    assert "--sort-by .prize: expected a field that a row has (node, nodeClaim, " in done.stderr


def test_without_headers_there_are_only_rows() -> None:
    """No first line and no sum, in a table of one's own as well."""
    assert 3 == len(kerf(*NODES, "--no-headers").stdout.splitlines())
    assert "ip-10-0-0-1" == kerf(*NODES, "ip-10-0-0-1", "--no-headers", "-o", "custom-columns=N:.node").stdout.strip()


def test_nodes_and_cards_are_chosen_by_name() -> None:
    """In the order of the names, with or without the kind; one that is not there is an error with the nearest."""
    items = kerf(*NODES, "node/ip-10-0-0-2", "g5-starting", "-o", "json").data["items"]
    assert ["ip-10-0-0-2", None] == [item["node"] for item in items]
    assert ["gpu/ip-10-0-0-2/0"] == kerf("gpus", "ip-10-0-0-2", *files(CLUSTER), "-o", "name").stdout.splitlines()
    wrong = kerf(*NODES, "ip-10-0-0-9")
    assert 1 == wrong.returncode
    assert "error: node/ip-10-0-0-9 not found; nearest known: ip-10-0-0-" in wrong.stderr


def test_advice_is_given_for_several_at_once() -> None:
    """`kind name` as `kind/name`; a list of what one alone gives."""
    one = kerf("advise", "requests", "job/dagster-run", *JOBS, "-o", "json").data
    two = kerf("advise", "requests", "job", "dagster-run", "dagster-run", *JOBS, "-o", "json").data

    assert ("RequestsAdviceList", [one, one]) == (two["kind"], two["items"])
    pools = kerf("advise", "pool", "np", "gpu-pool-1", "gpu-pool-1", *PLAN, "-o", "json").data
    assert ["gpu-pool-1"] * 2 == [item["nodePool"] for item in pools["items"]]
    assert 2 == kerf("advise", "requests", "job", "a", "b", *JOBS, "--patch").returncode
