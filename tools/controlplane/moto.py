"""A moto server in a process of its own: what answers for AWS, behind the fault proxy."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# It ends when our end of its standard input closes, however this process ends.
_MOTO = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()
"""
_ENVIRONMENT = {"MOTO_EC2_LOAD_DEFAULT_AMIS": "false"}


@contextmanager
def moto() -> Iterator[str]:
    """The URL of the server. It takes three seconds to start, and about as long for its first call of EC2."""
    process = subprocess.Popen(
        [sys.executable, "-c", _MOTO],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **_ENVIRONMENT},
        # Ctrl-C is for those who use it: they have calls to make before it ends.
        start_new_session=True,
    )
    assert process.stdout is not None
    host, port = process.stdout.readline().split()
    try:
        yield f"http://{host}:{port}"
    finally:
        process.communicate()
