"""Laws of reading manifests, tried on mutations of the examples."""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from kerf.errors import InputError
from kerf.manifests.decode import decode, decode_object
from kerf.manifests.encode import node_claim_object
from kerf.manifests.read import parse
from kerf.manifests.workloads.expansion import expand
from kerf.model.constraints import NODE_POOL, Requirement, Requirements, Taint
from kerf.model.nodeclaim import Condition, NodeClaim, NodeClassRef
from kerf.model.quantities import Resources
from kerf.model.times import duration_s, duration_text, instant_s, instant_text
from tests.examples import examples

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("0*/*.yaml"))
TEXTS = [path.read_text() for path in EXAMPLES]
OBJECTS: list[Any] = [value for text in TEXTS for value in yaml.safe_load_all(text)]

often = examples(350, derandomize=True, database=None)
"""Some 1,000 mutations in all, the same in every run."""

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 10**30, 2**63, 1.5, float("inf")]),
    st.sampled_from(["", "-1", "4Gi", "4 Gi", "1e999", "010", "Never", "on", "1h30", "a/b", "é", "9" * 500, "<x>"]),
    st.text(max_size=8),
    st.just([]),
    st.just({}),
    st.just([{}]),
    st.just([None]),
    st.just({"": None}),
)


DAMAGE = [
    "",
    "\t",
    "  ",
    "{",
    "]",
    ":",
    "- ",
    "&a ",
    "*a",
    "!!x ",
    "|\n",
    "'",
    "%",
    "\x00",
    "---\n",
    "\u2028",
    "<<: 1\n",
]


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value, outermost first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in items for found in paths_of(item, (*path, key)))]


@st.composite
def mutated(draw: Callable[..., Any]) -> Any:
    """An example with one to three places replaced, removed or renamed."""
    value = deepcopy(draw(st.sampled_from(OBJECTS)))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(paths_of(value)[1:] or [()]))
        if not path:
            return value
        holder = value
        for step in path[:-1]:
            holder = holder[step]
        action = draw(st.sampled_from(["replace", "replace", "remove", "rename"]))
        if action == "replace":
            holder[path[-1]] = deepcopy(draw(JUNK))
        elif action == "remove":
            del holder[path[-1]]
        elif isinstance(holder, dict):
            holder[draw(st.text(max_size=5))] = holder.pop(path[-1])
    return value


def works_or_tells(text: str, name: str) -> None:
    """Read, decode and expand; what is refused says where, what was expected and what came."""
    try:
        assert all(pod.name for pod in expand(decode(parse(text, name))))
    except InputError as error:
        for line in str(error).split("\n"):
            assert re.match(rf"{re.escape(name)}:\d+(:\d+)?: .*expected .+, got .+", line), line


@often
@given(mutated())
def test_a_mutated_yaml_manifest_works_or_is_refused_with_its_place(value: Any) -> None:
    """Issue 3, bad input: a clear error with its place, never another exception."""
    works_or_tells(yaml.safe_dump(value), "in.yaml")


@often
@given(mutated())
def test_a_mutated_json_manifest_works_or_is_refused_with_its_place(value: Any) -> None:
    """The same through the JSON reader, as the item of a List."""
    works_or_tells(json.dumps({"apiVersion": "v1", "kind": "List", "items": [value]}), "in.json")


@often
@given(st.sampled_from(TEXTS), st.data())
def test_a_manifest_with_damaged_text_works_or_is_refused_with_its_place(text: str, data: st.DataObject) -> None:
    """A few characters lost, added or doubled somewhere in the text."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 12)))
    put = data.draw(st.sampled_from(DAMAGE))
    works_or_tells(text[:start] + put + text[end:], "in.yaml")


NAMES = st.sampled_from(["a", "b.example/c", "d"])
VALUES = st.frozensets(st.sampled_from(["x", "y", "3", "12"]), max_size=3)
BOUNDS = st.none() | st.integers(0, 20)
WHOLE_S = st.integers(0, 4_000_000_000)


@st.composite
def requirement(draw: Callable[..., Any]) -> Requirement:
    """Any requirement that intersections of manifests' own can give."""
    key, values = draw(NAMES), draw(VALUES)
    if draw(st.booleans()):
        least = draw(st.none() | st.integers(1, len(values))) if values else None
        return Requirement(key, False, values, min_values=least)
    return Requirement(key, True, values, at_least=draw(BOUNDS), at_most=draw(BOUNDS))


TAINTS = st.builds(Taint, NAMES, st.sampled_from(["", "v"]), st.sampled_from(["NoSchedule", "NoExecute"]))
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), st.integers(0, 2**50))
CONDITIONS = st.builds(
    Condition,
    st.sampled_from(["Launched", "Ready"]),
    st.sampled_from(["True", "Unknown"]),
    st.just("Why"),
    st.text(),
    WHOLE_S,
)


@st.composite
def claims(draw: Callable[..., Any]) -> NodeClaim:
    """A claim of any state, with times in whole seconds."""
    conditions = draw(st.lists(CONDITIONS, unique_by=lambda condition: condition.type))
    return NodeClaim(
        name="claim",
        node_pool="pool",
        node_class=NodeClassRef("g.example", "KindNodeClass", "n"),
        requirements=Requirements(draw(st.lists(requirement(), unique_by=lambda one: one.key))),
        requests=Resources(draw(AMOUNTS)),
        taints=tuple(draw(st.lists(TAINTS, max_size=2))),
        startup_taints=tuple(draw(st.lists(TAINTS, max_size=2))),
        labels={NODE_POOL: "pool"},
        annotations=draw(st.dictionaries(NAMES, st.text())),
        expire_after_s=draw(st.none() | WHOLE_S),
        termination_grace_period_s=draw(st.none() | WHOLE_S),
        uid=draw(st.sampled_from(["", "u"])),
        created_s=draw(WHOLE_S),
        deleted_s=draw(st.none() | WHOLE_S),
        provider_id=draw(st.sampled_from(["", "aws:///i-1"])),
        capacity=Resources(draw(AMOUNTS)),
        conditions=tuple(sorted(conditions, key=lambda condition: condition.type)),
        last_pod_event_s=draw(st.none() | WHOLE_S),
    )


@often
@given(claims())
def test_decoding_what_was_encoded_gives_the_same_claim(claim: NodeClaim) -> None:
    """Through JSON text, as the API sends it."""
    assert claim == decode_object(json.loads(json.dumps(node_claim_object(claim))))


@often
@given(WHOLE_S)
def test_instants_and_durations_survive_their_text(seconds: int) -> None:
    """In whole seconds."""
    assert seconds == instant_s(instant_text(seconds)) == duration_s(duration_text(seconds))


def test_an_instant_later_than_the_last_that_has_a_text_is_that_one() -> None:
    """An age that ends in ten thousand years must end no command."""
    assert "9999-12-31T23:59:59Z" == instant_text(253_402_300_800.0) == instant_text(1e15)
