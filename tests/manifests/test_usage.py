"""PodMetrics and NodeMetrics: what is read, and that what lies is left out and stops nothing."""

import itertools
import json

import pytest

from kerf.manifests.decode import decode, decode_object
from kerf.manifests.read import Documents, parse
from kerf.model.usage import ContainerUsage, NodeUsage, PodUsage
from tests.manifests.texts import decoded, pod_text, refusal

AT_S = 1767596400.0
"""2026-01-05T07:00:00Z."""


def metrics(
    containers: str = "{name: main, usage: {cpu: 12345678n, memory: 10Mi}}",
    *,
    name: str = "p",
    at: str = "2026-01-05T07:00:00Z",
    window: str = "window: 17.1s",
) -> str:
    """PodMetrics `default/name` as kubectl prints them."""
    return "\n".join(
        [
            "apiVersion: metrics.k8s.io/v1beta1",
            "kind: PodMetrics",
            f"metadata: {{name: {name}, namespace: default}}",
            f"timestamp: {at}",
            window,
            f"containers: [{containers}]",
        ]
    )


def test_pod_metrics_are_read() -> None:
    """Nanocores become milli, rounded up. The present does not come from measures."""
    read = decoded(metrics())

    assert {"default/p": PodUsage("default", "p", AT_S, 17.1, (ContainerUsage("main", 13, 10 * 2**20),))} == dict(
        read.usage.pods
    )
    assert (None, ()) == (read.newest_s, read.warnings)


@pytest.mark.parametrize("window, seconds", [("1m0s", 60), ("1m30.5s", 90.5), ("500ms", 0.5), ("1h", 3600)])
def test_a_window_is_a_duration_of_go(window: str, seconds: float) -> None:
    """Whole or with a fraction, of several units."""
    assert seconds == decoded(metrics(window=f"window: {window}")).pod_samples[0].window_s


def test_node_metrics_are_read() -> None:
    """NodeMetrics have their usage at the top."""
    text = """
    apiVersion: metrics.k8s.io/v1beta1
    kind: NodeMetrics
    metadata: {name: n}
    timestamp: 2026-01-05T07:00:00Z
    window: 20s
    usage: {cpu: 3880m, memory: 14162Mi}
    """

    assert {"n": NodeUsage("n", AT_S, 20, 3880, 14162 * 2**20)} == dict(decoded(text).usage.nodes)


def test_a_raw_list_is_read() -> None:
    """`kubectl get --raw` prints a typed list whose items have no kind."""
    item = {
        "metadata": {"name": "p", "namespace": "default"},
        "timestamp": "2026-01-05T07:00:00Z",
        "window": "20s",
        "containers": [{"name": "main", "usage": {"cpu": "1", "memory": "1Ki"}}],
    }
    raw = {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": [item]}

    assert ["default/p"] == list(decode(parse(json.dumps(raw), "raw.json")).usage.pods)


def test_the_newest_of_several_samples_counts_whatever_their_order() -> None:
    """Several dumps are several samples of one pod, no two pods; all are kept, from the oldest on."""
    texts = [
        metrics(f"{{name: main, usage: {{cpu: {n}, memory: {n}}}}}", at=f"2026-01-05T07:0{n}:00Z") for n in (1, 2, 3)
    ]
    for order in itertools.permutations(texts):
        read = decoded(*order)

        assert 3000 == read.usage.pods["default/p"].cpu_millis
        assert [1000, 2000, 3000] == [sample.cpu_millis for sample in read.pod_samples]


GOOD = "{name: good, usage: {cpu: 1, memory: 1}}"


@pytest.mark.parametrize(
    "container, warning",
    [
        ("{name: x, usage: {cpu: -1, memory: 1}}", "containers[1].usage.cpu: expected a quantity that is not"),
        ("{name: x, usage: {cpu: .nan, memory: 1}}", "containers[1].usage.cpu: expected a quantity, got '.nan'"),
        ("{name: x, usage: {cpu: NaN, memory: 1}}", "containers[1].usage.cpu: expected a quantity, got 'NaN'"),
        ("{name: x, usage: {cpu: 1, memory: 1e30}}", "memory: expected a quantity that a machine can have, got '1e30'"),
        ("{name: x, usage: {cpu: 1}}", "containers[1].usage.memory: expected a quantity, got <nothing>"),
        ("{name: x}", "containers[1].usage: expected cpu and memory, got <nothing>"),
        ("{usage: {cpu: 1, memory: 1}}", "containers[1].name: expected text that is not empty, got <nothing>"),
        ("7", "containers[1].name: expected text that is not empty, got <nothing>"),
    ],
)
def test_a_container_that_lies_is_left_out_with_its_place(container: str, warning: str) -> None:
    """It is a warning, and the pod's other containers count."""
    read = decoded(metrics(f"{GOOD}, {container}"), pod_text())

    assert ["good"] == [one.name for one in read.usage.pods["default/p"].containers]
    (told,) = read.warnings
    assert told.startswith("left out: in.yaml:6:")
    assert warning in told


def test_a_container_that_comes_twice_counts_not_at_all() -> None:
    """Nobody knows which is meant."""
    read = decoded(metrics(f"{GOOD}, {GOOD}, {{name: x, usage: {{cpu: 1, memory: 1}}}}"))

    assert ["x"] == [one.name for one in read.usage.pods["default/p"].containers]
    assert 2 == len(read.warnings)


@pytest.mark.parametrize(
    "text, warning",
    [
        (metrics(window=""), "window: expected a duration above 0 such as 17.1s, got <nothing>"),
        (metrics(window="window: -5s"), "window: expected a duration above 0 such as 17.1s, got '-5s'"),
        (metrics(at="yesterday"), "timestamp: expected an RFC 3339 instant such as"),
        (metrics().replace("name: p,", ""), "metadata.name: expected text that is not empty, got <nothing>"),
        (metrics().replace("containers: [", "containers: 3 #"), "containers: expected a list, got 3"),
    ],
)
def test_a_sample_that_lies_as_a_whole_is_left_out(text: str, warning: str) -> None:
    """No error: the other objects are read."""
    read = decoded(text, metrics(name="q"), pod_text())

    assert (["default/q"], 1) == (list(read.usage.pods), len(read.pods))
    assert [warning in told for told in read.warnings] == [True]


def test_foreign_metrics_are_none() -> None:
    """The name alone does not make the kind, and a wrong version is said."""
    text = metrics()

    assert {"PodMetrics": 1} == dict(decoded(text.replace("metrics.k8s.io", "example.com")).skipped_kinds)
    assert "expected metrics.k8s.io/v1beta1" in refusal(text.replace("v1beta1", "v9"))


def test_metrics_are_no_object_of_a_watch() -> None:
    """metrics.k8s.io cannot be watched, so nothing of it reaches the state."""
    (document,) = Documents.joined([parse(metrics())])

    assert decode_object(document.value()) is None
