"""Who we are and where the server is: a kubeconfig as kubectl reads it, or the service account of the pod.

The official client reads both. It was made for programs that ask once, so two things are added: credentials that are
read again when the server refuses them, and errors in one line. What is wrong in a kubeconfig surfaces there as
whatever Python error it runs into, and an exec plug-in that fails is only logged, after which everything is asked
namelessly.
"""

import asyncio
import logging
import os
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml

from kerf import __version__
from kerf.errors import ApiError, brief

if TYPE_CHECKING:
    import aiohttp

_CONNECTIONS = 128
# As the audit log of the server distinguishes one replica from another.
_AGENT = f"kerf/{__version__} ({os.environ.get('POD_NAME') or socket.gethostname()})"
_OWN_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
# What a plug-in has printed, as the official client shows it.
_BYTES = re.compile(r"""b(['"])(.*)\1$""")
_LOG = "kubernetes.aio.config.kube_config"


class Unreachable(ApiError):
    """No answer: no server, no route, a broken connection, or credentials that cannot be had."""


class NoCluster(Unreachable):
    """Neither a kubeconfig nor a pod: nothing says which server. `ways` are those to say it."""

    def __init__(self, path: str, ways: str = "--kubeconfig FILE") -> None:
        self.path = path
        super().__init__(f"no cluster: {path} does not exist and this is no pod (hint: {ways})")


@dataclass(frozen=True, slots=True)
class ClusterTarget:
    """Which cluster: a kubeconfig and a context; without either what kubectl would take, else the pod's own."""

    kubeconfig: str | None = None
    context: str | None = None


class Credentials:
    """What the official client has read: server, TLS, and a header that may change while we run.

    `namespace` is where a name without one is meant: that of the context, or the pod's own.
    """

    def __init__(self, configuration: Any, target: ClusterTarget, namespace: str = "default") -> None:
        self._configuration, self._target = configuration, target
        self.server: str = configuration.host.rstrip("/")
        self._proxy = _proxy_for(self.server)
        self.namespace = namespace
        self._reloading = asyncio.Lock()

    @property
    def route(self) -> dict[str, Any]:
        """What each request must know of the way to the server: a proxy, another name in its certificate."""
        found = {
            "proxy": self._configuration.proxy or self._proxy,
            "proxy_headers": self._configuration.proxy_headers,
            "server_hostname": self._configuration.tls_server_name,
        }
        return {name: value for name, value in found.items() if value}

    @classmethod
    async def load(cls, target: ClusterTarget) -> "Credentials":
        """Raises Unreachable with what to do about it."""
        named = target.kubeconfig or os.environ.get("KUBECONFIG") or ""
        path = named or str(Path.home() / ".kube" / "config")
        missing = [part for part in path.split(os.pathsep) if not Path(part).is_file()]
        if len(missing) == len(path.split(os.pathsep)):
            is_pod = bool(os.environ.get("KUBERNETES_SERVICE_HOST"))
            if target.kubeconfig or (named and not is_pod):
                raise Unreachable(f"kubeconfig {missing[0]}: no such file")
            if is_pod:
                return cls(await _in_cluster(), target, _own_namespace())
            raise NoCluster(path)
        configuration, namespace = await _from_kubeconfig(path, target.context)
        return cls(configuration, target, namespace)

    def session(self) -> "aiohttp.ClientSession":
        """A session with the TLS and proxy settings of the configuration; the caller closes it. Raises Unreachable."""
        from kubernetes.aio.client.rest import RESTClientObject

        self._configuration.connection_pool_maxsize = _CONNECTIONS
        try:
            transport = RESTClientObject(self._configuration)
        except (OSError, ValueError) as error:
            files = (self._configuration.ssl_ca_cert, self._configuration.cert_file, self._configuration.key_file)
            named = ", ".join(str(file) for file in files if file)
            raise Unreachable(f"{self.server}: its certificates cannot be used ({named}): {one_line(error)}") from error
        session: aiohttp.ClientSession = transport._create_pool_manager()
        # It would read ~/.netrc, in a thread, at each request, and refuse a request whose host stands there.
        session._trust_env = False
        return session

    async def headers(self) -> dict[str, str]:
        """The headers that say who we are; a token file is read again every minute."""
        found: Any = await self._configuration.auth_settings()
        token = found.get("BearerToken", {}).get("value")
        named = {"Authorization": token} if token else {}
        if not named and self._configuration.username:
            named = {"Authorization": self._configuration.get_basic_auth_token()}
        return {"User-Agent": _AGENT, "Accept": "application/json", **named}

    async def reload(self) -> bool:
        """Read the credentials again, running exec plug-ins again; False when that gave no others."""
        before = await self.headers()
        async with self._reloading:
            # Of many calls that were refused at once, the first asks for new credentials and the others use them.
            if before == await self.headers():
                self._configuration = (await Credentials.load(self._target))._configuration
        return before != await self.headers()


async def _from_kubeconfig(path: str, context: str | None) -> tuple[Any, str]:
    """The configuration, and the namespace of the context."""
    from kubernetes.aio import config
    from kubernetes.aio.client import Configuration

    named = f"kubeconfig {path}"
    _require_context(named, [_content(part) for part in path.split(os.pathsep) if Path(part).is_file()], context)
    configuration = Configuration()
    with _errors_logged() as logged:
        try:
            loader = await config.load_kube_config(
                config_file=path, context=context, client_configuration=configuration, persist_config=False
            )
        except config.ConfigException as error:
            raise Unreachable(f"{named}: {one_line(error)}") from error
        except Exception as error:
            raise Unreachable(f"{named}: cannot be used: {type(error).__name__}: {one_line(error)}") from error
    if logged:
        plugin = (loader._user.value.get("exec") or {}).get("command") if loader._user is not None else None
        by = f"the exec plug-in {plugin}" if plugin else "the credentials"
        raise Unreachable(f"{named}: {by}: {'; '.join(logged)}")
    return configuration, loader.current_context["context"].get("namespace") or "default"


def _content(path: str) -> dict[str, Any]:
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise Unreachable(f"kubeconfig {path}: {error.strerror}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""
        raise Unreachable(f"kubeconfig {path}{place}: expected YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Unreachable(f"kubeconfig {path}: expected YAML: {one_line(error)}") from error
    if not isinstance(content, dict):
        kind = "nothing" if content is None else type(content).__name__
        raise Unreachable(f"kubeconfig {path}: expected clusters, users and contexts, got {kind}")
    return content


def _require_context(named: str, contents: Iterable[dict[str, Any]], context: str | None) -> None:
    """As the official client merges several files: the last current-context counts, and the contexts of all."""
    wanted, known = context, []
    for content in contents:
        wanted = context or content.get("current-context") or wanted
        entries = content.get("contexts")
        known += [
            str(each.get("name")) for each in (entries if isinstance(entries, list) else ()) if isinstance(each, dict)
        ]
    has = f"it has {', '.join(known)}" if known else "it has none"
    if not wanted:
        raise Unreachable(f"{named}: expected a current-context or --context, got neither (hint: {has})")
    if wanted not in known:
        raise Unreachable(f"{named}: no context {brief(wanted)} (hint: {has})")


@contextmanager
def _errors_logged() -> Iterator[list[str]]:
    """What the official client would only log meanwhile, as lines."""
    lines: list[str] = []

    class Kept(logging.Handler):
        """Keeps what it is given."""

        def emit(self, record: logging.LogRecord) -> None:
            lines.append(_BYTES.sub(r"\2", one_line(record.getMessage()).removeprefix("exec: ")))

    log, handler = logging.getLogger(_LOG), Kept(logging.ERROR)
    propagated, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield lines
    finally:
        log.removeHandler(handler)
        log.propagate = propagated


def _proxy_for(server: str) -> str:
    """What HTTPS_PROXY, HTTP_PROXY and NO_PROXY say of it, as kubectl takes them; empty for none."""
    parts = urlsplit(server)
    return "" if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme, "")


async def _in_cluster() -> Any:
    from kubernetes.aio import config
    from kubernetes.aio.client import Configuration

    configuration = Configuration()
    try:
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException as error:
        raise Unreachable(f"service account of this pod: {one_line(error)}") from error
    return configuration


def _own_namespace() -> str:
    try:
        return Path(_OWN_NAMESPACE).read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"


def one_line(error: object) -> str:
    """The text of an error, however many lines it has; its type when it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__
