"""Fetches CustomResourceDefinitions of other projects, against which manifests of ours are tried.

Usage: python controlplane/definitions.py [--print]

They come with Go modules, through the Go module proxy, into a per-user cache; `definitions.json` names module, version,
the hash of its content and the files. The cache folder is keyed by that file, so an unchanged lock costs nothing.
Nothing is built. Prints the folder that holds the files, last. Standard library only; Go as for build.py.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from build import HERE, cache_root, find_go, staged

LOCK = HERE / "definitions.json"


def folder() -> Path:
    """Where the files of today's lock are, or will be."""
    return cache_root().parent / "definitions" / hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]


def fetch() -> None:
    """Fetches what is missing; what stops half-way leaves nothing that looks whole."""
    with staged(folder()) as staging:
        locks = json.loads(LOCK.read_text(encoding="utf-8")) if staging is not None else {}
        for module, locked in locks.items():
            source = _download(f"{module}@{locked['version']}", locked["sum"])
            for name in locked["files"]:
                shutil.copyfile(source / name, staging / Path(name).name)


def _download(module: str, expected: str) -> Path:
    """The module's folder in Go's own cache; its content has the hash of the lock."""
    print(f"fetching {module} ...", file=sys.stderr, flush=True)
    # Outside any module, so that only this one is fetched and not what it requires.
    with tempfile.TemporaryDirectory() as nowhere:
        command = [str(find_go()), "mod", "download", "-json", module]
        done = subprocess.run(command, cwd=nowhere, stdout=subprocess.PIPE, text=True, check=False)
    found = json.loads(done.stdout or "{}")
    if done.returncode or found.get("Sum") != expected:
        got = found.get("Error") or found.get("Sum") or "nothing"
        raise SystemExit(f"{module}: expected content with hash {expected}, got {got}")
    return Path(found["Dir"])


def main() -> None:
    if "--print" not in sys.argv[1:]:
        fetch()
    print(folder())


if __name__ == "__main__":
    main()
