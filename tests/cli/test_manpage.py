"""The manual page: made of the commands, as it is committed, and readable by man."""

import re
import shutil
import subprocess

import click
import pytest

from kerf.cli.examples import ExampleCommand
from kerf.cli.main import COMMANDS
from kerf.cli.manpage import _text
from tests.cli.program import ROOT, kerf
from tools.document_manpage import PAGE


def test_the_committed_page_is_that_of_the_program() -> None:
    """`make generated` writes it."""
    assert (ROOT / PAGE).read_text(encoding="utf-8") == kerf("manpage").stdout


def test_help_has_the_same_names_in_each_context() -> None:
    """click keeps the option that a command made first, also of one that was made without the program."""
    made = ExampleCommand("new")
    alone, below = click.Context(made), click.Context(made, help_option_names=["-h", "--help"])

    options = [made.get_help_option(each) for each in (alone, below)]
    assert [["-h", "--help"]] * 2 == [each.opts for each in options if each is not None]


def test_every_command_has_its_section_with_its_examples() -> None:
    """Those of groups too."""
    page = kerf("manpage").stdout

    sections = [line.removeprefix(".SS ").replace("\\-", "-") for line in page.splitlines() if line.startswith(".SS ")]
    assert [] == [name for name in COMMANDS if f"kerf {name}" not in sections]
    assert {"kerf advise requests", "kerf aws cloudformation"} <= set(sections)
    assert "kerf explain pod" not in sections
    assert "kerf nodes \\-f cluster.yaml \\-\\-sort\\-by .perHour" in page


def test_no_text_is_a_request_of_roff() -> None:
    """A line that begins with a point or a quote, a backslash, a hyphen that could be broken."""
    assert ["\\&.node", "\\&'a'", "a\\eb", "\\-o"] == [_text(text) for text in (".node", "'a'", "a\\b", "-o")]
    requests = {line.split()[0] for line in kerf("manpage").stdout.splitlines() if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".SS", ".B", ".BR", ".PP", ".TP", ".RS", ".RE", ".nf", ".fi"}


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_groff_reads_it_without_a_word() -> None:
    """As man does."""
    command = ["groff", "-man", "-Tutf8", "-ww", PAGE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert "" == done.stderr
    assert "EXIT STATUS" in re.sub(".\x08", "", done.stdout)
