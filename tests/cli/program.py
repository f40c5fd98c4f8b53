"""Runs the program as a user would, from the root of the checkout."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
POOL_000 = "examples/000-gpu-pools/pool.yaml"
WORKLOAD_000 = "examples/000-gpu-pools/workload.yaml"
POOL_003 = "examples/003-hami/nodepool.yaml"
WORKLOAD_003 = "examples/003-hami/workload.yaml"
POOL_004 = "examples/004-ack/nodepool.yaml"
WORKLOAD_004 = "examples/004-ack/workload.yaml"
CLUSTER = "tests/data/cli/cluster.yaml"
THREE = ("--replicas", "deployment/default/gpu-inference=3")


class Result(subprocess.CompletedProcess[str]):
    """What a run gave."""

    @property
    def data(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.stdout)


def kerf(*arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None) -> Result:
    """One run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", "from kerf.cli.main import entry; entry()", *arguments],
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
        timeout=120,
        check=False,
    )
    return Result(done.args, done.returncode, done.stdout, done.stderr)


def files(*paths: str) -> tuple[str, ...]:
    """`-f` for each path."""
    return tuple(part for path in paths for part in ("-f", path))
