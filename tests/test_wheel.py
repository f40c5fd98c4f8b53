"""The wheel stands on its own: built from the tree, installed into an empty environment, used outside the checkout."""

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
PLAN = ("plan", "-f", "pool.yaml", "-f", "workload.yaml", "-o", "json")


def run(*command: str | Path, cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    """Standard output of a command that must succeed (3 is success that needs a look)."""
    arguments, env = [str(part) for part in command], {**os.environ, **(environment or {})}
    done = subprocess.run(arguments, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


def built(folder: Path) -> Path:
    """The wheel of this tree, with two manifests beside it."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT, cwd=folder)
    for name in ("pool.yaml", "workload.yaml"):
        shutil.copy(ROOT / "examples" / "000-gpu-pools" / name, folder)
    (wheel,) = folder.glob("kerf_autoscaler-*.whl")
    return wheel


def test_a_wheel_carries_its_data_and_its_programs(tmp_path: Path) -> None:
    """Unpacked, it finds prices and cards without the checkout; it names kubectl's completion among its programs."""
    with ZipFile(built(tmp_path)) as wheel:
        wheel.extractall(tmp_path / "unpacked")
    (named,) = (tmp_path / "unpacked").glob("*.dist-info/entry_points.txt")

    code = "from kerf.cli.main import entry; entry()"
    path = {"PYTHONPATH": str(tmp_path / "unpacked")}
    where = run(sys.executable, "-c", "import kerf; print(kerf.__file__)", cwd=tmp_path, environment=path)
    printed = run(sys.executable, "-c", code, *PLAN, cwd=tmp_path, environment=path)

    assert where.startswith(str(tmp_path))
    assert 1.212 == json.loads(printed)["cost"]["perHourAfter"]
    assert "kubectl_complete-kerf" in named.read_text(encoding="utf-8")


@pytest.mark.long
def test_a_wheel_plans_outside_the_checkout(tmp_path: Path) -> None:
    """Installed with what it depends on, and nothing else, into an empty environment."""
    wheel = built(tmp_path)
    venv.create(tmp_path / "empty", with_pip=True)
    program = tmp_path / "empty" / "bin"
    run(program / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)

    printed = run(program / "kerf", *PLAN, cwd=tmp_path)
    assert 1.212 == json.loads(printed)["cost"]["perHourAfter"]
    assert "KL012" in run(program / "kerf", "lint", "pool.yaml", cwd=tmp_path)
    assert "plan\t" in run(program / "kubectl_complete-kerf", "pl", cwd=tmp_path)
