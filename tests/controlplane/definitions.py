"""CustomResourceDefinitions of other projects, where `make controlplane` has fetched them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import LEFT_OUT

FETCH = Path(__file__).parents[2] / "controlplane" / "definitions.py"


def definitions(*names: str) -> list[dict[str, Any]]:
    """Those of these names, such as `karpenter.sh_nodepools`; skips the test, loudly, where they are missing."""
    printed = subprocess.run([sys.executable, FETCH, "--print"], capture_output=True, text=True, check=True).stdout
    folder = Path(printed.strip())
    if not folder.is_dir():
        reason = f"{LEFT_OUT}: definitions of other projects missing; fetch them with `make controlplane`"
        if os.environ.get("KERF_REQUIRE_CONTROLPLANE") == "1":
            pytest.fail(f"{reason} (KERF_REQUIRE_CONTROLPLANE=1)")
        pytest.skip(reason)
    return [yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8")) for name in names]
