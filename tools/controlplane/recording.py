"""Asks the real kube-scheduler which nodes can take a pod: an extender that writes down what it is sent.

The first extender of a scheduler is sent the nodes that have passed all filters of a cycle, which no API shows. Without
a controller manager and kwok nothing else acts on the cluster, so one pod at a time gives one answer at a time. What
makes it hard is speed: a request whose parts wait for each other's acknowledgement costs 40 ms, so no socket here does.
"""

import http.client
import json
import queue
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tools.controlplane.client import Object
from tools.controlplane.process import ControlPlaneError
from tools.controlplane.server import ControlPlane
from tools.controlplane.setup import USERS, Binaries, ControlPlaneOptions

ONLY_ASKED = "example.com/only-asked"
"""A pod with this label is refused by the extender once its nodes are written down: nothing is bound."""
_WITHIN_S = 30.0
_WITHOUT = "ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection,DefaultTolerationSeconds"
"""Admission that waits for a controller, or writes what only a controller takes away again."""

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True)
class Answer:
    """The nodes that passed all filters, the node the pod went to, and what was said where there was none."""

    feasible: frozenset[str]
    node: str
    message: str


class Recorder:
    """What the extender was sent: by pod, the nodes of its first cycle."""

    def __init__(self) -> None:
        self._nodes: dict[Key, frozenset[str]] = {}

    def note(self, asked: Object) -> list[str]:
        """Write down a request; the nodes that the extender lets pass."""
        metadata = asked["Pod"]["metadata"]
        names: list[str] = asked.get("NodeNames") or []
        self._nodes.setdefault((metadata["namespace"], metadata["name"]), frozenset(names))
        return [] if ONLY_ASKED in metadata.get("labels", {}) else names

    def take(self, key: Key) -> frozenset[str]:
        """The nodes of a pod, which are forgotten; none where the extender was not asked, as nothing passed."""
        return self._nodes.pop(key, frozenset())


@contextmanager
def _extender(recorder: Recorder) -> Iterator[str]:
    """Serves it on loopback; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = json.dumps({"NodeNames": recorder.note(asked)}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)
            self.wfile.flush()

        def log_message(self, format: str, *arguments: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class RealScheduler:
    """A kube-scheduler that is asked about one pod after the other."""

    def __init__(self, plane: ControlPlane, recorder: Recorder) -> None:
        self.plane, self._recorder = plane, recorder
        self._events: queue.Queue[Object] = queue.Queue()
        self._connection = self._connected()
        self._watching = self._connected()
        version = self.send("GET", "/api/v1/pods?limit=1")["metadata"]["resourceVersion"]
        self._thread = threading.Thread(target=self._watch, args=(version,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the watch."""
        if self._watching.sock is not None:
            # A reader that waits holds the lock of the stream, so closing that would wait for it.
            self._watching.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._watching.close()
        self._connection.close()

    def send(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Any:
        """One request on the connection that is kept; the answer. Raises ControlPlaneError where it is none of 2xx."""
        headers = {"Authorization": f"Bearer {USERS['admin'].token}", "Content-Type": content_type}
        content = None if body is None else json.dumps(body).encode()
        self._connection.request(method, path, content, headers)
        response = self._connection.getresponse()
        text = response.read()
        if not 200 <= response.status < 300:
            raise ControlPlaneError(f"{method} {path}: HTTP {response.status}: {text.decode()[:400]}")
        return json.loads(text)

    def create(self, obj: Mapping[str, Any]) -> Any:
        """Create an object of any kind."""
        resource = self.plane.resource(obj["kind"])
        return self.send("POST", resource.path("", obj["metadata"].get("namespace", "default")), obj)

    def ask(self, pod: Mapping[str, Any]) -> Answer:
        """Create the pod and wait for what becomes of it; one that is refused is deleted at once."""
        return self.answer(self.create(pod))

    def answer(self, created: Mapping[str, Any]) -> Answer:
        """What becomes of a pod that `create` has made; there is time for something else between the two."""
        metadata = created["metadata"]
        namespace, name, uid = metadata["namespace"], metadata["name"], metadata["uid"]
        while True:
            seen = self._next(f"{namespace}/{name}")
            if seen["metadata"]["uid"] != uid:
                continue
            node = seen["spec"].get("nodeName", "")
            message = _refusal(seen)
            if node or message:
                break
        if not node:
            self.delete(namespace, name)
        return Answer(self._recorder.take((namespace, name)), node, message)

    def delete(self, namespace: str, name: str) -> None:
        """Remove a pod; it has no kubelet that would end it."""
        self.send("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds=0")

    def _next(self, what: str) -> Object:
        try:
            return self._events.get(timeout=_WITHIN_S)
        except queue.Empty:
            raise ControlPlaneError(f"{what}: no answer in {_WITHIN_S:g} s\n{self.plane.tails()}") from None

    def _connected(self) -> http.client.HTTPSConnection:
        parts = urlsplit(self.plane.url)
        trust = ssl.create_default_context(cafile=str(self.plane.ca_file))
        connection = http.client.HTTPSConnection(str(parts.hostname), parts.port, timeout=600, context=trust)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _watch(self, version: str) -> None:
        headers = {"Authorization": f"Bearer {USERS['admin'].token}"}
        path = f"/api/v1/pods?watch=true&resourceVersion={version}&timeoutSeconds=3600"
        try:
            self._watching.request("GET", path, headers=headers)
            response = self._watching.getresponse()
            while line := response.readline():
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED"):
                    self._events.put(event["object"])
        except (OSError, ValueError, http.client.HTTPException):
            # The connection was shut at the end.
            return


def _refusal(pod: Object) -> str:
    """What the scheduler says of the pod; empty while it has not refused it."""
    conditions = pod["status"].get("conditions") or ()
    return next((c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")


@contextmanager
def real_scheduler(binaries: Binaries) -> Iterator[RealScheduler]:
    """A control plane of etcd, API server and scheduler alone, which scores every node and never guesses one.

    Opportunistic batching hands a pod like the last one the node that came next for that one, and filters no other.
    """
    recorder = Recorder()
    with _extender(recorder) as url:
        asked: Object = {"urlPrefix": url, "filterVerb": "filter", "nodeCacheCapable": True, "httpTimeout": "30s"}
        options = ControlPlaneOptions(
            scheduler={"extenders": [{**asked, "weight": 1}], "percentageOfNodesToScore": 100},
            scheduler_flags=("--feature-gates=OpportunisticBatching=false",),
            apiserver_flags=(f"--disable-admission-plugins={_WITHOUT}",),
            with_kwok=False,
            with_controller_manager=False,
        )
        with ControlPlane(binaries, options) as plane:
            scheduler = RealScheduler(plane, recorder)
            try:
                yield scheduler
            finally:
                scheduler.close()
