"""Python's stack is a thousand frames deep, and what tenants write is longer: nothing may go down one call an item."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kerf

SOURCE = Path(kerf.__file__).parent
DOCUMENT = "a document has at most MOST_LEVELS levels"
WIRE = "requests of boto3 and replies of moto, which a test wrote"
OWN_STACK = "each step is a task of its own, with a stack of its own"
BOUNDED = {
    "cli/simulating.py": {"_flow": DOCUMENT},
    "clouds/aws/nodeclass/hashing.py": {"_filled _plain": "as deep as the dataclasses of the model"},
    "clouds/aws/userdata/toml.py": {"_value": "ends at _MOST_LEVELS"},
    "clouds/kwok/machines.py": {"_run touch": OWN_STACK},
    "controllers/runtime.py": {"_begin _enqueue_at _run enqueue": OWN_STACK},
    "engine/explain/alike.py": dict.fromkeys(
        ("kind_of", "_several_text alike_text"), "what holds a node that is due is no `Due`"
    ),
    "engine/explain/hints/search.py": {"_by_name merged": "changes that we have written ourselves"},
    "kube/writer.py": {"_difference": "objects that we have written ourselves"},
    "lint/subject.py": {"walk": DOCUMENT},
    "manifests/clusterdump/encode.py": {"_kept": DOCUMENT, "_without_secrets": DOCUMENT},
    "manifests/clusterdump/trim.py": {"_field _struct": "as deep as the forms of a dump, which Kerf states"},
    "manifests/migrate/objects.py": {"_undone": DOCUMENT},
    "manifests/migrate/others.py": {"_named": DOCUMENT},
    "manifests/migrate/values.py": {"_leaves": DOCUMENT, "_renamed": DOCUMENT},
    "manifests/migrate/writing.py": {"_lines": DOCUMENT, "_node": DOCUMENT},
    "manifests/yaml_nodes.py": {"_mapping _merge value": "ends at MOST_LEVELS"},
    "manifests/workloads/expansion.py": {"_chained": "ends after _LONGEST_CHAIN owners"},
    "sharing/nvidia/mig_geometry.py": {"_search": "at most eight instances fit a card, and each call places one"},
    "sim/objects.py": {"copied": DOCUMENT, "merged": DOCUMENT},
    "sim/course/scenario.py": {"_documents _documents_of": DOCUMENT},
    "testing/faultproxy/wire.py": dict.fromkeys(("_tree", "_with_lists", "fields", "xml"), WIRE),
}
"""Functions that call themselves, those of one circle together, by file, and what bounds their depth."""


def circles(tree: ast.Module) -> set[str]:
    """Names of the functions of a module that can come back to themselves, those of one circle together."""
    calls: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for owner, function in functions(tree):
        names = calls.setdefault((owner, function.name), set())
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                names.update(called(node.func, owner))
    reached = {start: reachable(start, calls) for start in calls}
    return {
        " ".join(sorted(name for _, name in {start, *(end for end in ends if start in reached[end])}))
        for start, ends in reached.items()
        if start in ends
    }


def functions(tree: ast.AST, owner: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Each function with the class it is a method of; local ones too, as functions of the module."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield owner, node
            yield from functions(node)
        else:
            yield from functions(node, node.name if isinstance(node, ast.ClassDef) else owner)


def called(target: ast.expr, owner: str) -> Iterator[tuple[str, str]]:
    """What a call may mean within the module: a function by its name, or another method of `self`."""
    if isinstance(target, ast.Name):
        yield "", target.id
    elif (
        isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in ("self", "cls")
    ):
        yield owner, target.attr


def reachable(start: tuple[str, str], calls: dict[tuple[str, str], set[tuple[str, str]]]) -> set[tuple[str, str]]:
    """All functions that calls can come to."""
    found: set[tuple[str, str]] = set()
    waiting = [start]
    while waiting:
        for name in calls[waiting.pop()] & calls.keys():
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


@pytest.mark.parametrize(
    "text, expected",
    [
        ("def f(n):\n return f(n - 1)", {"f"}),
        ("def f(n):\n return g(n)\ndef g(n):\n return f(n)", {"f g"}),
        ("def f(n):\n def best(n):\n  return best(n - 1)\n return best(n)", {"best"}),
        ("class A:\n def f(self):\n  return [self.f() for _ in self.b]", {"f"}),
        ("class A:\n def f(self):\n  return self.other.f()", set()),
        ("def f(n):\n return g(n)\ndef g(n):\n return n", set()),
    ],
)
def test_the_check_finds_circles(text: str, expected: set[str]) -> None:
    """Directly, through another function, through a local one, and through self; another object's method is none."""
    assert expected == circles(ast.parse(text))


def test_no_function_calls_itself_without_a_bound() -> None:
    """But for those that stand above with what bounds their depth."""
    found = {
        str(path.relative_to(SOURCE)): names
        for path in sorted(SOURCE.rglob("*.py"))
        if (names := circles(ast.parse(path.read_text(encoding="utf-8"))))
    }

    assert {name: set(reasons) for name, reasons in BOUNDED.items()} == found


def test_nothing_raises_the_limit() -> None:
    """A deeper stack only moves the number at which it ends, and the C stack below it ends the process."""
    assert [] == [path for path in SOURCE.rglob("*.py") if "setrecursionlimit" in path.read_text(encoding="utf-8")]
