"""Run pytest; what fails is run once more, alone, and a test that passes then is named at the end.

    python tools/second_try.py ARGUMENTS OF PYTEST

For the gate, where processes, sockets and, on a control plane, schedulers and watches share two cores that stall.
Failures in more than two files are no accident and get no second try; within a file, tests often share a cluster that
failed them together. The first failure stays in the output, whole, and the last lines name each such test, because one
that fails now and then is a bug, of Kerf or of the test.
Exit status: that of pytest, 0 where all that failed has passed at the second try.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

__all__ = ["main"]

MOST = 2
"""Files in which tests may fail at first."""
FAILED = 1
"""What pytest answers when tests failed; anything else is a run that broke."""


def main(arguments: list[str], cache: Path) -> int:
    """Run twice where that is allowed; `cache` is a folder of its own for what failed."""
    shutil.rmtree(cache, ignore_errors=True)
    pytest = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
    status = subprocess.run(pytest, check=False).returncode
    failed = failures(cache)
    files = {name.partition("::")[0] for name in failed}
    if status != FAILED or not 0 < len(files) <= MOST:
        return status
    print(f"\n{len(failed)} failed; once more, alone:", flush=True)
    report = cache / "second.xml"
    again = subprocess.run([*pytest, "-n0", "--dist=no", "--last-failed", f"--junitxml={report}"], check=False)
    passed = passes(report)
    for name in failed:
        found = "PASSED AT THE SECOND TRY, find out why:" if _is_in(name, passed) else "FAILED TWICE"
        print(f"{found} {name}", flush=True)
    # A test that is skipped now, because a server is gone, has not passed.
    return again.returncode or int(not all(_is_in(name, passed) for name in failed))


def passes(report: Path) -> set[tuple[str, str]]:
    """The tests that passed in a run: the dotted name of their file or class, and their own."""
    cases = ElementTree.parse(report).iter("testcase") if report.exists() else ()
    return {(case.get("classname", ""), case.get("name", "")) for case in cases if case.find("*") is None}


def _is_in(name: str, passed: set[tuple[str, str]]) -> bool:
    """Whether a test, by its name in pytest (`folder/file.py::Class::test[a/b]`), is among those that passed."""
    path, _, rest = name.partition("::")
    bare, bracket, parameters = rest.partition("[")
    *classes, own = bare.split("::")
    dotted = ".".join([path.removesuffix(".py").replace("/", "."), *classes])
    return any(
        own + bracket + parameters == held and (dotted == at or dotted.endswith(f".{at}")) for at, held in passed
    )


def failures(cache: Path) -> list[str]:
    """The tests that failed in the last run, by name."""
    path = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path.cwd() / ".pytest_cache" / "second-try"))
