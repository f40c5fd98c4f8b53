"""What every cloud provider must do, as checks that its author runs.

Kerf never leaks or doubles an instance only because a provider keeps the promises of `kerf.cloudprovider`: a repeated
`create` is the same instance, a listed instance carries its claim's token, a deleted one ends in InstanceNotFound. Each
check is a coroutine function that takes a `Bench` and raises AssertionError with the broken promise; `CHECKS` lists
them all, so that a test is one line:

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_provider(check): run_in_virtual_time(check, ...)
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from kerf.cloudprovider import CloudProvider, Instance, InstanceNotFound, InsufficientCapacity
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool


@dataclass(frozen=True)
class Bench:
    """A provider under test.

    `claim` can be launched for `pool`; its uid is replaced for further instances. `sell_out` makes everything that the
    claim allows sold out, None where that cannot be done. `wait` lets so many seconds pass, in whatever time the
    provider lives in.
    """

    provider: CloudProvider
    pool: NodePool
    claim: NodeClaim
    wait: Callable[[float], Awaitable[None]]
    sell_out: Callable[[], None] | None = None

    def another(self, number: int) -> NodeClaim:
        """A claim like `claim`, with an identity of its own."""
        return replace(self.claim, name=f"{self.claim.name}-{number}", uid=f"{self.claim.uid}-{number}")


def _expect(holds: bool, promise: str) -> None:
    if not holds:
        raise AssertionError(promise)


async def types_are_sold_in_name_order(bench: Bench) -> None:
    """`instance_types` gives names in order, each once, each with an offering, in a currency that is named."""
    types = await bench.provider.instance_types(bench.pool)
    names = [instance_type.name for instance_type in types]
    _expect(bool(names), "instance_types gives at least one type")
    _expect(names == sorted(set(names)), "instance_types gives each name once, in order")
    _expect(all(t.offerings for t in types), "every type has an offering")
    _expect(all(o.price_micro >= 0 for t in types for o in t.offerings), "no price is negative")
    _expect(len(bench.provider.currency) == 3, "currency is a code of three letters")


async def created_is_what_was_asked_for(bench: Bench) -> None:
    """`create` launches a type, zone and capacity type that the claim allows, and says so in the labels."""
    instance = await bench.provider.create(bench.claim)
    offering = instance.offering
    _expect(instance.claim_uid == bench.claim.uid, "an instance carries the uid of its claim")
    _expect(instance.claim_name == bench.claim.name, "an instance carries the name of its claim")
    promised = {INSTANCE_TYPE: offering.instance_type, ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type}
    for key, value in promised.items():
        _expect(instance.labels.get(key) == value, f"the label {key} is that of the offering")
        requirement = bench.claim.requirements.get(key)
        _expect(requirement is None or requirement.has(value), f"{key} {value} is what the claim allows")


async def created_twice_is_one(bench: Bench) -> None:
    """A repeated `create` gives the same instance, whatever became of the first reply."""
    first = await bench.provider.create(bench.claim)
    second = await bench.provider.create(bench.claim)
    _expect(first.provider_id == second.provider_id, "create is idempotent by the uid of the claim")
    _expect(len(await _listed(bench, bench.claim)) == 1, "a repeated create leaves one instance")


async def other_claims_get_other_instances(bench: Bench) -> None:
    """Two claims never share an instance."""
    first = await bench.provider.create(bench.claim)
    second = await bench.provider.create(bench.another(2))
    _expect(first.provider_id != second.provider_id, "two claims have two instances")


async def created_is_listed(bench: Bench) -> None:
    """`list_instances` shows what was launched, by provider id, with its token."""
    created = [await bench.provider.create(bench.another(number)) for number in (1, 2, 3)]
    listed = [instance.provider_id for instance in await bench.provider.list_instances()]
    _expect(listed == sorted(listed), "list_instances is in order of provider ids")
    _expect({i.provider_id for i in created} <= set(listed), "list_instances shows every instance that was launched")


async def deleted_ends(bench: Bench) -> None:
    """`delete` is accepted as often as it is asked, ends in InstanceNotFound, and the list forgets the instance."""
    instance = await bench.provider.create(bench.claim)
    for _ in range(600):
        try:
            await bench.provider.delete(instance.provider_id)
        except InstanceNotFound:
            break
        await bench.wait(1)
    else:
        raise AssertionError("delete raises InstanceNotFound once the instance is gone")
    _expect(not await _listed(bench, bench.claim), "list_instances forgets what has ended")


async def unknown_is_not_found(bench: Bench) -> None:
    """Deleting what never was raises InstanceNotFound."""
    try:
        await bench.provider.delete("fake:///nowhere/i-0")
    except InstanceNotFound:
        return
    raise AssertionError("delete of an unknown instance raises InstanceNotFound")


async def sold_out_is_named(bench: Bench) -> None:
    """Where everything is sold out, InsufficientCapacity names the offerings, and nothing is left behind."""
    if bench.sell_out is None:
        return
    bench.sell_out()
    try:
        await bench.provider.create(bench.claim)
    except InsufficientCapacity as error:
        _expect(bool(error.offerings), "InsufficientCapacity names what is sold out")
    else:
        raise AssertionError("create raises InsufficientCapacity when everything is sold out")
    _expect(not await _listed(bench, bench.claim), "a refused launch leaves no instance")


async def _listed(bench: Bench, claim: NodeClaim) -> list[Instance]:
    return [i for i in await bench.provider.list_instances() if i.claim_uid == claim.uid]


CHECKS: tuple[Callable[[Bench], Awaitable[None]], ...] = (
    types_are_sold_in_name_order,
    created_is_what_was_asked_for,
    created_twice_is_one,
    other_claims_get_other_instances,
    created_is_listed,
    deleted_ends,
    unknown_is_not_found,
    sold_out_is_named,
)
"""All of them."""
