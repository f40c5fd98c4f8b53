"""Writes docs/reference/lint.md: the register of rules, each with its own docstring, so that none can drift."""

from pathlib import Path

from kerf.lint.registry import PAGE, Rule
from kerf.lint.rules import rules

ROOT = Path(__file__).parents[1]
_HEAD = """# Rules of kerf lint

What `kerf lint` finds, by code. A code is for ever; the text below each is also what `kerf lint --explain CODE` prints
and what SARIF carries.

An **error** is what cannot happen as it is written, a **warning** what can and is probably not meant, **info** what is
worth knowing.
How to suppress a finding, and how to run it in CI: [guide: lint](../guides/lint.md).

| code | finds | severity | `--fix` |
|---|---|---|---|
"""


def _row(rule: Rule) -> str:
    fix = "yes" if rule.is_fixable else ""
    return f"| [{rule.code}](#{rule.code.lower()}) | {rule.summary} | {rule.severity.value} | {fix} |"


def _section(rule: Rule) -> str:
    text = rule.text.partition("\n")[2].strip()
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    head = f"## {rule.code}\n\n**{rule.summary}.** `{rule.name}`, {rule.severity.value}."
    return "\n\n".join([head, *paragraphs])


def page() -> str:
    """The whole page."""
    known = rules().values()
    return _HEAD + "\n".join(map(_row, known)) + "\n\n" + "\n\n".join(map(_section, known)) + "\n"


if __name__ == "__main__":
    (ROOT / PAGE).write_text(page(), encoding="utf-8")
    print(PAGE)
