"""What decides computes, and nothing else: errors, model, sharing, engine, state and verify import what is listed here.

The contract `pure` names what they must not import. A list of what they may cannot be gone round by a module that
nobody thought of, nor by a name that needs no import.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kerf

ROOMS = ("errors.py", "model", "sharing", "engine", "state", "verify")
MAY_IMPORT = frozenset(
    {
        "abc",
        "base64",
        "bisect",
        "collections",
        "cronsim",
        "dataclasses",
        "datetime",
        "difflib",
        "enum",
        "fractions",
        "functools",
        "hashlib",
        "heapq",
        "highspy",
        "itertools",
        "json",
        "math",
        "numpy",
        "operator",
        "re",
        "struct",
        "types",
        "typing",
        "unicodedata",
        "weakref",
        "yaml",
        "zoneinfo",
    }
)
"""`zoneinfo` reads the rules of time zones, which are data; `yaml` the text of ConfigMaps; `highspy` is the solver;
`weakref` remembers answers as long as they are in use."""
MAY_NOT_NAME = frozenset({"open", "print", "input", "__import__", "eval", "exec", "compile", "breakpoint", "globals"})
MAY_NOT_ASK = frozenset({"now", "utcnow", "today", "random", "perf_counter", "monotonic", "getenv", "environ"})
"""Attributes of modules that are allowed otherwise: clocks of `datetime`, chance of `numpy`."""


def modules() -> Iterator[Path]:
    """The files of the rooms."""
    root = Path(kerf.__file__).parent
    for room in ROOMS:
        yield from [root / room] if room.endswith(".py") else sorted((root / room).rglob("*.py"))


def breaches(text: str) -> list[str]:
    """What a module does that it may not."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            found += [name for name in names if name.partition(".")[0] not in MAY_IMPORT | {"kerf"}]
            found += [each.name for each in node.names if each.name.rpartition(".")[2] in MAY_NOT_ASK]
        elif isinstance(node, ast.Name) and node.id in MAY_NOT_NAME:
            found.append(node.id)
        elif isinstance(node, ast.Attribute) and node.attr in MAY_NOT_ASK:
            found.append(node.attr)
    return found


def test_what_decides_only_computes() -> None:
    """No file, clock, chance, setting or output, by whatever name."""
    assert {} == {path.name: found for path in modules() if (found := breaches(path.read_text(encoding="utf-8")))}


@pytest.mark.parametrize(
    "text",
    [
        "from timeit import default_timer",
        "import numpy as np\nnp.random.default_rng()",
        "from numpy import random",
        "import numpy.random",
        '__import__("time")',
        "import resource",
        "from email.utils import localtime",
        'print("so")',
        "import click",
        "import posix",
        "import builtins",
        "import gzip",
        'open("x")',
        "import codecs",
        "from datetime import datetime\ndatetime.now()",
        "def late():\n    import socket",
    ],
)
def test_a_breach_is_found(text: str) -> None:
    """Each of these once went through all checks, or might."""
    assert [] != breaches(text)
