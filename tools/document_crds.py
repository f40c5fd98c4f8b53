"""Write the reference page of the custom resources from their definitions.

    python tools/document_crds.py > docs/reference/crds.md

Field, type, words and refusals come from the schema, so that the page cannot promise another form than the one that is
installed; a test compares the two. Defaults and bounds stand in the words, which is where `kubectl explain` shows them.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from kerf.kube.crds import crds

Schema = dict[str, Any]

_DOMAIN = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
FORMS = {
    _DOMAIN + r"(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$": (
        "qualified name",
        "letters, digits, `-`, `_` and `.`, first and last a letter or digit; before it a domain and `/` if wanted",
    ),
    r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$": (
        "label value",
        "at most 63 letters, digits, `-`, `_` and `.`, first and last a letter or digit; or nothing",
    ),
    rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$": (
        "quantity",
        "a whole number, or text: a number and a suffix of `Ki` `Mi` `Gi` `Ti` `Pi` `Ei`, `n` `u` `m` `k` `M` `G` `T`"
        " `P` `E`, or an exponent such as `e3`",
    ),
    r"^([0-9]+(s|m|h))+$": ("duration", "whole numbers with `s`, `m` or `h`: `30s`, `1h30m`"),
    r"^(([0-9]+(s|m|h))+|Never)$": ("duration or Never", "a duration, or `Never`"),
    r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$": ("hours and minutes", "`8h`, `45m` or `1h30m`; `0s` may follow"),
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$": (
        "schedule",
        "five fields of cron, or `@annually` `@yearly` `@monthly` `@weekly` `@daily` `@midnight` `@hourly`",
    ),
    r"^((100|[0-9]{1,2})%|[0-9]+)$": ("number or percentage", "text: digits, or `0%` to `100%`"),
    r"^\d+(\.\d+)?$": ("price", "text: digits, with decimals if wanted"),
    r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$": (
        "adjustment",
        "text: a sign and a number, or a sign and a percentage of at least `-100%`",
    ),
    r"^[^/]*$": ("group", "text without `/`"),
    r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$": (
        "reason",
        "at most 1024 letters, digits, `_`, `,` and `:`, first a letter, last no `,` or `:`; in a claim also nothing",
    ),
    r"^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$": ("reason", ""),
    r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$": ("time zone", "a name such as `Europe/Berlin` or `UTC`"),
    _DOMAIN + r"/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$": ("condition type", "a qualified name"),
}
"""Pattern to what a person calls such text, and how it looks; a pattern that is not here stops the tool."""

_TYPES = {"string": "text", "integer": "whole number", "object": "object", "boolean": "true or false"}
_OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata")
INTRODUCTION = """\
# Custom resources

The objects that Kerf serves, as their definitions state them; `tools/document_crds.py` writes this page. CapacityWindow
is Kerf's own, see [windows](../concepts/windows.md); the others it shares with Karpenter. Their form is that of
Karpenter v1.15.0, field for field: the same manifests are accepted and the same refused, in the same words. Only the
columns of `kubectl get nodeclaims` from AWAITS on are Kerf's. Applying one set of definitions over the other changes no
object.
"""


def fields(schema: Schema, path: str = "", *, is_required: bool = False) -> Iterator[tuple[str, Schema, bool]]:
    """Every field below `schema`, with its path and whether it must be given; parents first.

    A field that has a default need not be given, whatever `required` says.
    """
    if path:
        yield path, schema, is_required and "default" not in schema
    for name, inner in schema.get("properties", {}).items():
        if path or name not in _OF_EVERY_OBJECT:
            yield from fields(inner, f"{path}.{name}".removeprefix("."), is_required=name in schema.get("required", ()))
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")


def _type(schema: Schema) -> str:
    if "additionalProperties" in schema:
        return f"map of {_type(schema['additionalProperties'])}"
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    if "enum" in schema:
        return "one of " + ", ".join(f"`{word}`" for word in schema["enum"])
    if "pattern" in schema:
        return FORMS[schema["pattern"]][0]
    return "instant" if schema.get("format") == "date-time" else _TYPES[schema["type"]]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return _row(head) + "|" + "---|" * len(head) + "\n" + "".join(map(_row, rows)) if rows else ""


def _head(definition: Schema) -> str:
    spec, (version,) = definition["spec"], definition["spec"]["versions"]
    names, described = spec["names"], version["schema"]["openAPIV3Schema"]["description"]
    known = " and ".join(f"`{name}`" for name in (names["plural"], *names.get("shortNames", ()), *names["categories"]))
    text = f"`{spec['group']}/{version['name']}`, not in a namespace; `kubectl get` knows it by {known}."
    scale = version["subresources"].get("scale")
    if scale:
        text += f" `kubectl scale` writes `{scale['specReplicasPath'][1:]}`."
    return f"## {names['kind']}\n\n{described}\n\n{text}\n"


def _columns(version: Schema) -> str:
    rows = [
        (column["name"].upper(), f"`{column['jsonPath']}`", "with `-o wide`" if column.get("priority") else "always")
        for column in version.get("additionalPrinterColumns", ())
    ]
    return _table(("column", "of", "shown"), rows)


def _fields(schema: Schema) -> str:
    rows: list[tuple[str, str, str]] = []
    told: dict[str, Schema] = {}
    hidden: tuple[str, ...] = ("status.conditions[]",)
    for path, inner, is_required in fields(schema):
        if path.startswith(hidden):
            continue
        if path.endswith("[]"):
            same = next((earlier for earlier, known in told.items() if known == inner), "")
            told[path] = inner
            if same:
                hidden += (path,)
                name, kind, words = rows[-1]
                rows[-1] = (name, kind, f"{words} Each like `{same}`.")
            continue
        rows.append((f"`{path}`", _type(inner) + (", required" if is_required else ""), _words(path, inner)))
    return _table(("field", "type", "meaning"), rows)


def _words(path: str, schema: Schema) -> str:
    items = schema.get("items", {})
    said = [schema["description"], items.get("description", "") if items.get("type") == "string" else ""]
    said.append("See [conditions](#conditions)." if path == "status.conditions" else "")
    return " ".join(filter(None, said))


def _rules(schema: Schema) -> str:
    rows = [
        (f"`{path}`", rule["message"])
        for path, inner, _ in fields(schema)
        for rule in inner.get("x-kubernetes-validations", ())
    ]
    return "Refused with these words:\n\n" + _table(("field", "words"), rows) if rows else ""


def _conditions(schema: Schema) -> str:
    start = "status.conditions[]."
    rows = [
        (f"`{path.removeprefix(start)}`", _type(inner), inner["description"])
        for path, inner, _ in fields(schema)
        if path.startswith(start)
    ]
    text = "Entries of `status.conditions`, by type. What Kerf writes there stands in [what Kerf writes](cluster.md).\n"
    return f"## Conditions\n\n{text}\n" + _table(("field", "type", "meaning"), rows)


def page() -> str:
    """The whole page: every definition in the order of their files, then what they have in common."""
    parts, schema = [INTRODUCTION], {}
    for definition in crds():
        (version,) = definition["spec"]["versions"]
        schema = version["schema"]["openAPIV3Schema"]
        parts += [_head(definition), _columns(version), _fields(schema), _rules(schema)]
    forms = _table(("type", "form"), [form for form in FORMS.values() if form[1]])
    return "\n".join(part for part in (*parts, _conditions(schema), "## Forms of text\n\n" + forms) if part)


if __name__ == "__main__":
    sys.stdout.write(page())
