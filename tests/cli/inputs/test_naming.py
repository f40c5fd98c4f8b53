"""How objects are named on the command line: as kubectl takes names."""

import pytest

from kerf.cli.inputs.naming import Wanted, wanted_objects


@pytest.mark.parametrize(
    "typed, kinds",
    [
        (("pod/a",), ["pod"]),
        (("po/a", "no/b", "np/c", "nc/d"), ["pod", "node", "nodepool", "nodeclaim"]),
        (("nodepools", "a", "b"), ["nodepool", "nodepool"]),
        (("deploy", "a"), ["deployment"]),
        (("STS/a", "Job/b"), ["statefulset", "job"]),
        (("claim", "a"), ["nodeclaim"]),
        (("nodeclaim.karpenter.sh/a", "deployment.apps/b"), ["nodeclaim", "deployment"]),
    ],
)
def test_kinds_have_the_names_that_kubectl_knows(typed: tuple[str, ...], kinds: list[str]) -> None:
    """Long, short and plural, before a slash or as a word of their own, one object or several."""
    assert kinds == [one.kind for one in wanted_objects(typed, None)]


def test_a_kind_as_a_word_is_of_all_names_behind_it() -> None:
    """In the namespace of -n, unless a name has its own."""
    found = wanted_objects(("po", "web", "other/db"), "default")

    assert [Wanted("pod", "web", "default"), Wanted("pod", "db", "other")] == found
