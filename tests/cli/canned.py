"""An API server that answers what a test wants, for programs in processes of their own.

What real ones answer is in the control-plane tier; here are those that nobody would set up there: old ones, proxies
with a page of their own, certificates of somebody else.
"""

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]
KINDS = ("nodepools", "nodeclaims", "nodeoverlays")
VERSION = {"minor": "36", "gitVersion": "v1.36.3"}


def kubeconfig(folder: Path, server: str, *, cluster: Json | None = None, **user: Any) -> str:
    """A kubeconfig with one context, `here`."""
    path = folder / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "me", "user": user or {"token": "t"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    }
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


class Canned(ThreadingHTTPServer):
    """An API server whose answers are given by path; of the rest there is nothing, and everything is allowed."""

    daemon_threads = True

    def __init__(self, answers: Mapping[str, tuple[int, object]], context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        discovered = {"resources": [{"name": name} for name in KINDS]}
        self.answers: dict[str, tuple[int, object]] = {
            "/version": (200, VERSION),
            "/apis/karpenter.sh/v1": (200, discovered),
            "/apis/karpenter.sh/v1alpha1": (200, discovered),
            **answers,
        }
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that does not trust us hangs up: that is what it is for."""


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Canned

    def do_GET(self) -> None:
        """What is given for the path, else an empty list."""
        path = self.path.partition("?")[0]
        empty = {"metadata": {"resourceVersion": "1"}, "items": []}
        missing = (404, {"message": "no lease"})
        self._send(*self.server.answers.get(path, missing if "/namespaces/" in path else (200, empty)))

    def do_POST(self) -> None:
        """What is given, else what was sent; every review is allowed."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._send(*self.server.answers.get(self.path, (201, {**body, "status": {"allowed": True}})))

    def do_PUT(self) -> None:
        """As a POST."""
        self.do_POST()

    def _send(self, status: int, body: object) -> None:
        is_text = isinstance(body, str)
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if is_text else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def serving(
    answers: Mapping[str, tuple[int, object]] | None = None, context: ssl.SSLContext | None = None
) -> Iterator[str]:
    """The server while it runs, by its URL."""
    with Canned(answers or {}, context) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"{'https' if context else 'http'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
