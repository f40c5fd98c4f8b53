"""Pods are tried in queue order, and those that were refused again in the next round, once they may be let in."""

from kerf.engine.place.rounds import Rounds


def test_each_kind_has_one_turn_in_a_round_until_it_is_given() -> None:
    """Of two kinds a and b: what is not given waits, and the others of its kind have no turn."""
    rounds, seen = Rounds([0, 1, 0, 1, 0]), list[int]()
    for place in rounds.turns():
        seen.append(place)
        if place % 2:
            rounds.give(place)

    assert ([0, 1, 3], [0, 2, 4]) == (seen, rounds.left())


def test_who_may_be_let_in_has_a_turn_in_its_place_of_the_round() -> None:
    """At 1 comes what kind 0 waits for: its pod at 2 has a turn in this round, the one at 0 in the next."""
    rounds, seen = Rounds([0, 1, 0]), list[int]()
    for place in rounds.turns():
        seen.append(place)
        if place > 0 or 1 in seen:
            rounds.give(place)
            rounds.notice([0])

    assert ([0, 1, 2, 0], []) == (seen, rounds.left())
