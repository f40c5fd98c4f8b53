"""When Python looks for garbage while Kerf runs: between decisions where it can, and seldom during one.

Counting references frees nearly all that a decision makes. For the rest Python looks through all objects that are new,
whenever enough have come together: so it did during every tenth decision that begins with what the last one left, and
took up to half as long as the decision. Between decisions it takes a few milliseconds, and no decision waits for it.
"""

import gc

_YOUNG = 200_000
"""So many more objects than were freed come together before a decision is interrupted. One that begins with what the
last one left makes up to nine for each pod, one that begins with nothing makes more."""
_TIMES = 3
"""After so many times those are looked through that have stayed once, too: no more than 800,000 in one stop."""
_GROWN = 1.25
"""Old objects are looked through when there are so many times as many as after the last time; this is Python's rule."""


class Garbage:
    """What is looked through, and when, in this process and from now on."""

    def __init__(self) -> None:
        gc.set_threshold(_YOUNG, _TIMES)
        self._old = 0

    def look(self) -> None:
        """Look for garbage while no decision waits: among new objects, at times among older ones, rarely in all.

        Cost: linear in the objects that are looked through, and nothing else runs meanwhile.
        """
        _, once, twice = gc.get_count()
        _, most_once, most_twice = gc.get_threshold()
        generation = int(once > most_once)
        if generation and twice > most_twice and len(gc.get_objects(2)) > self._old * _GROWN:
            generation = 2
        gc.collect(generation)
        if generation == 2:
            self._old = len(gc.get_objects(2))
