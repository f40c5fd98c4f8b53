"""HAMi is known by evidence: a register, its DaemonSet, its ConfigMap, what pods ask for, and last of all a label."""

from collections.abc import Mapping

import pytest

from kerf.manifests.decode import decode_object
from kerf.model.nodes import Node
from kerf.model.pods import Container, Pod
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap, DaemonSet
from kerf.sharing.gathering import Gathered, Witness
from kerf.sharing.hami.family import Basis, Hami
from kerf.sharing.hami.records import REGISTER
from kerf.sharing.installed import plugin_of
from kerf.sharing.registry import judged, owner_of
from kerf.testing.builders import a_pod
from tests.sharing.nvidia.builders import cut, mig_map, plugin_map, sharing

LABEL = {"gpu": "on"}
TIME_SLICED = plugin_map(sharing("timeSlicing"), "default")
LAID_OUT = mig_map(half=cut(g3_20=2))
HAMI_MAP = ConfigMap("kube-system", "hami-scheduler-device", {"device-config.yaml": "nvidia: {}"})
HAMI_LABELS = {"app.kubernetes.io/component": "hami-device-plugin"}
OPERATORS = {"nvidia.com/gpu.deploy.device-plugin": "true"}
REGISTERED = Node("n", annotations={REGISTER: "[]"})
SLICE = a_pod("slice", gpu=1, gpumem=1000)


def a_plugin(
    name: str,
    image: str,
    *,
    selector: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    namespace: str = "kube-system",
) -> DaemonSet:
    """A device plugin's DaemonSet, decoded as a manifest states it."""
    spec = {"nodeSelector": dict(selector or {}), "containers": [{"name": "device-plugin", "image": image}]}
    template = {"metadata": {"labels": dict(labels or {})}, "spec": spec}
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    found = decode_object(
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": {"template": template}}
    )
    assert isinstance(found, DaemonSet)
    return found


def hamis(selector: Mapping[str, str] | None = None, namespace: str = "kube-system") -> DaemonSet:
    """As HAMi's chart makes it."""
    image = "docker.io/projecthami/hami:v2.10.0"
    return a_plugin("hami-device-plugin", image, selector=selector, labels=HAMI_LABELS, namespace=namespace)


def nvidias(selector: Mapping[str, str] | None = None) -> DaemonSet:
    """As NVIDIA's operator or the chart of its plugin makes it."""
    return a_plugin("nvidia-device-plugin-daemonset", "nvcr.io/nvidia/k8s-device-plugin:v0.17.4", selector=selector)


def owner(
    *witnesses: Witness, maps: tuple[ConfigMap, ...] = (), labels: Mapping[str, str] | None = None
) -> tuple[str, Basis]:
    """Whose the cards of a new node with these labels are, and on what that rests for HAMi."""
    gathered = Gathered()
    for witness in witnesses:
        gathered.note(None, witness)
    families, _ = judged(maps, gathered)
    basis = next(family.basis for family in families if isinstance(family, Hami))
    return owner_of(labels or LABEL, {}, families).name, basis


def test_the_label_alone_is_an_assumption() -> None:
    """Where nothing else speaks of device plugins, a pool labelled for HAMi's chart is HAMi's."""
    assert ("hami", Basis.LABEL) == owner()


@pytest.mark.parametrize("maps", [(TIME_SLICED,), (plugin_map(sharing("mps"), "default"),), (LAID_OUT,)])
def test_other_evidence_beats_the_label(maps: tuple[ConfigMap, ...]) -> None:
    """A5: NVIDIA's plugins are configured, and nothing but the label speaks of HAMi."""
    found, basis = owner(maps=maps)

    assert "hami" != found
    assert Basis.LABEL is basis


def test_a_node_label_that_nvidias_plugin_selects_beats_it_too() -> None:
    """A5: its DaemonSet, or the operator's, would run on such nodes; where it would not, the label stands."""
    opted_out = {**LABEL, "nvidia.com/gpu.deploy.device-plugin": "false"}

    assert "whole" == owner(nvidias())[0]
    assert "whole" == owner(nvidias(OPERATORS))[0]
    assert "hami" == owner(nvidias(OPERATORS), labels=opted_out)[0]
    assert "hami" == owner(nvidias({"sharing": "nvidia"}))[0]


@pytest.mark.parametrize(
    ("witnesses", "maps"),
    [((REGISTERED,), ()), ((hamis(LABEL),), ()), ((), (HAMI_MAP,))],
    ids=["register", "ds", "map"],
)
def test_what_is_installed_beats_all_of_nvidias(witnesses: tuple[Witness, ...], maps: tuple[ConfigMap, ...]) -> None:
    """A5: a register on any node, HAMi's DaemonSet, its ConfigMap."""
    assert ("hami", Basis.INSTALLED) == owner(*witnesses, nvidias(), maps=(*maps, TIME_SLICED))


def test_what_pods_ask_for_beats_the_label_and_a_config_map() -> None:
    """A5: but no DaemonSet of NVIDIA's, because a plugin that runs is more than a wish that any tenant may state."""
    assert ("hami", Basis.ASKED) == owner(SLICE, maps=(TIME_SLICED,))
    assert ("whole", Basis.ASKED) == owner(SLICE, nvidias(), maps=(TIME_SLICED,))
    assert ("time-slicing", Basis.LABEL) == owner(a_pod(gpu=1), maps=(TIME_SLICED,))


def test_the_daemon_sets_node_selector_says_where_hami_is() -> None:
    """A5: all labels of it, in the place of the chart's; without one it is everywhere."""
    own = {"accelerator": "hami", "zone": "a"}

    assert "hami" == owner(hamis(own), labels=own)[0]
    assert "whole" == owner(hamis(own), labels={"accelerator": "hami"})[0]
    assert "whole" == owner(hamis(own))[0]
    assert "hami" == owner(hamis(), labels={"any": "thing"})[0]


def test_resources_count_by_the_names_that_hami_has_for_them() -> None:
    """With a ConfigMap that calls them otherwise, the chart's names are none of HAMi's."""
    text = "nvidia: {resourceMemoryName: example.com/mem, resourceCoreName: example.com/cores}"
    gathered = Gathered()
    gathered.note(None, a_pod(containers=(Container("main", limits=Resources({"example.com/mem": 5})),)))
    gathered.note(None, SLICE)
    _, evidence = judged((ConfigMap("kube-system", "hami-scheduler-device", {"device-config.yaml": text}),), gathered)

    assert {"example.com/mem"} == evidence.asked


def test_a_tenants_daemon_set_is_no_evidence() -> None:
    """F1: any user may call one as HAMi's chart does; only namespaces of plugins count."""
    assert ("time-slicing", Basis.LABEL) == owner(hamis(namespace="team-a"), maps=(TIME_SLICED,))


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("hami-ascend-device-plugin", "projecthami/ascend-device-plugin:v1"),
        ("hami-mock-device-plugin", "projecthami/mock-device-plugin:1.0.1"),
        ("gpu-feature-discovery", "nvcr.io/nvidia/k8s-device-plugin:v0.17.4"),
        ("node-exporter", "prom/node-exporter"),
    ],
)
def test_other_daemon_sets_are_no_device_plugin_of_the_cards(name: str, image: str) -> None:
    """HAMi's for other vendors, its mock plugin, what else comes in NVIDIA's image."""
    assert plugin_of(a_plugin(name, image)) is None


def test_a_release_of_another_name_is_hamis_by_its_label() -> None:
    """Helm puts the release before the name; an image from a mirror keeps its path."""
    mirrored = "mirror.example.com/projecthami/hami@sha256:00"

    assert plugin_of(a_plugin("gpu-hami-device-plugin", "mirror.example.com/own:1")) is not None
    assert plugin_of(a_plugin("slices", "mirror.example.com/own:1", labels=HAMI_LABELS)) is not None
    assert plugin_of(a_plugin("x-device-plugin", mirrored)) is not None


def test_evidence_goes_with_what_it_came_with() -> None:
    """Counted as objects come, change, end and go."""
    gathered, ended = Gathered(), Pod("default", "slice", SLICE.spec, phase="Succeeded")

    assert gathered.note(None, SLICE)
    assert not gathered.note(None, a_pod("other", gpu=1, gpumem=5))
    assert not gathered.note(SLICE, ended)
    assert gathered.note(a_pod("other", gpu=1, gpumem=5), None)
    assert gathered.note(None, REGISTERED)
    assert gathered.note(REGISTERED, Node("n"))
    assert gathered.note(None, hamis())
    assert gathered.note(hamis(), None)
    assert not gathered.evidence(Hami().resources).has_register
    assert () == gathered.evidence(Hami().resources).plugins
