"""The part of a kubelet that metrics-server asks: `/metrics/resource` over HTTPS, with usage as a test sets it."""

import ssl
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import trustme

GROUP, VERSION = "metrics.k8s.io", "v1beta1"


class KubeletMetrics:
    """Serves one node's metrics on loopback while it is entered.

    `cores` and `memory` are what the container `main` of each pod (`namespace/name`) uses; the node uses their sum.
    """

    def __init__(self, cores: Mapping[str, float], memory_bytes: int) -> None:
        self.cores, self.memory_bytes, self._since_s = cores, memory_bytes, time.time() - 600
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.port = self._server.server_address[1]

    def __enter__(self) -> "KubeletMetrics":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def text(self) -> str:
        """Counters and gauges as kubelet's pkg/kubelet/metrics/collectors/resource_metrics.go names them."""
        now_s = time.time()
        passed_s, at = now_s - self._since_s, int(now_s * 1000)
        lines = [
            f"node_cpu_usage_seconds_total {sum(self.cores.values()) * passed_s} {at}",
            f"node_memory_working_set_bytes {self.memory_bytes * len(self.cores)} {at}",
        ]
        for key, cores in self.cores.items():
            namespace, _, pod = key.partition("/")
            labels = f'{{container="main",namespace="{namespace}",pod="{pod}"}}'
            lines += [
                f"container_cpu_usage_seconds_total{labels} {cores * passed_s} {at}",
                f"container_memory_working_set_bytes{labels} {self.memory_bytes} {at}",
                f"container_start_time_seconds{labels} {self._since_s} {at}",
            ]
        return "".join(f"{line}\n" for line in lines)


def _handler(metrics: KubeletMetrics) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = metrics.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def registration(port: int) -> list[dict[str, Any]]:
    """What makes an API server pass metrics.k8s.io on to a server on loopback.

    It passes no user on, since it has no certificate for that; so everybody may ask the server behind it, and who may
    ask in front of it is decided by the API server's own roles.
    """
    name = {"name": "metrics-server", "namespace": "kube-system"}
    spec = {
        "group": GROUP,
        "version": VERSION,
        "service": {**name, "port": port},
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    role = {"name": "everybody-sees-metrics"}
    rules: list[dict[str, Any]] = [
        {"apiGroups": [GROUP], "resources": ["pods", "nodes"], "verbs": ["get", "list"]},
        {"nonResourceURLs": ["/apis", "/apis/*", "/openapi/*"], "verbs": ["get"]},
    ]
    rbac = "rbac.authorization.k8s.io"
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": name,
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{VERSION}.{GROUP}"},
            "spec": spec,
        },
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": role, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": role,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", **role},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": "system:anonymous"}],
        },
    ]
