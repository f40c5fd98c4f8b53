"""`-o`: the forms that every command has, and those of kubectl that are made of its JSON.

Only what reads the flag is here; `written` imports what makes the text.
"""

from typing import Any

import click
from click.shell_completion import CompletionItem

FORMATS = ("table", "wide", "json", "yaml")
NAME, JSONPATH, COLUMNS = "name", "jsonpath", "custom-columns"
_GIVEN = (f"{JSONPATH}=", f"{COLUMNS}=")
_NOT_OURS = {
    "go-template": "-o jsonpath='{.items[*].node}' says the same",
    "go-template-file": "-o jsonpath='{.items[*].node}' says the same",
    "jsonpath-file": '-o jsonpath="$(cat FILE)" says the same',
    "jsonpath-as-json": "-o json, and jq",
    "custom-columns-file": "-o custom-columns=NODE:.node says the same",
}
"""Forms of kubectl that Kerf does not have, and what to type instead."""


class OutputForm(click.ParamType[str]):
    """One of `FORMATS`, `name`, `jsonpath=TEMPLATE` or `custom-columns=HEADER:PATH,...`; stays text."""

    name = "form"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """The forms, as help shows them."""
        return f"[{'|'.join((*FORMATS, NAME, f'{JSONPATH}=...', f'{COLUMNS}=...'))}]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Fails with the forms there are, and for one of kubectl's with what says the same."""
        text = str(value)
        if text in (*FORMATS, NAME):
            return text
        form, _, rest = text.partition("=")
        if form in (JSONPATH, COLUMNS) and rest:
            return text
        raise click.BadParameter(_refusal(text, form), ctx, param)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The forms that begin like this."""
        return [CompletionItem(each) for each in (*FORMATS, NAME, *_GIVEN) if each.startswith(incomplete)]


def _refusal(text: str, form: str) -> str:
    if form in (JSONPATH, COLUMNS):
        example = "jsonpath='{.items[*].node}'" if form == JSONPATH else "custom-columns=NODE:.node,PRICE:.perHour"
        return f"expected {form}=..., such as -o {example}"
    known = ", ".join((*FORMATS, NAME, *(f"{each}..." for each in _GIVEN)))
    hint = f"; {_NOT_OURS[form]}" if form in _NOT_OURS else ""
    return f"{text!r} is not one of {known}{hint}"


def is_of_fields(output: str) -> bool:
    """Whether it is made of the JSON, as json and yaml are: what only a table needs is not computed for it."""
    return output not in ("table", "wide")


def items_of(data: dict[str, Any]) -> list[Any]:
    """The rows of an object: its items, or itself where it has none."""
    items = data.get("items")
    return items if isinstance(items, list) else [data]
