"""As much of PromQL as lint needs: which metrics an expression reads, by what function, with which labels.

The grammar is Prometheus's own; what is not a metric is known by what stands around a word, so no expression is
ever refused: a word before `(` is a function, one between braces or after `by` and its like is a label.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"(?P<comment>#[^\n]*)"
    r"|(?P<text>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`)"
    r"|(?P<word>[A-Za-z_:][A-Za-z0-9_:]*)"
    r"|(?P<number>[0-9][0-9a-zA-Z_.]*)"
    r"|(?P<sign>=~|!~|!=|==|>=|<=|[-+*/%^(){}\[\],=<>@.])"
)
_GROUPINGS = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_WORDS = _GROUPINGS | {"and", "or", "unless", "bool", "offset", "inf", "nan", "start", "end", "atan2"}


@dataclass(frozen=True, slots=True)
class Selector:
    """A metric as an expression reads it. `function` is the innermost around it; empty for none.

    `labels` are (label, value) of its matchers.
    """

    metric: str
    function: str
    labels: tuple[tuple[str, str], ...] = ()


def selectors(expression: str) -> tuple[Selector, ...]:
    """Every metric that the expression reads, in its order. Cost: its length."""
    return tuple(_Reader(expression).read())


class _Reader:
    def __init__(self, expression: str) -> None:
        found = (m for m in _TOKEN.finditer(expression) if m.lastgroup != "comment")
        self._tokens = [(match.lastgroup or "", match.group()) for match in found]
        self._at = 0

    def _peek(self, ahead: int = 0) -> tuple[str, str]:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ("", "")

    def read(self) -> Iterator[Selector]:
        functions: list[str] = []
        while self._at < len(self._tokens):
            kind, text = self._peek()
            follows = self._peek(1)[1]
            self._at += 1
            if kind == "word" and text.lower() in _GROUPINGS:
                if follows == "(":
                    self._skip("(", ")")
            elif kind == "word" and follows == "(":
                functions.append(text)
                self._at += 1
            elif kind == "word" and follows in ("by", "without"):
                # An aggregation with its labels before its brackets: `sum by (node) (x)`.
                self._at += 1
                self._skip("(", ")")
                if self._peek()[1] == "(":
                    functions.append(text)
                    self._at += 1
            elif text == "(":
                functions.append(functions[-1] if functions else "")
            elif text == ")":
                if functions:
                    functions.pop()
            elif text == "[":
                self._at -= 1
                self._skip("[", "]")
            elif text == "{" or (kind == "word" and text.lower() not in _WORDS):
                yield from self._selector("" if text == "{" else text, functions[-1] if functions else "")

    def _selector(self, name: str, function: str) -> Iterator[Selector]:
        if name and self._peek()[1] == "{":
            self._at += 1
        elif name:
            yield Selector(name, function)
            return
        labels = []
        while self._at < len(self._tokens) and self._peek()[1] != "}":
            word, sign, value = self._peek(), self._peek(1)[1], self._peek(2)
            if word[0] == "word" and sign in ("=", "!=", "=~", "!~") and value[0] == "text":
                labels.append((word[1], value[1][1:-1]))
                self._at += 2
            self._at += 1
        self._at += 1
        named = next((value for label, value in labels if label == "__name__"), name)
        if named:
            yield Selector(named, function, tuple(labels))

    def _skip(self, opening: str, closing: str) -> None:
        level = 0
        while self._at < len(self._tokens):
            text = self._peek()[1]
            level += (text == opening) - (text == closing)
            self._at += 1
            if level <= 0:
                return
