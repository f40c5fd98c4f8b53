"""The page of versions names those that the tests run with."""

import json
import re

import pytest

from tests.docs.test_documents_run import ROOT

PAGE = (ROOT / "docs" / "reference" / "compatibility.md").read_text(encoding="utf-8")
MODULES = {
    "kubernetes": "k8s.io/kubernetes",
    "kwok": "sigs.k8s.io/kwok",
    "helm": "helm.sh/helm/v4",
    "metrics-server": "sigs.k8s.io/metrics-server",
}


def pinned(program: str) -> str:
    """The version that a program of the control plane is built from."""
    text = (ROOT / "controlplane" / program / "go.mod").read_text(encoding="utf-8")
    found = re.search(rf"^\t{re.escape(MODULES[program])} v(\S+)", text, re.MULTILINE)
    assert found, program
    return found[1]


@pytest.mark.parametrize("program", MODULES)
def test_programs_of_the_control_plane_have_the_version_of_the_page(program: str) -> None:
    """A go.mod says which it is."""
    assert f" {pinned(program)}" in PAGE


def test_definitions_of_others_have_the_version_of_the_page() -> None:
    """Those that are fetched, and those that Kerf has itself."""
    definitions = json.loads((ROOT / "controlplane" / "definitions.json").read_text(encoding="utf-8"))
    own = (ROOT / "src/kerf/kube/crds/karpenter.sh_nodepools.yaml").read_text(encoding="utf-8")
    hami = (ROOT / "tests/data/hami/README.md").read_text(encoding="utf-8")
    versions = [*(each["version"] for each in definitions.values()), re.search(r"Karpenter (v\S+?)'s", own)[1]]
    versions.append(re.search(r"VERSION (v[\d.]+)", hami)[1])

    assert [] == [version for version in versions if version.removeprefix("v") not in PAGE]


def test_emulated_servers_are_those_of_the_page() -> None:
    """The test of the installation starts them."""
    text = (ROOT / "tests/controlplane/test_install.py").read_text(encoding="utf-8")
    versions = re.search(r'parametrize\("version", \[(.*?)\]\)\ndef test_an_older_server', text)[1]

    assert " and ".join(re.findall(r"[\d.]+", versions)) in PAGE
