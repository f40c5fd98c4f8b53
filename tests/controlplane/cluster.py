"""A cluster of its own for one test: control plane, kwok cloud, Kerf under its role, and HAMi where it is wanted.

The acted-out cloud is fast and Kerf's own waits are short, so that minutes of a real cluster pass in seconds; what is
decided, and in which order, is the same.
"""

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from kerf.kube.crds import crds
from tests.controlplane.kept import Kept
from tools.controlplane.installation import FAULTS, NAMESPACE, Installation, Replica, await_policies
from tools.controlplane.server import Binaries, ControlPlane
from tools.playground import FAST, hosted, install
from tools.playground import HURRIED as LATENCIES

__all__ = ["FAST", "LATENCIES", "Cluster", "cluster"]

EXAMPLES = Path(__file__).parents[2] / "examples"
Json = dict[str, Any]


class Cluster:
    """What a test does to the cluster, and what it sees of it."""

    def __init__(self, installation: Installation) -> None:
        self.installation, self.plane = installation, installation.plane

    def start(self, *flags: str) -> Replica:
        """Kerf, ready, with short waits."""
        return self.installation.start(*FAST, *flags)

    def apply(self, example: str, change: Callable[[str], str] = lambda text: text) -> None:
        """Apply a file of the examples, its text changed first."""
        self.plane.apply(change((EXAMPLES / example).read_text(encoding="utf-8")))

    def until(self, condition: Callable[[], object], what: str, timeout_s: float = 60) -> None:
        """Wait until it holds."""
        self.plane.wait_until(condition, timeout_s, what)

    def pods(self, phase: str = "", namespace: str = "default") -> list[Json]:
        """Pods that are in a phase (any when it is empty) and not on their way out, by name."""
        found = self.plane.list("pods", namespace)
        return [
            pod
            for pod in found
            if "deletionTimestamp" not in pod["metadata"] and phase in ("", pod["status"].get("phase"))
        ]

    def names(self, kind: str) -> list[str]:
        """The names of all objects of a kind that is cluster-wide."""
        return [obj["metadata"]["name"] for obj in self.plane.list(kind)]

    def events(self, reason: str, about: str = "") -> list[str]:
        """The messages of events with a reason, of one object or of all, in the order in which they were said."""
        told = sorted(self.plane.list("events", "default"), key=lambda e: int(e["metadata"]["resourceVersion"]))
        return [
            event["message"]
            for event in told
            if event["reason"] == reason and about in ("", event["involvedObject"]["name"])
        ]

    def condition(self, kind: str, name: str, type_: str) -> Json:
        """A condition of an object; empty when it has none."""
        obj = self.plane.get(kind, name) or {}
        return next((each for each in obj.get("status", {}).get("conditions", ()) if each["type"] == type_), {})

    def created_claims(self) -> list[Json]:
        """Every NodeClaim that was ever created here, from the audit log, in order."""
        return [
            event
            for event in self.plane.audit_events()
            if event["verb"] == "create"
            and event["objectRef"].get("resource") == "nodeclaims"
            and event["responseStatus"].get("code") == 201
        ]

    def instances(self) -> list[str]:
        """What the acted-out cloud has not ended yet."""
        found = self.plane.list("configmaps", NAMESPACE, selector="kerf.dev/kwok-instance=true")
        return [obj["metadata"]["name"] for obj in found]

    def control_cloud(self, **controls: object) -> None:
        """Stock-outs, faults and latencies of the acted-out cloud, as its ConfigMap has them."""
        self.plane.apply([_controls({"settings": LATENCIES, **controls})])


@contextmanager
def cluster(
    binaries: Binaries,
    *,
    with_hami: bool = False,
    hami_flags: tuple[str, ...] = (),
    latencies: Mapping[str, str] = LATENCIES,
) -> Iterator[Cluster]:
    """A control plane with Kerf's kinds and role, empty; Kerf itself is started by the test, and ends with it.

    One that a test has left in order serves the next, see `kept`.
    """
    key = binaries, with_hami, hami_flags
    held = _kept.pop(key, None) or _started(*key)
    try:
        _control_anew(held.plane, latencies)
        yield Cluster(Installation(held.plane))
    except BaseException:
        held.end()
        raise
    if not held.is_emptied():
        held.end()
        return
    _kept[key] = held
    while len(_kept) > _MOST_KEPT:
        _kept.pop(next(iter(_kept))).end()


_MOST_KEPT = 2
_kept: dict[tuple[Binaries, bool, tuple[str, ...]], Kept] = {}
"""By its programs, HAMi and HAMi's flags; the one that was used last comes last."""


def end_all() -> None:
    """Ends those that are kept."""
    while _kept:
        _kept.popitem()[1].end()


def _started(binaries: Binaries, with_hami: bool, hami_flags: tuple[str, ...]) -> Kept:
    """A new one. It begins with what the first of this process had in etcd, so that nothing has to be installed."""
    ends = ExitStack()
    try:
        made = ends.enter_context(tempfile.TemporaryDirectory(prefix="kerf-cluster-", ignore_cleanup_errors=True))
        folder = Path(made) / "plane"
        shutil.copytree(_installed(binaries), folder)
        plane = ends.enter_context(hosted(binaries, with_hami=with_hami, hami_flags=hami_flags, folder=folder))
        plane.await_crds(crds())
        await_policies(plane)
        return Kept(plane, ends)
    except BaseException:
        ends.close()
        raise


@cache
def _installed(binaries: Binaries) -> Path:
    """The folder of a control plane on which Kerf was installed, and which was stopped then."""
    folder = Path(tempfile.mkdtemp(prefix="kerf-installed-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with hosted(binaries, with_hami=False, folder=folder) as plane:
        install(plane, LATENCIES)
    # Only what is done from now on counts in a test.
    (folder / "audit.log").unlink()
    shutil.rmtree(folder / "logs")
    return folder


def _control_anew(plane: ControlPlane, latencies: Mapping[str, str]) -> None:
    """The controls of the acted-out cloud with these latencies and nothing else."""
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{FAULTS}"
    plane.request("PUT", path, _controls({"settings": latencies})).good(f"put {path}")


def _controls(settings: Mapping[str, object]) -> Json:
    data = {name: json.dumps(value) for name, value in settings.items()}
    metadata = {"name": FAULTS, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
