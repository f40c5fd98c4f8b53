"""Claims that several pods share and whose volume is still to be made.

The volume is made where the first of the pods is bound (WaitForFirstConsumer), and from then on no node of another zone
may take the others: so a decision must keep them in one zone before any of them runs. A pod with two such claims ties
their pods together. Rules of kube-scheduler 1.36 (pkg/scheduler/framework/plugins/volumebinding).
"""

from collections.abc import Iterable, Mapping

from kerf.model.constraints import ZONE, Requirement, Requirements
from kerf.model.topology import PodAffinityTerm
from kerf.model.volumes import SharedClaim

GROUP_LABEL = "<shared claim"
"""Of pods that share claims, for as long as a decision lasts; no pod of a cluster can have such a label."""


class SharedClaims:
    """Which pods share claims, by the keys of these (`namespace/name`).

    `users` are for each pod its claims that wait for their volume; of one namespace, since claims are. Linear in them.
    """

    def __init__(self, users: Iterable[Iterable[str]]) -> None:
        self._before: dict[str, str] = {}
        counts: dict[str, int] = {}
        for claims in users:
            first, *others = sorted(set(claims)) or [""]
            for claim in (first, *others) if first else ():
                counts[claim] = counts.get(claim, 0) + 1
                self._join(first, claim)
        self._shared = frozenset(claim for claim, count in counts.items() if count > 1)
        self._known: dict[tuple[str, str], SharedClaim] = {}

    def _join(self, one: str, other: str) -> None:
        """Both are of one group from now on, which has the name of its first claim."""
        first, last = sorted((self._root(one), self._root(other)))
        self._before[last] = first

    def _root(self, claim: str) -> str:
        path = []
        while (before := self._before.setdefault(claim, claim)) != claim:
            path.append(claim)
            claim = before
        self._before.update(dict.fromkeys(path, claim))
        return claim

    def of(self, claims: Iterable[str]) -> SharedClaim | None:
        """For which of its claims a pod must be where others are; None where it shares none of them."""
        shared = min((claim for claim in claims if claim in self._shared), default="")
        if not shared:
            return None
        group = self._root(shared)
        if (shared, group) not in self._known:
            namespace, _, name = shared.partition("/")
            selector = Requirements([Requirement.of(GROUP_LABEL, "In", (group,))])
            self._known[shared, group] = SharedClaim(name, PodAffinityTerm(ZONE, selector, (namespace,)))
        return self._known[shared, group]


def with_group(labels: Mapping[str, str], shared: SharedClaim) -> dict[str, str]:
    """The labels of a pod, with the one by which those that share its claims find it."""
    return {**labels, **shared.pods.selector.labels()}
