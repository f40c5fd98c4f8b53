"""How well the cluster is known: what readiness and metrics say of each resource that is followed.

Readiness says the truth about what Kerf sees: a replica whose watches are silent or gone decides on a past cluster,
although its process is in the best of health. Silence alone says little, because nothing may have happened; only when
the bookmarks that come every minute stay away as well is a watch dead.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kerf.kube.resources import Resource
from kerf.telemetry import WATCH_RELISTS, WATCH_SILENT_SECONDS

_SILENT_S = 150.0
"""Two bookmarks have not come."""
LOST_S = 30.0
"""So long a watch may be gone: an API server that is replaced, a router that starts again."""


@dataclass(frozen=True, slots=True)
class ResourceHealth:
    """How well one resource is known.

    `missing` says why it cannot be had (no permission, no such kind); empty when it can. `silent_s` is since when
    nothing at all came, bookmarks included; `lost_s` since when there is no watch and no answer, 0 while there is one.
    `relists` counts lists after the first.
    """

    resource: Resource
    is_required: bool
    is_synced: bool
    missing: str
    silent_s: float
    lost_s: float
    relists: int
    last_error: str

    def problem(self, stale_s: float = _SILENT_S, lost_s: float = LOST_S) -> str:
        """Why decisions should not rest on it, for readiness; empty when they may.

        A watch may be silent for `stale_s`, in which bookmarks would have come, and be gone for `lost_s`.
        """
        if self.missing:
            return f"{self.resource}: {self.missing}" if self.is_required else ""
        because = f": {self.last_error}" if self.last_error else ""
        if not self.is_synced:
            return f"{self.resource}: not listed yet{because}"
        if self.lost_s > lost_s:
            return f"{self.resource}: lost for {self.lost_s:.0f} s{because}"
        return f"{self.resource}: silent for {self.silent_s:.0f} s{because}" if self.silent_s > stale_s else ""


def problems(healths: Iterable[ResourceHealth], lost_s: float) -> list[str]:
    """Why this replica is not ready, one line each; empty when it is."""
    return [problem for health in healths if (problem := health.problem(lost_s=lost_s))]


def measure(healths: Iterable[ResourceHealth]) -> None:
    """Set the metrics of the watches."""
    for health in healths:
        WATCH_SILENT_SECONDS.labels(str(health.resource)).set(round(health.silent_s, 3))
        WATCH_RELISTS.labels(str(health.resource)).set(health.relists)
