"""Is this a cluster that Kerf can run in? Asked before anything else, so what is missing is said in one line.

A missing permission would otherwise show up hours later, at the first write of its kind, as an error on one object.
Asking needs no permission of its own: every user may create a SelfSubjectAccessReview.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from kerf.errors import ApiError, brief
from kerf.kube.client import KubeClient
from kerf.kube.resources import (
    ACCESS_REVIEWS,
    NODE_CLAIMS,
    NODE_METRICS,
    NODE_OVERLAYS,
    NODE_POOLS,
    POD_METRICS,
    TOKEN_REVIEWS,
    Access,
    Resource,
)
from kerf.ports import NotFound

_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", is_namespaced=False
)
_REVIEW = Access("create", _REVIEWS)
_AT_ONCE = 8
_MOST_RULES = 5
_REFINING = {
    "without usage": (POD_METRICS, NODE_METRICS),
    "without answers at /debug/decisions": (TOKEN_REVIEWS, ACCESS_REVIEWS),
}
"""What is for advice, or for those who ask: who may not have it goes without."""


class Unsuitable(ApiError):
    """The cluster lacks what Kerf cannot do without."""


@dataclass(frozen=True, slots=True)
class Server:
    """The API server's version; `degraded` says in words what works less well there."""

    version: str
    degraded: tuple[str, ...] = ()


async def preflight(client: KubeClient, needed: Iterable[tuple[Access, str]], granting: str) -> Server:
    """Look at version, kinds and permissions; `needed` are accesses with the namespace they are made in.

    `granting` is the command that prints the roles which grant them all.

    Raises Unsuitable with all that is missing, Unreachable, Unauthorized.
    """
    version = str((await _fetched(client, "/version")).get("gitVersion", ""))
    degraded: list[str] = []
    for resource in (NODE_POOLS, NODE_CLAIMS):
        await _require(client, resource)
    try:
        await _require(client, NODE_OVERLAYS)
    except Unsuitable as error:
        degraded.append(f"{error}; overlays are not used")
    degraded += await _permitted(client, needed, granting)
    return Server(version, tuple(degraded))


async def _require(client: KubeClient, resource: Resource) -> None:
    if await _serves(client, resource.root, resource):
        return
    others = await _other_versions(client, resource)
    older = f", only {', '.join(others)}" if others else ""
    raise Unsuitable(
        f"the cluster has no {resource.kind} of {resource.api_version}{older} "
        "(hint: kerf manifests --crds | kubectl apply --server-side -f -)"
    )


async def _serves(client: KubeClient, root: str, resource: Resource) -> bool:
    try:
        served = await _fetched(client, root)
    except NotFound:
        return False
    return any(each.get("name") == resource.plural for each in served.get("resources") or ())


async def _other_versions(client: KubeClient, resource: Resource) -> list[str]:
    """Those in which the kind is served; a group has versions of other kinds as well."""
    try:
        group = await _fetched(client, f"/apis/{resource.group}")
    except NotFound:
        return []
    versions = [str(each.get("groupVersion")) for each in group.get("versions") or ()]
    return [
        version
        for version in versions
        if version != resource.api_version and await _serves(client, f"/apis/{version}", resource)
    ]


async def _fetched(client: KubeClient, path: str) -> dict[str, Any]:
    return _object(await client.fetch(path), path)


def _object(body: bytes, path: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        got = body[:60].decode(errors="replace")
        raise Unsuitable(f"no Kubernetes API: {path}: expected an object in JSON, got {brief(got)}") from error


async def serves(client: KubeClient, resource: Resource) -> bool:
    """Whether the server has the kind, in the version that is read. Raises ApiError."""
    return await _serves(client, resource.root, resource)


async def lacking(client: KubeClient, needed: Iterable[tuple[Access, str]]) -> list[tuple[Access, str]]:
    """The accesses that the server would refuse us, each in its namespace. Raises ApiError."""
    asking = asyncio.Semaphore(_AT_ONCE)

    async def ask(access: Access, namespace: str) -> tuple[Access, str] | None:
        async with asking:
            answer = await client.call(_REVIEW, body=_review(access, namespace))
        status = _object(answer, "SelfSubjectAccessReview").get("status") or {}
        return None if status.get("allowed") else (access, namespace)

    answers = await asyncio.gather(*(ask(*each) for each in sorted(set(needed))))
    return [each for each in answers if each is not None]


async def _permitted(client: KubeClient, needed: Iterable[tuple[Access, str]], granting: str) -> list[str]:
    """What works less well without a permission. Raises Unsuitable for those that nothing works without."""
    denied_all = await lacking(client, needed)
    refining = {
        what: [each for each in denied_all if each[0].resource in resources] for what, resources in _REFINING.items()
    }
    missing = _rules(each for each in denied_all if not any(each in denied for denied in refining.values()))
    if missing:
        number = "1 rule" if len(missing) == 1 else f"{len(missing)} rules"
        all_of_them = f"; or all of them: {granting} | kubectl apply --server-side -f -"
        more = all_of_them if len(missing) > _MOST_RULES else ""
        raise Unsuitable(f"forbidden: the role lacks {number} (hint: grant {'; '.join(missing[:_MOST_RULES])}{more})")
    return [f"{what}: the role lacks {'; '.join(_rules(denied))}" for what, denied in refining.items() if denied]


def _rules(denied: Iterable[tuple[Access, str]]) -> list[str]:
    """The lines that a role lacks: one for a resource, with all its verbs."""
    verbs: dict[tuple[Access, str], list[str]] = {}
    for access, namespace in denied:
        verbs.setdefault((replace(access, verb=""), namespace), []).append(access.verb)
    return [
        f"{{{access.rule_for(found)}}}" + (f" in namespace {namespace}" if namespace else "")
        for (access, namespace), found in verbs.items()
    ]


def _review(access: Access, namespace: str) -> Any:
    attributes = {
        "verb": access.verb,
        "group": access.resource.group,
        "resource": access.resource.plural,
        "subresource": access.subresource,
        "namespace": namespace,
        "name": access.names[0] if access.names else "",
    }
    return {
        "apiVersion": _REVIEWS.api_version,
        "kind": _REVIEWS.kind,
        "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
    }
