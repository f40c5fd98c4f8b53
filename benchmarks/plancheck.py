"""Prices and verifies a plan by its JSON, or says what is wrong with it.

It knows nothing of the planner: what a pod asks and what a type has are rows of numbers. A node must hold its pods in
sum, and each physical card its slices in memory, cores and number; a pod must have a slice on as many cards as it asks
for, of the size it asks for.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.boundcheck import PodRow, TypeRow

_CORES = 100
_Json = Mapping[str, Any]


class WrongPlanError(Exception):
    """A plan that cannot be carried out as it says."""


def checked(plan: _Json, pods: Iterable[PodRow], types: Iterable[TypeRow]) -> tuple[int, int]:
    """What the nodes of the plan cost in an hour, in micro-units, and how many pods have no node.

    Raises WrongPlanError with the launch and what is wrong with it.
    """
    asked, known = {pod.key: pod for pod in pods}, {each.name: each for each in types}
    seen = Counter[str]()
    price = 0
    for launch in plan["launches"]:
        kind = known[launch["instanceType"]]
        price += kind.price_micro
        seen.update(launch["pods"])
        _check(launch, [asked[key] for key in launch["pods"]], kind)
    twice = sorted(key for key, count in seen.items() if count > 1)
    if twice:
        raise WrongPlanError(f"expected each pod on one node, got {twice[0]} on {seen[twice[0]]}")
    return price, len(asked) - len(seen)


def _check(launch: _Json, pods: list[PodRow], kind: TypeRow) -> None:
    name = launch["name"]
    for resource in sorted({resource for pod in pods for resource in pod.amounts}):
        total, has = sum(pod.amounts.get(resource, 0) for pod in pods), kind.amounts.get(resource, 0)
        if total > has:
            raise WrongPlanError(f"{name}: expected at most {has} of {resource} on {kind.name}, got {total}")
    slices = defaultdict[str, list[int]](list)
    for card in launch.get("devices", ()):
        parts = card["slices"]
        if len(parts) > kind.slots:
            raise WrongPlanError(f"{name}: expected at most {kind.slots} slices of a card, got {len(parts)}")
        for what, most in (("memoryMiB", kind.card_mib), ("cores", _CORES)):
            if sum(part[what] for part in parts) > most:
                raise WrongPlanError(f"{name}: expected at most {most} of {what} of a card, got {parts}")
        for part in parts:
            slices[part["pod"]].append(part["memoryMiB"])
    if len(launch.get("devices", ())) > kind.cards:
        raise WrongPlanError(f"{name}: expected {kind.cards} cards, got {len(launch['devices'])}")
    for pod in pods:
        if pod.models and kind.model not in pod.models:
            raise WrongPlanError(f"{name}: expected a card of {sorted(pod.models)} for {pod.key}, got {kind.model}")
        least = pod.memory_mib(kind.card_mib)
        if len(slices[pod.key]) != pod.cards or any(each < least for each in slices[pod.key]):
            raise WrongPlanError(
                f"{name}: expected {pod.cards} slices of {least} MiB for {pod.key}, got {slices[pod.key]}"
            )
