"""What holds for every test: logging of its own, Ctrl-C for its children, and what the end of a run says.

That is when the control-plane tier was left out, and the minutes that the tier took.
"""

import os
import signal
import time

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.awscloud import _proxy, aws_cloud, moto_url
from tests.examples import examples

__all__ = ["_proxy", "aws_cloud", "moto_url"]

# How long an example takes is the machine's affair, and no verdict on the code.
settings.register_profile("kerf", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kerf")
settings.register_profile("kerf", examples())
settings.load_profile("kerf")

# What takes long on a busy machine would say so in the middle of what tests compare.
os.environ["KERF_PROGRESS"] = "off"

LEFT_OUT = "control plane tier left out"
"""How the reason of such a skip begins; `tests/controlplane/conftest.py` raises it."""

BEGAN_S = pytest.StashKey[float]()
"""When the run began, on the monotonic clock."""


@pytest.fixture(autouse=True)
def own_logging() -> None:
    """A command that a test runs in this process sets up logging for itself: the next test begins anew."""
    structlog.reset_defaults()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--tier` names the line with the minutes."""
    parser.addoption("--tier", default="", help="name of the tier, for the line with its minutes at the end")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count the minutes, and give children Ctrl-C.

    Started in the background, a run may have been told to ignore SIGINT, which its children would inherit. A handler
    they do not: it goes on being ignored here and does what it should in the programs that tests interrupt.
    """
    config.stash[BEGAN_S] = time.monotonic()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Scenarios first: some play for a minute, and begun at the end they let one worker wait for the other."""
    items.sort(key=lambda item: "scenarios" not in item.path.parts)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The minutes, and what was left out."""
    _tell_left_out(terminalreporter)
    tier = config.getoption("--tier")
    if tier:
        minutes = (time.monotonic() - config.stash[BEGAN_S]) / 60
        terminalreporter.write_line(f"{tier}: {minutes:.1f} min")
        began_s = os.environ.get("KERF_GATE_BEGAN")
        if began_s:
            terminalreporter.write_line(f"since the gate began: {(time.time() - int(began_s)) / 60:.1f} min")


def _tell_left_out(terminalreporter: pytest.TerminalReporter) -> None:
    """A skip that nobody sees is a test that nobody has; under xdist only this process has the whole picture."""
    reasons = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ())]
    left_out = [reason for reason in reasons if LEFT_OUT in reason]
    if left_out:
        text = left_out[0].removeprefix("Skipped: ")
        terminalreporter.write_line(f"{len(left_out)} tests skipped: {text}", yellow=True, bold=True)
