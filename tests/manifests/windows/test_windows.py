"""CapacityWindows as manifests and as a server has them: defaults, refusals with their places, and the way back."""

from typing import Any

import pytest
import yaml

from kerf.errors import DecodeErrors
from kerf.manifests.decode import decode, decode_object
from kerf.manifests.decoded import Decoded
from kerf.manifests.read import Documents, parse
from kerf.manifests.windows.encode import gpu_hours_text, window_status
from kerf.model.nodeclaim import Condition
from kerf.model.windows import CapacityWindow, Quota, Reservation, WindowStatus

Json = dict[str, Any]
TEXT = """\
apiVersion: kerf.dev/v1alpha1
kind: CapacityWindow
metadata: {name: morning}
spec:
  schedule: "0 8 * * *"
  duration: 4h
  pods:
    selector: {matchLabels: {kerf.dev/window: morning}}
"""


def raw(**spec: Any) -> Json:
    """The object of the text, with these fields of the spec; as no server has seen it."""
    made: Json = yaml.safe_load(TEXT)
    made["spec"].update(spec)
    return made


def live(**spec: Any) -> CapacityWindow:
    """The same as a server has it."""
    made = raw(**spec)
    made["metadata"] |= {"uid": "u", "generation": 3}
    value = decode_object(made)
    assert isinstance(value, CapacityWindow)
    return value


def read(text: str) -> Decoded:
    """What a file of that text gives."""
    documents: Documents = parse(text, "windows.yaml")
    return decode(documents)


def test_defaults_are_those_of_the_definition() -> None:
    """UTC, any pool, hold, finish, the learned lead time."""
    (window,) = read(TEXT).windows

    assert ("UTC", (), "Hold", "Finish", None, 0) == (
        window.time_zone,
        window.node_pools,
        window.outside,
        window.at_end,
        window.lead_time_s,
        window.queue_priority,
    )
    assert (14_400, "", None) == (window.duration_s, window.invalid, window.quota)


def test_it_selects_by_labels_and_namespace() -> None:
    """Both have to agree."""
    selector = {"matchLabels": {"kerf.dev/window": "morning"}}
    window = live(pods={"selector": selector, "namespaces": ["research"]})
    labels = {"kerf.dev/window": "morning", "app": "x"}

    assert (True, False, False) == (
        window.selects("research", labels),
        window.selects("web", labels),
        window.selects("research", {"kerf.dev/window": "noon"}),
    )


@pytest.mark.parametrize(
    "change, told",
    [
        (("0 8 * * *", "0 25 * * *"), "windows.yaml:5:13: spec.schedule: expected five fields of cron, or a macro"),
        (("4h", "30s"), "windows.yaml:6:13: spec.duration: expected at least 1m, got '30s'"),
        (("4h", "soon"), "windows.yaml:6:13: spec.duration: expected a duration such as 30s"),
        (
            ("4h", "25h"),
            "windows.yaml:6:13: spec.duration: expected less than the time between two openings, such as 20",
        ),
        (
            ("4h", "4h\n  timeZone: Europe/Berln"),
            "windows.yaml:7:13: spec.timeZone: expected a time zone, got 'Europe/B",
        ),
        (
            ("4h", '4h\n  quota: {gpuHours: "0"}'),
            "windows.yaml:7:21: spec.quota.gpuHours: expected more than 0, got '0'",
        ),
        (
            ("4h", "4h\n  quota: {gpuHours: many}"),
            "windows.yaml:7:21: spec.quota.gpuHours: expected a quantity of GPU-h",
        ),
        (
            ("kerf.dev/window:", "app:"),
            "spec.pods.selector: expected a selector that requires the label kerf.dev/window",
        ),
        (("4h", "4h\n  atEnd: Stop"), "windows.yaml:7:10: spec.atEnd: expected one of Finish, Evict, got 'Stop'"),
        (("v1alpha1", "v1"), "windows.yaml:1:13: apiVersion: expected kerf.dev/v1alpha1, got 'kerf.dev/v1'"),
    ],
)
def test_a_manifest_that_cannot_be_followed_is_refused(change: tuple[str, str], told: str) -> None:
    """With file, line and column, what was expected and what came."""
    with pytest.raises(DecodeErrors) as caught:
        read(TEXT.replace(*change))

    assert told in str(caught.value)


def test_exclusive_capacity_needs_the_windows_own_label() -> None:
    """Its pods tolerate the taint by the value of their label."""
    warm = [{"replicas": 1, "exclusive": True, "template": {"spec": {"containers": [{"name": "m"}]}}}]
    named = live(warm=warm)
    other = live(warm=warm, pods={"selector": {"matchLabels": {"kerf.dev/window": "noon"}}})

    assert ("", "kerf.dev/window=morning:NoSchedule") == (named.invalid, str(named.taint))
    assert "expected morning, for exclusive capacity, got 'noon'" in other.invalid


@pytest.mark.parametrize(
    "spec, told",
    [
        ({"schedule": "0 25 * * *"}, "spec.schedule: expected five fields of cron"),
        ({"timeZone": "Mars/Base"}, "spec.timeZone: expected a time zone, got 'Mars/Base'"),
        ({"duration": "25h"}, "spec.duration: expected less than the time between two openings"),
        ({"quota": {"gpuHours": "0"}}, "spec.quota.gpuHours: expected more than 0, got '0'"),
    ],
)
def test_a_live_one_is_read_and_says_what_is_wrong(spec: Json, told: str) -> None:
    """It opens nothing; the others go on."""
    assert told in live(**spec).invalid


def test_a_template_is_confined_to_its_pools_and_keeps_its_annotations() -> None:
    """HAMi reads some of them."""
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000}
    template = {
        "metadata": {"annotations": {"hami.io/gpu-scheduler-policy": "spread"}},
        "spec": {"containers": [{"name": "m", "resources": {"limits": limits}}]},
    }
    (warm,) = live(nodePools=["gpu"], warm=[{"replicas": 4, "template": template}]).warm

    assert (4, "", {"hami.io/gpu-scheduler-policy": "spread"}) == (
        warm.replicas,
        warm.pod.uid,
        dict(warm.pod.annotations),
    )
    assert {"karpenter.sh/nodepool": "gpu"} == warm.pod.spec.node_selector.labels()
    assert 4000 == warm.pod.spec.requests["nvidia.com/gpumem"]


@pytest.mark.parametrize(
    "text, units", [("40", 40 * 36_000_000), ("500m", 18_000_000), (2, 72_000_000), ("1.5", 54_000_000)]
)
def test_gpu_hours_are_exact(text: str | int, units: int) -> None:
    """In ten-thousandths of a card times seconds."""
    assert Quota(units, "Window") == live(quota={"gpuHours": text, "per": "Window"}).quota


def test_gpu_hours_are_rounded_up() -> None:
    """A quota must not seem to have more left than it has."""
    assert ["0", "0.001", "1", "1.5"] == [gpu_hours_text(n) for n in (0, 1, 36_000_000, 54_000_000)]


def test_a_status_comes_back_as_it_was_written() -> None:
    """What a restart needs is all there."""
    status = WindowStatus(
        phase="Open",
        opens_s=1_767_600_000,
        closes_s=1_767_614_400,
        last_opened_s=1_767_600_000,
        last_closed_s=None,
        lead_time_s=180,
        lead_times_s=(("gpu-1", 125), ("gpu-2", 130)),
        settled=(("default", 123_456),),
        reservations=(Reservation("default/p", "u", 5000, 1_767_600_001, 1_767_603_601),),
        conditions=(Condition("Open", "True", "Open", "until", 1_767_600_000),),
        observed_generation=3,
    )
    made = raw(quota={"gpuHours": "40"})
    made["metadata"]["uid"] = "u"
    window = CapacityWindow("w", "0 8 * * *", "UTC", 3600, live().selector, quota=Quota(1), status=status)
    value = decode_object({**made, "status": window_status(window)})

    assert isinstance(value, CapacityWindow)
    assert status == value.status
    assert [{"namespace": "default", "gpuHours": "0.504", "settled": 123_456}] == window_status(window)["used"]
