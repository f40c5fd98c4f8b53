"""Pieces of self-contained SVG files: nothing is loaded from elsewhere, and equal input gives equal bytes."""

from collections.abc import Sequence

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
"""Of Okabe and Ito, which people with any colour vision tell apart."""


def document(title: str, width: int, height: int, parts: Sequence[str]) -> str:
    """The text of a file on a white ground, with the title over the parts."""
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="sans-serif" font-size="12" fill="#222">',
        f"<title>{escaped(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, attributes: str = "") -> str:
    """Words at a place; `attributes` are in single quotes."""
    quoted = attributes.replace("'", '"')
    return f'<text x="{number(x)}" y="{number(y)}"{" " + quoted if quoted else ""}>{escaped(words)}</text>'


def number(value: float) -> str:
    """With at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def escaped(words: str) -> str:
    """As content of an element."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
