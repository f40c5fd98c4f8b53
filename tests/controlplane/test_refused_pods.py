"""What an API server says of specs that Kerf calls refused, and of their like."""

import pytest

from tests.manifests.pods.specs import GOOD, REFUSED, TAKEN, Spec
from tools.controlplane.server import ControlPlane


@pytest.mark.parametrize(("specs", "statuses"), [(REFUSED, {403, 422}), (TAKEN, {201})], ids=["refused", "taken"])
def test_the_server_says_the_same(
    control_plane: ControlPlane, namespace: str, specs: tuple[Spec, ...], statuses: set[int]
) -> None:
    """One test for all, since each is one request; what Kerf says of them is in `tests/manifests/pods`."""
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    for change in specs:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {**GOOD, **change}}

        answer = control_plane.request("POST", path, pod)

        assert answer.status in statuses, (change, answer.body)
