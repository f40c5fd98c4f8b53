"""Alerts and autoscalers on metrics: names that no exporter has, labels that no exporter writes so, rates of gauges."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kerf.lint.context import LintContext
from kerf.lint.findings import Edit, Note, Notes, Severity
from kerf.lint.knowledge import exporters
from kerf.lint.promql import Selector, selectors
from kerf.lint.registry import rule
from kerf.lint.spelling import nearest
from kerf.lint.subject import Subject
from kerf.manifests.schema import Path

_RATES = ("rate", "irate", "increase", "resets")
_SERIES = ("_bucket", "_sum", "_count")
_GAUGE_LIKE = re.compile(r"_(utilization|utilisation|percent|ratio|celsius|temperature|usage)$")
_FALSE_NAME = re.compile(r"[a-z0-9.-]+\.[a-z]+/[A-Za-z0-9_.-]+")


def _expressions(subject: Subject) -> Iterator[tuple[Path, str, str]]:
    """Path, text and name of each expression of a PrometheusRule, or of a file of rules as Prometheus reads it."""
    if subject.kind == "PrometheusRule":
        start: Path = ("spec", "groups")
    elif not subject.kind and isinstance(subject.get("groups"), list):
        start = ("groups",)
    else:
        return
    for group, _ in subject.items(*start):
        for path, held in subject.items(*group, "rules"):
            if isinstance(held.get("expr"), str):
                yield (*path, "expr"), held["expr"], str(held.get("alert") or held.get("record") or "a rule")


@dataclass(frozen=True, slots=True)
class _Read:
    """A metric that a rule of Prometheus reads."""

    path: Path
    expression: str
    rule: str
    selector: Selector


def _selected(subject: Subject) -> Iterator[_Read]:
    for path, expression, name in _expressions(subject):
        for selector in dict.fromkeys(selectors(expression)):
            yield _Read(path, expression, name, selector)


def _recorded(context: LintContext) -> set[str]:
    """Series that rules of the input record themselves."""
    found: set[str] = set()
    for subject in (*context.of_kind("PrometheusRule"), *context.of_kind("")):
        start: Path = ("spec", "groups") if subject.kind else ("groups",)
        for group, _ in subject.items(*start):
            found.update(str(held.get("record")) for _, held in subject.items(*group, "rules"))
    return found


def _kind_of(metric: str, metrics: Mapping[str, str]) -> str:
    """gauge, counter and so on; empty for a metric that no known exporter has."""
    if metric in metrics:
        return metrics[metric]
    for suffix in _SERIES:
        base = metric.removesuffix(suffix)
        if base != metric and metrics.get(base) in ("histogram", "summary"):
            return "counter"
    return ""


@rule("KL060", "autoscaler-on-gpu-resource", Severity.ERROR, ("HorizontalPodAutoscaler",))
def autoscaler_on_gpu(subject: Subject, context: LintContext) -> Notes:
    """A HorizontalPodAutoscaler looks at a GPU as a Resource metric.

    `Resource` and `ContainerResource` metrics come from the metrics API, which has cpu and memory and nothing else: the
    autoscaler's condition is `ScalingActive=False`, reason `FailedGetResourceMetric`, and it never scales. Use of GPUs
    comes from an exporter (DCGM's `DCGM_FI_DEV_GPU_UTIL`, HAMi's `hami_container_device_utilization_ratio`) through an
    adapter, as a `Pods` or `External` metric. Document 001, line 15.
    """
    del context
    for path, metric in subject.items("spec", "metrics"):
        for kind, field in (("Resource", "resource"), ("ContainerResource", "containerResource")):
            name = subject.get(*path, field, "name")
            if metric.get("type") == kind and isinstance(name, str) and name not in ("cpu", "memory"):
                message = f"{kind} metric {name}: the metrics API has cpu and memory only, so it never scales"
                hint = "type: Pods, pods.metric.name: DCGM_FI_DEV_GPU_UTIL (or External), through a metrics adapter"
                yield Note((*path, field, "name"), message, hint)


@rule("KL061", "metric-of-no-exporter", Severity.WARNING, ("PrometheusRule", ""))
def metric_of_no_exporter(subject: Subject, context: LintContext) -> Notes:
    """A rule reads a metric that no exporter has.

    An expression on a series that does not exist is empty, and an alert on nothing never fires, whatever happens:
    `container_gpu_utilization` is exported by none of the usual exporters. Looked at are names whose beginning belongs
    to exporters of which all metrics are known: DCGM's, HAMi's, kube-state-metrics', Karpenter's and Kerf's; series
    that rules of the input record are known too. Document 001, line 19.
    """
    known = exporters()
    recorded = _recorded(context)
    for read in _selected(subject):
        path, selector = read.path, read.selector
        name = selector.metric
        if _kind_of(name, context.metrics) or name in recorded or not name.startswith(known.closed):
            continue
        instead = known.instead.get(name) or nearest(name, list(context.metrics), 0.8)
        hint = f"use {instead}" if instead else ""
        yield Note(path, f"{read.rule}: no known exporter has {name}, so it is always empty", hint)


@rule("KL062", "resource-label-misspelt", Severity.WARNING, ("PrometheusRule", ""), is_fixable=True)
def resource_label(subject: Subject, context: LintContext) -> Notes:
    """A rule asks kube-state-metrics for a resource as Kubernetes spells it.

    In the label `resource` kube-state-metrics writes `_` for what is no letter or digit: `nvidia.com/gpu` is
    `nvidia_com_gpu`. A matcher with the other spelling selects nothing. `--fix` rewrites it. (Karpenter's label
    `resource_type` keeps Kubernetes' spelling.) Document 001, line 19.
    """
    del context
    for read in _selected(subject):
        path, selector = read.path, read.selector
        for label, value in selector.labels:
            if label != "resource" or not selector.metric.startswith("kube_"):
                continue
            for name in dict.fromkeys(_FALSE_NAME.findall(value.replace("\\\\", ""))):
                right = re.sub(r"[^A-Za-z0-9_]", "_", name)
                message = f'{read.rule}: resource="{name}" of {selector.metric}: kube-state-metrics writes {right}'
                yield Note(path, message, f"write {right}", fix=_respelled(path, read.expression, value, name, right))


def _respelled(path: Path, expression: str, value: str, name: str, right: str) -> tuple[Edit, ...]:
    """The edit of one matcher; none where the same matcher is also of a metric that spells it so."""
    shared = any(
        (("resource", value) in other.labels and not other.metric.startswith("kube_"))
        for other in selectors(expression)
    )
    forms = [f'resource{sign}"{value}"' for sign in ("=", "=~", "!=", "!~")]
    old = next((form for form in forms if form in expression), "")
    return () if shared or not old else (Edit(path, old.replace(name, right), old=old),)


@rule("KL063", "rate-of-gauge", Severity.WARNING, ("PrometheusRule", ""))
def rate_of_gauge(subject: Subject, context: LintContext) -> Notes:
    """A rule takes the rate of a gauge.

    `rate`, `irate` and `increase` are of counters, which only grow. Of a gauge such as a utilisation they take every
    fall for a restart and give numbers that mean nothing. The mean over time is `avg_over_time(x[10m])`, the slope
    `deriv(x[10m])`. Document 001, line 19.
    """
    for read in _selected(subject):
        path, selector = read.path, read.selector
        kind = _kind_of(selector.metric, context.metrics)
        is_gauge = kind == "gauge" or (not kind and _GAUGE_LIKE.search(selector.metric) is not None)
        if selector.function in _RATES and is_gauge:
            message = f"{read.rule}: {selector.function}() of {selector.metric}, which is a gauge: it rises and falls"
            yield Note(path, message, f"avg_over_time({selector.metric}[10m])")
