"""Builds metrics-server, which serves metrics.k8s.io from what kubelets tell, from source into a per-user cache.

Usage: python controlplane/metrics_server.py [--print]

It comes from the Go module of the folder `metrics-server`, as the programs of build.py do, but in a cache folder of its
own, so that neither is built anew when the other's lock changes.

Prints the folder that holds it, last. About 3 minutes on two cores the first time. Standard library only.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

from build import HERE, cache_root, find_go, run_go

MODULE = PROGRAM = "metrics-server"
PACKAGE = "sigs.k8s.io/metrics-server/cmd/metrics-server"


def folder() -> Path:
    """Where the program of today's lock is, or will be."""
    digest = hashlib.sha256(PACKAGE.encode())
    for name in ("go.mod", "go.sum"):
        digest.update((HERE / MODULE / name).read_bytes())
    return cache_root().parent / PROGRAM / digest.hexdigest()[:12]


def build() -> Path:
    """Builds it where it is missing."""
    target = folder()
    if (target / PROGRAM).exists():
        return target
    print(f"building {PROGRAM} ...", file=sys.stderr, flush=True)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target) as staging:
        made = Path(staging) / PROGRAM
        flags = ("-trimpath", "-buildvcs=false", "-ldflags", "-s -w")
        run_go(find_go(), "build", *flags, "-o", made, PACKAGE, module=MODULE)
        made.rename(target / PROGRAM)
    return target


def main() -> None:
    if "--print" not in sys.argv[1:]:
        build()
    print(folder())


if __name__ == "__main__":
    main()
