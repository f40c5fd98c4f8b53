"""Says at the end of a run when the control-plane tier was left out; and no test logs as one before it did."""

import pytest
import structlog

LEFT_OUT = "control plane tier left out"
"""How the reason of such a skip begins; `tests/controlplane/conftest.py` raises it."""


@pytest.fixture(autouse=True)
def own_logging() -> None:
    """A command that a test runs in this process sets up logging for itself: the next test begins anew."""
    structlog.reset_defaults()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A skip that nobody sees is a test that nobody has; under xdist only this process has the whole picture."""
    reasons = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ())]
    left_out = [reason for reason in reasons if LEFT_OUT in reason]
    if left_out:
        text = left_out[0].removeprefix("Skipped: ")
        terminalreporter.write_line(f"{len(left_out)} tests skipped: {text}", yellow=True, bold=True)
