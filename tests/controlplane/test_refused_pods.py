"""What an API server says of specs that Kerf calls refused, and of their like."""

import pytest

from tests.manifests.pods.ranges import ASKED, objects
from tests.manifests.pods.ranges import TAKEN as TAKEN_BY_RANGE
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


def test_the_server_says_the_same_of_limit_ranges(control_plane: ControlPlane, namespace: str) -> None:
    """One range after the other. A mark in the defaults shows that the plug-in, which has a cache, knows it."""
    at = f"/api/v1/namespaces/{namespace}"
    for number, name in enumerate(ASKED, 1):
        limits, pod = objects(name)
        mark = {"ephemeral-storage": f"{number}Mi"}
        marking = {"metadata": {"name": "mark"}, "spec": {"limits": [{"type": "Container", "default": mark}]}}
        for each in (limits, {**limits, **marking}):
            assert control_plane.request("POST", f"{at}/limitranges", each).status == 201

        def is_as_said(pod: Spec = pod, mark: Spec = mark, is_taken: bool = name in TAKEN_BY_RANGE) -> bool:
            answer = control_plane.request("POST", f"{at}/pods?dryRun=All", pod)
            if not is_taken or answer.status != 201:
                return not is_taken and answer.status in (403, 422)
            limits = answer.body["spec"]["containers"][0]["resources"]["limits"]
            return bool(mark.items() <= limits.items())

        control_plane.wait_until(is_as_said, 10, f"{name}: taken or not, as said")
        for gone in ("r", "mark"):
            control_plane.request("DELETE", f"{at}/limitranges/{gone}")
