"""Which pods can use a node whose cards registered less than was predicted."""

from kerf.engine.decide import decide
from kerf.engine.shortfall import kept_for
from kerf.engine.world import World
from kerf.model.nodeclaim import REGISTERED_LESS
from kerf.model.pods import Pod
from kerf.model.promises import Promises, written
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_pool, cards
from tests.engine.worlds import G5_12X, seen

PODS = {"default/b": (3,), "default/a": (0,), "default/gone": (1,)}
PROMISED = {**written(Promises(PODS, devices=cards(4))), REGISTERED_LESS: "yes"}


def kept(*pods: Pod) -> dict[str, tuple[int, ...]] | None:
    """What is kept of the promise of a node that has registered two of four cards."""
    node = a_node(provider_id="i-1", allocatable={"cpu": 40, "memory": "100Gi", "pods": 50, "nvidia.com/gpu": 2})
    claim = a_claim(provider_id="i-1", reached=("Launched", "Registered"), annotations=PROMISED)
    found = kept_for(decide(World(seen(a_pool(), node, claim, *pods), a_market(G5_12X))), node.name)
    return None if found is None else dict(found)


def test_promised_pods_stay_in_the_order_of_the_promise() -> None:
    """Each with the card that it has now; one that has gone is not promised any more."""
    assert ["default/b", "default/a"] == list(kept(a_pod("a", gpu=1), a_pod("b", gpu=1)) or ())


def test_a_node_that_only_others_use_promises_nothing() -> None:
    """It is kept, for a pod that it was not bought for."""
    assert {} == kept(a_pod("other", gpu=2))


def test_a_node_without_use_is_not_kept() -> None:
    """No pod, one that needs more than is there, and one that asks for no card."""
    assert [None] * 3 == [kept(), kept(a_pod("a", gpu=4)), kept(a_pod("a", cpu=1))]
