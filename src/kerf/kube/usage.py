"""What pods and nodes use, as metrics.k8s.io reports, and the ConfigMaps in which its history outlives a process.

metrics.k8s.io cannot be watched, and another server answers it, which may be absent, down or closed to us. None of
these may stop anything, for usage is advice; so each is one line that says why there is none.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from kerf.errors import ApiError, DecodeError
from kerf.kube.client import Forbidden, KubeClient, Params, Unreachable
from kerf.kube.resources import CONFIG_MAPS, DRY_RUN, NODE_METRICS, OWN, POD_METRICS, READER, RUN, access
from kerf.manifests.live import decode_list, samples_of
from kerf.manifests.usage import age_order, newest
from kerf.model.large import Large
from kerf.model.usage import SHARD_FORM, SHARD_LABEL, Usage
from kerf.ports import AlreadyExists, Conflict, NotFound

_METRICS = tuple(access("list", resource, by=(READER, RUN, DRY_RUN)) for resource in (POD_METRICS, NODE_METRICS))
_FIND_CHECKPOINTS = access("list", CONFIG_MAPS, by=READER)
READS = (*_METRICS, _FIND_CHECKPOINTS)
"""All that a command asks which only looks."""
_LIST, _GET, _CREATE, _PATCH = (access(verb, CONFIG_MAPS, namespace=OWN) for verb in ("list", "get", "create", "patch"))
_AT_ONCE = 500
_PAGE = 20
"""Of checkpoints, of which one may be a mebibyte."""


@dataclass(frozen=True, slots=True, repr=False)
class Metrics(Large):
    """Lists as bytes, with the name of their kind; `problem` says in one line why one of them is missing."""

    pages: tuple[tuple[str, bytes], ...] = ()
    problem: str = ""


async def read_metrics(client: KubeClient) -> Metrics:
    """Both lists whole: what answers is a cache in memory, and counts no versions. Never raises ApiError."""
    pages, problems = [], []
    for wanted in _METRICS:
        try:
            pages.append((wanted.resource.kind, await client.call(wanted)))
        except ApiError as error:
            problems.append(_problem(error))
    return Metrics(tuple(pages), problems[0] if problems else "")


def _problem(error: ApiError) -> str:
    if isinstance(error, NotFound):
        return "the cluster has no metrics.k8s.io (hint: install metrics-server)"
    if isinstance(error, Forbidden):
        return str(error)
    verb = "does not answer" if isinstance(error, Unreachable) else "refused"
    return f"metrics.k8s.io {verb}: {error}"


async def read_checkpoints(client: KubeClient) -> tuple[bytes, ...]:
    """The ConfigMaps with the history of usage, of whatever namespace Kerf runs in, as pages. Raises ApiError."""
    pages, token = [], ""
    while True:
        pages.append(await client.call(_FIND_CHECKPOINTS, params=_selected(token)))
        token = decode_list(pages[-1]).continue_token
        if not token:
            return tuple(pages)


def _selected(token: str) -> Params:
    return {"labelSelector": SHARD_LABEL, "limit": _PAGE, **({"continue": token} if token else {})}


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str = ""
    resource_version: str = ""


class _ConfigMap(msgspec.Struct):
    """As much of a checkpoint as is read; an entry that is no text is not ours."""

    metadata: _Metadata
    data: dict[str, str] | None = None


class KubeUsage:
    """`kerf.ports.UsageSource` over a connection; `namespace` is Kerf's own."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self._client, self._namespace = client, namespace

    async def read(self) -> tuple[Usage, tuple[str, ...]]:
        """The newest samples, and what was left out. Raises ApiError with one line while no source reports any."""
        metrics = await read_metrics(self._client)
        if not metrics.pages:
            raise ApiError(metrics.problem)
        samples, doubts = [], [metrics.problem] if metrics.problem else []
        for kind, page in metrics.pages:
            try:
                items = decode_list(page).items
            except DecodeError as error:
                raise ApiError(f"metrics.k8s.io: {kind}: {error}") from error
            for start in range(0, len(items), _AT_ONCE):
                found, left_out = samples_of(items[start : start + _AT_ONCE], kind)
                samples += found
                doubts += left_out
                # Ten thousand pods are half a second, in which others want their turn.
                await asyncio.sleep(0)
        return newest(sorted(samples, key=age_order)), tuple(doubts)

    async def checkpoints(self) -> Mapping[str, Mapping[str, str]]:
        """The entries by shard and key. Raises ApiError."""
        shards: dict[str, Mapping[str, str]] = {}
        token = ""
        while True:
            params = _selected(token)
            page = decode_list(await self._client.call(_LIST, namespace=self._namespace, params=params))
            for item in page.items:
                held = msgspec.json.decode(item, type=_ConfigMap)
                shards[held.metadata.name] = held.data or {}
            token = page.continue_token
            if not token:
                return dict(sorted(shards.items()))

    async def write(self, shard: str, changes: Mapping[str, str | None]) -> None:
        """Set and remove entries of a shard. Repeated: the same again. Raises ApiError, Conflict."""
        call, namespace = self._client.call, self._namespace
        try:
            held = msgspec.json.decode(await call(_GET, namespace=namespace, name=shard), type=_ConfigMap).metadata
        except NotFound:
            await self._create(shard, changes)
            return
        this = {"uid": held.uid, "resourceVersion": held.resource_version, "labels": {SHARD_LABEL: SHARD_FORM}}
        await call(_PATCH, namespace=namespace, name=shard, body={"metadata": this, "data": changes})

    async def _create(self, shard: str, changes: Mapping[str, str | None]) -> None:
        metadata = {"name": shard, "namespace": self._namespace, "labels": {SHARD_LABEL: SHARD_FORM}}
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        body["data"] = {key: text for key, text in changes.items() if text is not None}
        try:
            await self._client.call(_CREATE, namespace=self._namespace, body=body)
        except AlreadyExists as error:
            raise Conflict(str(error)) from error
