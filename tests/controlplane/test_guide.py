"""docs/guides/cluster.md, typed in as it stands: its commands in order, in one shell, on an empty control plane.

What they print must be what the page shows, but for what is another each time: names, addresses, ages, and with them
widths of columns and order of rows. `KERF_UPDATE=1` writes what they print into the page instead.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.program import ROOT
from tools.controlplane.server import Binaries, ControlPlane
from tools.playground import hosted

GUIDE = ROOT / "docs" / "guides" / "cluster.md"
BLOCK = re.compile(r"```sh\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
VOLATILE = (
    (r"ip-10-\d+-\d+-\d+", "NODE"),
    (r"(gpu-inference)-[0-9a-z]+-[0-9a-z]{5}\b", r"\1-POD"),
    (r"(g5-nodepool)-[0-9a-f]{5}\b", r"\1-CLAIM"),
    (r"\b(?:[0-9]+[dhms])+\b", "AGE"),
)
FASTER = {"KERF_DISRUPTION_POLL": "1s", "KERF_VALIDATION": "2s", "KERF_DRAIN_POLL": "1s"}
"""Waits of Kerf that the guide does not speak of; any free port is as good as another."""
ANYWHERE = {"KERF_HEALTH_ADDRESS": "127.0.0.1:0", "KERF_METRICS_ADDRESS": "127.0.0.1:0"}
END = "--end of the block--"


class Shell:
    """One shell into which a person types; what runs in the background goes on from block to block."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def type(self, block: str) -> str:
        """What is shown until the last command of the block has ended; fails when it fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{block}echo {END} $?\n")
        self._process.stdin.flush()
        shown = ""
        for line in self._process.stdout:
            if line.startswith(END):
                assert f"{END} 0\n" == line, shown
                return shown
            shown += line
        raise AssertionError(f"the shell has ended\n{shown}")


@contextmanager
def shell(plane: ControlPlane, folder: Path) -> Iterator[Shell]:
    """In a folder that has the examples, with what `make playground` prints; all that it started ends with it."""
    (folder / "examples").symlink_to(ROOT / "examples")
    tools = [plane.binaries.need("kubectl"), sys.executable]
    path = os.pathsep.join([*(str(Path(tool).parent) for tool in tools), os.defpath])
    own = {"PATH": path, "HOME": str(folder), "KUBECONFIG": str(plane.kubeconfig())}
    with subprocess.Popen(
        ["sh"],
        cwd=folder,
        env={**own, **FASTER, **ANYWHERE},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield Shell(process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def lasting(shown: str) -> list[str]:
    """The lines without what is another each time, in an order that does not depend on it."""
    for pattern, instead in VOLATILE:
        shown = re.sub(pattern, instead, shown)
    return sorted(" ".join(line.split()) for line in shown.splitlines())


def test_the_guide_does_what_it_says(binaries: Binaries, tmp_path: Path) -> None:
    """0 -> 3 -> 1 in ten commands."""
    page = GUIDE.read_text(encoding="utf-8")
    with hosted(binaries, with_hami=True) as plane, shell(plane, tmp_path) as person:
        for block, shown in BLOCK.findall(page):
            printed = person.type(block)
            if os.environ.get("KERF_UPDATE") and lasting(shown) != lasting(printed):
                old, new = f"{block}```\n\n```text\n{shown}```", f"{block}```\n\n```text\n{printed}```"
                page = page.replace(old, new)
                GUIDE.write_text(page, encoding="utf-8")
                continue
            assert lasting(shown) == lasting(printed)


def test_the_guide_has_ten_commands() -> None:
    """As it promises."""
    commands = [block for block, _ in BLOCK.findall(GUIDE.read_text(encoding="utf-8"))]

    assert [1] * 10 == [block.count("\n") for block in commands]
