"""A way to the in-memory API that is slow or loses things: requests and answers that take their time, or never come.

The watch is another connection and as fast as ever, so it shows what a write has done before its answer comes.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from kerf.errors import ApiError
from kerf.ports import KubeWriter


class AnswerLost(ApiError):
    """The write was carried out, and its answer never came."""


class Way(NamedTuple):
    """How one call fares: seconds until it is carried out, and from then on until its answer comes, if it does."""

    request_s: float = 0.0
    answer_s: float = 0.0
    is_lost: bool = False


def over(writer: KubeWriter, way_of: Callable[[str], Way]) -> KubeWriter:
    """The writer, each of its calls, by the name of the verb, over such a way. Times pass on the running loop."""
    return cast(KubeWriter, _Slow(writer, way_of))


class _Slow:
    def __init__(self, writer: KubeWriter, way_of: Callable[[str], Way]) -> None:
        self._writer, self._way_of = writer, way_of

    def __getattr__(self, verb: str) -> Any:
        call, way_of = getattr(self._writer, verb), self._way_of

        async def called(*given: Any, **named: Any) -> Any:
            way = way_of(verb)
            await asyncio.sleep(way.request_s)
            try:
                answer = await call(*given, **named)
            finally:
                # A refusal is an answer as well.
                await asyncio.sleep(way.answer_s)
            if way.is_lost:
                raise AnswerLost(f"{verb}: no answer")
            return answer

        return called
