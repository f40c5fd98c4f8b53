"""What Prometheus is told of GPUs and their holders."""

from dataclasses import replace

from kerf.cli.inputs.input import Source, read_input
from kerf.cli.run.gauges import measure_gpus
from kerf.telemetry import REGISTRY
from tests.cli.program import CLUSTER, ROOT


def series(name: str) -> dict[tuple[str, ...], float]:
    """Values by labels, in the order of their names."""
    found = (family.samples for family in REGISTRY.collect() if family.name == name)
    return {tuple(value for _, value in sorted(s.labels.items())): s.value for samples in found for s in samples}


def test_cards_and_pods_are_shown_with_their_shares() -> None:
    """Two slices on one card, of 8000 and 4000 of 22888 MiB and less of its cores; the other card is idle."""
    snapshot = read_input(Source((str(ROOT / CLUSTER),))).snapshot
    measure_gpus(snapshot)

    assert {
        ("0", "NVIDIA A10G", "ip-10-0-0-1", "g5"): 0.5242,
        ("0", "NVIDIA A10G", "ip-10-0-0-2", "g5"): 0.0,
    } == series("kerf_gpu_allocated_ratio")
    assert {("default", "ip-10-0-0-1", "chat-0"): 0.3495, ("default", "ip-10-0-0-1", "search-0"): 0.2} == (
        series("kerf_pod_gpus")
    )


def test_what_has_gone_leaves_no_series() -> None:
    """Else an alert on them would never end."""
    snapshot = read_input(Source((str(ROOT / CLUSTER),))).snapshot
    measure_gpus(snapshot)
    measure_gpus(replace(snapshot, nodes=()))

    assert {} == series("kerf_gpu_allocated_ratio") == series("kerf_pod_gpus")
