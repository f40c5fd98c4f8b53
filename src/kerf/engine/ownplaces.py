"""Pods keep the nodes that were bought for them where a plan puts an equal pod there, and buys for them.

Which of equal pods goes where is all the same to a plan. But a claim that starts names the pods it was bought for. If
another node is bought for the same pods, the claims promise two nodes to one pod.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from kerf.engine.buy.following import Bought
from kerf.engine.outcome import Outcome
from kerf.engine.place.shapes import Kinds, Readings
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Launch
from kerf.model.pods import Pod

_T = TypeVar("_T")


def keep_own_places(made: Outcome) -> bool:
    """Let such pods change places, among what is placed and what is bought; whether any do.

    Cost: the promises of nodes that start, where anything is bought; then the pods, where one of them is bought for.
    """
    if not made.launches:
        return False
    homes = {
        key: spot.cluster_node.name
        for spot in made.trial.spots
        if not spot.cluster_node.is_initialized
        for key in spot.planned
        if not is_virtual(key)
    }
    swapped = _swapped(made, homes) if homes and homes.keys() & made.bought_for else {}
    if not swapped:
        return False
    pods = {pod.key: pod for pod in made.waiting.pods if pod.key in swapped}
    pods |= {pod.key: pod for node in made.bought for pod in node.pods}
    found = made.places.found
    given_up = {key: found.pop(key) for key in swapped if key in found}
    for key, place in given_up.items():
        found[swapped[key]] = replace(place, pod=place.pod._replace(pod=swapped[key]))
    made.launches = tuple(_launch(launch, swapped) for launch in made.launches)
    made.bought = tuple(_bought(node, swapped, pods) for node in made.bought)
    made.bought_for = {swapped.get(key, key) for key in made.bought_for}
    made.dropped = _renamed(made.dropped, swapped)
    made.places.dropped = _renamed(made.places.dropped, swapped)
    return True


def _swapped(made: Outcome, homes: Mapping[str, str]) -> dict[str, str]:
    """By the key of each pod that gives up its place, who has it instead; `homes` are nodes by the pod they are
    promised to. One that gives way is a pod that is bought for, in its turn, and may have a home of its own."""
    found, names = made.places.found, set(homes.values())
    guests: dict[str, list[str]] = {}
    for key, place in sorted(found.items()):
        if place.node in names and homes.get(key) != place.node:
            guests.setdefault(place.node, []).append(key)
    if not guests:
        return {}
    kinds = Kinds(Readings.of(made.world.snapshot))
    known = {pod.key: kinds.of(pod) for pod in made.waiting.pods if pod.key in homes or pod.key in found}
    # A seat is named by the pod that had it first.
    holders = dict[str, str]()
    left = sorted((homes.keys() & made.bought_for & known.keys()), reverse=True)
    seat_of = {key: key for key in left}
    while left:
        key = left.pop()
        here = guests.get(homes[key], [])
        seat = next((each for each in here if known.get(holders.get(each, each)) == known[key]), None)
        if seat is None:
            continue
        here.remove(seat)
        guest, bought = holders.get(seat, seat), seat_of[key]
        holders[seat], holders[bought], seat_of[guest] = key, guest, bought
        if guest in homes:
            left.append(guest)
    return {seat: holder for seat, holder in holders.items() if seat != holder}


def _launch(launch: Launch, swapped: Mapping[str, str]) -> Launch:
    if not any(placed.pod in swapped for placed in launch.pods):
        return launch
    return replace(
        launch, pods=tuple(placed._replace(pod=swapped.get(placed.pod, placed.pod)) for placed in launch.pods)
    )


def _bought(node: Bought, swapped: Mapping[str, str], pods: Mapping[str, Pod]) -> Bought:
    if not any(pod.key in swapped for pod in node.pods):
        return node
    return Bought(node.load, tuple(pods[swapped[pod.key]] if pod.key in swapped else pod for pod in node.pods))


def _renamed(held: Mapping[str, _T], swapped: Mapping[str, str]) -> dict[str, _T]:
    return {swapped.get(key, key): value for key, value in held.items()}
