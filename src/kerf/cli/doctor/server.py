"""What `kerf doctor` asks of an API server: version, kinds, what the user may read, which images run."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from kerf.cli.doctor.finding import FAILED, LOOK, OK, Diagnosis
from kerf.cli.inputs.live import READS, ServedGroups
from kerf.errors import ApiError
from kerf.kube.client import KubeClient
from kerf.kube.preflight import lacking, serves
from kerf.kube.resources import (
    CAPACITY_WINDOWS,
    DAEMON_SETS,
    NODE_CLAIMS,
    NODE_CLASSES,
    NODE_OVERLAYS,
    NODE_POOLS,
    NODES,
    PODS,
    READER,
    Access,
    Resource,
    access,
)

_OLDEST, _WINDOWS = (1, 33), (1, 36)
"""The oldest Kubernetes that Kerf is tried on, and the first that serves what windows hold pods with."""
_INSTALL = "kerf manifests --crds | kubectl apply --server-side -f -"
_NEEDED = (NODE_POOLS, NODE_CLAIMS)
_OPTIONAL = ((NODE_OVERLAYS, "overlays are not used"), (CAPACITY_WINDOWS, "there are no CapacityWindows"))
_MOST_RULES = 3
_MINOR = re.compile(r"v?([0-9]+)\.([0-9]+)")
_PLUGINS = access("list", DAEMON_SETS, by=READER)


class _Container(msgspec.Struct):
    image: str = ""


class _PodSpec(msgspec.Struct):
    containers: list[_Container] = []


class _Template(msgspec.Struct):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _Spec(msgspec.Struct):
    template: _Template = msgspec.field(default_factory=_Template)


class _Daemon(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _List(msgspec.Struct):
    items: list[_Daemon] = []


@dataclass(frozen=True, slots=True)
class Visit:
    """What a server said. `images` are those of DaemonSets, None where they may not be read."""

    checks: tuple[Diagnosis, ...]
    images: tuple[str, ...] | None

    @property
    def is_readable(self) -> bool:
        """Whether a plan can be made of the cluster."""
        return all(each.status != FAILED for each in self.checks)


async def visit(client: KubeClient) -> Visit:
    """Ask all of it. Raises ApiError where the server does not answer, or does not know us."""
    version = msgspec.json.decode(await client.fetch("/version"), type=dict[str, object])
    text = str(version.get("gitVersion", "?"))
    groups = msgspec.json.decode(await client.fetch("/apis"), type=ServedGroups)
    checks = [Diagnosis("cluster", OK, client.server), _version(text), *await _kinds(client), _classes(groups)]
    denied = await lacking(client, [(each, "") for each in READS if groups_have(groups, each.resource)])
    checks.append(_roles(denied))
    return Visit(tuple(checks), await _images(client))


def groups_have(groups: ServedGroups, resource: Resource) -> bool:
    """Whether such objects can be there; of the core group they always can."""
    return not resource.group or groups.has(resource)


def _version(text: str) -> Diagnosis:
    found = _MINOR.match(text)
    if found is None:
        return Diagnosis("kubernetes", LOOK, text, "expected a version such as v1.36.0: is this an API server?")
    minor = int(found[1]), int(found[2])
    if minor < _OLDEST:
        return Diagnosis("kubernetes", LOOK, text, f"Kerf is tried on {_OLDEST[0]}.{_OLDEST[1]} and newer: upgrade")
    if minor < _WINDOWS:
        option = f"--kubernetes-version={minor[0]}.{minor[1]}"
        return Diagnosis(
            "kubernetes", OK, f"{text}; gates for windows need 1.36: kerf manifests {option} leaves them out"
        )
    return Diagnosis("kubernetes", OK, text)


async def _kinds(client: KubeClient) -> list[Diagnosis]:
    """NodePools and NodeClaims must be there, the others may."""
    wanted = (*_NEEDED, *(resource for resource, _ in _OPTIONAL))
    served = dict(zip(wanted, await asyncio.gather(*(serves(client, each) for each in wanted)), strict=True))
    found = []
    missing = [each.kind for each in _NEEDED if not served[each]]
    if missing:
        found.append(Diagnosis("kinds", FAILED, f"the cluster has no {' and no '.join(missing)}", _INSTALL))
    else:
        found.append(Diagnosis("kinds", OK, ", ".join(each.kind for each in wanted if served[each])))
    for resource, without in _OPTIONAL:
        if not served[resource]:
            found.append(Diagnosis("kinds", LOOK, f"no {resource.kind} of {resource.api_version}: {without}", _INSTALL))
    return found


def _classes(groups: ServedGroups) -> Diagnosis:
    kinds = [f"{each.kind} of {each.group}" for each in NODE_CLASSES if groups.has(each)]
    if kinds:
        return Diagnosis("cloud", OK, ", ".join(kinds))
    return Diagnosis(
        "cloud", LOOK, "no NodeClass kind of a cloud that Kerf knows", "install that of your cloud's provider"
    )


def _roles(denied: Sequence[tuple[Access, str]]) -> Diagnosis:
    if not denied:
        return Diagnosis("roles", OK, f"you may read all that a plan needs ({len(READS)} rules)")
    is_blocked = any(each.resource in (NODES, PODS, NODE_POOLS) for each, _ in denied)
    rules = [f"{{{each.rule}}}" for each, _ in denied]
    more = f" and {len(rules) - _MOST_RULES} more" if len(rules) > _MOST_RULES else ""
    found = f"you may not read {', '.join(sorted({str(each.resource) for each, _ in denied}))}"
    return Diagnosis("roles", FAILED if is_blocked else LOOK, found, f"grant {'; '.join(rules[:_MOST_RULES])}{more}")


async def _images(client: KubeClient) -> tuple[str, ...] | None:
    try:
        answer = await client.call(_PLUGINS, params={})
    except ApiError:
        return None
    return tuple(sorted(set(_of(msgspec.json.decode(answer, type=_List)))))


def _of(listed: _List) -> Iterator[str]:
    for each in listed.items:
        yield from (container.image for container in each.spec.template.spec.containers if container.image)
