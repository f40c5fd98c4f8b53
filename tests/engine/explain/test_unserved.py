"""F7: what is accepted and not done is said, in one line for each field, until it is done."""

from typing import Any

import pytest

from kerf.engine.explain.plan import plan
from kerf.manifests.decode import decode_object
from kerf.model.nodepool import NodePool
from kerf.model.unserved import Unserved, unserved
from kerf.testing.builders import a_market, a_pool, a_snapshot
from tests.controllers.cluster import pool
from tests.engine.worlds import G5


def decoded(uid: str = "", **given: Any) -> NodePool:
    """The pool of a manifest, or with a uid of an API server."""
    made = pool(**given)
    made["metadata"]["uid"] = uid
    value = decode_object(made)
    assert isinstance(value, NodePool)
    return value


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ()),
        ({"template": {"expireAfter": "Never"}}, ()),
        ({"template": {"expireAfter": "720h"}}, (Unserved.EXPIRE_AFTER,)),
        ({"template": {"expireAfter": "720h"}, "uid": "live"}, ()),
        ({"template": {"expireAfter": "48h"}, "uid": "live"}, (Unserved.EXPIRE_AFTER,)),
        ({"disruption": {"consolidationPolicy": "Balanced"}}, (Unserved.BALANCED,)),
        ({"disruption": {"consolidationPolicy": "Balanced"}, "replicas": 1}, ()),
        ({"disruption": {"consolidationPolicy": "WhenEmpty"}}, ()),
    ],
)
def test_a_field_that_nothing_acts_on_is_known(given: dict[str, Any], expected: tuple[Unserved, ...]) -> None:
    """Where its value should do something; an API server writes 720h into each pool, which no person has chosen."""
    assert expected == unserved(decoded(**given))


def test_a_plan_has_one_note_for_all_pools_of_a_field() -> None:
    """In the order of their names; nothing of pools that do not state it."""
    pools = [a_pool(name, states_expiry=True) for name in ("b", "a")]
    made = plan(a_snapshot(pools=[*pools, a_pool("c")]), a_market(G5))

    assert [
        "NodePool a, b: expireAfter is accepted and not done yet: no node goes because of its age",
    ] == [note for note in made.notes if "not done" in note]
