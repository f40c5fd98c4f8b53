"""Programs that live as long as a test wants, on ports that no other program gets.

Three things make this hard. A port that was free when it was asked for may be taken when the program starts, and the
port of a killed program may become the source port of the very client that tries to reach it again; so a port is held
here, by a bound socket that does not listen, from the first moment to the last (the programs share it by
SO_REUSEPORT). A program that was stopped (SIGSTOP) does not hear a polite signal, and its children hear none at all;
so each has a process group and ends by SIGKILL, which is safe because its state is thrown away. And a test run that is
itself killed cleans up nothing; so a guard, which notices that its standard input has closed, ends what is left.
"""

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from kerf.errors import KerfError

LINE = 300
"""A line of a log is shown up to here: some say their whole source path, and then the message."""


class ControlPlaneError(KerfError):
    """A program of the control plane, or a request to it, failed; the text has the newest lines of the logs."""


class Ports:
    """Ports of 127.0.0.1 that are ours until `release`."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def reserve(self) -> int:
        """A free port from the system, which no other program gets, not even as the source port of a connection."""
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._held.append(held)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port

    def release(self) -> None:
        """Gives all of them back."""
        while self._held:
            self._held.pop().close()


class Guard:
    """Ends process groups when this process ends without having done so itself."""

    _SCRIPT = 'while read -r line; do all=$line; done; for group in $all; do kill -s KILL -- "-$group"; done'

    def __init__(self) -> None:
        self._groups: list[int] = []
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", self._SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def add(self, group: int) -> None:
        """From now on `group` does not outlive us."""
        self._groups.append(group)
        self._tell()

    def forget(self, group: int) -> None:
        """`group` has ended; its number may be another's from now on."""
        if group in self._groups:
            self._groups.remove(group)
            self._tell()

    def close(self) -> None:
        """Ends whatever it still guards, and itself."""
        self._shell.communicate()

    def _tell(self) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(f"{' '.join(map(str, self._groups))}\n".encode())
        self._shell.stdin.flush()


class Program:
    """A program in a process group of its own; what it prints is appended to `log`.

    It may be started again after it has ended. Its group is signalled only while its first process is there: after
    that, the number may be another's.
    """

    def __init__(
        self, name: str, command: Sequence[str], log: Path, guard: Guard, environment: Mapping[str, str]
    ) -> None:
        self.name, self.command, self.log, self.environment = name, tuple(command), log, dict(environment)
        self._guard = guard
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id, which is its group's too; None while it does not run."""
        return self._process.pid if self._process is not None and self._ended() is None else None

    @property
    def exit_code(self) -> int | None:
        """Of the newest run, negative for a signal; None while it runs and before it ever did."""
        return self._ended()

    def start(self) -> None:
        """Starts it; whether it is ready is for the caller to ask. Raises ControlPlaneError while it runs."""
        if self.pid is not None:
            raise ControlPlaneError(f"{self.name} runs already")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment,
                start_new_session=True,
            )
        self._guard.add(self._process.pid)

    def kill(self) -> None:
        """Ends the whole group at once (SIGKILL), frozen or not, and waits; nothing where it has ended already."""
        if self._process is not None and self.pid is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._ended()

    def terminate(self, timeout_s: float) -> int:
        """Asks it to end (SIGTERM) and waits; its exit code. Raises ControlPlaneError after `timeout_s`."""
        self._signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def wait(self, timeout_s: float) -> int:
        """Waits until it ends by itself; its exit code. Raises ControlPlaneError after `timeout_s`."""
        if self._process is None:
            raise ControlPlaneError(f"{self.name} does not run")
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise ControlPlaneError(f"{self.name} did not end in {timeout_s:g} s\n{self.tail(40)}") from error
        finally:
            self._ended()

    def pause(self) -> None:
        """Freezes the whole group (SIGSTOP)."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets it go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def tail(self, lines: int) -> str:
        """The newest lines of its log, under a line that says how the program is."""
        code = self._ended()
        state = f"ended with {code}" if code is not None else f"pid {self.pid}" if self.pid else "never started"
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        newest = (line[:LINE] for line in text.splitlines()[-lines:])
        return "\n".join([f"== {self.name} ({state}) {self.log}", *newest])

    def _ended(self) -> int | None:
        if self._process is None:
            return None
        code = self._process.poll()
        if code is not None:
            self._guard.forget(self._process.pid)
        return code

    def _signal(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is None:
            raise ControlPlaneError(f"{self.name} does not run")
        os.killpg(pid, number)
