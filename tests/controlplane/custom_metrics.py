"""A stand-in for prometheus-adapter: serves custom.metrics.k8s.io over HTTPS, as an aggregated API.

The adapter comes as an image only. What an autoscaler asks of it is little: one metric of the pods of a selector.
"""

import json
import ssl
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import trustme

GROUP, VERSION = "custom.metrics.k8s.io", "v1beta2"
Values = Callable[[str, str], dict[str, int]]
"""Values by pod, of a namespace and a label selector."""


class CustomMetrics:
    """Serves the metric `name` of pods on loopback while it is entered; `asked` counts the questions."""

    def __init__(self, name: str, values: Values) -> None:
        self.name, self.values, self.asked = name, values, 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.port = self._server.server_address[1]

    def __enter__(self) -> "CustomMetrics":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("localhost").configure_cert(context)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def registration(self, namespace: str) -> list[dict[str, Any]]:
        """What makes an API server pass the group on to it."""
        service = {"type": "ExternalName", "externalName": "localhost"}
        backend = {"namespace": namespace, "name": "custom-metrics", "port": self.port}
        spec = {
            "group": GROUP,
            "version": VERSION,
            "service": backend,
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        }
        name = {"name": "custom-metrics", "namespace": namespace}
        return [
            {"apiVersion": "v1", "kind": "Service", "metadata": name, "spec": service},
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"{VERSION}.{GROUP}"},
                "spec": spec,
            },
        ]

    def answer(self, path: str, query: dict[str, list[str]]) -> dict[str, Any] | None:
        """The object at a path; None for what is not there."""
        root = f"/apis/{GROUP}/{VERSION}"
        if path == root:
            resource = {"name": f"pods/{self.name}", "singularName": "", "namespaced": True, "kind": "MetricValueList"}
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{GROUP}/{VERSION}",
                "resources": [{**resource, "verbs": ["get"]}],
            }
        parts = path.removeprefix(f"{root}/").split("/")
        if path.startswith(root) and parts[:1] == ["namespaces"] and parts[2:] == ["pods", "*", self.name]:
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
        return {"kind": "MetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}


def _handler(metrics: CustomMetrics) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            found = metrics.answer(unquote(parts.path), parse_qs(parts.query))
            body = json.dumps(found if found is not None else {"kind": "Status", "code": 404}).encode()
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    return Handler
