"""Control planes that serve one test after the other, because one takes four seconds of CPU to start.

What a test leaves is deleted, and the audit log begins again. A control plane of which a test has changed what was
there before (a role, a definition, a program), or that knows further kinds by now, is not kept: nothing is put back.
"""

import contextlib
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tools.controlplane.installation import FAULTS, NAMESPACE
from tools.controlplane.server import ControlPlane, ControlPlaneError, Resource

__all__ = ["Kept"]

Json = dict[str, Any]
_WITHIN_S, _POLL_S = 20.0, 0.2
_MOST_LEFT = 300
"""Objects that are deleted one by one; a new control plane is quicker where a test has left more."""
_TRANSIENT = ("events", "endpoints", "endpointslices", "ipaddresses", "flowschemas", "prioritylevelconfigurations")
"""What Kubernetes itself writes all the time, and no test looks for what another has left of it."""
_IN_PLACE = ("namespaces", "serviceaccounts", "leases")
"""Of which Kubernetes changes those that are there."""


@dataclass
class Kept:
    """One control plane, as it was before the first test, and what ends it."""

    plane: ControlPlane
    ends: ExitStack

    def __post_init__(self) -> None:
        self._resources = [each for each in self.plane.resources() if each.plural not in _TRANSIENT]
        self._programs = self.plane.pids()
        self._before = dict(self._objects())

    def end(self) -> None:
        """Stop it."""
        self.ends.close()

    def is_emptied(self) -> bool:
        """Delete what was made since; whether all is as it was."""
        with contextlib.suppress(OSError, ControlPlaneError):
            for name in [name for name in self.plane.launched() if name not in self._programs]:
                self.plane.drop(name)
            return self._has_its_programs() and self._is_deleted() and self._has_no_history()
        return False

    def _has_its_programs(self) -> bool:
        return self.plane.pids() == self._programs and self.plane.is_awake()

    def _is_deleted(self) -> bool:
        ends_s = time.monotonic() + _WITHIN_S
        while time.monotonic() < ends_s:
            now = dict(self._objects())
            left = [path for path in now if path not in self._before]
            if len(left) > _MOST_LEFT or any("/customresourcedefinitions/" in path for path in left):
                return False
            if not left:
                return all(now.get(path) == version for path, version in self._before.items())
            for path in left:
                self._delete(path)
            time.sleep(_POLL_S)
        return False

    def _delete(self, path: str) -> None:
        """At once, without its finalizers where it is of the whole cluster."""
        merge = "application/merge-patch+json"
        if "/namespaces/" not in path:
            self.plane.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=merge)
        self.plane.request("DELETE", f"{path}?gracePeriodSeconds=0&propagationPolicy=Background")

    def _has_no_history(self) -> bool:
        """Events, and what was asked of the server, are forgotten."""
        for namespace in ("default", "kube-system", NAMESPACE):
            self.plane.request("DELETE", f"/api/v1/namespaces/{namespace}/events").good("delete events")
        self.plane.forget_audit_events()
        return True

    def _objects(self) -> Iterator[tuple[str, str]]:
        """The path of each object, and its version where it may not change."""
        for resource in self._resources:
            found = self.plane.request("GET", resource.path("", ""))
            # A kind may go with its definition.
            for obj in found.body["items"] if found.status == 200 else ():
                metadata = obj["metadata"]
                path = resource.path(metadata["name"], metadata.get("namespace", ""))
                yield path, "" if _may_change(resource, metadata) else metadata["resourceVersion"]


def _may_change(resource: Resource, metadata: Json) -> bool:
    is_controls = (resource.plural, metadata["name"]) == ("configmaps", FAULTS)
    return is_controls or resource.plural in _IN_PLACE
