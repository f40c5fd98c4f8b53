"""Structured logs and metrics: what an operator sees of a running Kerf.

Metrics are counted where something happens and read by Prometheus; nothing in Kerf reads them, so they never
become state. Names begin with `kerf_`, or are Karpenter's where it has the metric; units are in the names, as
Prometheus wants them.
"""

import logging
import sys
from typing import Literal

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

REGISTRY = CollectorRegistry()

RECONCILES = Counter(
    "kerf_reconciles", "Passes of a controller over one key, by outcome", ["controller", "outcome"], registry=REGISTRY
)
RECONCILE_SECONDS = Histogram("kerf_reconcile_seconds", "Duration of such a pass", ["controller"], registry=REGISTRY)
PENDING_PODS = Gauge("kerf_pending_pods", "Pods that wait for a node, now", registry=REGISTRY)
UNPLACED_PODS = Gauge(
    "kerf_unplaced_pods", "Pods for which nothing can be bought, at the last plan", ["stage"], registry=REGISTRY
)
CLAIMS_CREATED = Counter("kerf_nodeclaims_created", "NodeClaims created", ["nodepool"], registry=REGISTRY)
CLAIMS_DISRUPTED = Counter(
    "kerf_nodeclaims_disrupted",
    "NodeClaims deleted by Kerf: decisions, age, interruptions",
    ["nodepool", "reason"],
    registry=REGISTRY,
)
# Under Karpenter's names, for its dashboards and alerts.
KARPENTER_DISRUPTED = Counter(
    "karpenter_nodeclaims_disrupted",
    "The same, by Karpenter's name",
    ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"],
    registry=REGISTRY,
)
DISRUPTION_DECISIONS = Counter(
    "karpenter_voluntary_disruption_decisions",
    "Decisions to take nodes away that were acted on: delete, or replace (others first)",
    ["decision", "reason", "consolidation_type"],
    registry=REGISTRY,
)
DECISIONS_REFUSED = Counter(
    "kerf_decisions_refused",
    "Decisions of which Kerf did not carry out a part, because it broke a rule; each rule once a decision",
    ["rule"],
    registry=REGISTRY,
)
DISRUPTION_ELIGIBLE = Gauge(
    "karpenter_voluntary_disruption_eligible_nodes",
    "Nodes that may go for a reason and that nothing forbids to, at the last look",
    ["reason"],
    registry=REGISTRY,
)
DISRUPTION_SECONDS = Histogram(
    "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
    "Duration of a look at all nodes",
    registry=REGISTRY,
)
DISRUPTION_FAILURES = Counter(
    "karpenter_voluntary_disruption_queue_failures",
    "Nodes that stay after all because what was to come in their place did not",
    ["decision", "reason", "consolidation_type"],
    registry=REGISTRY,
)
DISRUPTIONS_ALLOWED = Gauge(
    "karpenter_nodepools_allowed_disruptions",
    "How many nodes of a pool its budgets let go for a reason, at the last look",
    ["nodepool", "reason"],
    registry=REGISTRY,
)
PODS_FOLLOWED = Counter(
    "kerf_pods_followed",
    "Pods for which a node was bought, by whether they were bound to the planned node and cards",
    ["outcome"],
    registry=REGISTRY,
)
PODS_ADMITTED = Counter(
    "kerf_pods_admitted",
    "Pods whose scheduling gate was opened, by CapacityWindow; none for opportunistic ones",
    ["window"],
    registry=REGISTRY,
)
WINDOW_PHASE = Gauge("kerf_window_phase", "1 for the phase of a CapacityWindow", ["window", "phase"], registry=REGISTRY)
WINDOW_WARM = Gauge(
    "kerf_window_warm_replicas",
    "Replicas that a CapacityWindow keeps ready, asked and ready",
    ["window", "state"],
    registry=REGISTRY,
)
GPU_ALLOCATED_RATIO = Gauge(
    "kerf_gpu_allocated_ratio",
    "Share of a physical GPU that pods hold, from 0 to 1",
    ["nodepool", "node", "gpu", "model"],
    registry=REGISTRY,
)
POD_GPUS = Gauge(
    "kerf_pod_gpus",
    "Physical GPUs that a pod holds; a slice counts as its part of a card",
    ["namespace", "pod", "node"],
    registry=REGISTRY,
)
USAGE_SAMPLES = Counter(
    "kerf_usage_samples",
    "Samples of metrics.k8s.io by what became of them: used, stale, or false (left out because it cannot be true)",
    ["outcome"],
    registry=REGISTRY,
)
USAGE_WORKLOADS = Gauge("kerf_usage_workloads", "Workloads whose usage is remembered", registry=REGISTRY)
API_CALLS = Counter(
    "kerf_api_calls",
    "Calls to the Kubernetes API by verb, resource and answer",
    ["verb", "resource", "answer"],
    registry=REGISTRY,
)
API_SECONDS = Histogram("kerf_api_call_seconds", "Duration of such a call", ["verb"], registry=REGISTRY)
CLOUD_CALLS = Counter(
    "kerf_cloud_calls",
    "Calls to the API of the cloud by outcome: done, refused, throttled, failed (no reply)",
    ["service", "operation", "outcome"],
    registry=REGISTRY,
)
CLOUD_SECONDS = Histogram(
    "kerf_cloud_call_seconds", "Duration of such a call", ["service", "operation"], registry=REGISTRY
)
INTERRUPTION_MESSAGES = Counter(
    "kerf_interruption_messages", "Messages of the interruption queue by kind", ["kind"], registry=REGISTRY
)
KARPENTER_RECEIVED = Counter(
    "karpenter_interruption_received_messages",
    "Messages of the interruption queue by Karpenter's word for what they announce",
    ["message_type"],
    registry=REGISTRY,
)
KARPENTER_DELETED = Counter(
    "karpenter_interruption_deleted_messages",
    "Messages that were deleted from the interruption queue",
    registry=REGISTRY,
)
KARPENTER_QUEUED_SECONDS = Histogram(
    "karpenter_interruption_message_queue_duration_seconds",
    "From what a message says until Kerf acts on it; messages that announce nothing are left out",
    # EC2 states whole seconds, and a spot instance has 120 of them.
    buckets=(1, 2.5, 5, 10, 20, 30, 60, 90, 120, 300, 600),
    registry=REGISTRY,
)
KARPENTER_UNHEALTHY = Counter(
    "karpenter_interruption_instance_status_unhealthy",
    "Instances found by DescribeInstanceStatus to be impaired or about to end, by what says it; each is counted once",
    ["category"],
    registry=REGISTRY,
)
WATCH_SILENT_SECONDS = Gauge(
    "kerf_watch_silent_seconds",
    "Since a watch has reported anything, bookmarks included",
    ["resource"],
    registry=REGISTRY,
)
WATCH_RELISTS = Gauge("kerf_watch_lists", "Times a resource was listed from the start", ["resource"], registry=REGISTRY)
LEADING = Gauge("kerf_leading", "1 while this replica leads", registry=REGISTRY)
EVENTS_DROPPED = Counter("kerf_events_dropped", "Events for people that could not be posted", registry=REGISTRY)


_PHASES = ("Closed", "Warming", "Open", "Closing")


def measure_phase(window: str, phase: str) -> None:
    """Show the phase of a window, and that it has no other."""
    for each in _PHASES:
        WINDOW_PHASE.labels(window, each).set(each == phase)


def exposition() -> bytes:
    """All metrics in the text format of Prometheus."""
    return generate_latest(REGISTRY)


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger that carries the controller's name."""
    bound: structlog.stdlib.BoundLogger = structlog.get_logger(controller=name)
    return bound


def configure(form: Literal["text", "json"], level: str) -> None:
    """Logs go to standard error, one line each, as `key=value` text or as JSON; `level` is debug, info, warning..."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    last: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.processors.LogfmtRenderer(
            key_order=("timestamp", "level", "controller", "event"), bool_as_flag=False
        )
    )
    structlog.configure(
        processors=[*shared, last],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    # What libraries say goes the same way: a line that is no JSON among others breaks programs that read them.
    logging.basicConfig(handlers=[_Forwarding()], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    for name in _REPORTED_BY_US:
        logging.getLogger(name).setLevel(logging.CRITICAL)


_REPORTED_BY_US = ("kubernetes.aio.leaderelection",)
"""Loggers that repeat every two seconds what Kerf says once."""


class _Forwarding(logging.Handler):
    """Records of the standard library as our lines."""

    def emit(self, record: logging.LogRecord) -> None:
        logger(record.name).log(record.levelno, record.getMessage(), exc_info=record.exc_info)


def silence() -> None:
    """No logs at all: for the simulator, whose report says everything."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
