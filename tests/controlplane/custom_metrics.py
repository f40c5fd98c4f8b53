"""A stand-in for prometheus-adapter: serves custom.metrics.k8s.io, of one metric of the pods of a selector.

The adapter comes as an image only. What an autoscaler asks of it is little.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.controlplane.aggregated_api import AggregatedApi

Values = Callable[[str, str], dict[str, int]]
"""Values by pod, of a namespace and a label selector."""


class CustomMetrics(AggregatedApi):
    """Serves the metric `name` of pods; `asked` counts the questions."""

    group = "custom.metrics.k8s.io"
    version = "v1beta2"

    def __init__(self, name: str, values: Values) -> None:
        self.name, self.values, self.asked = name, values, 0
        super().__init__()

    def answer(self, path: str, query: dict[str, list[str]]) -> dict[str, Any] | None:
        """The object at a path; None for what is not there."""
        if path == self.root:
            resource = {"name": f"pods/{self.name}", "singularName": "", "namespaced": True, "kind": "MetricValueList"}
            return self.resource_list({**resource, "verbs": ["get"]})
        parts = path.removeprefix(f"{self.root}/").split("/")
        if path.startswith(self.root) and parts[:1] == ["namespaces"] and parts[2:] == ["pods", "*", self.name]:
            self.asked += 1
            return self._list(parts[1], query.get("labelSelector", [""])[0])
        return None

    def _list(self, namespace: str, selector: str) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        items = [
            {
                "describedObject": {"kind": "Pod", "namespace": namespace, "name": pod, "apiVersion": "/v1"},
                "metric": {"name": self.name},
                "timestamp": now,
                "value": str(value),
            }
            for pod, value in self.values(namespace, selector).items()
        ]
        return {"kind": "MetricValueList", "apiVersion": f"{self.group}/{self.version}", "metadata": {}, "items": items}
