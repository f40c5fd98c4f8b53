"""What every cloud provider must do, as checks that its author runs.

Kerf never leaks or doubles an instance only because a provider keeps the promises of `kerf.cloudprovider`: a repeated
`create` is the same instance, a listed instance carries its claim's token, a deleted one ends in InstanceNotFound. Each
check is a coroutine function that takes a `Bench` and raises AssertionError with the broken promise; `CHECKS` lists
them all; a test is one line:

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_provider(check): run_in_virtual_time(check, ...)
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kerf.cloudprovider import CloudProvider, Instance, InstanceNotFound, InstanceState, InsufficientCapacity
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool


@dataclass(frozen=True)
class Bench:
    """A provider under test.

    `claim` can be launched for `pool`; its uid is replaced for further instances. `sell_out` makes everything that the
    claim allows sold out, and `leave` all but so many instances of it; `interrupt` lets the cloud give notice to the
    instance of a provider id; None where that cannot be done. `node_class` is a good document of its own kind.
    `wait` lets so many seconds pass, in whatever time the provider lives in, and `now_s` says which it is.
    """

    provider: CloudProvider
    pool: NodePool
    claim: NodeClaim
    wait: Callable[[float], Awaitable[None]]
    sell_out: Callable[[], None] | None = None
    leave: Callable[[int], None] | None = None
    interrupt: Callable[[str], None] | None = None
    now_s: Callable[[], float] | None = None
    node_class: Mapping[str, Any] | None = None

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
        _expect(all(error.reasons.values()), "InsufficientCapacity has a reason for each offering")
    else:
        raise AssertionError("create raises InsufficientCapacity when everything is sold out")
    _expect(not await _listed(bench, bench.claim), "a refused launch leaves no instance")


async def created_is_found_by_id(bench: Bench) -> None:
    """`get` gives the instance that was launched, as it is listed."""
    created = await bench.provider.create(bench.claim)
    found = await bench.provider.get(created.provider_id)
    (listed,) = await _listed(bench, bench.claim)
    _expect(found == listed, "get gives what list_instances gives")
    _expect(found.offering == created.offering, "an instance keeps its offering")
    _expect(found.state in (InstanceState.PENDING, InstanceState.RUNNING), "a new instance is pending or running")
    try:
        await bench.provider.get("fake:///nowhere/i-0")
    except InstanceNotFound:
        return
    raise AssertionError("get of an unknown instance raises InstanceNotFound")


async def all_are_created(bench: Bench) -> None:
    """`create_all` gives an instance for each claim, in their order, and the same ones again."""
    claims = [bench.another(number) for number in (3, 1, 2)]
    first = await bench.provider.create_all(claims)
    _expect([i.claim_uid for i in first] == [c.uid for c in claims], "create_all keeps the order of the claims")
    second = await bench.provider.create_all(claims)
    ids = [[instance.provider_id for instance in each] for each in (first, second)]
    _expect(ids[0] == ids[1] and len(set(ids[0])) == 3, "a repeated create_all gives the same instances")


async def none_is_left_of_some(bench: Bench) -> None:
    """Where only some of the claims can be launched, `create_all` raises and terminates those."""
    if bench.leave is None:
        return
    bench.leave(1)
    claims = [bench.another(number) for number in (1, 2, 3)]
    try:
        await bench.provider.create_all(claims)
    except InsufficientCapacity:
        pass
    else:
        raise AssertionError("create_all raises InsufficientCapacity where one claim cannot be launched")
    for _ in range(600):
        if not any([await _listed(bench, claim) for claim in claims]):
            return
        await bench.wait(1)
    raise AssertionError("create_all leaves no instance where it raises InsufficientCapacity")


async def interrupted_is_reported(bench: Bench) -> None:
    """An interruption has a deadline that is still to come, in the list or in the news of a loop."""
    if bench.interrupt is None or bench.now_s is None:
        return
    instance = await bench.provider.create(bench.claim)
    _expect(instance.interruption is None, "a new instance is not interrupted")
    bench.interrupt(instance.provider_id)
    found = (await bench.provider.get(instance.provider_id)).interruption
    for loop in bench.provider.loops if found is None else ():
        found = found or (await loop.turn()).interruptions.get(instance.provider_id)
    _expect(found is not None, "an interruption is reported")
    assert found is not None
    _expect(not found.kind.is_advice, "an interruption is no mere advice")
    _expect(found.deadline_s is None or found.deadline_s > bench.now_s(), "its deadline is still to come")


async def new_has_not_drifted(bench: Bench) -> None:
    """An instance that was just launched is what its NodeClass says."""
    created = await bench.provider.create(bench.claim)
    claim = replace(bench.claim, provider_id=created.provider_id, labels={**bench.claim.labels, **created.labels})
    _expect(await bench.provider.drift(claim) is None, "a new instance has not drifted")


async def loops_and_policies_are_well_formed(bench: Bench) -> None:
    """Each loop has a name of its own and a period, each repair policy a condition and a toleration."""
    names = [loop.name for loop in bench.provider.loops]
    _expect(len(names) == len(set(names)) and all(names), "each loop has a name of its own")
    _expect(all(loop.period_s >= 0 for loop in bench.provider.loops), "no loop has a negative period")
    policies = bench.provider.repair_policies
    _expect(all(p.condition and p.status and p.toleration_s > 0 for p in policies), "a repair policy tolerates a while")
    _expect(all(p.drain_s >= 0 for p in policies), "a repair policy ends each drain")
    for policy in policies:
        re.compile(policy.reason)


async def node_class_resolves(bench: Bench) -> None:
    """A good NodeClass becomes ready, the same each time, and can be released as often as it is asked."""
    kinds = bench.provider.node_classes
    if kinds is None or bench.node_class is None:
        return
    first, second = await kinds.resolve(bench.node_class), await kinds.resolve(bench.node_class)
    ready = [c for c in first.status.get("conditions", ()) if (c["type"], c["status"]) == ("Ready", "True")]
    _expect(len(ready) == 1, "a good NodeClass is Ready")
    _expect(first.status == second.status, "a NodeClass that has not changed keeps its status")
    _expect(first.again_s > 0, "a NodeClass is resolved again after a while")
    for _ in range(2):
        await kinds.release(bench.node_class)


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
    created_is_found_by_id,
    all_are_created,
    none_is_left_of_some,
    interrupted_is_reported,
    new_has_not_drifted,
    loops_and_policies_are_well_formed,
    node_class_resolves,
)
"""All of them."""
