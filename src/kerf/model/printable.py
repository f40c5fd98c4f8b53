"""Text that came from an object, made safe to show: no control character, nothing that turns the order of letters.

A name, an annotation or a message of one tenant is shown on the terminal of another, where an escape sequence could
overwrite what stands above, and stands in events that other programs print.
"""

import unicodedata

__all__ = ["one_line", "printable"]

_KEPT = "\n\t"
# Controls of C0 and C1, separators of lines and paragraphs, and the letters that turn the direction of writing.
_TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_UNSAFE = [chr(code) for code in range(0xA0) if unicodedata.category(chr(code)) == "Cc" and chr(code) not in _KEPT]
_LINES = str.maketrans({"\n": "\\n", "\t": "\\t"})
_ESCAPES = str.maketrans({each: f"\\u{ord(each):04x}" for each in (*_UNSAFE, "\u2028", "\u2029", *_TURNING)})


def printable(text: str) -> str:
    """The text with each unsafe character as JSON and YAML escape it, `\\u001b`; lines and tabs stay. Linear."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPES)


def one_line(text: str) -> str:
    """The text as `printable` has it, its lines and tabs escaped as well: what it quotes cannot pass for more lines."""
    return printable(text).translate(_LINES) if not text.isprintable() else printable(text)
