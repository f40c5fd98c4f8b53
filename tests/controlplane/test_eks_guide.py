"""docs/guides/eks.md: Helm renders what the guide says, kubectl knows its flags, and a server takes its objects."""

import re
import shlex
import subprocess

import pytest
import yaml

from kerf.clouds.aws.stack import stack
from kerf.kube.crds import crds
from tests.controlplane.chart import CRD, Chart, helm
from tests.docs.test_documents_run import ROOT
from tests.docs.test_eks import ALL, EXAMPLES, PAGES, commands
from tools.controlplane.server import Binaries, ControlPlane

LINES = [each for each in commands(PAGES[0]) if re.match(r"helm (install|upgrade) kerf ", each)]
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/kerf"
DIGEST = "sha256:" + "0123456789abcdef" * 4


def templated(binaries: Binaries, line: str, *more: str) -> Chart:
    """What a line of Helm would apply."""
    _, _, name, _, *flags = shlex.split(line)
    own = [flag for flag in flags if flag not in ("--create-namespace", "--reset-then-reuse-values")]
    done = helm(binaries, "template", name, str(ROOT / "charts" / "kerf"), *more, *own, "--kube-version=1.34.0")
    assert "" == done.stderr
    return Chart(tuple(each for each in yaml.safe_load_all(done.stdout) if each))


def flags_of(chart: Chart) -> list[str]:
    """Those of `kerf run` about the cloud and the dry run."""
    about = ("--cloud", "--cluster-name", "--interruption-queue", "--dry-run")
    return [each for each in chart.container["args"] if each.partition("=")[0] in about]


def test_helm_installs_what_the_guide_says(binaries: Binaries) -> None:
    """The image by its digest, no definitions, and the account to which the stack gives the role."""
    chart = templated(binaries, LINES[0])
    identity = stack("kerf-system", "kerf")["Resources"]["PodIdentity"]["Properties"]
    name = chart.of_kind("Deployment")[0]["spec"]["template"]["spec"]["serviceAccountName"]
    accounts = [(each["metadata"]["name"], each["metadata"]["namespace"]) for each in chart.of_kind("ServiceAccount")]

    assert ["--cloud=aws", "--cluster-name=prod", "--interruption-queue=prod-interruptions"] == flags_of(chart)
    assert f"{IMAGE}@{DIGEST}" == chart.container["image"]
    assert [] == chart.of_kind(CRD)
    assert name == identity["ServiceAccount"]
    assert (name, identity["Namespace"]) in accounts


def test_helm_looks_beside_karpenter_and_then_acts(binaries: Binaries) -> None:
    """A dry run without a queue first; the upgrade keeps its values and lets it act."""
    _, look, switch = LINES
    before = templated(binaries, look)
    kept = [part for flag in shlex.split(look) for part in (["--set", flag] if "=" in flag else [])]
    after = templated(binaries, switch, *kept)

    assert ["--cloud=aws", "--cluster-name=prod", "--dry-run"] == flags_of(before)
    assert ["--cloud=aws", "--cluster-name=prod", "--interruption-queue=prod-interruptions"] == flags_of(after)


def test_the_role_of_irsa_reaches_the_service_account(binaries: Binaries) -> None:
    """The values of the guide, as they stand."""
    text = PAGES[0].read_text(encoding="utf-8")
    (values,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    given = {**yaml.safe_load(values), "controller": {"image": {"repository": IMAGE}}}
    done = helm(binaries, "template", "kerf", str(ROOT / "charts" / "kerf"), "--set=settings.cloud=aws", values=given)
    objects = [each for each in yaml.safe_load_all(done.stdout) if each]
    (account,) = [e["metadata"] for e in objects if (e["kind"], e["metadata"]["name"]) == ("ServiceAccount", "kerf")]

    assert given["serviceAccount"]["annotations"] == account["annotations"]


@pytest.mark.parametrize("command", [each for each in ALL if each.startswith("kubectl ")])
def test_kubectl_knows_the_command_and_its_flags(binaries: Binaries, command: str) -> None:
    """By its own help."""
    words = shlex.split(command)[1:]
    known = _said(binaries, "options") + _said(binaries, words[0], "--help")
    flags = [word.partition("=")[0] for word in words if word.startswith("-") and word != "-"]

    assert [] == [flag for flag in flags if not re.search(rf"{flag}[=,]", known)]


def _said(binaries: Binaries, *words: str) -> str:
    done = subprocess.run([binaries.need("kubectl"), *words], capture_output=True, text=True, check=True)
    return done.stdout


def test_a_server_takes_the_objects_of_the_guide(control_plane: ControlPlane) -> None:
    """With the definitions of `kerf manifests --crds --cloud aws`, and their rules; nothing is kept."""
    control_plane.install_crds(crds("aws"))
    files = [f"--filename={EXAMPLES / 'eks' / name}.yaml" for name in ("nodeclass", "nodepool", "pod")]
    done = control_plane.kubectl("apply", "--server-side", "--dry-run=server", *files)

    assert (3, "") == (done.stdout.count("serverside-applied (server dry run)"), done.stderr)
