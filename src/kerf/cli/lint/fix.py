"""Fixed files: written whole or not at all, and shown as a difference."""

import contextlib
import difflib
import os
import tempfile
from pathlib import Path

_BOM = b"\xef\xbb\xbf"


def difference(name: str, before: str, after: str) -> str:
    """A unified diff that `patch -p1` takes."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    # A last line without its end would run into the next one.
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def write(path: Path, text: str) -> None:
    """Put the text in the file's place in one step, with its mode; through a link into what it leads to.

    Raises OSError; the file is then as it was.
    """
    target = path.resolve()
    before = target.read_bytes()
    data = (_BOM if before.startswith(_BOM) else b"") + text.encode()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, target.stat().st_mode & 0o7777)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
