"""A page of a live list is cut to what Kerf reads before it is decoded, and says the same afterwards."""

import json

import pytest

from benchmarks import live_objects
from kerf.manifests.clusterdump.encode import FORMS
from kerf.manifests.clusterdump.trim import trimmed
from kerf.manifests.decode import decode
from kerf.manifests.read import parse_json


def page(kind: str, *items: object) -> bytes:
    """As a server sends it; its items have no kind of their own."""
    return json.dumps({"kind": f"{kind}List", "apiVersion": "v1", "metadata": {}, "items": items}).encode()


def test_pods_decode_to_the_same() -> None:
    """And most of their bytes are gone: bookkeeping, environment, images, statuses."""
    whole = page("Pod", *map(live_objects.pod, range(50)))
    cut = trimmed("Pod", whole)

    assert decode(parse_json(whole, "pods.json")).pods == decode(parse_json(cut, "pods.json")).pods
    assert len(cut) < len(whole) / 3
    assert b"managedFields" not in cut


def test_nodes_decode_to_the_same() -> None:
    """Their images go."""
    whole = page("Node", *map(live_objects.node, range(5)))
    cut = trimmed("Node", whole)

    assert decode(parse_json(whole, "nodes.json")).nodes == decode(parse_json(cut, "nodes.json")).nodes
    assert b"images" not in cut


@pytest.mark.parametrize("kind", sorted(FORMS))
def test_every_form_has_its_type(kind: str) -> None:
    """What no form names goes, and a name that is Python's word or a mapping's stays."""
    item = {"metadata": {"name": "x", "managedFields": []}, "kind": kind}

    found = json.loads(trimmed(kind, page(kind, item)))["items"]
    assert [{"metadata": {"name": "x"}, "kind": kind}] == found


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b'{"items": [1]}', b'{"items": [{"metadata": 7}]}', b"[" * 5000], ids=lambda text: text[:9]
)
def test_a_page_with_a_mistake_stays_as_it_is(text: bytes) -> None:
    """The decoder says what is wrong, and where."""
    assert text == trimmed("Pod", text)


@pytest.mark.parametrize("items", [None, []])
def test_a_list_may_be_empty(items: object) -> None:
    """The server writes `null` for some."""
    text = json.dumps({"kind": "PodList", "apiVersion": "v1", "items": items}).encode()

    assert items == json.loads(trimmed("Pod", text))["items"]


def test_a_kind_that_is_not_read_stays_as_it_is() -> None:
    """There is nothing to go by."""
    assert page("Secret", {"data": {"a": "b"}}) == trimmed("Secret", page("Secret", {"data": {"a": "b"}}))
