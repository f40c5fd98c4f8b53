"""No command makes the text of a whole cluster: asyncio makes a repr of the main task's result, and of errors."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kerf.cli.exits import ClusterUnreachable
from kerf.cli.inputs.input import ReadInput, Source, read_input
from kerf.cli.inputs.live import Cluster, read_cluster
from kerf.manifests.read import Documents, parse
from kerf.model.large import Large

MOST_CHARACTERS = 2_000
"""What a repr may have that anything can meet, whatever the cluster holds."""
MOST_MIB = 300
GROUPS = ("apps", "batch", "policy", "karpenter.sh")


def a_pod(number: int, size: int) -> dict[str, Any]:
    """A waiting pod of so many bytes, most of them in an annotation, as they are in real ones."""
    metadata = {
        "name": f"p-{number}",
        "namespace": "team",
        "uid": f"u-{number}",
        "annotations": {"a.com/b": "x" * size},
    }
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


class Api(BaseHTTPRequestHandler):
    """Answers every list: pods, and nothing of other kinds. `broken` is sent instead of the pods where it is set."""

    pods: bytes = b""
    broken: bytes = b""

    def do_GET(self) -> None:
        """One list."""
        plural = self.path.partition("?")[0].rpartition("/")[2]
        body = json.dumps({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}).encode()
        if self.path == "/apis":
            body = json.dumps({"groups": [{"name": name} for name in GROUPS]}).encode()
        elif plural == "pods" and self.path.startswith("/api/v1/pods"):
            body = self.broken or self.pods
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Not told."""


@contextmanager
def a_cluster(folder: Path, pods: int = 0, size: int = 0, broken: bytes = b"") -> Iterator[str]:
    """A server with so many pods; yields its kubeconfig."""
    items = [a_pod(number, size) for number in range(pods)]
    listed = json.dumps(
        {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}
    ).encode()
    handler = type("Handler", (Api,), {"pods": listed, "broken": broken})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = folder / "kubeconfig"
    named = {"cluster": {"server": f"http://127.0.0.1:{server.server_port}"}, "name": "c"}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    config = {"clusters": [named], "contexts": [context], "users": users, "current-context": "c"}
    place.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **config}))
    try:
        yield str(place)
    finally:
        server.shutdown()
        server.server_close()


class Recording(asyncio.DefaultEventLoopPolicy):
    """Loops that remember every task."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[asyncio.Task[Any]] = []

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """A loop as usual, with a factory of tasks that keeps them."""
        loop = super().new_event_loop()
        loop.set_task_factory(self._made)
        return loop

    def _made(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **given: Any) -> Any:
        task = asyncio.Task(coroutine, loop=loop, **given)
        self.tasks.append(task)
        return task


@pytest.fixture
def tasks() -> Iterator[list[asyncio.Task[Any]]]:
    """All tasks of the test, in the order in which they were made."""
    policy = Recording()
    asyncio.set_event_loop_policy(policy)
    try:
        yield policy.tasks
    finally:
        asyncio.set_event_loop_policy(None)


def lengths(tasks: list[asyncio.Task[Any]]) -> list[int]:
    """Of the reprs of tasks and of what they ended with."""
    ends = [task.exception() if task.exception() is not None else task.result() for task in tasks if task.done()]
    return [len(repr(each)) for each in (*tasks, *ends)]


def test_no_task_of_a_live_command_ends_with_what_it_has_read(
    tmp_path: Path, tasks: list[asyncio.Task[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """The main task has no result, and nothing else is longer for more pods."""
    with a_cluster(tmp_path, pods=300, size=4_000) as kubeconfig:
        read = read_input(Source(kubeconfig=kubeconfig))

    assert 300 == len(read.snapshot.pending)
    assert tasks[0].result() is None
    assert max(lengths(tasks)) <= MOST_CHARACTERS


@pytest.mark.parametrize(
    "broken", [b"\xff" * 1_000_000, b"[" * 1_000_000, b'{"metadata": 7, "x": "' + b"y" * 1_000_000]
)
def test_no_error_of_a_live_command_holds_what_it_has_read(
    tmp_path: Path, tasks: list[asyncio.Task[Any]], broken: bytes
) -> None:
    """Nor does any error that it came of."""
    with a_cluster(tmp_path, broken=broken) as kubeconfig, pytest.raises(ClusterUnreachable) as caught:
        read_cluster(kubeconfig, None)

    error: BaseException | None = caught.value
    while error is not None:
        assert len(repr(error)) <= MOST_CHARACTERS
        error = error.__cause__ or error.__context__
    assert max(lengths(tasks)) <= MOST_CHARACTERS


def all_large() -> list[type[Large]]:
    """Every class that promises a short repr."""
    return sorted(Large.__subclasses__(), key=lambda each: each.__name__)


@pytest.mark.parametrize("kind", all_large(), ids=lambda kind: kind.__name__)
def test_a_large_value_says_how_much_it_holds(kind: type[Large]) -> None:
    """Whatever is in its fields, and never that."""
    value = object.__new__(kind)
    assert is_dataclass(kind)
    for field in fields(kind):
        object.__setattr__(value, field.name, ("x" * 1_000_000,) * 1_000)

    assert len(repr(value)) <= MOST_CHARACTERS
    assert "=<1000>" in repr(value)


def test_what_holds_a_cluster_is_large() -> None:
    """Documents, what is decoded of them, snapshots, markets, plans."""
    names = {kind.__name__ for kind in all_large()}
    assert {"Documents", "Decoded", "ClusterSnapshot", "Market", "Plan", Cluster.__name__, ReadInput.__name__} <= names
    assert "Documents(entries=<0>)" == repr(Documents())
    assert len(repr(list(parse("a: " + "x" * 1_000_000)))) <= MOST_CHARACTERS


PROGRAM = """
import sys
from pathlib import Path
from kerf.cli.main import run
status = run(sys.argv[1:])
lines = Path("/proc/self/status").read_text().splitlines()
sys.stderr.write("\\npeak " + next(line.split()[1] for line in lines if line.startswith("VmHWM:")))
sys.exit(status)
"""


def peak_mib(*arguments: str) -> tuple[int, int]:
    """Exit status of the program, and the most memory that it had, in MiB.

    As it says itself: what the system counts for a child begins with the memory of the process that made it.
    """
    command = [sys.executable, "-c", PROGRAM, *arguments]
    # Far more than it needs, and less than would harm others on this machine.
    limited = ["bash", "-c", 'ulimit -v 4000000; exec "$@"', "bash", *command]
    done = subprocess.run(limited, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, int(done.stderr.rpartition("peak ")[2]) // 1024


@pytest.mark.parametrize("command", ["nodes", "gpus", "plan"])
def test_a_live_command_needs_little_memory(tmp_path: Path, command: str) -> None:
    """1,000 pods of 8 KB, of which a repr of everything made 8 GB."""
    with a_cluster(tmp_path, pods=1_000, size=8_000) as kubeconfig:
        status, used_mib = peak_mib(command, "--kubeconfig", kubeconfig, "--catalog", "aws")

    assert status in (0, 3)
    assert used_mib <= MOST_MIB
