"""When a CronJob runs next, and from when on its node is kept ready."""

from kerf.cli.plan.json import Json
from kerf.engine.explain.runs import warning_text
from kerf.engine.headroom.prewarm import Leads, prewarming, warnings
from kerf.model.cronjobs import PREWARM, CronJob
from kerf.model.schedules import local_text
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.times import duration_text, instant_text


def explain_runs(cron_job: CronJob, snapshot: ClusterSnapshot) -> tuple[Json, list[str]]:
    """Fields of the explanation, and its lines."""
    claims = [node.claim for node in snapshot.nodes if node.claim is not None]
    warned = [warning_text(why) for why in warnings(cron_job, Leads(snapshot.node_pools, claims))]
    # Manifests that state no instant are of no time at all.
    is_dated = snapshot.taken_at_s > 0
    next_s = cron_job.run_after(snapshot.taken_at_s) if is_dated and not cron_job.is_suspended else None
    each = next((each for each in prewarming(snapshot) if each.cron_job.key == cron_job.key), None)
    data: Json = {
        "nextRun": None if next_s is None else instant_text(next_s),
        "prewarmLeadSeconds": None if each is None else each.lead_s,
        "warnings": warned,
    }
    zone = cron_job.time_zone or "UTC"
    lines = [] if next_s is None else [f"  next run {local_text(next_s, zone)}"]
    if not is_dated and not cron_job.is_suspended and not cron_job.problem:
        lines.append("  when it runs next is not known, as the input states no time: give --now TIME")
    if each is not None and next_s is not None:
        lines.append(
            f"  its pods count from {local_text(next_s - each.lead_s, zone)} on, {duration_text(each.lead_s)} before"
        )
    elif next_s is not None and not warned:
        lines.append(f"  it waits for its node; `{PREWARM}: auto` on it has one ready")
    return data, [*lines, *(f"  warning: {why}" for why in warned)]
