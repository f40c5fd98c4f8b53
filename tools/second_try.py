"""Run pytest; what fails is run once more, alone, and a test that passes then is named at the end.

    python tools/second_try.py ARGUMENTS OF PYTEST

Only for tests against real programs, whose schedulers and watches have a will of their own on a machine that stalls.
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
    status = subprocess.run([*pytest, "-n0", "--dist=no", "--last-failed"], check=False).returncode
    again = failures(cache)
    for name in failed:
        print(
            f"FAILED TWICE {name}" if name in again else f"PASSED AT THE SECOND TRY, find out why: {name}", flush=True
        )
    return status


def failures(cache: Path) -> list[str]:
    """The tests that failed in the last run, by name."""
    path = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path.cwd() / ".pytest_cache" / "second-try"))
