"""How a cluster is read: at one moment, whatever happens meanwhile, and without what may not be seen."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from kerf.cli.exits import ClusterUnreachable
from kerf.cli.inputs.live import read_objects
from kerf.kube.client import Forbidden
from kerf.manifests.read import Documents
from tests.kube.fake_server import connected, status_of

GROUPS = ("apps", "batch", "policy", "karpenter.sh")
KINDS = {"nodes": "Node", "pods": "Pod", "nodepools": "NodePool", "nodeclaims": "NodeClaim"}


@dataclass
class Busy:
    """A server on which something happens with every request: its version is how many there were.

    Each kind has two objects, one a page; `answers` has the status of kinds that are answered otherwise, by plural.
    """

    groups: Iterable[str] = GROUPS
    keeps_versions: bool = True
    answers: dict[str, int] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        """Lists, and the groups."""
        if request.path == "/apis":
            return web.json_response({"groups": [{"name": name} for name in self.groups]})
        plural, query = request.path.rpartition("/")[2], dict(request.query)
        if "/namespaces/" in request.path:
            self.namespaces.append(request.path.split("/")[-2])
        self.asked.append((plural, query))
        is_exact = query.get("resourceVersionMatch") == "Exact"
        status = 410 if is_exact and not self.keeps_versions else self.answers.get(plural, 200)
        if status != 200:
            return web.json_response(status_of(status, "refused"), status=status)
        version = query["resourceVersion"] if is_exact else str(len(self.asked))
        is_last = "continue" in query or "limit" not in query
        head = {"resourceVersion": version, "continue": "" if is_last else f"more-{version}"}
        item = {"metadata": {"name": f"{plural}-{len(self.asked)}"}}
        return web.json_response({"kind": f"{KINDS.get(plural, 'Other')}List", "metadata": head, "items": [item]})

    def read(self) -> Documents:
        """As a command does."""

        async def reading() -> Documents:
            async with connected(self.answer) as client:
                return await read_objects(client)

        return asyncio.run(reading())


def test_all_kinds_are_read_as_they_were_at_one_version() -> None:
    """That of the first answer; otherwise a claim could name a node that is not among the nodes."""
    server = Busy()
    server.read()

    first, *others = [query for _, query in server.asked if "continue" not in query]
    assert {"limit": "500"} == first
    assert {("1", "Exact")} == {(query["resourceVersion"], query["resourceVersionMatch"]) for query in others}


def test_all_config_maps_are_read_where_plugins_are() -> None:
    """A release calls its map as it likes; of each namespace but that of Kerf's own memory, and no object twice."""
    server = Busy()

    async def reading() -> Documents:
        async with connected(server.answer) as client:
            return await read_objects(client, plugin_namespaces=("gpu-operator", "kerf-system", "kube-system"))

    names = [each.value()["metadata"]["name"] for each in asyncio.run(reading())]
    assert ["gpu-operator", "kube-system"] == list(dict.fromkeys(server.namespaces))
    assert len(names) == len(set(names))


def test_a_next_page_is_of_the_version_of_the_first() -> None:
    """The place where it goes on says so, and a server refuses to be told twice."""
    server = Busy()
    server.read()

    further = [query for _, query in server.asked if query.get("continue") == "more-1"]
    assert [{"limit": "500", "continue": "more-1"}] * 2 == further[:2]
    assert not any("resourceVersion" in query for query in further)


def test_a_version_that_is_forgotten_is_no_error() -> None:
    """What was compacted meanwhile is read as it is now, in one piece."""
    server = Busy(keeps_versions=False)

    names = [each.value()["metadata"]["name"] for each in server.read()]
    assert ["nodes-1", "nodes-2", "pods-4"] == names[:3]
    assert ("pods", {}) == server.asked[3]


def test_what_only_refines_a_plan_may_be_forbidden(capsys: pytest.CaptureFixture[str]) -> None:
    """It is left out, with the rule that is missing; a cluster without overlays needs no word."""
    Busy(answers={"daemonsets": 403, "nodeoverlays": 404}).read()

    told = capsys.readouterr().err
    assert told.startswith("note: planned without daemonsets.apps: forbidden: refused (hint: grant {apiGroups: [")
    assert 1 == len(told.splitlines())


def test_a_vendor_that_is_not_there_is_not_asked() -> None:
    """A role without a rule for it would be refused, although nothing is hidden."""
    server = Busy(groups=(*GROUPS, "karpenter.k8s.aws"))
    server.read()

    assert [["ec2nodeclasses"] * 2] == [[plural for plural, _ in server.asked if "nodeclasses" in plural]]


@pytest.mark.parametrize(
    "status, error, told",
    [
        (403, Forbidden, r"grant \{apiGroups: \[\"karpenter.sh\"\], resources: \[\"nodepools\"\], verbs: \[\"list\"\]"),
        (404, ClusterUnreachable, r"the cluster has no NodePool of karpenter.sh/v1 \(hint: kerf manifests --crds"),
    ],
)
def test_without_pools_there_is_no_plan(status: int, error: type[Exception], told: str) -> None:
    """Nor without nodes or pods: the error says what is missing."""
    with pytest.raises(error, match=told):
        Busy(answers={"nodepools": status}).read()
