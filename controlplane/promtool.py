"""Builds promtool, with which rules for Prometheus are tested, from source into a per-user cache.

Usage: python controlplane/promtool.py [--print]

It comes from the Go module of the folder `promtool`, as the programs of build.py do, but in a cache folder of its own,
so that neither is built anew when the other's lock changes. Without discovery of clouds (tag `remove_all_sd`), which
tests of rules never use and which is most of what there is to compile.

Prints the folder that holds it, last. About 5 minutes on two cores the first time. Standard library only.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

from build import HERE, cache_root, find_go, run_go

MODULE, PACKAGE = "promtool", "github.com/prometheus/prometheus/cmd/promtool"
TAGS = "remove_all_sd"


def folder() -> Path:
    """Where the program of today's lock is, or will be."""
    digest = hashlib.sha256(repr((PACKAGE, TAGS)).encode())
    for name in ("go.mod", "go.sum"):
        digest.update((HERE / MODULE / name).read_bytes())
    return cache_root().parent / "promtool" / digest.hexdigest()[:12]


def build() -> Path:
    """Builds it where it is missing."""
    target = folder()
    if (target / "promtool").exists():
        return target
    print("building promtool ...", file=sys.stderr, flush=True)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target) as staging:
        made = Path(staging) / "promtool"
        flags = ("-trimpath", "-buildvcs=false", "-tags", TAGS, "-ldflags", "-s -w")
        run_go(find_go(), "build", *flags, "-o", made, PACKAGE, module=MODULE)
        made.rename(target / "promtool")
    return target


def main() -> None:
    if "--print" not in sys.argv[1:]:
        build()
    print(folder())


if __name__ == "__main__":
    main()
