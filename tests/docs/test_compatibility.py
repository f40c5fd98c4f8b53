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


def said(path: str, pattern: str) -> str:
    """The first group of a pattern in a file."""
    found = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    assert found, f"{path}: {pattern}"
    return found[1]


def pinned(program: str) -> str:
    """The version that a program of the control plane is built from."""
    return said(f"controlplane/{program}/go.mod", rf"^\t{re.escape(MODULES[program])} v(\S+)")


@pytest.mark.parametrize("program", MODULES)
def test_programs_of_the_control_plane_have_the_version_of_the_page(program: str) -> None:
    """A go.mod says which it is."""
    assert f" {pinned(program)}" in PAGE


def test_definitions_of_others_have_the_version_of_the_page() -> None:
    """Those that are fetched, and those that Kerf has itself."""
    definitions = json.loads((ROOT / "controlplane" / "definitions.json").read_text(encoding="utf-8"))
    versions = [each["version"] for each in definitions.values()]
    versions.append(said("src/kerf/kube/crds/karpenter.sh_nodepools.yaml", r"Karpenter (v\S+?)'s"))
    versions.append(said("tests/data/hami/README.md", r"VERSION (v[\d.]+)"))

    assert [] == [version for version in versions if version.removeprefix("v") not in PAGE]


def test_emulated_servers_are_those_of_the_page() -> None:
    """The test of the installation starts them."""
    pattern = r'parametrize\("version", \[(.*?)\]\)\ndef test_an_older_server'
    versions = re.findall(r"[\d.]+", said("tests/controlplane/test_install.py", pattern))

    assert " and ".join(versions) in PAGE
