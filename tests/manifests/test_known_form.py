"""An object that is read beside an earlier form of it is judged as if it were read alone."""

from collections.abc import Iterator
from typing import Any

import pytest

from kerf.errors import DecodeError
from kerf.manifests.decode import decode_object

_CLAIM: dict[str, Any] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "metadata": {
        "name": "web-1",
        "uid": "u-1",
        "resourceVersion": "7",
        "labels": {"karpenter.sh/nodepool": "web"},
        "annotations": {"kerf.dev/pods-seen": "a"},
        "creationTimestamp": "2026-01-05T07:00:00Z",
    },
    "spec": {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    },
    "status": {
        "capacity": {"cpu": "4", "memory": "16Gi"},
        "conditions": [
            {"type": "Launched", "status": "True", "reason": "Launched", "lastTransitionTime": "2026-01-05T07:00:40Z"},
            {"type": "Ready", "status": "False", "reason": "Ready", "lastTransitionTime": "2026-01-05T07:00:00Z"},
        ],
    },
}
_OTHERS: tuple[Any, ...] = (None, True, 1, "", "2026-01-05T08:00:00Z", "-1", "no quantity", [], {}, [{}], {"other": 1})


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for step, held in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _paths(held, (*path, step))


def _with(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """The value with another one at a path; all that lies beside the path is the same object."""
    if not path:
        return other
    changed = value.copy()
    changed[path[0]] = _with(value[path[0]], path[1:], other)
    return changed


def _read(raw: Any, *known: Any) -> object:
    try:
        return decode_object(raw, *known)
    except DecodeError as error:
        return str(error)


@pytest.mark.parametrize("path", [each for each in _paths(_CLAIM) if each], ids=lambda path: ".".join(map(str, path)))
def test_a_form_beside_the_one_before_is_read_as_it_is_read_alone(path: tuple[Any, ...]) -> None:
    for other in _OTHERS:
        raw = _with(_CLAIM, path, other)
        assert _read(raw, _CLAIM) == _read(raw)


def test_a_list_that_is_longer_or_shorter_is_read_as_it_is_read_alone() -> None:
    ready, bad = _CLAIM["status"]["conditions"][1], {"type": "Ready"}
    for held in ([], [ready], [ready, bad], [bad, ready], [ready, ready, ready]):
        raw = _with(_CLAIM, ("status", "conditions"), held)
        assert _read(raw, _CLAIM) == _read(raw)
