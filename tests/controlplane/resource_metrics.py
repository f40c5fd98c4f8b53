"""A stand-in for metrics-server: serves metrics.k8s.io with what a test says that nodes and pods use."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.controlplane.aggregated_api import AggregatedApi

Json = dict[str, Any]
Used = dict[str, str]
"""`cpu` and `memory` as quantities."""


class ResourceMetrics(AggregatedApi):
    """What each node uses by name, and what the one container of each pod uses by (namespace, name)."""

    group = "metrics.k8s.io"
    version = "v1beta1"

    def __init__(self, nodes: Callable[[], dict[str, Used]], pods: Callable[[], dict[tuple[str, str], Used]]) -> None:
        self.nodes, self.pods = nodes, pods
        super().__init__()

    def answer(self, path: str, query: dict[str, list[str]]) -> Json | None:
        """The object at a path; None for what is not there."""
        if path == self.root:
            kinds = (("nodes", "NodeMetrics", False), ("pods", "PodMetrics", True))
            return self.resource_list(
                *({"name": n, "singularName": "", "namespaced": s, "kind": k, "verbs": ["list"]} for n, k, s in kinds)
            )
        if path == f"{self.root}/nodes":
            return self._list("NodeMetrics", [self._node(name, used) for name, used in self.nodes().items()])
        if path == f"{self.root}/pods":
            return self._list("PodMetrics", [self._pod(*key, used) for key, used in self.pods().items()])
        return None

    def _list(self, kind: str, items: list[Json]) -> Json:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        of = {"kind": f"{kind}List", "apiVersion": f"{self.group}/{self.version}", "metadata": {}}
        return {**of, "items": [{**item, "timestamp": now, "window": "15s"} for item in items]}

    def _node(self, name: str, used: Used) -> Json:
        return {"metadata": {"name": name}, "usage": used}

    def _pod(self, namespace: str, name: str, used: Used) -> Json:
        return {
            "metadata": {"namespace": namespace, "name": name},
            "containers": [{"name": "my-container", "usage": used}],
        }
