"""Replies of AWS that are not whole: a proxy, or a stand-in for AWS, can leave anything out.

What lacks a part that it must have says nothing, and least of all that something does not exist. So it is a failed
call, in words that name the call and the part, and not an error of Kerf's own.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kerf.errors import CloudError, brief


class NotWhole(CloudError):
    """A reply lacks what it must have; a write may have happened."""


@contextmanager
def reading(operation: str) -> Iterator[None]:
    """While parts of a decoded reply are looked up. Raises NotWhole; no call is to be made meanwhile."""
    try:
        yield
    except KeyError as error:
        (name, *_) = error.args or ("",)
        raise NotWhole(f"{operation}: the reply is not whole: it lacks {brief(name)}") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise NotWhole(
            f"{operation}: the reply is not whole: a part of it has another form than AWS gives it"
        ) from error
