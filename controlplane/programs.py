"""Builds one program that tests use beside the control plane, from source into a per-user cache.

Usage: python controlplane/programs.py promtool|metrics-server [--print]

promtool tests rules for Prometheus; it is built without discovery of clouds (tag `remove_all_sd`), which is most of
what there is to compile and which tests of rules never use. metrics-server serves metrics.k8s.io from what kubelets
tell.

Each comes from the Go module of the folder of its name, as the programs of build.py do, but in a cache folder of its
own, so that none is built anew when another's lock changes. Prints that folder, last. About 5 minutes for promtool on
two cores the first time, and 3 for metrics-server. Standard library only.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from build import FLAGS, HERE, cache_root, find_go, run_go, staged

PROGRAMS = {
    "promtool": ("github.com/prometheus/prometheus/cmd/promtool", "remove_all_sd"),
    "metrics-server": ("sigs.k8s.io/metrics-server/cmd/metrics-server", ""),
}
"""Package and build tags, by the name of the program and of its module's folder."""


def folder(program: str) -> Path:
    """Where the program of today's lock is, or will be."""
    digest = hashlib.sha256(repr(PROGRAMS[program]).encode())
    for name in ("go.mod", "go.sum"):
        digest.update((HERE / program / name).read_bytes())
    return cache_root().parent / program / digest.hexdigest()[:12]


def build(program: str) -> None:
    """Builds it where it is missing."""
    package, tags = PROGRAMS[program]
    with staged(folder(program)) as staging:
        if staging is not None:
            print(f"building {program} ...", file=sys.stderr, flush=True)
            made = staging / program
            run_go(find_go(), "build", *FLAGS, "-tags", tags, "-ldflags", "-s -w", "-o", made, package, module=program)


def main() -> None:
    asked = [argument for argument in sys.argv[1:] if argument in PROGRAMS]
    if len(asked) != 1:
        raise SystemExit(f"expected one of {', '.join(PROGRAMS)}")
    if "--print" not in sys.argv[1:]:
        build(asked[0])
    print(folder(asked[0]))


if __name__ == "__main__":
    main()
