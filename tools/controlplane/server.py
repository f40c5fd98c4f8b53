"""A real Kubernetes control plane on loopback, for tests and for trying: ready in seconds, gone without a trace.

An in-memory API is only as true as what was written into it; this one is kube-apiserver with etcd, kube-scheduler,
kube-controller-manager and kwok, whose nodes are objects and whose pods run at once. Any part can be killed, frozen
and brought back while clients watch, which is what makes it hard: the API server keeps its port over a restart, and
what "ready" means is asked of the thing itself (a default service account shows that pods can be created).

    with ControlPlane(Binaries.find(os.environ, folder)) as plane:
        plane.apply(manifest)
        plane.wait_until(lambda: plane.list("Node") != [], 10, "a node")

Any number of control planes run beside each other. The programs come from `make controlplane`.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from tools.controlplane.client import Answer, Client, Etcd, Object, Resource, exchange, unverified
from tools.controlplane.process import ControlPlaneError, Guard, Ports, Program
from tools.controlplane.setup import (
    Binaries,
    ControlPlaneOptions,
    Layout,
    User,
    hami_extender,
    viewer,
)

__all__ = [
    "Answer",
    "Binaries",
    "ControlPlane",
    "ControlPlaneError",
    "ControlPlaneOptions",
    "Program",
    "Resource",
    "User",
    "hami_extender",
]

HAMI_SCHEDULER = "hami-scheduler"
READY_WITHIN_S = 60.0
KUBECTL_WITHIN_S = 120.0
POLL_S = 0.1
_SERVING = ("kube-controller-manager", "kube-scheduler", HAMI_SCHEDULER)
_FOLLOWERS = (*_SERVING, "kwok")
_PORTS = ("etcd", "etcd-peer", "kube-apiserver", *_SERVING)


@dataclass(frozen=True)
class _Running:
    """What there is between start and stop."""

    layout: Layout
    client: Client
    guard: Guard
    ports: Ports
    programs: dict[str, Program] = field(default_factory=dict)
    crds: list[str] = field(default_factory=list)


class ControlPlane:
    """The programs of one control plane and what a test asks of it.

    Synchronous; a context manager that starts and stops it. Without `folder` everything is in a temporary one that
    `stop` removes; with one, a second start finds what the first left in etcd. Errors are ControlPlaneError; those
    about a program carry the newest lines of the logs.
    """

    def __init__(
        self, binaries: Binaries, options: ControlPlaneOptions | None = None, folder: Path | None = None
    ) -> None:
        self.binaries, self.options = binaries, options or ControlPlaneOptions()
        self._given_folder = folder
        self._running: _Running | None = None

    def __enter__(self) -> "ControlPlane":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Its life.

    def start(self) -> None:
        """Starts everything and returns once pods can be created and scheduled. What fails leaves nothing behind."""
        if self._running is not None:
            raise ControlPlaneError("the control plane runs already")
        folder = (self._given_folder or Path(tempfile.mkdtemp(prefix="kerf-controlplane-"))).absolute()
        ports = Ports()
        layout = Layout(folder, self.binaries, self.options, {name: ports.reserve() for name in _PORTS})
        tokens = {name: user.token for name, user in layout.users().items()}
        self._running = _Running(layout, Client(layout.url, layout.ca_file, tokens), Guard(), ports)
        try:
            self._start_programs()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends every program and gives the ports back; may be called again."""
        running, self._running = self._running, None
        if running is None:
            return
        for program in reversed(running.programs.values()):
            program.kill()
        running.client.close()
        running.ports.release()
        running.guard.close()
        if self._given_folder is None:
            shutil.rmtree(running.layout.folder, ignore_errors=True)

    def kill_apiserver(self) -> None:
        """Kills the API server (SIGKILL); its port stays ours, and refuses connections meanwhile."""
        self.program("kube-apiserver").kill()

    def start_apiserver(self, within_s: float = READY_WITHIN_S) -> None:
        """Starts it again, on its port and with the same etcd, and waits until it is ready.

        With much stored that takes minutes.

        The other programs of Kubernetes that run start again with it, so a test waits for nothing but its own:
        their watches come back after up to 30 s, and the controller manager never repeats the removal of a node's
        `not-ready` taint that failed meanwhile, which closes that node until its next status, ten minutes later.
        """
        self.program("kube-apiserver").start()
        self._await("kube-apiserver", self._is_ready, within_s)
        # It is ready before it can list what a CustomResourceDefinition defines.
        self._await("kube-apiserver", lambda: all(map(self._now.client.serves, self._now.crds)))
        # One that ended by itself, because it had just started when its server went, comes back too; one that a test
        # has killed does not.
        followers = [
            program
            for name, program in self._now.programs.items()
            if name in _FOLLOWERS and (program.pid or (program.exit_code or 0) > 0)
        ]
        for program in followers:
            program.kill()
        self._free_nodes()
        for program in followers:
            program.start()
        for program in followers:
            if program.name in _SERVING:
                self._await_healthy(program.name)

    def start_hami_scheduler(self, extender_url: str, *, ca_file: Path | None = None) -> None:
        """Starts a second kube-scheduler for the profile `hami-scheduler`, with the extender at `extender_url`.

        An https address is verified with `ca_file`, and not at all without one. One that runs already is replaced.
        """
        if HAMI_SCHEDULER in self._now.programs:
            self._now.programs.pop(HAMI_SCHEDULER).kill()
        own = {"extenders": [hami_extender(extender_url, ca_file=ca_file)]}
        self._start_scheduler(HAMI_SCHEDULER, HAMI_SCHEDULER, own)

    def launch(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> Program:
        """Starts one more program, which is logged, listed and ended with the others; Kerf itself, for example.

        Without `environment` it has only PATH, and the folder as its home. It is not waited for.
        """
        running = self._now
        if name in running.programs:
            raise ControlPlaneError(f"{name} was launched already; program({name!r}).start() starts it again")
        log = self.folder / "logs" / f"{name}.log"
        environment = self._environment() if environment is None else environment
        program = Program(name, [str(part) for part in command], log, running.guard, environment)
        running.programs[name] = program
        program.start()
        return program

    def program(self, name: str) -> Program:
        """One of the programs, to kill, to start again or to read its log; `pids` has the names of those that run."""
        programs = self._now.programs
        if name not in programs:
            raise ControlPlaneError(f"program: expected one of {', '.join(programs)}, got {name!r}")
        return programs[name]

    def launched(self) -> Sequence[str]:
        """The names of all programs, of those that have ended too, in order of their first start."""
        return [*self._now.programs]

    def drop(self, name: str) -> None:
        """Ends a program that was launched and removes its log; its name can be used again."""
        program = self.program(name)
        program.kill()
        del self._now.programs[name]
        program.log.unlink(missing_ok=True)

    def pause(self, name: str) -> None:
        """Freezes a program (SIGSTOP)."""
        self.program(name).pause()

    def resume(self, name: str) -> None:
        """Lets a frozen program go on (SIGCONT)."""
        self.program(name).resume()

    def pids(self) -> dict[str, int]:
        """The process id of each program that runs, by name, in order of their start."""
        return {name: program.pid for name, program in self._now.programs.items() if program.pid is not None}

    def is_awake(self) -> bool:
        """Whether no program is frozen."""
        return not any(_is_frozen(pid) for pid in self.pids().values())

    def tails(self, lines: int = 20) -> str:
        """The newest lines of each program's log, for the report of a failing test; empty when stopped."""
        programs = self._running.programs.values() if self._running is not None else ()
        return "\n".join(program.tail(lines) for program in programs)

    # Ways to speak to it.

    @property
    def folder(self) -> Path:
        """Where its files and its logs are."""
        return self._now.layout.folder

    @property
    def url(self) -> str:
        """Of the API server; the same over its restarts."""
        return self._now.layout.url

    @property
    def ca_file(self) -> Path:
        """The certificate that the API server is verified with."""
        return self._now.layout.ca_file

    def kubeconfig(self, user: str = "admin") -> Path:
        """Of `admin` (may do all), `reader` (has the role `view`), `kerf` or a user of the options.

        `kerf` is system:serviceaccount:kerf-system:kerf and may do nothing until a role is bound to it.
        """
        return self._now.layout.kubeconfig(user)

    def kubectl(
        self, *arguments: str, input: str | None = None, user: str = "admin", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Runs kubectl. Raises ControlPlaneError with its standard error where it fails, unless `check` is False."""
        command = [self.binaries.need("kubectl"), f"--kubeconfig={self.kubeconfig(user)}", *arguments]
        run = partial(subprocess.run, command, input=input or "", env=self._environment(), timeout=KUBECTL_WITHIN_S)
        try:
            done: subprocess.CompletedProcess[str] = run(capture_output=True, text=True, check=False)
        except subprocess.TimeoutExpired as error:
            raise ControlPlaneError(f"kubectl {' '.join(arguments)}: no end in {KUBECTL_WITHIN_S:g} s") from error
        if check and done.returncode:
            raise ControlPlaneError(f"kubectl {' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()}")
        return done

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        user: str = "admin",
        content_type: str = "application/json",
    ) -> Answer:
        """One request to the API server, whatever its answer; raises OSError while nothing listens.

        `body` is sent as it is where it is text, else as JSON.
        """
        return self._now.client.request(method, path, body, user=user, content_type=content_type)

    def apply(self, manifests: str | Iterable[Mapping[str, object]], *, server_side: bool = False) -> None:
        """As `kubectl apply` does, all in one: text in YAML or JSON, or objects."""
        if not isinstance(manifests, str):
            manifests = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
        how = ("--server-side", "--force-conflicts") if server_side else ()
        self.kubectl("apply", *how, "-f", "-", input=manifests)

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """One object, None where there is none. Raises ControlPlaneError for any other answer.

        `kind` is a kind, plural or short name; an empty `namespace` is `default`.
        """
        return self._now.client.get(kind, name, namespace)

    def list(self, kind: str, namespace: str = "", *, selector: str = "") -> Sequence[Object]:
        """The objects of a kind, of all namespaces where `namespace` is empty, in order of namespace and name."""
        return self._now.client.list(kind, namespace, selector)

    def delete(self, kind: str, name: str, namespace: str = "") -> bool:
        """Asks for an object to go, and waits for nothing; False where there is none."""
        return self._now.client.delete(kind, name, namespace)

    def resource(self, kind: str) -> Resource:
        """Where the objects of a kind are, by its kind, plural, singular or short name."""
        return self._now.client.resource(kind)

    def resources(self) -> Sequence[Resource]:
        """Where the objects of each kind are that can be listed and deleted, by path."""
        return self._now.client.resources()

    def install_crds(self, crds: Iterable[Mapping[str, Any]]) -> None:
        """Applies CustomResourceDefinitions and waits until the server serves their kinds."""
        objects = list(crds)
        self.apply(objects, server_side=True)
        self.await_crds(objects)

    def await_crds(self, crds: Iterable[Mapping[str, Any]]) -> None:
        """Waits until the server serves the kinds of CustomResourceDefinitions that a first start has left here."""
        for kind in (crd["spec"]["names"]["kind"] for crd in crds):
            self.wait_until(partial(self._now.client.serves, kind), READY_WITHIN_S, f"{kind} is served")
            self._now.crds.append(kind)

    def wait_until(self, condition: Callable[[], object], timeout_s: float, what: str) -> None:
        """Polls until `condition` holds; a connection that fails counts as "not yet".

        Raises ControlPlaneError, with the newest lines of the logs, after `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            refused = ""
            try:
                if condition():
                    return
            except OSError as error:
                refused = f" ({error})"
            if time.monotonic() > deadline:
                raise ControlPlaneError(f"waited {timeout_s:g} s in vain: {what}{refused}\n{self.tails()}")
            time.sleep(POLL_S)

    # What happened, and what shall be forgotten.

    def audit_events(self) -> Sequence[Object]:
        """What the API server was asked, oldest first, as Events of audit.k8s.io/v1 at level Metadata.

        A watch has two: stage ResponseStarted, then ResponseComplete. Raises ControlPlaneError where the options have
        `audit` False.
        """
        if not self.options.audit:
            raise ControlPlaneError("audit_events: expected ControlPlaneOptions(audit=True), got audit=False")
        log = self._now.layout.audit_log
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True) if log.exists() else []
        # A killed server leaves half a line; a running one may be in the middle of its last.
        return [json.loads(line) for line in lines if line.endswith("}\n")]

    def forget_audit_events(self) -> None:
        """Empties the log of `audit_events`."""
        os.truncate(self._now.layout.audit_log, 0)

    def compact(self) -> int:
        """Makes the server forget every revision before now; returns that revision.

        Afterwards a watch or a list that goes on from an older one is answered with 410. To compact etcd is not enough
        for that, because the API server serves both from its own memory; so it is killed before and started after.
        Where it was killed already, it stays so: its next start has forgotten.
        """
        runs = self.program("kube-apiserver").pid is not None
        if runs:
            self.kill_apiserver()
        revision = self._etcd.compact()
        if runs:
            self.start_apiserver()
        return revision

    def store(self, objects: Iterable[tuple[str, Mapping[str, object]]]) -> None:
        """Writes objects into etcd as if a server had taken them, for clusters too large to be made by requests.

        Each comes with its key, such as `/registry/pods/default/web-0` (`minions` for nodes), with `apiVersion`,
        `kind` and a `uid`, and without `resourceVersion`. Nothing checks them: store what a server has shown before,
        and while it is killed.
        """
        self._etcd.store(objects)

    # How it is done.

    @property
    def _now(self) -> _Running:
        if self._running is None:
            raise ControlPlaneError("the control plane does not run")
        return self._running

    def _start_programs(self) -> None:
        running, options = self._now, self.options
        layout = running.layout
        layout.write()
        self.launch("etcd", layout.etcd())
        self._await("etcd", self._etcd.is_ready)
        self.launch("kube-apiserver", layout.kube_apiserver())
        self._await("kube-apiserver", self._is_ready)
        if options.with_controller_manager:
            self.launch("kube-controller-manager", layout.kube_controller_manager())
        if options.with_kwok:
            self._free_nodes()
            self.launch("kwok", layout.kwok())
        if options.with_scheduler:
            self._start_scheduler("kube-scheduler", "default-scheduler", options.scheduler, options.scheduler_flags)
        if options.extenders:
            self._start_scheduler(HAMI_SCHEDULER, HAMI_SCHEDULER, {"extenders": list(options.extenders)})
        running.client.create(viewer("reader"))
        if options.with_controller_manager:
            has_account = partial(self.get, "ServiceAccount", "default")
            self._await("kube-controller-manager", lambda: has_account() is not None)

    def _start_scheduler(self, name: str, profile: str, own: Mapping[str, object], flags: Sequence[str] = ()) -> None:
        self.launch(name, [*self._now.layout.kube_scheduler(name, profile, own), *flags])
        self._await_healthy(name)

    def _await_healthy(self, name: str) -> None:
        url, trust = f"https://127.0.0.1:{self._now.layout.ports[name]}", unverified()
        self._await(name, lambda: exchange(url, "GET", "/healthz", headers={}, trust=trust).status == 200)

    def _await(self, name: str, is_ready: Callable[[], bool], within_s: float = READY_WITHIN_S) -> None:
        program = self.program(name)

        def ready_or_dead() -> bool:
            if program.pid is None:
                raise ControlPlaneError(f"{name} ended while it started\n{program.tail(40)}")
            return is_ready()

        self.wait_until(ready_or_dead, within_s, f"{name} is ready")

    def _is_ready(self) -> bool:
        return self.request("GET", "/readyz").status == 200 and self._has_roles()

    def _has_roles(self) -> bool:
        """Whether roles are known: a server is ready before that, and refuses the others, which then retry for long."""
        asked = {"user": "system:kube-scheduler", "resourceAttributes": {"verb": "list", "resource": "pods"}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked}
        answer = self.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return answer.status == 201 and bool(answer.body["status"]["allowed"])

    @property
    def _etcd(self) -> Etcd:
        return Etcd(self._now.layout.etcd_url)

    def _free_nodes(self) -> None:
        """A kwok that starts again has a new name, and would wait for the leases of the old one to run out, 40 s."""
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        self.request("DELETE", leases).good("delete the leases of nodes")

    def _environment(self) -> dict[str, str]:
        """Without the caller's own: a proxy or a kubeconfig of a user has no part in this.

        Go collects its garbage at five times what is in use, not at twice: a tenth less work at the start of an API
        server (2.8 s of CPU, not 3.1), for 100 MiB.
        """
        return {"PATH": os.defpath, "HOME": str(self.folder), "TMPDIR": str(self.folder), "GOGC": "400"}


def _is_frozen(pid: int) -> bool:
    """Whether a process is stopped, by its state after the name in parentheses (proc_pid_stat(5))."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"
