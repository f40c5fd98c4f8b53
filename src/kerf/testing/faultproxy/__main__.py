"""The proxy as a program: `python -m kerf.testing.faultproxy --moto http://127.0.0.1:5000 --port 5001`."""

import argparse
import signal

from kerf.testing.faultproxy.server import FaultProxy


def main() -> None:
    """Print the URL, then answer until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m kerf.testing.faultproxy", description=__doc__)
    parser.add_argument("--moto", required=True, help="URL of the moto server")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--queue", default="", help="name of the queue that events go to")
    given = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    with FaultProxy(given.moto, region=given.region, port=given.port) as proxy:
        proxy.queue = given.queue
        print(proxy.url, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
