"""Token buckets: who waits how long."""

import asyncio

import pytest

from kerf.clouds.aws.buckets import READS, WRITES, Bucket, Buckets, Rate, is_read


class Clock:
    """A monotonic clock that moves when a caller sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def now_s(self) -> float:
        """The time."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Let it pass at once."""
        self.slept.append(seconds)
        self.now += seconds


def test_a_full_bucket_lets_as_many_through_as_it_holds() -> None:
    """Then one for each token that comes back, in the order of the callers."""
    clock = Clock()
    bucket = Bucket(Rate(2, 0.5), clock.now_s)

    assert [0, 0, 2, 4] == [bucket.take() for _ in range(4)]


def test_tokens_come_back_up_to_what_the_bucket_holds() -> None:
    """After an hour there are two again, and no more."""
    clock = Clock()
    bucket = Bucket(Rate(2, 0.5), clock.now_s)
    for _ in range(2):
        bucket.take()
    clock.now += 3600

    assert [0, 0, 2] == [bucket.take() for _ in range(3)]


def test_a_bucket_that_aws_says_is_empty_is_empty_here() -> None:
    """Other programs of the account took the tokens; the next caller waits for one."""
    clock = Clock()
    bucket = Bucket(Rate(10, 2), clock.now_s)
    bucket.empty()

    assert 0.5 == bucket.take()


def test_emptying_does_not_forget_who_waits() -> None:
    """A bucket with a debt keeps it."""
    clock = Clock()
    bucket = Bucket(Rate(1, 1), clock.now_s)
    for _ in range(4):
        bucket.take()
    bucket.empty()

    assert 4 == bucket.take()


def test_each_operation_has_its_own_bucket_for_all_callers() -> None:
    """Two launches wait for each other; a listing waits for neither."""
    clock = Clock()
    buckets = Buckets({"CreateFleet": Rate(1, 0.1)}, clock.now_s, clock.sleep)

    async def calls() -> None:
        for operation in ("CreateFleet", "DescribeInstances", "CreateFleet"):
            await buckets.take(operation)

    asyncio.run(calls())
    assert [10] == clock.slept


def test_two_hundred_launches_are_through_in_forty_seconds() -> None:
    """With four fifths of the bucket that EC2 gives a mutating call: forty at once, four a second afterwards."""
    clock = Clock()
    bucket = Bucket(WRITES, clock.now_s)

    assert 40 == max(bucket.take() for _ in range(200))


def test_a_caller_that_need_not_wait_any_more_leaves_the_line() -> None:
    """It looks every five seconds and at the end; its token is there for others."""
    clock = Clock()
    buckets = Buckets({"CreateFleet": Rate(1, 0.1)}, clock.now_s, clock.sleep)
    asked: list[float] = []

    def check() -> None:
        asked.append(clock.now)
        if clock.now >= 110:
            raise KeyError

    async def calls() -> None:
        await buckets.take("CreateFleet")
        with pytest.raises(KeyError):
            await buckets.take("CreateFleet", check)
        await buckets.take("CreateFleet")

    asyncio.run(calls())
    assert ([105, 110], [5, 5]) == (asked, clock.slept)


def test_a_notice_does_not_wait_behind_the_messages_of_other_instances() -> None:
    """Two hundred launches put four hundred messages into the queue."""
    clock = Clock()
    buckets = Buckets(None, clock.now_s, clock.sleep)

    async def delete() -> None:
        for _ in range(400):
            await buckets.take("DeleteMessage")

    asyncio.run(delete())
    assert [] == clock.slept


def test_a_read_is_known_by_its_name() -> None:
    """Only these are repeated by themselves."""
    names = (
        "DescribeInstances",
        "GetParameter",
        "ListInstanceProfiles",
        "ReceiveMessage",
        "CreateFleet",
        "DeleteMessage",
    )

    assert [True, True, True, True, False, False] == [is_read(name) for name in names]
    assert READS.per_s > WRITES.per_s
