"""One name means one thing: who looks a class up by its name finds one."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]

ALLOWED = {
    "KubeReader": "a port, and what implements it for the real API",
    "KubeWriter": "a port, and what implements it for the real API",
    "DevicePlugins": "the same stand-in for the simulator and for the acted-out cloud",
    "StockOut": "the same fault in a scenario of the simulator and of the acted-out cloud",
}
"""Names that two public classes may share, with why."""


def test_no_two_public_classes_share_a_name() -> None:
    """Except those of the list, each of which two classes still have."""
    found = defaultdict(list)
    for path in sorted((ROOT / "src" / "kerf").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(ROOT)))

    shared = {name: places for name, places in found.items() if len(places) > 1}
    assert ALLOWED.keys() == shared.keys(), {name: places for name, places in shared.items() if name not in ALLOWED}
