"""Since when a server has not answered."""

from kerf.kube.client import Contact


def test_silence_counts_from_the_first_call_that_was_not_answered() -> None:
    """Any answer ends it, whatever it says."""
    now = [100.0]
    contact = Contact(lambda: now[0])
    told = []
    for at_s, answered in ((100, True), (110, False), (120, False), (130, True), (140, False)):
        now[0] = at_s
        contact.heard(answered=answered)
        told.append(contact.lost_s)
    now[0] = 145

    assert [0, 0, 10, 0, 0] == told
    assert 5 == contact.lost_s
