"""Claims that several pods share and whose volume is still to be made.

The volume is made where the first of the pods is bound (WaitForFirstConsumer), and from then on no node of another zone
may take the others: so a decision must keep them in one zone before any of them runs. Where the volume will be a part
of a node, it is one node. A pod with two such claims ties their pods together: those of two disks on one node, and
those of a disk and of a volume of a zone in one zone, for the node is there, too. The access mode ReadWriteOnce says
nothing here: kube-scheduler reads only ReadWriteOncePod. Rules of kube-scheduler 1.36
(pkg/scheduler/framework/plugins: volumebinding, volumerestrictions).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from kerf.model.constraints import HOSTNAME, ZONE, Requirement, Requirements
from kerf.model.topology import PodAffinityTerm
from kerf.model.volumes import SharedClaim

_LABELS = {HOSTNAME: "<shared disk", ZONE: "<shared claim"}
"""Of pods that share claims, for as long as a decision lasts; no pod of a cluster can have such labels."""


class SharedClaims:
    """Which pods share claims, by the keys of these (`namespace/name`).

    `users` are for each pod its claims that wait for their volume; of one namespace, since claims are. Linear in them.
    `of_nodes` are claims whose volume will be a part of a node.
    """

    def __init__(self, users: Iterable[Iterable[str]], of_nodes: Collection[str] = ()) -> None:
        held = [sorted(set(claims)) for claims in users]
        counts = Counter(claim for claims in held for claim in claims)
        self._shared = frozenset(claim for claim, count in counts.items() if count > 1)
        self._of_nodes = self._shared.intersection(of_nodes)
        self._on_node, self._in_zone = _Groups(), _Groups()
        for claims in held:
            self._in_zone.join(claims)
            self._on_node.join([claim for claim in claims if claim in self._of_nodes])
        # Those that share disks of one node alone are in one zone as it is.
        parts: dict[str, set[str]] = {}
        for claim in self._shared:
            part = self._on_node.of(claim) if claim in self._of_nodes else ""
            parts.setdefault(self._in_zone.of(claim), set()).add(part)
        self._zonal = frozenset(group for group, found in parts.items() if len(found) > 1 or "" in found)
        self._known: dict[tuple[str, str, str], SharedClaim] = {}

    def of(self, claims: Iterable[str]) -> tuple[SharedClaim, ...]:
        """For which of its claims a pod must be where others are: on their node, in their zone. Empty where it shares
        none of them."""
        shared = sorted(claim for claim in claims if claim in self._shared)
        disks = [claim for claim in shared if claim in self._of_nodes]
        found = []
        if shared and self._in_zone.of(shared[0]) in self._zonal:
            first = next((claim for claim in shared if claim not in self._of_nodes), shared[0])
            found.append(self._beside(ZONE, first, self._in_zone.of(first)))
        if disks:
            found.append(self._beside(HOSTNAME, disks[0], self._on_node.of(disks[0])))
        return tuple(found)

    def _beside(self, key: str, claim: str, group: str) -> SharedClaim:
        if (key, claim, group) not in self._known:
            namespace, _, name = claim.partition("/")
            selector = Requirements([Requirement.of(_LABELS[key], "In", (group,))])
            self._known[key, claim, group] = SharedClaim(name, PodAffinityTerm(key, selector, (namespace,)))
        return self._known[key, claim, group]


class _Groups:
    """Claims that pods tie together, over any number of others; a group has the name of its first claim."""

    def __init__(self) -> None:
        self._before: dict[str, str] = {}

    def join(self, claims: Iterable[str]) -> None:
        """All of them are of one group from now on."""
        known = list(claims)
        for claim in known:
            first, last = sorted((self.of(known[0]), self.of(claim)))
            self._before[last] = first

    def of(self, claim: str) -> str:
        """The group of the claim."""
        path = []
        while (before := self._before.setdefault(claim, claim)) != claim:
            path.append(claim)
            claim = before
        self._before.update(dict.fromkeys(path, claim))
        return claim


def with_groups(labels: Mapping[str, str], shared: Iterable[SharedClaim]) -> dict[str, str]:
    """The labels of a pod, with those by which the pods that share its claims find it."""
    found = dict(labels)
    for each in shared:
        found |= each.pods.selector.labels()
    return found
