"""The examples' manifests, edited by the case, and planned through the command line as a user would."""

import contextlib
import io
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerf.cli.main import run

EXAMPLES = Path(__file__).parents[2] / "examples"
GPU_POOLS = ("000-gpu-pools/pool.yaml", "000-gpu-pools/workload.yaml")
BATCH = ("002-batch/pool.yaml", "002-batch/job.yaml")
HAMI = ("003-hami/nodepool.yaml", "003-hami/workload.yaml")
OVERLAY = "003-hami/nodeoverlay.yaml"
ACK = ("004-ack/nodepool.yaml", "004-ack/workload.yaml")

Edit = tuple[str, str]


def manifests(files: Sequence[str], *edits: Edit) -> str:
    """The files as one text with each edit made; an edit that changes nothing is a mistake of the test."""
    text = "\n---\n".join((EXAMPLES / name).read_text(encoding="utf-8") for name in files)
    for old, new in edits:
        assert old in text, f"{old!r} is not in {files}"
        text = text.replace(old, new)
    return text


@dataclass(frozen=True)
class Outcome:
    """What one run printed."""

    exit_code: int
    plan: Any
    text: str

    @property
    def bought(self) -> list[str]:
        """Instance types in the order of the launches."""
        return [launch["instanceType"] for launch in self.plan["launches"]]

    @property
    def per_hour(self) -> float:
        """The price after the plan."""
        price: float = self.plan["cost"]["perHourAfter"]
        return price


def kerf(command: str, text: str, *arguments: str) -> tuple[int, str]:
    """Exit code and standard output of one command on the text as a file."""
    out = io.StringIO()
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file, contextlib.redirect_stdout(out):
        file.write(text)
        file.flush()
        code = run([command, "-f", file.name, *arguments])
    return code, out.getvalue()


def planned(text: str, *arguments: str) -> Outcome:
    """`kerf plan -o json` of the text."""
    code, printed = kerf("plan", text, "-o", "json", *arguments)
    assert code in (0, 3), printed
    return Outcome(code, json.loads(printed), printed)


def replicas(number: int) -> tuple[str, str]:
    """Flags that scale document 003's Deployment."""
    return "--replicas", f"deployment/default/gpu-inference={number}"
