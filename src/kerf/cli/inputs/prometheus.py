"""Longer history than Kerf remembers: the range queries of a Prometheus server.

Names and labels are those of the exporters: cAdvisor in the kubelet, HAMi's monitor, NVIDIA's DCGM exporter. A scrape
without `honor_labels` puts `exported_` before labels that an exporter sets itself, so both spellings are asked for.
"""

import json
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerf.engine.study.usage.history import History, WorkloadName
from kerf.engine.study.usage.sketch import DAY_S, Sketch
from kerf.errors import MOST_SHOWN, InputError, KerfError, cut
from kerf.model.quantities import CPU, MEMORY, MIB

_TIMEOUT_S = 30
_MOST_BYTES = 256 * MIB
_MOST_POINTS = 10_000
"""Of one series in one answer; the server gives at most 11,000 (prometheus web/api/v1)."""
_LEAST_STEP_S = 60
_PODS = {
    "Pod": "",
    "Deployment": "-[a-z0-9]+-[a-z0-9]{5}",
    "ReplicaSet": "-[a-z0-9]{5}",
    "StatefulSet": "-[0-9]+",
    "DaemonSet": "-[a-z0-9]{5}",
    "Job": "(-[0-9]+)?-[a-z0-9]{5}",
    "CronJob": "-[0-9]+(-[0-9]+)?-[a-z0-9]{5}",
}
"""How controllers call their pods, behind their own name."""


@dataclass(frozen=True, slots=True)
class _Query:
    """What to ask for a resource, the labels that name pod and container in the answer, and what makes base units."""

    resource: str
    text: str
    pod: str = "pod"
    container: str = "container"
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A server, and how many days before `now_s` are asked of it."""

    url: str
    days: int
    now_s: float
    token: str = ""

    @classmethod
    def of(cls, url: str, days: int, now_s: float, token_file: str | None) -> "Prometheus":
        """Raises InputError for what is no URL, or a token that cannot be read."""
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise InputError(f"--prometheus {url}: expected a URL such as http://prometheus:9090")
        try:
            token = Path(token_file).read_text(encoding="utf-8").strip() if token_file else ""
        except (OSError, ValueError) as error:
            raise InputError(f"--prometheus-token-file {token_file}: {error}") from error
        return cls(url.rstrip("/"), days, now_s, token)

    def history(self, workload: WorkloadName, gpu_memory: str, gpu_memory_mib: int = 1) -> History:
        """What the workload's pods used, those that are gone included. Raises KerfError with one line.

        `gpu_memory` is the resource of which samples are wanted too, in units of so many MiB; empty for none. The first
        of its queries that has samples counts: HAMi's own know the container, DCGM's only the card.
        """
        found = History()
        for query in _queries(workload):
            found = found.merged(self._asked(query))
        for query in _gpu_queries(workload, gpu_memory, gpu_memory_mib) if gpu_memory else ():
            of_gpus = self._asked(query)
            if of_gpus.sketches:
                return found.merged(of_gpus)
        return found

    def _asked(self, query: _Query) -> History:
        step_s = max(_LEAST_STEP_S, math.ceil(self.days * DAY_S / _MOST_POINTS))
        values: dict[tuple[str, int], list[int]] = {}
        times: list[int] = []
        for container, at_s, value in self._points(query, step_s):
            values.setdefault((container, int(at_s) // DAY_S), []).append(math.ceil(value * query.factor))
            times.append(int(at_s))
        sketches: dict[tuple[str, str], Sketch] = {}
        for (container, day), held in sorted(values.items()):
            key = (container, query.resource)
            sketches[key] = sketches.get(key, Sketch()).merged(Sketch.of(day, held))
        return History(sketches, min(times), max(times)) if sketches else History()

    def _points(self, query: _Query, step_s: int) -> Iterator[tuple[str, float, float]]:
        """(container, time, value); what is not a number, or a negative one, is left out."""
        start_s = self.now_s - self.days * DAY_S
        data = self._fetched({"query": query.text, "start": start_s, "end": self.now_s, "step": step_s})
        try:
            for series in data["result"]:
                container = series["metric"].get(query.container)
                for at, text in series["values"] if isinstance(container, str) else ():
                    value = float(text)
                    if math.isfinite(value) and value >= 0:
                        yield container, float(at), value
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise KerfError(
                f"{self._named}: expected a matrix of samples, pairs of time and value, got something else"
            ) from error

    @property
    def _named(self) -> str:
        return f"--prometheus {self.url}"

    def _fetched(self, parameters: dict[str, Any]) -> Any:
        """`data` of the answer to a range query."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        url = f"{self.url}/api/v1/query_range?{urllib.parse.urlencode(parameters)}"
        try:
            # The scheme was looked at: urllib would open files too.
            request = urllib.request.Request(url, headers=headers)
            with urllib.request.build_opener(_SameHost(self._named)).open(request, timeout=_TIMEOUT_S) as answer:
                body = answer.read(_MOST_BYTES + 1)
        except urllib.error.HTTPError as error:
            raise KerfError(self._refused(error)) from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise KerfError(
                f"{self._named}: cannot be reached: {getattr(reason, 'strerror', None) or reason}"
            ) from error
        if len(body) > _MOST_BYTES:
            raise KerfError(f"{self._named}: the answer is larger than {_MOST_BYTES // MIB} MiB: ask for fewer days")
        try:
            reply = json.loads(body)
            is_data = reply["status"] == "success"
            return reply["data"] if is_data else _raise(f"{self._named}: {reply.get('error')}")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            got = body[:60].decode(errors="replace")
            raise KerfError(f"{self._named}: expected JSON of Prometheus, got {got!r}") from error

    def _refused(self, error: urllib.error.HTTPError) -> str:
        if error.code in (401, 403):
            hint = "another token" if self.token else "--prometheus-token-file FILE"
            return f"{self._named}: it does not let us in ({error.code}) (hint: {hint})"
        try:
            said = json.loads(error.read(_MOST_BYTES))["error"]
        except (ValueError, KeyError, TypeError, OSError, RecursionError):
            said = error.reason
        return f"{self._named}: HTTP {error.code}: {' '.join(str(said).split())}"


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows redirects to the same host alone: urllib would hand the token to any other."""

    def __init__(self, named: str) -> None:
        self._named = named

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """See HTTPRedirectHandler. Raises KerfError for another host, and for one that is not encrypted any more."""
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if before.netloc != after.netloc or (before.scheme, after.scheme) == ("https", "http"):
            other = cut(newurl.partition("/api/v1/")[0], MOST_SHOWN)
            raise KerfError(f"{self._named}: it redirects to {other}, which is not asked (hint: --prometheus {other})")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _raise(text: str) -> Any:
    raise KerfError(text)


def _pods(workload: WorkloadName) -> str:
    return workload.name.replace(".", "[.]") + _PODS.get(workload.kind, "-.+")


def _queries(workload: WorkloadName) -> Iterator[_Query]:
    """Of cAdvisor; without a container's name a series is of the whole pod, and POD is its sandbox."""
    which = f'namespace="{workload.namespace}",pod=~"{_pods(workload)}",container!="",container!="POD"'
    used = f"rate(container_cpu_usage_seconds_total{{{which}}}[5m])"
    yield _Query(CPU, f"sum by (pod, container) ({used})", factor=1000)
    yield _Query(MEMORY, f"max by (pod, container) (container_memory_working_set_bytes{{{which}}})")


def _gpu_queries(workload: WorkloadName, resource: str, unit_mib: int) -> Iterator[_Query]:
    """Of one card: HAMi's monitor by its names of today and before 2.10, then DCGM's exporter (in MiB)."""
    for metric, labels, factor in (
        ("hami_vgpu_memory_used_bytes", ("namespace", "pod", "container"), 1 / MIB),
        ("vGPU_device_memory_usage_in_bytes", ("podnamespace", "podname", "ctrname"), 1 / MIB),
        ("DCGM_FI_DEV_FB_USED", ("namespace", "pod", "container"), 1.0),
    ):
        for prefix in ("", "exported_"):
            namespace, pod, container = (prefix + label for label in labels)
            which = f'{namespace}="{workload.namespace}",{pod}=~"{_pods(workload)}",{container}!=""'
            text = f"max by ({pod}, {container}) ({metric}{{{which}}})"
            yield _Query(resource, text, pod, container, factor / unit_mib)
