"""The wheel stands on its own: built from the tree, installed into an empty environment, used outside the checkout."""

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed (3 is success that needs a look)."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


def test_a_wheel_plans_outside_the_checkout(tmp_path: Path) -> None:
    """It carries its data files, so that prices and cards are there without the checkout, and kubectl's completion."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", tmp_path, ROOT, cwd=tmp_path)
    (wheel,) = tmp_path.glob("kerf_autoscaler-*.whl")
    venv.create(tmp_path / "empty", with_pip=True)
    program = tmp_path / "empty" / "bin"
    run(program / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)
    for name in ("pool.yaml", "workload.yaml"):
        shutil.copy(ROOT / "examples" / "000-gpu-pools" / name, tmp_path)

    printed = run(program / "kerf", "plan", "-f", "pool.yaml", "-f", "workload.yaml", "-o", "json", cwd=tmp_path)
    assert 1.212 == json.loads(printed)["cost"]["perHourAfter"]
    assert "KL012" in run(program / "kerf", "lint", "pool.yaml", cwd=tmp_path)
    assert "plan\t" in run(program / "kubectl_complete-kerf", "pl", cwd=tmp_path)
