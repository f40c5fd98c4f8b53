"""Workloads that CapacityBuffers name, asked for one by one: of the thousands in a cluster they name a few."""

import msgspec

from kerf.kube.client import KubeClient
from kerf.kube.resources import DEPLOYMENTS, DRY_RUN, REPLICA_SETS, RUN, STATEFUL_SETS, access
from kerf.manifests.decode import decode_scalable
from kerf.manifests.schema import NAME
from kerf.model.capacitybuffers import Scalable
from kerf.ports import NotFound

_GET = {each.kind: access("get", each, by=(RUN, DRY_RUN)) for each in (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS)}


class KubeScalables:
    """`kerf.ports.Scalables` over a connection."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def scalable(self, namespace: str, kind: str, name: str) -> Scalable | None:
        """As the port says; None also for a name that no object can have, of which a path must not be made."""
        if kind not in _GET or not NAME.accepts(name):
            return None
        try:
            answer = await self._client.call(_GET[kind], namespace=namespace, name=name)
        except NotFound:
            return None
        return decode_scalable(msgspec.json.decode(answer))
