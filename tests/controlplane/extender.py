"""A scheduler extender that lets every node pass and binds by itself."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tools.controlplane.server import ControlPlane


def bind(plane: ControlPlane, asked: dict[str, Any]) -> dict[str, Any]:
    """Binds as a scheduler does; an empty error is success."""
    pod, namespace = asked["PodName"], asked["PodNamespace"]
    binding = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": asked["Node"]}}
    answer = plane.request("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", binding)
    return {"Error": "" if answer.status == 201 else str(answer.body)}


@contextmanager
def extender(plane: ControlPlane) -> Iterator[str]:
    """Serves it on loopback; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = {"NodeNames": asked["NodeNames"]} if self.path == "/filter" else bind(plane, asked)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, format: str, *arguments: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
