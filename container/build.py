"""Builds the image of Kerf without a daemon and without a registry, on Debian as root.

Usage: python container/build.py [--again]

The base is a Debian of this machine's own release with its Python, made by mmdebstrap once and kept in a per-user
cache; a release takes `python:3.13-slim` instead (`container/README.md`). buildah builds the Dockerfile on it with
`--isolation chroot`. Both come from Debian's packages and are installed where they are missing.

Prints the image's digest and the folder of its file tree, one a line, last. `--again` builds once more, from nothing,
and fails where the digest is another. About two minutes on two cores, half of it for the base. Exit code 75 says that
a tool or the base cannot be had from Debian here. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("buildah", "mmdebstrap")
IN_BASE = ("python3", "python3-venv", "ca-certificates")
NAME, BASE = "localhost/kerf", "localhost/kerf-base"
NOT_TO_BE_HAD = 75
"""The exit code where Debian's packages cannot be reached (sysexits.h: EX_TEMPFAIL)."""
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_CERTIFICATES_THERE = "/etc/pip-ca.crt"


def cache() -> Path:
    """`$XDG_CACHE_HOME/kerf/container`, or under `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "kerf" / "container"


def install_tools() -> None:
    """The programs that build, from Debian's packages. Exits where they cannot be installed."""
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        _give_up(f"{' and '.join(missing)} not found: install them from Debian's packages, as root")
    _fetched("apt-get", "update", "-qq")
    _fetched("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing)


def base() -> Path:
    """The archive of the base's file tree: made where it is missing, whole or not at all."""
    archive = cache() / f"base-{_codename()}.tar"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=archive.parent) as staging:
            made = Path(staging) / archive.name
            chosen = f"--include={','.join(IN_BASE)}"
            variant = ("--quiet", "--variant=minbase", chosen)
            _fetched("mmdebstrap", *variant, _codename(), str(made), SOURCE_DATE_EPOCH="0")
            made.rename(archive)
    return archive


def build(tag: str) -> str:
    """Build the image from nothing but the base; its digest, `sha256:` and 64 digits."""
    if not _buildah("images", "--quiet", "--filter", f"reference={BASE}").strip():
        container = _buildah("from", "scratch").strip()
        _buildah("add", "--quiet", container, str(base()), "/")
        _buildah("commit", "--quiet", "--timestamp", "0", container, BASE)
        _buildah("rm", container)
    arguments = ["--build-arg", f"BASE={BASE}", *_from_index()]
    _buildah("build", "--quiet", "--isolation", "chroot", "--no-cache", "--timestamp", "0", *arguments, "-t", tag, ROOT)
    return _buildah("inspect", "--type", "image", "--format", "{{.FromImageDigest}}", tag).strip()


def tree(tag: str) -> Path:
    """The image's file tree, mounted; it stays until the next build."""
    container = _buildah("from", tag).strip()
    return Path(_buildah("mount", container).strip())


def _from_index() -> Sequence[str]:
    """What pip needs to reach the index of this machine: its address where one is set, and the certificates here."""
    index = os.environ.get("PIP_INDEX_URL")
    found = ["--build-arg", f"PIP_INDEX_URL={index}"] if index else []
    if _CERTIFICATES.exists():
        found += ["--volume", f"{_CERTIFICATES}:{_CERTIFICATES_THERE}:ro"]
        found += ["--build-arg", f"PIP_CERT={_CERTIFICATES_THERE}"]
    return found


def _codename() -> str:
    """Of the Debian that this machine runs, such as `bookworm`."""
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    said = dict(line.split("=", 1) for line in lines if "=" in line)
    return said.get("VERSION_CODENAME", "stable").strip('"')


def _buildah(*arguments: str | Path) -> str:
    root = cache() / "storage"
    place = ("--storage-driver", "vfs", "--root", str(root), "--runroot", str(root / "run"))
    return _run("buildah", *place, *map(str, arguments))


def _fetched(*command: str, **environment: str) -> None:
    """What needs Debian's packages; exits where these cannot be reached."""
    try:
        _run(*command, **environment)
    except SystemExit as problem:
        _give_up(str(problem))


def _give_up(why: str) -> None:
    print(why, file=sys.stderr)
    raise SystemExit(NOT_TO_BE_HAD)


def _run(*command: str, **environment: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:6])} ... failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def main() -> None:
    install_tools()
    # Trees of runs before, each a whole copy.
    _buildah("rm", "--all")
    digest = build(f"{NAME}:first")
    if "--again" in sys.argv[1:]:
        again = build(f"{NAME}:again")
        if again != digest:
            raise SystemExit(f"two builds differ: {digest} and {again}")
    print(digest)
    print(tree(f"{NAME}:first"))


if __name__ == "__main__":
    main()
