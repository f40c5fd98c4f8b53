"""What pods and nodes use, as metrics.k8s.io tells: a list that cannot be watched.

Another server answers it, which may be absent, down or closed to us. None of these may stop anything, for usage is
advice; so there is no error here, only pages or one line that says why there are none.
"""

from dataclasses import dataclass

from kerf.errors import ApiError
from kerf.kube.client import Forbidden, KubeClient, Unreachable
from kerf.kube.resources import NODE_METRICS, POD_METRICS, READER, access
from kerf.ports import NotFound

READS = tuple(access("list", resource, by=READER) for resource in (POD_METRICS, NODE_METRICS))
"""All that is asked; which part of Kerf asks is told to the role only."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Lists as bytes, with the name of their kind, or else the `problem` in one line."""

    pages: tuple[tuple[str, bytes], ...] = ()
    problem: str = ""


async def read_metrics(client: KubeClient) -> Metrics:
    """Both lists whole: what answers is a cache in memory, and counts no versions. Never raises ApiError."""
    pages = []
    for wanted in READS:
        try:
            pages.append((wanted.resource.kind, await client.call(wanted)))
        except NotFound:
            return Metrics(problem="the cluster has no metrics.k8s.io (hint: install metrics-server)")
        except Forbidden as error:
            return Metrics(problem=str(error))
        except Unreachable as error:
            return Metrics(problem=f"metrics.k8s.io does not answer: {error}")
        except ApiError as error:
            return Metrics(problem=f"metrics.k8s.io refused: {error}")
    return Metrics(tuple(pages))
