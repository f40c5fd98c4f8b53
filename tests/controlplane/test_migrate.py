"""What `kerf migrate` writes, on a real API server with the definitions of Karpenter's AWS provider."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf.manifests.karpenter.ec2 import EC2_NODE_CLASS
from kerf.manifests.schema import Report
from tests.cli.program import kerf
from tests.controlplane.definitions import definitions
from tools.controlplane.server import Binaries, ControlPlane, ControlPlaneOptions

CASES = Path(__file__).parents[1] / "data" / "migrate"
OF_001 = "examples/001-migrate/provisioner.yaml"


@pytest.fixture(scope="module")
def plane(binaries: Binaries) -> Iterator[ControlPlane]:
    """A server with the provider's own definitions, which know which labels there are."""
    crds = definitions("karpenter.sh_nodepools", "karpenter.sh_nodeclaims", "karpenter.k8s.aws_ec2nodeclasses")
    options = ControlPlaneOptions(with_kwok=False, with_scheduler=False)
    with ControlPlane(binaries, options) as made:
        made.install_crds(crds)
        yield made


def test_the_form_of_a_node_class_knows_each_field_of_the_definition() -> None:
    """What lint calls unknown would else be a field that the server takes."""
    (crd,) = definitions("karpenter.k8s.aws_ec2nodeclasses")
    (version,) = [each for each in crd["spec"]["versions"] if each["name"] == "v1"]
    report = Report()
    EC2_NODE_CLASS.check({"spec": filled(version["schema"]["openAPIV3Schema"]["properties"]["spec"])}, (), report)

    assert [] == [unknown.path for unknown in report.unknown]


def filled(schema: Any) -> Any:
    """A value with every field that a schema names."""
    if schema["type"] == "object":
        return {name: filled(each) for name, each in schema.get("properties", {}).items()}
    return [filled(schema["items"])] if schema["type"] == "array" else "text"


def piped(plane: ControlPlane, *paths: str) -> subprocess.CompletedProcess[str]:
    """`kerf migrate -f ... | kubectl apply -f -`, where an unknown field is an error."""
    written = kerf("migrate", *(part for path in paths for part in ("-f", path))).stdout
    return plane.kubectl("apply", "--validate=strict", "-f", "-", input=written)


def test_document_001_is_taken_by_the_server(plane: ControlPlane) -> None:
    """001-3, 001-5, 001-7: what the retired API had becomes a pool and a class, with placeholders the server takes."""
    applied = piped(plane, OF_001)

    assert [
        "nodepool.karpenter.sh/gpu-provisioner created",
        "ec2nodeclass.karpenter.k8s.aws/gpu-provisioner created",
    ] == applied.stdout.splitlines()
    pool: Any = plane.get("NodePool", "gpu-provisioner")
    assert {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "300s"} == {
        name: pool["spec"]["disruption"][name] for name in ("consolidationPolicy", "consolidateAfter")
    }


@pytest.mark.parametrize("case", sorted(CASES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_field_of_the_old_kinds_comes_out_valid(plane: ControlPlane, case: Path) -> None:
    """Each of the files uses all that its kind had; nothing of the output is refused or unknown."""
    applied = piped(plane, str(case))
    written = yaml.safe_load_all(kerf("migrate", "-f", str(case)).stdout)

    assert "" == applied.stderr
    assert len(applied.stdout.splitlines()) == len([each for each in written if each])


def test_the_server_does_not_know_the_retired_kind(plane: ControlPlane) -> None:
    """001-5: this is what made people look for a way."""
    refused = plane.kubectl("apply", "-f", OF_001, check=False)

    assert 'no matches for kind "Provisioner" in version "karpenter.sh/v1alpha5"' in refused.stderr
