"""Exit codes of the program, which scripts rely on, and the error behind the one that no other room raises."""

from kerf.errors import KerfError

DONE, FAILED, USAGE, LOOK, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Done; failed; wrong usage or input; done, and something needs a look; no cluster; interrupted."""


class ClusterUnreachable(KerfError):
    """There is no cluster to ask, or it refuses us; the command line exits with 4."""


class ObjectNotFound(KerfError):
    """The input has no object of that kind and name; the command line exits with 1."""
