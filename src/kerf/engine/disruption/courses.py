"""Equal pods placed one after another, kept so that their places are known at once when a few rooms differ.

Each pod goes where its scheduler likes it best, so a course is a merge of what each node offers. Without one node the
others come in the same order. So "what if this node were closed?" costs a look at the nodes that differ, and no look
at all the others.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kerf.engine.place.devices import asks_devices
from kerf.engine.place.fit import Placed
from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Room
from kerf.engine.place.trial import Trial
from kerf.model.quantities import CPU, MEMORY

Offer = tuple[float, int, Placed]
"""The scheduler's order (least first), the number of a spot, and the next pod there. A spot makes one at a time."""
Rooms = Mapping[int, Room]
"""Nodes by number that have another room than the course knows, with that room."""


class Course:
    """Where so many pods of a shape go in a trial as it stands; making it places them there.

    Cost: as `Trial.place`, and less for pods without devices, which take the first node with room.
    """

    def __init__(self, trial: Trial, shape: Shape, pods: int = 0) -> None:
        self._spots, self._samples, self._shape, self._pods = trial.spots, trial.samples, shape, pods
        self._asked = tuple((name, amount) for name in (CPU, MEMORY) if (amount := shape.requests.get(name, 0)) > 0)
        self._steps: list[tuple[Offer, Room]] = []
        first = _Kept(self._offers(list(trial.rooms), trial.roomy(shape.requests)))
        self._rest = first
        heap: list[Offer] = []
        after: dict[int, Room] = {}
        for offer, pod in zip(self._more(pods, heap, after, -1), shape.pods, strict=False):
            self._steps.append((offer, trial.rooms[offer[1]]))
            trial.occupy(offer[1], offer[2].room, pod)
        self.landed = Counter(offer[1] for offer, _ in self._steps)
        """How many of the pods each spot got."""
        if after:
            self._rest = _Kept(heapq.merge(sorted(heap), (offer for offer in first if offer[1] not in after)))

    def again(self, rooms: Rooms, closed: int) -> Rooms:
        """The rooms that differ after the same pods, where these differ before and the spot `closed` takes none."""
        if not rooms and closed not in self.landed:
            return rooms
        after, heap = dict(rooms), self._heap(rooms, closed)
        if heap:
            left = self._walked(heap, after, closed)
        else:
            gone = {closed, *rooms}
            left = self._pods - len(self._steps) + sum(self.landed[index] for index in gone)
        self._more(left, heap, after, closed)
        return after

    def further(self, pods: int, rooms: Rooms, closed: int) -> tuple[Sequence[Offer], Rooms]:
        """The offers that more pods take after the course, fewer where no more fit; and the rooms that differ then."""
        after = dict(rooms)
        return self._more(pods, self._heap(rooms, closed), after, closed), after

    def _walked(self, heap: list[Offer], after: dict[int, Room], closed: int) -> int:
        """Go along the course with the offers of changed spots among it; how many pods are left at its end."""
        left, changed = self._pods, frozenset(after)
        for offer, before in self._steps:
            index = offer[1]
            if index == closed or index in changed:
                continue
            while left and heap and heap[0] < offer:
                self._take(heap, after)
                left -= 1
            if left:
                left -= 1
            else:
                # The changed spots took more than they did: from here on this one gets none.
                after.setdefault(index, before)
        return left

    def _more(self, pods: int, heap: list[Offer], after: dict[int, Room], closed: int) -> list[Offer]:
        """Place pods at the end of the course; `heap` has the offers of the spots in `after`, and both change."""
        taken: list[Offer] = []
        for offer in self._rest if pods > 0 else ():
            if offer[1] == closed or offer[1] in after:
                continue
            # Nodes that were taken before may be liked better than the next one.
            while heap and heap[0] < offer and len(taken) < pods:
                taken.append(self._take(heap, after))
            if len(taken) < pods:
                heapq.heappush(heap, offer)
                taken.append(self._take(heap, after))
            if len(taken) == pods:
                return taken
        while heap and len(taken) < pods:
            taken.append(self._take(heap, after))
        return taken

    def _take(self, heap: list[Offer], after: dict[int, Room]) -> Offer:
        offer = heapq.heappop(heap)
        after[offer[1]] = offer[2].room
        following = self._offer(offer[1], offer[2].room)
        if following is not None:
            heapq.heappush(heap, following)
        return offer

    def _heap(self, rooms: Rooms, closed: int) -> list[Offer]:
        made = (self._offer(index, room) for index, room in rooms.items() if index != closed)
        heap = [offer for offer in made if offer is not None]
        heapq.heapify(heap)
        return heap

    def _offer(self, index: int, room: Room) -> Offer | None:
        # Most rooms that differ are nearly full, and every family leaves cpu and memory to kubelet.
        if any(room.free.get(name, 0) < amount for name, amount in self._asked):
            return None
        result = self._spots[index].fit(room, self._shape)
        return (result.order, index, result) if isinstance(result, Placed) else None

    def _offers(self, rooms: Sequence[Room], roomy: Iterable[int]) -> Iterator[Offer]:
        """The first offer of each spot that makes one, in order."""
        made = (offer for index in roomy if (offer := self._offer(index, rooms[index])) is not None)
        # The scheduler's order can be another than that of the spots where the pods need devices.
        return iter(sorted(made)) if any(asks_devices(self._shape, each) for each in self._samples) else made


class _Kept:
    """Offers that are made when they are first asked for, and then kept."""

    def __init__(self, offers: Iterator[Offer]) -> None:
        self._unmade, self._made = offers, list[Offer]()

    def __iter__(self) -> Iterator[Offer]:
        number = 0
        while True:
            if number == len(self._made):
                offer = next(self._unmade, None)
                if offer is None:
                    return
                self._made.append(offer)
            yield self._made[number]
            number += 1
