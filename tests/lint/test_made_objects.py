"""What lint keeps of the objects of a cluster."""

import json

from kerf.lint.linter import lint
from kerf.manifests.read import parse_json
from kerf.model.market import Market


def linted(owners: list[dict[str, object]]) -> dict[str, object]:
    """The raw object that is kept of a pod with these owners."""
    metadata = {"name": "web-1", "namespace": "default", "uid": "u", "ownerReferences": owners}
    spec = {"containers": [{"name": "main", "image": "main"}]}
    page = {"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": metadata, "spec": spec}]}
    (subject,) = lint(
        parse_json(json.dumps(page).encode(), "pods.json"), {}, lambda _: Market(()), is_live=True
    ).subjects
    return subject.raw


def test_of_a_pod_that_a_workload_has_made_the_metadata_are_kept() -> None:
    """Rules look at the workload instead, and 20,000 whole pods would be hundreds of MiB."""
    owner: dict[str, object] = {"kind": "ReplicaSet", "name": "web", "controller": True}

    assert "spec" not in linted([owner])


def test_a_pod_that_a_person_has_made_is_kept_whole() -> None:
    """It is looked at itself."""
    assert "spec" in linted([])
