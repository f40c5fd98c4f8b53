"""What `kerf migrate` reads of a live cluster: retired kinds, their successors, and workloads that may name old keys.

A server that was upgraded serves a NodePool in each version that its definition has. It is read in the newest, so a
migrated object is not migrated again.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from kerf.cli.inputs.live import Reading, connected
from kerf.kube.client import ClusterTarget, KubeClient
from kerf.kube.resources import (
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EC2_NODE_CLASSES,
    MIGRATE,
    NODE_POOLS,
    STATEFUL_SETS,
    Resource,
    access,
)
from kerf.manifests.live import decode_list
from kerf.manifests.migrate.metadata import as_written
from kerf.manifests.migrate.others import SETTINGS
from kerf.manifests.read import Documents

Object = dict[str, Any]
_AWS = "karpenter.k8s.aws"
_OLD = (
    Resource("karpenter.sh", "v1alpha5", "provisioners", "Provisioner", is_namespaced=False),
    Resource(_AWS, "v1alpha1", "awsnodetemplates", "AWSNodeTemplate", is_namespaced=False),
)
_BETA = tuple(
    Resource(each.group, "v1beta1", each.plural, each.kind, is_namespaced=False)
    for each in (NODE_POOLS, EC2_NODE_CLASSES)
)
_KINDS = tuple(access("list", each, by=MIGRATE) for each in (*_OLD, NODE_POOLS, EC2_NODE_CLASSES, *_BETA))
_CARRIERS = tuple(access("list", each, by=MIGRATE) for each in (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, CRON_JOBS))
_SETTINGS = access("list", CONFIG_MAPS, names=(SETTINGS,), by=MIGRATE)


def read_retired(kubeconfig: str | None, context: str | None) -> Documents:
    """Everything that a migration may have to change, as manifests: without what the server has added.

    An object that a controller owns is left out, because its owner would change it back. Raises ClusterUnreachable.
    """
    return connected(ClusterTarget(kubeconfig, context), _read)


async def _read(client: KubeClient) -> Documents:
    reading = Reading(client, cut=_manifests, without="migrated without")
    served = await reading.served()
    newest: dict[tuple[str, str], Resource] = {}
    found: list[Documents] = []
    for each in _KINDS:
        resource = each.resource
        if served.has(resource) and newest.setdefault((resource.group, resource.kind), resource) is resource:
            found.append(await reading.optional(each))
    found += [await reading.optional(each) for each in (*_CARRIERS, _SETTINGS)]
    return Documents.joined(found)


def _manifests(resource: Resource, page: bytes) -> bytes:
    """A page of a list with its objects as their authors wrote them."""
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    raws: Sequence[Object] = [msgspec.json.decode(item, type=Object) for item in decode_list(page).items]
    items = [as_written({**head, **raw}) for raw in raws if not _is_controlled(raw)]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})


def _is_controlled(raw: Object) -> bool:
    owners = raw["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") for owner in owners)
