"""Reference pages that are written from the program, and names that pages must not forget."""

from pathlib import Path

import pytest

from kerf.cli.main import COMMANDS, HIDDEN
from kerf.clouds.device_plugins import FAULT_KINDS
from kerf.clouds.kwok.controls import _SETTINGS
from kerf.clouds.kwok.machines import INTERRUPT
from tests.docs.test_documents_run import ROOT
from tools.document_run import CLUSTER, generated

GENERATED = generated((ROOT / CLUSTER).read_text(encoding="utf-8"))


def reference(name: str) -> str:
    """A page of the reference."""
    return (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", GENERATED, ids=str)
def test_settings_and_metrics_are_those_of_the_program(path: Path) -> None:
    """`python tools/document_run.py` writes them."""
    assert GENERATED[path] == (ROOT / path).read_text(encoding="utf-8")


def test_every_command_has_its_page() -> None:
    """Also those that the help text does not list; the index names each, and there is no other page."""
    names = {*COMMANDS, *HIDDEN}

    assert names == {path.stem for path in (ROOT / "docs" / "reference" / "cli").glob("[a-z]*.md")}
    assert [] == [name for name in names if not reference(f"cli/{name}").startswith(f"# kerf {name}\n")]
    assert [] == [name for name in names if f"]({name}.md)" not in reference("cli/README")]


def test_the_controls_of_the_acted_out_cloud_are_all_there() -> None:
    """Settings, faults and the annotation of an interruption."""
    page = reference("kwok")

    assert [] == [name for name in (*_SETTINGS, *FAULT_KINDS, INTERRUPT) if name not in page]
