"""Kerf as its users run it: processes beside a real control plane, under the role that is granted to them.

The programs are started from the command line and seen through the API and their HTTP addresses alone, so what a
test proves of them is what an operator gets.
"""

import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerf.kube.policies import policy_texts
from kerf.model.opportunistic import OPPORTUNISTIC, PRIORITY_CLASS
from kerf.model.windows import WINDOW_GATE, WINDOW_LABEL
from tools.controlplane.process import Program
from tools.controlplane.server import ControlPlane

NAMESPACE = "kerf-system"
FAULTS = "kerf-kwok"
Object = Mapping[str, Any]


@dataclass(frozen=True)
class Replica:
    """One running `kerf run`."""

    program: Program

    def address(self, name: str) -> str:
        """Where it serves `health` or `metrics`, as its log says; empty until it does."""
        text = self.program.log.read_text(encoding="utf-8", errors="replace") if self.program.log.exists() else ""
        return next(iter(re.findall(rf"\b{name}=(\S+)", text)[::-1]), "")

    def ready(self) -> tuple[bool, str]:
        """Whether it says that it is ready, and what it says; not while it cannot be reached."""
        try:
            with urllib.request.urlopen(f"http://{self.address('health')}/readyz", timeout=5) as answer:
                return True, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return False, error.read().decode()
        except (OSError, ValueError) as error:
            return False, str(error)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels; 0 where there are none."""
        with urllib.request.urlopen(f"http://{self.address('metrics')}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in lines
            if line.split("{")[0].split(" ")[0] == name and all(label in line for label in wanted)
        )


def install_policies(plane: ControlPlane) -> None:
    """The admission policies of Kerf. They count once the server has read them, a moment after they are there."""
    plane.apply("---\n".join(policy_texts().values()))
    await_policies(plane)


def await_policies(plane: ControlPlane) -> None:
    """Until the server has read the policies that are there."""
    plane.wait_until(lambda: _is_gated(plane), 30, "pods of windows are held")


def _is_gated(plane: ControlPlane) -> bool:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asked", "labels": {WINDOW_LABEL: "asked", OPPORTUNISTIC: "true"}},
        "spec": {"containers": [{"name": "main", "image": "none"}], "priorityClassName": PRIORITY_CLASS},
    }
    answer = plane.request("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod)
    gates = answer.body.get("spec", {}).get("schedulingGates", ()) if answer.status == 201 else ()
    return {WINDOW_GATE, OPPORTUNISTIC} == {gate["name"] for gate in gates}


class Installation:
    """Kerf on a control plane that has started."""

    def __init__(self, plane: ControlPlane, program: Path | None = None) -> None:
        self.plane = plane
        self._kerf = program or Path(sys.executable).with_name("kerf")
        self._replicas = 0

    def prepare(self, crds: Iterable[Object], roles: Iterable[Object], latencies: Mapping[str, str]) -> None:
        """Kerf's namespace, kinds and role, and how long the acted-out cloud takes for what it does."""
        self.plane.install_crds(crds)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        faults = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": FAULTS, "namespace": NAMESPACE},
            "data": {"settings": json.dumps(dict(latencies))},
        }
        self.plane.apply([namespace, faults])
        self.plane.apply(roles)

    def run(self, *flags: str, user: str = "kerf", environment: Mapping[str, str] | None = None) -> Replica:
        """Start a replica with these flags, and do not wait for it."""
        self._replicas += 1
        command = [
            str(self._kerf),
            "run",
            f"--kubeconfig={self.plane.kubeconfig(user)}",
            f"--namespace={NAMESPACE}",
            "--health-address=127.0.0.1:0",
            "--metrics-address=127.0.0.1:0",
            # Without a flag of the caller: who starts it may name another cloud.
            *(() if any(flag.startswith("--cloud=") for flag in flags) else ("--cloud=kwok",)),
            *flags,
        ]
        return Replica(self.plane.launch(f"kerf-{self._replicas}", command, environment))

    def start(self, *flags: str, user: str = "kerf", environment: Mapping[str, str] | None = None) -> Replica:
        """Start a replica and wait until it is ready."""
        replica = self.run(*flags, user=user, environment=environment)
        self.plane.wait_until(lambda: replica.ready()[0], 60, "Kerf to be ready")
        return replica
