"""Figures of commands that look at a live cluster: CPU and peak memory of the whole process.

Run as `python -m benchmarks.bench_commands commands [PODS]`. The API server is a process of its own that only knows
lists in pages, on loopback and without TLS; the real one is slower, which is none of Kerf's doing.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml

from benchmarks import generate, live_objects
from benchmarks.bench_openb import loop_s

_KERF = str(Path(sys.executable).with_name("kerf"))
_PODS_ON_NODE, _SHAPES = 20, 50
_WAITING = 20
_RUNS = 3
_MOST_BYTES = 4 << 30
_KINDS = {
    "/api/v1/pods": {"kind": "PodList", "apiVersion": "v1"},
    "/api/v1/nodes": {"kind": "NodeList", "apiVersion": "v1"},
    "/apis/karpenter.sh/v1/nodeclaims": {"kind": "NodeClaimList", "apiVersion": "karpenter.sh/v1"},
    "/apis/karpenter.sh/v1/nodepools": {"kind": "NodePoolList", "apiVersion": "karpenter.sh/v1"},
}
_GROUPS = ("apps", "batch", "policy", "karpenter.sh")


def _lists(pods: int) -> dict[str, list[live_objects.Json]]:
    """Objects by the path of their collection; the last pods wait."""
    nodes = range(-(-pods // _PODS_ON_NODE))
    made = [live_objects.pod(n, _SHAPES, is_bound=n < pods - _WAITING) for n in range(pods)]
    return {
        "/api/v1/pods": made,
        "/api/v1/nodes": [live_objects.node(n) for n in nodes],
        "/apis/karpenter.sh/v1/nodeclaims": [live_objects.claim(n) for n in nodes],
        "/apis/karpenter.sh/v1/nodepools": [generate.pool()],
    }


class _Server(BaseHTTPRequestHandler):
    """Answers lists; every other kind is one that the cluster does not have."""

    protocol_version = "HTTP/1.1"
    # Head and body are two writes: the second would wait 40 ms for the client to acknowledge the first.
    disable_nagle_algorithm = True
    lists: dict[str, list[live_objects.Json]]

    def do_GET(self) -> None:
        """See `http.server`."""
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        if url.path == "/apis":
            self._send(200, {"groups": [{"name": name} for name in _GROUPS]})
        elif url.path not in self.lists:
            self._send(404, {"kind": "Status", "status": "Failure", "message": "not found", "code": 404})
        else:
            start, limit = int(query.get("continue", 0)), int(query.get("limit", 1 << 30))
            self._send_bytes(200, self._page(url.path, start, start + limit))

    @classmethod
    @cache
    def _page(cls, path: str, start: int, end: int) -> bytes:
        """Encoded once, as an API server keeps them: of several runs the best counts."""
        items = cls.lists[path]
        further = {"continue": str(end)} if end < len(items) else {}
        page: live_objects.Json = {
            **_KINDS[path],
            "metadata": {"resourceVersion": "1", **further},
            "items": items[start:end],
        }
        return json.dumps(page, separators=(",", ":")).encode()

    def _send(self, status: int, value: live_objects.Json) -> None:
        self._send_bytes(status, json.dumps(value, separators=(",", ":")).encode())

    def _send_bytes(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a line for each request would be noise among the figures."""


def serve(pods: int) -> None:
    """Serve until terminated; the first line printed is the port."""
    _Server.lists = _lists(pods)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    print(server.server_port, flush=True)
    server.serve_forever()


@contextmanager
def _kubeconfig(pods: int) -> Iterator[Path]:
    """The configuration of a client of a server that runs meanwhile."""
    arguments = [sys.executable, "-m", "benchmarks.bench_commands", "serve", str(pods)]
    with (
        subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process,
        tempfile.TemporaryDirectory() as folder,
    ):
        assert process.stdout is not None
        try:
            server = f"http://127.0.0.1:{int(process.stdout.readline())}"
            path = Path(folder) / "kubeconfig"
            path.write_text(
                yaml.safe_dump(
                    {
                        "apiVersion": "v1",
                        "kind": "Config",
                        "clusters": [{"name": "bench", "cluster": {"server": server}}],
                        "users": [{"name": "bench", "user": {"token": "bench"}}],
                        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
                        "current-context": "bench",
                    }
                ),
                encoding="utf-8",
            )
            yield path
        finally:
            process.terminate()


def _limit() -> None:
    # A command that writes out what it has read takes gigabytes, and must not take the machine with it.
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))


_IN_A_SMALL_PROCESS = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)
"""
"""The peak of a process has in it what the one that started it held then: a benchmark holds clusters."""


def measured(arguments: list[str]) -> tuple[float, float]:
    """(CPU seconds, peak MiB) of one run of `kerf`, which must end with 0 or 3 and have read all."""
    command = [sys.executable, "-I", "-c", _IN_A_SMALL_PROCESS, _KERF, *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=_limit)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # A cluster that was not read costs other than one that was.
    if done.returncode not in (0, 3) or "left out" in done.stderr:
        raise SystemExit(f"kerf {' '.join(arguments)} exited with {done.returncode}: {done.stderr[-2_000:]}")
    return seconds, int(done.stdout) / 1024


def commands(pods: int = 1_000) -> Iterator[tuple[str, float]]:
    """`kerf nodes` and `kerf plan` of a cluster of `pods` pods of 8 KB; the best of three, CPU in loops of
    `bench_openb`."""
    with _kubeconfig(pods) as path:
        for command in ("nodes", "plan"):
            runs = [measured([command, "--kubeconfig", str(path)]) for _ in range(_RUNS)]
            yield f"live_{command}_{pods}_loops", min(seconds for seconds, _ in runs) / loop_s()
            yield f"live_{command}_{pods}_mib", min(mib for _, mib in runs)


SETS: dict[str, Callable[..., Iterator[tuple[str, float]]]] = {"commands": commands}

if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        for name, value in SETS[sys.argv[1]](*map(int, sys.argv[2:])):
            print(json.dumps({name: value}), flush=True)
