"""`kerf top`: sums, nodes and cards; drawn again on a terminal, printed once into a pipe."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.program import CLUSTER, ROOT, files, kerf, on_terminal
from tests.cli.watching import SOON_S

BUSY = files("examples/002-batch-running/cluster.yaml", "examples/002-batch-running/usage.yaml")


def test_a_pipe_gets_one_look() -> None:
    """Sums, then a row a node: what is asked, and what is used where it was measured."""
    assert [
        "1 node, 0.192 USD/h, 0 pods waiting",
        "  cpu     0 %  of 3920m",
        "  memory  0 %  of 13.8Gi",
        "",
        "NODE         CPU  USED  MEMORY  USED  GPU  USD/H  PODS",
        "ip-10-0-0-1  0%   97%   0%      80%   -    0.192  25",
    ] == kerf("top", *BUSY).stdout.splitlines()


def test_json_has_the_same() -> None:
    """And is printed once on a terminal, too."""
    data = on_terminal("top", *BUSY, "-o", "json", width=80).data

    assert ("Top", 0, 97) == (data["kind"], data["podsWaiting"], data["items"][0]["cpuUsedPercent"])


def test_rows_are_sorted_and_named() -> None:
    """As those of `kerf nodes`."""
    named = kerf("top", "no", *files(CLUSTER), "--sort-by", ".fill", "-o", "name")
    assert 2 == named.returncode
    names = kerf("top", "no", *files(CLUSTER), "--sort-by", ".pods", "-o", "name").stdout.splitlines()
    assert ["node/g5-starting", "node/ip-10-0-0-2", "node/ip-10-0-0-1"] == names


def test_cards_are_those_of_kerf_gpus() -> None:
    """The same bytes."""
    assert kerf("gpus", *files(CLUSTER)).stdout == kerf("top", "gpus", *files(CLUSTER)).stdout


@pytest.mark.parametrize("what, said", [("pods", "kubectl top pods says what pods use"), ("x", "nodes or gpus")])
def test_what_it_does_not_show_is_said(what: str, said: str) -> None:
    """With what to type instead."""
    done = kerf("top", what)

    assert (2, True) == (done.returncode, said in done.stderr)


def test_a_terminal_is_drawn_again_until_ctrl_c(tmp_path: Path) -> None:
    """What changes in the file is seen, what fails for a while is shown, and the shell's page comes back."""
    path = tmp_path / "cluster.yaml"
    path.write_text((ROOT / CLUSTER).read_text(encoding="utf-8"), encoding="utf-8")
    ours, theirs = pty.openpty()
    code = "from kerf.cli.main import entry; entry()"
    command = [sys.executable, "-c", code, "top", "-f", str(path), "--interval", "0.5"]
    with subprocess.Popen(command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        try:
            _until(ours, "ip-10-0-0-2")
            path.write_text(path.read_text(encoding="utf-8").replace("ip-10-0-0-2", "ip-10-0-0-3"), encoding="utf-8")
            _until(ours, "ip-10-0-0-3")
            path.rename(path.with_suffix(".away"))
            _until(ours, "No such file")
            process.send_signal(signal.SIGINT)
            _until(ours, "\x1b[?1049l")
            assert 130 == process.wait(SOON_S)
        finally:
            process.kill()
            os.close(ours)


def _until(ours: int, text: str) -> None:
    seen, deadline_s = "", time.monotonic() + SOON_S
    while text not in seen and time.monotonic() < deadline_s:
        try:
            seen += os.read(ours, 65536).decode(errors="replace")
        except OSError:
            break
    assert text in seen
