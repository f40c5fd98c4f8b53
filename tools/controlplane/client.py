"""A small client of a real API server, for what tests ask again and again.

A test that waits asks ten times a second, and a TLS handshake costs the server more than the answer; so what reads
keeps its connection, and opens a new one where the server behind it was killed meanwhile. What writes has a connection
of its own, because it must not be sent twice. The address of a kind is found by asking the server, because a test
names kinds that did not exist when the server started.
"""

import base64
import http.client
import json
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from tools.controlplane.process import ControlPlaneError

Object = dict[str, Any]
"""A Kubernetes object as JSON."""

_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_TIMEOUT_S = 30
_PUTS = 100
"""Objects in one transaction: etcd takes 128 operations (--max-txn-ops) and 1.5 MiB (--max-request-bytes)."""


@dataclass(frozen=True)
class Answer:
    """What a server said: the HTTP status, and the body as JSON where it is JSON, else as text.

    The body of a watch (`watch=true`, best with `timeoutSeconds`) is the list of its events.
    """

    status: int
    body: Any

    def good(self, what: str) -> Any:
        """The body; raises ControlPlaneError, with `what` was asked, where the status is none of 200 to 299."""
        if not 200 <= self.status < 300:
            text = self.body.get("message", self.body) if isinstance(self.body, dict) else self.body
            raise ControlPlaneError(f"{what}: HTTP {self.status}: {text}")
        return self.body


@dataclass(frozen=True)
class Resource:
    """Where the objects of a kind are."""

    prefix: str
    plural: str
    namespaced: bool

    def path(self, name: str, namespace: str) -> str:
        """Of one object, or of the collection where `name` is empty."""
        scope = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        return f"{self.prefix}{scope}/{self.plural}" + (f"/{quote(name)}" if name else "")


def exchange(
    url: str, method: str, path: str, body: object = None, *, headers: Mapping[str, str], trust: ssl.SSLContext
) -> Answer:
    """One request on a connection of its own, whatever the answer; raises OSError while nothing listens.

    `body` is sent as it is where it is text, else as JSON.
    """
    connection = _connection(url, trust)
    try:
        return _answer(connection, method, path, body, headers)
    finally:
        connection.close()


def _connection(url: str, trust: ssl.SSLContext) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    host, port = str(parts.hostname), parts.port
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=trust)
    return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)


def _answer(
    connection: http.client.HTTPConnection, method: str, path: str, body: object, headers: Mapping[str, str]
) -> Answer:
    content = body if isinstance(body, str) or body is None else json.dumps(body)
    try:
        connection.request(method, path, content.encode() if content is not None else None, dict(headers))
        response = connection.getresponse()
        text = response.read().decode()
    except http.client.HTTPException as error:
        raise ConnectionError(f"{connection.host}:{connection.port}: the answer broke off: {error!r}") from error
    if response.headers.get_content_type() != "application/json":
        return Answer(response.status, text)
    is_watch = "true" in parse_qs(urlsplit(path).query).get("watch", ()) and response.status == 200
    return Answer(response.status, [json.loads(line) for line in text.splitlines()] if is_watch else json.loads(text))


def unverified() -> ssl.SSLContext:
    """Trusts any answer: for the health of programs on loopback that sign their own certificate."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    return trust


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Etcd:
    """Speaks to the etcd at `url` over its JSON gateway; raises OSError while nothing listens."""

    def __init__(self, url: str) -> None:
        self._url = url

    def is_ready(self) -> bool:
        """Whether it answers."""
        return self._call("range", {"key": _base64("/")}).status == 200

    def compact(self) -> int:
        """Makes it forget every revision before now; returns that revision."""
        revision = self._call("range", {"key": _base64("/")}).good("etcd range")["header"]["revision"]
        self._call("compaction", {"revision": revision, "physical": True}).good("etcd compaction")
        return int(revision)

    def store(self, objects: Iterable[tuple[str, Mapping[str, object]]]) -> None:
        """Puts objects as JSON under their keys, a hundred at a time."""
        remaining = iter(objects)
        while puts := list(islice(remaining, _PUTS)):
            operations = [{"requestPut": {"key": _base64(key), "value": _base64(json.dumps(obj))}} for key, obj in puts]
            self._call("txn", {"success": operations}).good("etcd txn")

    def _call(self, call: str, body: Object) -> Answer:
        return exchange(self._url, "POST", f"/v3/kv/{call}", body, headers={}, trust=unverified())


class Client:
    """Speaks to the API server at `url`, verified with `ca_file`, with the token of the caller."""

    def __init__(self, url: str, ca_file: Path, tokens: Mapping[str, str]) -> None:
        self.url, self._ca_file, self._tokens = url, ca_file, tokens
        self._resources: dict[str, Resource] = {}
        self._trust: ssl.SSLContext | None = None
        self._idle: list[http.client.HTTPConnection] = []

    def close(self) -> None:
        """Closes the connections that are kept; a later request opens new ones."""
        while self._idle:
            self._idle.pop().close()

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        user: str = "admin",
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        """As `exchange`, with a connection that is kept for what is read.

        Raises ControlPlaneError for a `user` that does not exist.
        """
        if user not in self._tokens:
            raise ControlPlaneError(f"user: expected one of {', '.join(self._tokens)}, got {user!r}")
        if self._trust is None:
            if not self._ca_file.exists():
                raise ConnectionRefusedError(f"{self.url}: no certificate yet")
            self._trust = ssl.create_default_context(cafile=str(self._ca_file))
        headers = {"Authorization": f"Bearer {self._tokens[user]}", "Accept": accept, "Content-Type": content_type}
        if method != "GET":
            return exchange(self.url, method, path, body, headers=headers, trust=self._trust)
        while self._idle:
            try:
                return self._read(self._idle.pop(), path, headers)
            except TimeoutError:
                raise
            except OSError:
                # The server was killed since; whether there is one now, a new connection says.
                continue
        return self._read(_connection(self.url, self._trust), path, headers)

    def _read(self, connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str]) -> Answer:
        """The answer to a GET; the connection is kept where it can be used again, and closed where it cannot."""
        try:
            answer = _answer(connection, "GET", path, None, headers)
        except BaseException:
            connection.close()
            raise
        if connection.sock is not None:
            self._idle.append(connection)
        return answer

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """One object, None where there is none. Raises ControlPlaneError for any other answer."""
        found = self.request("GET", self.resource(kind).path(name, namespace or "default"))
        return None if found.status == 404 else found.good(f"get {kind}/{name}")

    def list(self, kind: str, namespace: str = "", selector: str = "") -> list[Object]:
        """The objects of a kind in order of namespace and name, of all namespaces where `namespace` is empty."""
        query = f"?{urlencode({'labelSelector': selector})}" if selector else ""
        found = self.request("GET", self.resource(kind).path("", namespace) + query).good(f"list {kind}")
        kept: list[Object] = found["items"]
        return kept

    def create(self, made: Object) -> bool:
        """Creates an object that has a name; False where there is one already."""
        path = self.resource(made["kind"]).path("", made["metadata"].get("namespace", "default"))
        answer = self.request("POST", path, made)
        return answer.status != 409 and bool(answer.good(f"create {made['kind']}/{made['metadata']['name']}"))

    def delete(self, kind: str, name: str, namespace: str = "") -> bool:
        """Asks for it to go, and waits for nothing; False where there is none."""
        answer = self.request("DELETE", self.resource(kind).path(name, namespace or "default"))
        return answer.status != 404 and bool(answer.good(f"delete {kind}/{name}"))

    def serves(self, kind: str) -> bool:
        """Whether the server knows the kind and can list it now."""
        if kind.lower() not in self._resources:
            self._discover()
        known = self._resources.get(kind.lower())
        return known is not None and self.request("GET", known.path("", "") + "?limit=1").status == 200

    def resource(self, kind: str) -> Resource:
        """Where a kind is, by its kind, plural, singular or short name; the first group that has it wins."""
        if kind.lower() not in self._resources:
            self._discover()
        if kind.lower() not in self._resources:
            raise ControlPlaneError(f"kind: expected one that the server knows, got {kind!r}")
        return self._resources[kind.lower()]

    def resources(self) -> Sequence[Resource]:
        """Where the objects of each kind are that can be listed and deleted, each in its first version, by path."""
        found = {
            (resource.prefix.rpartition("/")[0], resource.plural): resource
            for resource, shown in reversed([*self._discovered()])
            if {"list", "delete"} <= {*shown["verbs"]}
        }
        return [found[key] for key in sorted(found)]

    def _discover(self) -> None:
        for resource, shown in self._discovered():
            kind = shown["responseKind"]["kind"]
            for spelling in (kind, shown["resource"], shown["singularResource"], *shown.get("shortNames", ())):
                self._resources.setdefault(spelling.lower(), resource)

    def _discovered(self) -> Iterator[tuple[Resource, Object]]:
        """Every resource with what the server says of it; the version that it prefers first."""
        for root in ("/api", "/apis"):
            for group in self.request("GET", root, accept=_DISCOVERY).good(f"GET {root}")["items"]:
                name = group["metadata"].get("name", "")
                for version in group["versions"]:
                    prefix = "/".join(part for part in (root, name, version["version"]) if part)
                    for shown in version["resources"]:
                        yield Resource(prefix, shown["resource"], shown["scope"] == "Namespaced"), shown
