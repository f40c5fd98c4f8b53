"""Patches as an operator applies them: by the kubectl of the control plane's programs where it is built.

Without it the rules below are applied here: RFC 7386, save that containers are merged by name and spread constraints by
their topology key.
"""

import json
import shlex
import subprocess
import sys
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from kerf.cli.render import patch_command
from kerf.model.plan import Patch

Object = dict[str, Any]
_BUILD = Path(__file__).parents[1] / "controlplane" / "build.py"


@cache
def kubectl() -> Path | None:
    """The program; None where it is not built."""
    printed = subprocess.run([sys.executable, _BUILD, "--print"], capture_output=True, text=True, check=True).stdout
    found = Path(printed.strip()) / "kubectl"
    return found if found.exists() else None


def merged(target: Any, change: Any) -> Any:
    """RFC 7386, save that such lists are merged by key, as kubectl's strategic patch does."""
    if not isinstance(change, dict):
        return deepcopy(change)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        elif key in ("containers", "initContainers"):
            wanted = {entry["name"]: entry for entry in value}
            assert set(wanted) <= {held["name"] for held in result[key]}
            result[key] = [merged(held, wanted.get(held["name"], {})) for held in result[key]]
        elif key == "topologySpreadConstraints":
            wanted = {entry["topologyKey"]: entry for entry in value}
            assert set(wanted) <= {held["topologyKey"] for held in result[key]}
            result[key] = [merged(held, wanted.get(held["topologyKey"], {})) for held in result[key]]
        else:
            result[key] = merged(result.get(key), value)
    return result


def applied(target: Object, command: str) -> Object:
    """The manifest with a printed command applied to it, and to nothing but it."""
    words = shlex.split(command)
    assert ["kubectl", "patch"] == words[:2]
    strategy, text = words[words.index("--type") + 1], words[words.index("-p") + 1]
    program = kubectl()
    if program is None:
        return dict(merged(target, json.loads(text)))
    local = [str(program), "patch", "--local", "-f", "-", "--type", strategy, "-p", text, "-o", "json"]
    done = subprocess.run(local, input=json.dumps(target), capture_output=True, text=True, check=False, timeout=60)
    assert 0 == done.returncode, done.stderr
    return dict(json.loads(done.stdout))


def patched(objects: list[Object], *patches: Patch | None) -> list[Object]:
    """The manifests with patches applied, each to the one object that it is for, by the command that Kerf prints."""
    assert patches
    found = list(objects)
    for patch in patches:
        assert patch is not None
        [at] = [n for n, o in enumerate(found) if (o["kind"], o["metadata"]["name"]) == (patch.kind, patch.name)]
        found[at] = applied(found[at], patch_command(patch))
    return found
