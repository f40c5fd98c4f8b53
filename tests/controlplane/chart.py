"""The chart as helm renders it, and Kerf started as its Deployment would start it.

A test that writes flags, environment or roles down by itself shows that Kerf runs there, and not where it is installed.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools.controlplane.installation import Replica
from tools.controlplane.server import Binaries, ControlPlane

Object = dict[str, Any]
CHART = Path(__file__).parents[2] / "charts" / "kerf"
CRD = "CustomResourceDefinition"
ROLES = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


@dataclass(frozen=True)
class Chart:
    """The objects of one rendering, in the order in which helm applies them."""

    objects: tuple[Object, ...]

    def of_kind(self, *kinds: str) -> list[Object]:
        """The objects of these kinds."""
        return [each for each in self.objects if each["kind"] in kinds]

    @property
    def roles(self) -> list[Object]:
        """What to apply as administrator before Kerf may do anything."""
        return self.of_kind(*ROLES)

    @property
    def granted(self) -> list[Object]:
        """The roles that are bound to Kerf: what it may do, and not what its readers may."""
        (deployment,) = self.of_kind("Deployment")
        account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        every = self.of_kind("ClusterRoleBinding", "RoleBinding")
        bindings = [each for each in every if account in [subject["name"] for subject in each["subjects"]]]
        bound = [(each["roleRef"]["kind"], each["roleRef"]["name"]) for each in bindings]
        return [each for each in self.roles if (each["kind"], each["metadata"]["name"]) in bound]

    @property
    def container(self) -> Object:
        """The container of the Deployment."""
        (deployment,) = self.of_kind("Deployment")
        container: Object = deployment["spec"]["template"]["spec"]["containers"][0]
        return container

    def arguments(self, health_port: int, metrics_port: int, *more: str) -> list[str]:
        """The arguments of `kerf`, with addresses on loopback and `more` at the end, such as `--kubeconfig=FILE`."""
        places = {"--health-address": health_port, "--metrics-address": metrics_port}
        names = [argument.partition("=")[0] for argument in self.container["args"]]
        pairs = zip(names, self.container["args"], strict=True)
        return [f"{name}=127.0.0.1:{places[name]}" if name in places else given for name, given in pairs] + list(more)

    def environment(self, pod: str) -> dict[str, str]:
        """The variables that a kubelet would set in the pod of that name."""
        fields = {"metadata.name": pod}
        return {
            entry["name"]: entry["value"] if "value" in entry else fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
            for entry in self.container["env"]
        }


class Release:
    """A chart's objects on a control plane. Its pods are processes beside that, under the token of its account."""

    def __init__(self, plane: ControlPlane, chart: Chart) -> None:
        (deployment,) = chart.of_kind("Deployment")
        self.plane, self.chart = plane, chart
        self.namespace: str = deployment["metadata"]["namespace"]
        account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        self.user = f"system:serviceaccount:{self.namespace}:{account}"
        plane.install_crds(chart.of_kind(CRD))
        plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}])
        plane.apply(chart.roles)
        self.kubeconfig = token_kubeconfig(plane, self.namespace, account)
        plane.wait_until(self.has_all, 30, "the authoriser knows the roles")

    def has_all(self) -> bool:
        """Whether every role counts, which is a moment after it is there."""
        return all(self._is_granted(role) for role in self.chart.granted)

    def _is_granted(self, role: Object) -> bool:
        rule = role["rules"][-1]
        asked = f"{rule['resources'][0]}.{rule['apiGroups'][0]}/{rule.get('resourceNames', [''])[0]}".rstrip("/")
        place = f"--namespace={role['metadata'].get('namespace', 'default')}"
        command = ("auth", "can-i", rule["verbs"][0], asked, place, f"--as={self.user}")
        return self.plane.kubectl(*command, check=False).stdout.strip() == "yes"

    def run(self, pod: str) -> Replica:
        """Start the pod of that name, and do not wait for it."""
        program = Path(sys.executable).with_name(self.chart.container["command"][0])
        command = [str(program), *self.chart.arguments(0, 0, f"--kubeconfig={self.kubeconfig}")]
        return Replica(self.plane.launch(pod, command, {"PATH": os.defpath, **self.chart.environment(pod)}))

    def start(self, pod: str) -> Replica:
        """Start the pod of that name and wait until it is ready."""
        replica = self.run(pod)
        self.plane.wait_until(lambda: replica.ready()[0], 60, f"{pod} is ready")
        return replica


def token_kubeconfig(plane: ControlPlane, namespace: str, account: str) -> Path:
    """A kubeconfig with a token as a kubelet would ask for it."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    token = plane.request("POST", path, {"spec": {}}).good("a token")["status"]["token"]
    content = json.loads(plane.kubeconfig().read_text(encoding="utf-8"))
    content["users"][0]["user"] = {"token": token}
    written = plane.folder / f"{namespace}-{account}.kubeconfig"
    written.write_text(json.dumps(content), encoding="utf-8")
    return written


def helm(
    binaries: Binaries, *arguments: str, values: Mapping[str, Any] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs helm, which reads the values from standard input; never raises for its exit code."""
    with tempfile.TemporaryDirectory() as home:
        command = [binaries.need("helm"), *arguments, *(["--values=-"] if values is not None else [])]
        environment = {"HOME": home, "PATH": "/usr/bin:/bin"}
        given = json.dumps(values)
        return subprocess.run(command, input=given, env=environment, capture_output=True, text=True, check=False)


def rendered(
    binaries: Binaries,
    values: Mapping[str, Any],
    *,
    name: str = "kerf",
    namespace: str = "kerf-system",
    version: str = "1.36",
) -> Chart:
    """The release `name` with these values; image and cloud are given where they have none. Raises RuntimeError."""
    controller = {"image": {"repository": "example.com/kerf"}, **values.get("controller", {})}
    settings = {"cloud": "kwok", **values.get("settings", {})}
    arguments = ("template", name, str(CHART), f"--namespace={namespace}", f"--kube-version={version}.0")
    done = helm(binaries, *arguments, values={**values, "controller": controller, "settings": settings})
    if done.returncode:
        raise RuntimeError(done.stderr)
    return Chart(tuple(each for each in yaml.safe_load_all(done.stdout) if each))
