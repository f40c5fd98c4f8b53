"""Laws of reading manifests, tried on mutations of the examples."""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.errors import InputError
from kerf.manifests.decode import decode, decode_object
from kerf.manifests.decoded import Decoded
from kerf.manifests.encode import node_claim_object, requirement_list
from kerf.manifests.read import parse
from kerf.manifests.workloads import expand
from kerf.model.constraints import Requirement, Requirements, Taint
from kerf.model.nodeclaim import Condition, NodeClaim
from kerf.model.quantities import Resources
from kerf.testing.builders import a_claim

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("0*/*.yaml"))
TEXTS = [path.read_text() for path in EXAMPLES]
OBJECTS: list[Any] = [yaml.safe_load(text) for text in TEXTS]

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
        decoded = decode(parse(text, name))
        assert isinstance(decoded, Decoded)
        assert all(pod.name for pod in expand(decoded))
    except InputError as error:
        for line in str(error).split("\n"):
            assert re.match(rf"{re.escape(name)}:\d+(:\d+)?: .*expected .+, got .+", line), line


@settings(max_examples=5000, deadline=None, database=None)
@given(mutated())
def test_a_mutated_yaml_manifest_works_or_is_refused_with_its_place(value: Any) -> None:
    """Issue 3, bad input: a clear error with its place, never another exception."""
    works_or_tells(yaml.safe_dump(value), "in.yaml")


@settings(max_examples=5000, deadline=None, database=None)
@given(mutated())
def test_a_mutated_json_manifest_works_or_is_refused_with_its_place(value: Any) -> None:
    """The same through the JSON reader, as the item of a List."""
    works_or_tells(json.dumps({"apiVersion": "v1", "kind": "List", "items": [value]}), "in.json")


@settings(max_examples=5000, deadline=None, database=None)
@given(st.sampled_from(TEXTS), st.data())
def test_a_manifest_with_damaged_text_works_or_is_refused_with_its_place(text: str, data: st.DataObject) -> None:
    """A few characters lost, added or doubled somewhere in the text."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 12)))
    put = data.draw(st.sampled_from(["", "\t", "  ", "{", "]", ":", "- ", "&a ", "*a", "!!x ", "|\n", "'", "%", "\x00", "---\n"]))
    works_or_tells(text[:start] + put + text[end:], "in.yaml")
