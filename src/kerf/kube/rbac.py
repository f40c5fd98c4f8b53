"""The roles that Kerf needs, made from the accesses that its code declares: no verb more, none forgotten.

A role written by hand drifts from the code in both directions. Here every module that talks to the API is imported,
and what they have declared is what is granted, and what `kerf run` asks for at its start. A verb is granted in all
namespaces only where the code cannot know the namespace: Kerf's own and that of the nodes' Leases have Roles.
"""

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import kerf.kube
from kerf.kube.decisions import PATH
from kerf.kube.resources import (
    AWS,
    DECISIONS,
    DRY_RUN,
    DRY_RUN_ELECTION,
    ELECTION,
    EVERYWHERE,
    KWOK,
    OWN,
    POD_TEMPLATES,
    RUN,
    Access,
    declared,
)

Object = dict[str, Any]
_GROUP = "rbac.authorization.k8s.io"
_IN_VIEW = ("", "apps", "batch", "policy")
_CLOUDS = (AWS, KWOK)


def needed(cloud: str = "", *, is_dry_run: bool = False, elects: bool = True) -> tuple[Access, ...]:
    """Every access that `kerf run` makes, in order.

    `cloud` adds what is needed with that one. A dry run reads, posts events and renews its own Lease; the cloud has no
    part in it. `elects` is False for one that takes no part in an election.
    """
    _import_all()
    parts = [DRY_RUN if is_dry_run else RUN]
    if cloud in _CLOUDS and not is_dry_run:
        parts.append(cloud)
    if elects:
        parts.append(DRY_RUN_ELECTION if is_dry_run else ELECTION)
    return tuple(sorted({each for part in parts for each in declared(part)}))


def roles(namespace: str, name: str, cloud: str = "", *, is_dry_run: bool = False) -> tuple[Object, ...]:
    """ServiceAccount, ClusterRole, Roles and their bindings, all called `name`, in the order to apply them.

    `namespace` is Kerf's own. The others are those of `needed`.
    """
    account = {"name": name, "namespace": namespace}
    granted = grants(needed(cloud, is_dry_run=is_dry_run), name, account)
    return ({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, *granted)


def grants(accesses: Iterable[Access], name: str, account: Object) -> tuple[Object, ...]:
    """A ClusterRole for what is needed everywhere, a Role for each other namespace, and their bindings, called `name`.

    `account` are name and namespace of the service account; its namespace is that of Kerf.
    """
    by_place: dict[str, list[Access]] = {}
    for access in accesses:
        place = account["namespace"] if access.namespace == OWN else access.namespace
        by_place.setdefault(place, []).append(access)
    made: list[Object] = []
    for place in sorted(by_place, key=lambda place: (place != EVERYWHERE, place != account["namespace"], place)):
        kind = "Role" if place else "ClusterRole"
        metadata = {"name": name, **({"namespace": place} if place else {})}
        made.append({**_headed(kind, metadata), "rules": rules(by_place[place])})
        reference = {"apiGroup": _GROUP, "kind": kind, "name": name}
        subject = {"kind": "ServiceAccount", **account}
        made.append({**_headed(f"{kind}Binding", metadata), "roleRef": reference, "subjects": [subject]})
    return tuple(made)


def reader_role(name: str, accesses: Iterable[Access]) -> Object:
    """What `kerf plan` and `kubectl get` need beside the role `view`, to which a server adds it by its label.

    `view` has what lies in a namespace; of `accesses`, what does not is added: nodes, and the kinds of Karpenter. Of
    other projects' groups `view` by itself has nothing, nor of PodTemplates.
    """
    resources = {access.resource for access in accesses}
    wide = {r for r in resources if not r.is_namespaced or r.group not in _IN_VIEW or r == POD_TEMPLATES}
    added = rules(Access(verb, resource) for resource in wide for verb in ("get", "list", "watch"))
    metadata = {"name": name, "labels": {f"{_GROUP}/aggregate-to-view": "true"}}
    return {"apiVersion": f"{_GROUP}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": added}


def decision_roles(namespace: str, name: str) -> tuple[Object, ...]:
    """What asking the leader at `/debug/decisions` needs: an account that may, and a role for people to be bound to.

    People ask for a token of that account; the account can do nothing else, so the token may travel.
    """
    named = f"{name}-decisions"
    account = {"name": named, "namespace": namespace}
    may_ask = {"nonResourceURLs": [PATH], "verbs": ["get"]}
    binding = {
        **_headed("ClusterRoleBinding", {"name": named}),
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": named},
        "subjects": [{"kind": "ServiceAccount", **account}],
    }
    asked = [replace(each, names=(named,)) if each.subresource == "token" else each for each in declared(DECISIONS)]
    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(account)},
        {**_headed("ClusterRole", {"name": named}), "rules": [may_ask]},
        binding,
        {**_headed("Role", account), "rules": rules(asked)},
    )


def rules(accesses: Iterable[Access]) -> list[Object]:
    """The rules of a role: one for each resource, in order, with its verbs in order.

    Objects that are granted by name share a rule where their verbs are the same.
    """
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for access in accesses:
        target = "/".join(part for part in (access.resource.plural, access.subresource) if part)
        for name in access.names or ("",):
            verbs.setdefault((access.resource.group, target, name), set()).add(access.verb)
    names: dict[tuple[str, str, bool, tuple[str, ...]], list[str]] = {}
    for (group, target, name), granted in sorted(verbs.items()):
        names.setdefault((group, target, bool(name), tuple(sorted(granted))), []).append(name)
    found = []
    for (group, target, is_named, held), named in names.items():
        rule: Object = {"apiGroups": [group], "resources": [target]}
        if is_named:
            rule["resourceNames"] = named
        found.append({**rule, "verbs": list(held)})
    return found


def _import_all() -> None:
    # An access is declared where its module is imported, and a module left out here would lack its verbs.
    for module in pkgutil.iter_modules(kerf.kube.__path__, "kerf.kube."):
        importlib.import_module(module.name)


def _headed(kind: str, metadata: Object) -> Object:
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": dict(metadata)}
