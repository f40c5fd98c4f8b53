"""The page of messages has words that the program says."""

import re

import pytest

from tests.docs.test_documents_run import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
SOURCE = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py")) if "data" not in path.parts
)
MESSAGES = sorted(
    span
    for line in PAGE.splitlines()
    if line.startswith("| `")
    for span in re.findall(r"`([^`]+)`", line.split(" | ")[0])
)
CONDITION = {"RegisteredTimedOut": "TimedOut", "InitializedTimedOut": "TimedOut", "DevicesNotRegistered": "Devices"}
"""Reasons that the program puts together."""


def pieces(message: str) -> list[str]:
    """What of a message is not a name or a number of one case: runs of plain words."""
    message = CONDITION.get(message, message)
    return [each.strip() for each in re.split(r"\.\.\.|\d+\w*|[:;(),>]", message) if len(each.strip()) > 3]


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_of_the_page_is_the_programs(message: str) -> None:
    """Each run of its words stands in the code, where placeholders and line ends may part it."""
    code = re.sub(r'"\s*\n\s*f?"', "", SOURCE)
    missing = [piece for piece in pieces(message) if not any(piece in text for text in (code, SOURCE))]

    assert [] == missing


def test_there_are_messages() -> None:
    """A page of another form would pass."""
    assert len(MESSAGES) > 25
