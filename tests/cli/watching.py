"""A running `kerf ... -w`, whose lines a test sees as they are printed."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, Queue
from threading import Thread

from tests.cli.program import ROOT

SOON_S = 60.0


class Watch:
    """A running `kerf ... -w`; each of its lines is there as soon as it is printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process, self._lines = process, Queue[str]()

    def follow(self) -> None:
        """Until the program ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))

    def until(self, text: str) -> str:
        """The next line with this text; what comes before it is passed over."""
        while True:
            line = self._lines.get(timeout=SOON_S)
            if text in line:
                return line

    def silence(self) -> list[str]:
        """What is printed within two looks."""
        try:
            return [self._lines.get(timeout=5)]
        except Empty:
            return []

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        self._process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> int:
        """The exit code, once it has ended."""
        return self._process.wait(SOON_S)


@contextmanager
def watching(*arguments: str) -> Iterator[Watch]:
    """Both streams in one, as on a terminal."""
    command = [sys.executable, "-c", "from kerf.cli.main import entry; entry()", *arguments, "-w"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=subprocess.STDOUT, text=True) as process:
        watch = Watch(process)
        thread = Thread(target=watch.follow)
        thread.start()
        try:
            yield watch
        finally:
            process.kill()
            thread.join()
