"""What a template has left open: `<<AZ>>`, `${CLASS}`, `{{ .Values.zone }}` in a manifest that was never rendered.

An error about the value itself ("no quantity") is true and does not help: what has to be done is the same for all.
"""

import re

_INSIDE = re.compile(r"<<\s*[\w.-]+\s*>>|\$\{[\w.:?=-]+\}|\{\{.*?\}\}|\{%.*?%\}", re.ASCII)
_WHOLE = re.compile(
    r"<[A-Za-z][\w .-]*>|\$[A-Z_][A-Z0-9_]*|__[A-Z][A-Z0-9_]*__|%[A-Z][A-Z0-9_]*%|@[A-Z][A-Z0-9_]*@", re.ASCII
)
_RENDER = "a Helm template is no YAML: render it first, with helm template CHART"


def placeholder_in(text: str) -> str:
    """The first placeholder of a text; empty where it has none. `<AZ>` and `$AZ` are one only as the whole of it."""
    found = _INSIDE.search(text) or _WHOLE.fullmatch(text.strip())
    return found.group() if found else ""


def unfilled_hint(value: object) -> str:
    """What to do about a value that is or has a placeholder; empty where it has none."""
    found = placeholder_in(value) if isinstance(value, str) else ""
    return f"{found} is a placeholder that was left open: fill it in before the manifest is used" if found else ""


def unrendered_hint(text: str, line: int) -> str:
    """The same where the text is no YAML by it; `line` counts from 0 and is where a reader stopped."""
    if "{{" in text:
        return _RENDER
    lines = text.split("\n")
    return unfilled_hint(lines[line]) if line < len(lines) else ""
