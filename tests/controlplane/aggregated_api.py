"""An aggregated API of a test's own: served over HTTPS on loopback, and registered with the API server.

The servers that clusters have for such groups come as images, or bring more than a test is about.
"""

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

import trustme


class AggregatedApi:
    """Serves `group`/`version` while it is entered; what it answers is its subclass's."""

    group = ""
    version = ""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.port = self._server.server_address[1]

    def __enter__(self) -> Self:
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
        name = self.group.replace(".", "-")
        service = {"type": "ExternalName", "externalName": "localhost"}
        spec = {
            "group": self.group,
            "version": self.version,
            "service": {"namespace": namespace, "name": name, "port": self.port},
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        }
        return [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name, "namespace": namespace},
                "spec": service,
            },
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"{self.version}.{self.group}"},
                "spec": spec,
            },
        ]

    @property
    def root(self) -> str:
        """The path under which everything is."""
        return f"/apis/{self.group}/{self.version}"

    def resource_list(self, *resources: dict[str, Any]) -> dict[str, Any]:
        """What discovery is told."""
        of = f"{self.group}/{self.version}"
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": of, "resources": list(resources)}

    def answer(self, path: str, query: dict[str, list[str]]) -> dict[str, Any] | None:
        """The object at a path; None for what is not there."""
        raise NotImplementedError


def _handler(api: AggregatedApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            found = api.answer(unquote(parts.path), parse_qs(parts.query))
            body = json.dumps(found if found is not None else {"kind": "Status", "code": 404}).encode()
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    return Handler
