"""The wheel stands alone: built from the tree and the sdist, installed as users do, used outside the checkout."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest

from kerf import __version__
from tools import tagged_version

ROOT = Path(__file__).parents[1]
PLAN = ("plan", "-f", "pool.yaml", "-f", "workload.yaml", "-o", "json")
PROGRAMS = Path(sys.executable).parent
ENDS_WELL = (0, 3)
"""3 is success that needs a look."""


def run(*command: str | Path, cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    """Standard output of a command that must succeed."""
    arguments, env = [str(part) for part in command], {**os.environ, **(environment or {})}
    done = subprocess.run(arguments, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode in ENDS_WELL, done.stderr
    return done.stdout


def as_pip_is_set() -> dict[str, str]:
    """For uv, which does not read pip's settings: the same index, links and certificates."""
    listed = run(sys.executable, "-m", "pip", "config", "list", cwd=ROOT)
    settings = dict(line.split("=", 1) for line in listed.splitlines() if "=" in line)
    held = {name.rsplit(".", 1)[-1]: value.strip("'") for name, value in settings.items()}
    names = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS"}
    return {"UV_SYSTEM_CERTS": "1", **{other: held[name] for name, other in names.items() if name in held}}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel of this tree, and two manifests beside them."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder, cwd=ROOT)
    for name in ("pool.yaml", "workload.yaml"):
        shutil.copy(ROOT / "examples" / "000-gpu-pools" / name, folder)
    return folder


def wheel_in(folder: Path) -> Path:
    """The one that is there."""
    (wheel,) = folder.glob("kerf_autoscaler-*.whl")
    return wheel


def test_a_wheel_carries_its_data_and_its_programs(dist: Path, tmp_path: Path) -> None:
    """Unpacked, it finds prices and cards without the checkout; it names kubectl's completion among its programs."""
    with ZipFile(wheel_in(dist)) as wheel:
        wheel.extractall(tmp_path)
    (named,) = tmp_path.glob("*.dist-info/entry_points.txt")

    code = "from kerf.cli.main import entry; entry()"
    path = {"PYTHONPATH": str(tmp_path)}
    where = run(sys.executable, "-c", "import kerf; print(kerf.__file__)", cwd=tmp_path, environment=path)
    printed = run(sys.executable, "-c", code, *PLAN, cwd=dist, environment=path)

    assert where.startswith(str(tmp_path))
    assert 1.212 == json.loads(printed)["cost"]["perHourAfter"]
    assert "kubectl_complete-kerf" in named.read_text(encoding="utf-8")


def test_the_sdist_makes_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    """Byte for byte: who builds from the source of a release gets what was released."""
    (sdist,) = dist.glob("kerf_autoscaler-*.tar.gz")
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "--directory", tmp_path / "again", cwd=source)

    assert wheel_in(dist).read_bytes() == wheel_in(tmp_path / "again").read_bytes()


WAYS = {
    "uv tool install": ("uv", "tool", "install", "--quiet"),
    "pipx install": ("pipx", "install", "--quiet"),
    "uv tool install from a checkout": ("uv", "tool", "install", "--quiet"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_was_installed_plans_outside_the_checkout(dist: Path, tmp_path: Path, way: str) -> None:
    """With what it depends on, and nothing else, in an environment of its own."""
    folders = {
        "UV_TOOL_DIR": str(tmp_path / "uv"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"),
        "PIPX_MAN_DIR": str(tmp_path / "man"),
    }
    program, *arguments = WAYS[way]
    what = ROOT if "checkout" in way else wheel_in(dist)
    run(PROGRAMS / program, *arguments, what, cwd=tmp_path, environment={**as_pip_is_set(), **folders})

    kerf = tmp_path / "bin" / "kerf"
    assert f"kerf {__version__}\n" == run(kerf, "--version", cwd=tmp_path)
    assert 1.212 == json.loads(run(kerf, *PLAN, cwd=dist))["cost"]["perHourAfter"]
    assert "KL012" in run(kerf, "lint", "pool.yaml", cwd=dist)
    assert "plan\t" in run(tmp_path / "bin" / "kubectl_complete-kerf", "pl", cwd=tmp_path)
    bill = json.loads(run(kerf.resolve().with_name("python"), ROOT / "container" / "sbom.py", cwd=tmp_path))
    assert ("kerf-autoscaler", __version__) == tuple(bill["metadata"]["component"][key] for key in ("name", "version"))
    assert {"numpy", "highspy"} < {each["name"] for each in bill["components"]}


def test_kerf_runs_without_being_installed(dist: Path, tmp_path: Path) -> None:
    """By uvx, which keeps an environment for the next time."""
    printed = run(
        PROGRAMS / "uvx", "--from", wheel_in(dist), "kerf", "--version", cwd=tmp_path, environment=as_pip_is_set()
    )
    assert f"kerf {__version__}\n" == printed


def test_a_version_stands_everywhere_alike() -> None:
    """In the package, the chart and the manual page."""
    assert {__version__} == tagged_version.versions()


def test_a_tag_becomes_the_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In all places; what is no version is refused, and nothing is written."""
    for name in ("src/kerf/__init__.py", "charts/kerf/Chart.yaml", "docs/reference/kerf.1"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    tagged_version.write("12.0.3", tmp_path)
    assert {"12.0.3"} == tagged_version.versions(tmp_path)
    assert 2 == tagged_version.main(["nightly"])
    assert "expected a tag such as v1.2.3, got nightly\n" == capsys.readouterr().err
    assert {__version__} == tagged_version.versions()
