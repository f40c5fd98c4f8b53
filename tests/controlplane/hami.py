"""HAMi's device plugin, as far as a test has to act it out by itself."""

from typing import Any

from kerf.sharing.hami.records import BIND_PHASE, LOCK, NODE, TO_ALLOCATE
from tools.controlplane.server import ControlPlane


def settle(plane: ControlPlane, namespace: str) -> None:
    """What HAMi's device plugin does on the nodes where a bound pod waits for its cards: success, and the lock away."""
    for pod in plane.list("pods", namespace):
        metadata = pod["metadata"]
        annotations = metadata.get("annotations", {})
        if annotations.get(BIND_PHASE) != "allocating" or not pod["spec"].get("nodeName"):
            continue
        done = {"metadata": {"annotations": {BIND_PHASE: "success", TO_ALLOCATE: ""}}}
        free = {"metadata": {"annotations": {LOCK: None}}}
        _patch(plane, f"/api/v1/namespaces/{namespace}/pods/{metadata['name']}", done)
        _patch(plane, f"/api/v1/nodes/{annotations[NODE]}", free)


def _patch(plane: ControlPlane, path: str, patch: dict[str, Any]) -> None:
    plane.request("PATCH", path, patch, content_type="application/merge-patch+json").good(path)
