"""The state never goes back: answers and events of one object, in every order in which they can come."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from kerf.model.nodeclaim import NodeClaim
from kerf.model.snapshot import Deleted, Event, Relisted, Upserted
from kerf.state import ClusterState
from kerf.testing.builders import a_claim, a_node
from tests.examples import examples

MADE = a_claim("c", uid="u", resource_version="5")
LAUNCHED = replace(MADE, provider_id="i-1", resource_version="7")
MADE_AGAIN = a_claim("c", uid="v", resource_version="12")


def shown(*events: Event) -> ClusterState:
    """A state that has seen these events."""
    state = ClusterState()
    for event in events:
        state.apply(event)
    return state


def test_the_late_answer_to_a_creation_takes_back_nothing_that_the_watch_has_shown() -> None:
    """The claim was launched before the answer that it was made came."""
    state = shown(Upserted(MADE), Upserted(LAUNCHED))
    state.note(MADE)

    assert LAUNCHED == state.claim("c")


def test_the_late_answer_to_a_creation_does_not_bring_back_what_has_gone() -> None:
    """The claim was made and deleted before the answer that it was made came."""
    state = shown(Upserted(MADE), Deleted(MADE))
    state.note(MADE)

    assert state.claim("c") is None


def test_an_answer_shows_a_claim_before_the_watch_does() -> None:
    """So no second pass buys the same again; the watch then shows nothing new."""
    state = shown()
    state.note(MADE)

    assert MADE == state.claim("c")


def test_the_end_of_an_older_claim_of_that_name_does_not_end_the_new_one() -> None:
    """The answer to its creation has overtaken the watch, which still has to show that the old one is gone."""
    state = shown(Upserted(MADE))
    state.note(MADE_AGAIN)
    state.apply(Upserted(LAUNCHED))
    state.apply(Deleted(LAUNCHED))

    assert MADE_AGAIN == state.claim("c")


def test_a_late_answer_about_an_older_claim_of_that_name_is_left() -> None:
    """It was written before the new one was made."""
    state = shown(Upserted(MADE), Deleted(MADE), Upserted(MADE_AGAIN))
    state.note(LAUNCHED)

    assert MADE_AGAIN == state.claim("c")


def test_a_deletion_stays_whatever_was_written_before_it() -> None:
    """Another write of the claim was carried out before its deletion: neither its answer nor its event undo that."""
    state = shown(Upserted(MADE))
    state.note(replace(MADE, deleted_s=60.0))
    state.note(LAUNCHED)
    state.apply(Upserted(LAUNCHED))
    claim = state.claim("c")

    assert claim is not None
    assert ("i-1", 60.0) == (claim.provider_id, claim.deleted_s)


def test_a_deletion_is_noted_of_whatever_form_is_known() -> None:
    """The claim has changed while the call was made, and it is this one that is being deleted."""
    state = shown(Upserted(MADE), Upserted(LAUNCHED))
    state.note(replace(MADE, deleted_s=60.0))

    assert replace(LAUNCHED, deleted_s=60.0) == state.claim("c")


def test_an_answer_whose_version_is_no_number_waits_for_the_watch() -> None:
    """Of two versions that cannot be compared neither is known to be the newer."""
    state = shown(Upserted(replace(MADE, resource_version="a7f")))
    state.note(replace(LAUNCHED, resource_version="0c2"))
    claim = state.claim("c")

    assert claim is not None
    assert "" == claim.provider_id


def test_an_answer_makes_nothing_that_is_not_there() -> None:
    """Only claims are made by Kerf: a node that the state does not have has gone."""
    state = shown()
    state.note(a_node("n", uid="u", resource_version="9"))

    assert state.node("n") is None


def test_what_came_and_went_while_the_watch_was_cut_is_given_up() -> None:
    """No event tells of it: the list that follows, made after the answer, does not show it."""
    state = shown()
    state.note(MADE)

    assert () == state.relist(Relisted("NodeClaim", "4"))
    assert () == state.relist(Relisted("Node", "9"))
    assert (Deleted(MADE),) == state.relist(Relisted("NodeClaim", "9"))


def test_an_answer_to_a_creation_that_a_later_list_does_not_show_is_left() -> None:
    """The claim came and went while the watch was cut, and the answer comes last of all."""
    state = shown()
    state.relist(Relisted("NodeClaim", "9"))
    state.note(MADE)

    assert state.claim("c") is None


def test_what_the_watch_has_shown_is_left_to_its_own_end() -> None:
    """A list that shows nothing new of it says nothing of it."""
    state = shown()
    state.note(MADE)
    state.apply(Upserted(MADE))

    assert () == state.relist(Relisted("NodeClaim", "9"))


# Any order.


@dataclass(frozen=True)
class Written:
    """One write as the server carried it out: the claim as it is then, None where it has gone, and at which version."""

    claim: NodeClaim | None
    version: int


WRITES = st.lists(st.sampled_from(["write", "write", "write", "mark", "end"]), min_size=1, max_size=8)


def history(kinds: Sequence[str]) -> list[Written]:
    """What a server makes of these writes to the claims of one name: each makes it anew where it is gone."""
    written: list[Written] = []
    claim: NodeClaim | None = None
    for number, kind in enumerate(("write", *kinds)):
        version = 5 + number
        if claim is None:
            claim = a_claim("c", uid=f"u{number}", resource_version=str(version))
        elif kind == "end":
            claim = None
        elif kind == "mark":
            claim = replace(claim, resource_version=str(version), deleted_s=claim.deleted_s or 60.0 + number)
        else:
            claim = replace(claim, resource_version=str(version), provider_id=f"i-{number}")
        written.append(Written(claim, version))
    return written


class Following:
    """A watch of that server, which may be cut: after a list it goes on from there."""

    def __init__(self, state: ClusterState, written: Sequence[Written]) -> None:
        self.state, self.written, self.seen = state, written, 0
        self.last: NodeClaim | None = None

    def show(self) -> None:
        """The next change."""
        if self.seen < len(self.written):
            self._tell(self.written[self.seen].claim)
            self.seen += 1

    def relist(self, until: int) -> None:
        """All that was written until then is missed but for what is there."""
        self.seen = max(self.seen, until)
        if self.seen:
            self._tell(self.written[self.seen - 1].claim)
            for gone in self.state.relist(Relisted("NodeClaim", str(self.written[self.seen - 1].version))):
                self.state.apply(gone)

    def _tell(self, claim: NodeClaim | None) -> None:
        last, self.last = self.last, claim
        if last is not None and (claim is None or claim.uid != last.uid):
            self.state.apply(Deleted(last))
        if claim is not None and claim != last:
            self.state.apply(Upserted(claim))


@examples(600)
@given(WRITES, st.integers(0, 2**32))
def test_in_any_order_of_answers_and_events_the_state_only_goes_forward(kinds: list[str], seed: int) -> None:
    """Each answer comes at any time after its write, or never; the watch lags, and may be cut. In the end the state is
    what the server has."""
    written, state, chance = history(kinds), ClusterState(), random.Random(seed)
    watch, newest = Following(state, written), 0
    answers = list(range(len(written)))
    while watch.seen < len(written) or answers:
        step = chance.choice(["show", "show", "relist", "answer", "answer", "lose"])
        if step == "show":
            watch.show()
        elif step == "relist":
            watch.relist(chance.randint(watch.seen, len(written)))
        elif answers:
            claim = written[answers.pop(chance.randrange(len(answers)))].claim
            if step == "answer" and claim is not None:
                state.note(claim)
        held = state.claim("c")
        if held is not None:
            assert newest <= int(held.resource_version)
            newest = int(held.resource_version)
    watch.relist(len(written))

    assert written[-1].claim == state.claim("c")
