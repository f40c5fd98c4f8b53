"""Token buckets: one for each AWS operation, shared by all loops: Kerf slows down before AWS refuses.

EC2 takes one token for each request from a bucket of the account, region and operation, and puts some back each second
(EC2 developer guide, "Request throttling for the Amazon EC2 API", read 2026-11). Other programs of the account take
from the same buckets, so a bucket that AWS says is empty is emptied here as well.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Rate:
    """A bucket: how many tokens it holds, and how many come back in a second."""

    most: float
    per_s: float


READS, WRITES = Rate(50, 10), Rate(40, 4)
"""Half of EC2's bucket of `Describe*` (100, 20 a second), and four fifths of that of a mutating call (50, 5 a second):
200 launches take 40 s with it. The fifth is for what Kerf cannot count: calls of a life before this one, calls of
others, and requests that come closer together than they were sent."""
RATES: Mapping[str, Rate] = {
    "DescribeSpotPriceHistory": Rate(25, 5),
    "GetProducts": Rate(5, 2),
    "GetParameter": Rate(20, 10),
    **dict.fromkeys(("ReceiveMessage", "DeleteMessage"), Rate(1000, 300)),
}
"""Operations that have another bucket. EC2 documents none for CreateFleet, so it is a write unless a setting says. SQS
takes nearly any number of calls of a standard queue (SQS developer guide, "Amazon SQS message quotas", read 2026-11):
each instance of the account that starts puts two messages there, and a spot notice must not wait behind them."""
_LOOK_S = 5.0
"""So often one that waits is asked whether it still has to."""
_READING = ("Describe", "Get", "List", "Receive")


def is_read(operation: str) -> bool:
    """Whether an operation changes nothing, by its name; a received message only hides for a while."""
    return operation.startswith(_READING)


@dataclass
class Bucket:
    """One bucket. Callers are served in the order in which they come."""

    rate: Rate
    now_s: Callable[[], float]
    _tokens: float = field(init=False)
    _at_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Full at first."""
        self._tokens, self._at_s = self.rate.most, self.now_s()

    def take(self) -> float:
        """Take a token; the seconds to wait until it is there, 0 for one that is."""
        self._refill()
        self._tokens -= 1
        return max(0.0, -self._tokens / self.rate.per_s)

    def give_back(self) -> None:
        """A token that was taken is not spent."""
        self._refill()
        self._tokens += 1

    def empty(self) -> None:
        """AWS says that there is no token left: others of the account took them."""
        self._refill()
        self._tokens = min(self._tokens, 0.0)

    def _refill(self) -> None:
        now_s = self.now_s()
        self._tokens = min(self.rate.most, self._tokens + (now_s - self._at_s) * self.rate.per_s)
        self._at_s = now_s


class Buckets:
    """All buckets, made when they are first asked for; `rates` replace those of operations."""

    def __init__(
        self,
        rates: Mapping[str, Rate] | None = None,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rates, self._now_s, self.sleep = {**RATES, **(rates or {})}, now_s, sleep
        self._buckets: dict[str, Bucket] = {}

    async def take(self, operation: str, check: Callable[[], None] | None = None) -> None:
        """Return once the operation may be called.

        `check` is asked every five seconds until then, and at last just before: where it raises, the caller leaves the
        line and its token is there for others.
        """
        bucket = self._of(operation)
        left_s = bucket.take()
        try:
            while left_s > 0:
                turn_s = left_s if check is None else min(left_s, _LOOK_S)
                await self.sleep(turn_s)
                left_s -= turn_s
                if check is not None and left_s > 0:
                    check()
            if check is not None:
                check()
        except BaseException:
            bucket.give_back()
            raise

    def empty(self, operation: str) -> None:
        """AWS throttled the operation."""
        self._of(operation).empty()

    def _of(self, operation: str) -> Bucket:
        if operation not in self._buckets:
            usual = READS if is_read(operation) else WRITES
            self._buckets[operation] = Bucket(self._rates.get(operation, usual), self._now_s)
        return self._buckets[operation]
