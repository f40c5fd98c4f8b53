"""The container image: built twice, looked into, and run as the chart's pods run it, without a container runtime."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kerf import __version__
from tests.conftest import LEFT_OUT
from tests.controlplane.chart import Release, rendered
from tools.controlplane.installation import Replica
from tools.controlplane.server import Binaries, ControlPlane, ControlPlaneOptions

CONTAINER = Path(__file__).parents[2] / "container"
USER = 65532
NOT_TO_BE_HAD = 75
"""What the build exits with where Debian's packages cannot be reached: no fault of ours, and a loud skip."""


@dataclass(frozen=True)
class Image:
    """Its digest and its file tree."""

    digest: str
    tree: Path

    def command(self, account: Path, *command: str) -> list[str]:
        """To run a command in the tree as a pod of the chart would, with a service account's files."""
        return ["sh", str(CONTAINER / "inside.sh"), str(self.tree), str(account), *command]


@pytest.fixture(scope="module")
def image() -> Image:
    """Built from nothing."""
    return built()


def built(*flags: str) -> Image:
    """What the build prints; with `--again` a second build that differs fails."""
    command = [sys.executable, str(CONTAINER / "build.py"), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = f"{LEFT_OUT}: no image: {done.stderr.strip()}"
        is_required = os.environ.get("KERF_REQUIRE_CONTROLPLANE") == "1" or "differ" in done.stderr
        if is_required and done.returncode != NOT_TO_BE_HAD:
            pytest.fail(reason)
        pytest.skip(reason)
    digest, tree = done.stdout.splitlines()[-2:]
    return Image(digest, Path(tree))


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """A service account that no cluster knows."""
    (tmp_path / "token").write_text("none", encoding="utf-8")
    return tmp_path


def test_a_build_has_a_digest(image: Image) -> None:
    """By which it is named."""
    assert re.fullmatch("sha256:[0-9a-f]{64}", image.digest)


@pytest.mark.long
def test_two_builds_have_one_digest(image: Image) -> None:
    """Files without times, compiled code without them, and packages by their hashes."""
    assert image.digest == built("--again").digest


def test_it_runs_as_another_than_root_and_writes_nothing(image: Image, account: Path) -> None:
    """User 65532 on a read-only root, as the chart runs it."""
    script = (
        "id -u; for each in / /tmp /opt/kerf /run; do ! touch $each/x 2> /dev/null || echo $each; done; kerf --version"
    )
    done = subprocess.run(image.command(account, "sh", "-c", script), capture_output=True, text=True, check=False)

    assert (f"{USER}\nkerf {__version__}\n", "", 0) == (done.stdout, done.stderr, done.returncode)


def test_its_help_is_kerfs(image: Image, account: Path) -> None:
    """The first thing that somebody asks of an image."""
    done = subprocess.run(image.command(account, "kerf", "--help"), capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("Usage: kerf [OPTIONS] COMMAND [ARGS]...")


def test_the_bill_of_materials_names_what_is_installed(image: Image, account: Path) -> None:
    """As dpkg lists it, and the metadata of the environment; nothing more, nothing less."""
    bill: dict[str, Any] = json.loads((image.tree / "opt/kerf/sbom.cdx.json").read_text(encoding="utf-8"))
    named = {(each["name"], each["version"]) for each in bill["components"]} | {
        (bill["metadata"]["component"]["name"], bill["metadata"]["component"]["version"])
    }
    asked = ["dpkg-query", "--show", "--showformat=${Package} ${Version}\n"]
    listed = subprocess.run(image.command(account, *asked), capture_output=True, text=True, check=True).stdout
    debian = {tuple(line.split(" ")) for line in listed.splitlines()}
    found = (image.tree / "opt/kerf/lib").glob("python*/site-packages/*.dist-info")
    python = {tuple(each.name.removesuffix(".dist-info").split("-")) for each in found}

    assert named == debian | {(name.replace("_", "-").replace(".", "-").lower(), version) for name, version in python}
    assert ("kerf-autoscaler", __version__) in named


class InImage(Release):
    """The chart's objects on a control plane, and its pods run in the tree of an image."""

    def __init__(self, plane: ControlPlane, image: Image, binaries: Binaries) -> None:
        values = {"logFormat": "text", "settings": {"dryRun": True}}
        super().__init__(plane, rendered(binaries, values))
        self.image = image

    def run(self, pod: str) -> Replica:
        """Start the pod of that name as in a cluster: its account's files, the server's address in its environment."""
        config = json.loads(self.kubeconfig.read_text(encoding="utf-8"))
        cluster = config["clusters"][0]["cluster"]
        account = self.plane.folder / f"account-{pod}"
        account.mkdir()
        (account / "token").write_text(config["users"][0]["user"]["token"], encoding="utf-8")
        (account / "namespace").write_text(self.namespace, encoding="utf-8")
        (account / "ca.crt").write_bytes(Path(cluster["certificate-authority"]).read_bytes())
        host, port = cluster["server"].removeprefix("https://").split(":")
        environment = {**self.chart.environment(pod), "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        told = [f"{name}={value}" for name, value in environment.items()]
        command = self.image.command(account, "env", *told, "kerf", *self.chart.arguments(0, 0))
        return Replica(self.plane.launch(pod, command, {"PATH": os.environ["PATH"]}))


@pytest.fixture(scope="module")
def release(image: Image, binaries: Binaries) -> Iterator[InImage]:
    """On a server of its own, since definitions and roles come and go here."""
    with ControlPlane(binaries, ControlPlaneOptions(with_kwok=False, with_scheduler=False)) as plane:
        yield InImage(plane, image, binaries)


def test_a_pod_of_the_chart_runs_in_it(release: InImage) -> None:
    """A dry run with the account, the roles, the flags and the environment that the chart gives it becomes ready."""
    replica = release.start("kerf-0")

    assert replica.ready()[0]
    assert "dry_run=true" in replica.program.log.read_text(encoding="utf-8")
