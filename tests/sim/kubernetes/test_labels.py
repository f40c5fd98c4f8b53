"""Pods and budgets that are found by labels are those that a look at all of them finds."""

import random
from typing import Any

from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.kubernetes.budgets import Covering, covered
from kerf.sim.objects import Json, JsonList, labels_of, name_of
from tests.sim.world import World, budget, pod

_KEYS, _VALUES = ("app", "tier", "zone"), ("a", "b", "c")


def labels(chance: random.Random) -> dict[str, str]:
    """Up to three labels."""
    return {key: chance.choice(_VALUES) for key in _KEYS if chance.random() < 0.6}


def selector(chance: random.Random) -> Json:
    """By labels, by expressions, by both, or of all pods."""
    key = chance.choice(_KEYS)
    expressions = [{"key": key, "operator": "In", "values": ["a", "b"]}]
    both = {"matchLabels": {**labels(chance), key: "b"}, "matchExpressions": expressions}
    return chance.choice([{"matchLabels": {key: "a"}}, {"matchExpressions": expressions}, {}, both])


def change(api: InMemoryApi, chance: random.Random) -> None:
    """Create, label anew, or delete a pod or a budget."""
    namespace, number = chance.choice(("one", "two")), chance.randrange(8)
    kind = chance.choice(("Pod", "Pod", "PodDisruptionBudget"))
    made: Any = pod() if kind == "Pod" else budget(maxUnavailable=1, selector=selector(chance))
    name = f"{kind.lower()}-{number}"
    held = api.get(kind, namespace, name)
    if held is None:
        api.create({**made, "metadata": {"name": name, "namespace": namespace, "labels": labels(chance)}})
    elif chance.random() < 0.5:
        api.delete(kind, namespace, name)
    elif kind == "Pod":
        api.update({**held, "metadata": {**held["metadata"], "labels": labels(chance)}})
    else:
        status = {"status": {"disruptionsAllowed": chance.randrange(9)}}
        api.patch(kind, namespace, name, status, subresource="status")


def bearing(api: InMemoryApi, namespace: str, key: str, value: str) -> JsonList:
    """The pods of a namespace with the label, by a look at all."""
    return [
        each
        for each in api.list("Pod")
        if each["metadata"]["namespace"] == namespace and labels_of(each).get(key) == value
    ]


def test_what_is_found_by_labels_is_what_a_look_at_all_finds() -> None:
    """After every one of many changes, in the same order."""
    world, chance = World(), random.Random(7)
    covering = Covering(world.api)
    for _ in range(400):
        change(world.api, chance)
        for namespace in ("one", "two"):
            for key, value in ((key, value) for key in _KEYS for value in _VALUES):
                assert bearing(world.api, namespace, key, value) == world.api.pods_with(namespace, key, value)
        budgets = world.api.list("PodDisruptionBudget")
        for each in world.api.list("Pod"):
            expected = [name_of(held) for held in budgets if covered(held, [each])]
            assert expected == [name_of(held) for held in covering.of(each)]
    world.loop.close()
