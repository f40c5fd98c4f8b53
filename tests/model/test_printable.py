"""What objects say is shown without their control characters."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.model.events import not_understood
from kerf.model.nodeclaim import Condition
from kerf.model.printable import one_line, printable


@pytest.mark.parametrize(
    "text, shown",
    [
        ("plain", "plain"),
        ("größer als 東京", "größer als 東京"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[2J\x07", "\\u001b[2J\\u0007"),
        ("\x9b31m", "\\u009b31m"),
        ("a\rb\x7f", "a\\u000db\\u007f"),
        ("safe\u202eevil\u2066", "safe\\u202eevil\\u2066"),
        ("a\u2028b", "a\\u2028b"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    """As JSON does; letters of any language stay."""
    assert shown == printable(text)


@given(st.text())
def test_what_is_printable_stays_so(text: str) -> None:
    """Once is enough, and JSON reads back what it was."""
    shown = printable(text)
    assert shown == printable(shown)
    encoded = json.dumps(text, ensure_ascii=False)
    assert text == json.loads(printable(encoded))


def test_events_and_conditions_are_printable() -> None:
    """They quote objects, and kubectl prints them as they are."""
    assert "\\u001b[31m" in not_understood("Pod", "a/b", "got '\x1b[31m'").message
    assert "\\u001b]0;" == Condition("Ready", "False", "Broken", "\x1b]0;").message


@given(st.text())
def test_one_line_is_one(text: str) -> None:
    """Once is enough, and no line or column can be forged."""
    shown = one_line(text)
    assert shown == one_line(shown)
    assert [shown] == (shown.splitlines() or [""])
    assert "\t" not in shown
