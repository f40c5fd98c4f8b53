"""One after the other what is left over in AWS: what may not go holds up no other.

A policy with conditions on tags, or a thing that another has put to use, refuses one of many, and will again at the
next turn. The turn goes on, and ends with that refusal, so a person sees it.
"""

from collections.abc import Awaitable, Callable, Iterable

from kerf.clouds.aws.api import ApiFailed
from kerf.clouds.aws.codes import is_about_credentials


async def delete_each(names: Iterable[str], delete: Callable[[str], Awaitable[bool]]) -> tuple[str, ...]:
    """The names that went, in their order; `delete` says whether one did.

    Raises the first ApiFailed after all were tried, but one about us, and Throttled, at once.
    """
    gone, refused = list[str](), list[ApiFailed]()
    for name in names:
        try:
            if await delete(name):
                gone.append(name)
        except ApiFailed as error:
            if is_about_credentials(error):
                raise
            refused.append(ApiFailed(error.operation, error.code, f"{name}: {error.message}"))
    if refused:
        raise refused[0]
    return tuple(gone)
