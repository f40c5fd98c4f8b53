"""How NVIDIA's device plugin was started decides what a node shows: its operator's policy, or its own DaemonSet."""

from collections.abc import Mapping

import pytest

from kerf.manifests.decode import decode_object
from kerf.model.evidence import ClusterPolicy, Project
from kerf.model.snapshot import DaemonSet
from kerf.sharing.family import Family
from kerf.sharing.gathering import Gathered, Witness
from kerf.sharing.nvidia.mig import InstancesHidden, UnequalInstances
from kerf.sharing.registry import judged, owner_of
from tests.sharing.nvidia.builders import A10G, A100, LAYOUT, PLUGIN, STRATEGY, cut, mig_map, plugin_map, sharing

SLICED = plugin_map(sharing("timeSlicing"), "any")
UNEQUAL = mig_map(two="[{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 2, 2g.10gb: 1}}]", half=cut(g3_20=2))


def policy(**spec: object) -> ClusterPolicy:
    """The operator's policy as a manifest states it."""
    raw = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}, "spec": spec}
    found = decode_object(raw)
    assert isinstance(found, ClusterPolicy)
    return found


def named(config_map: str, default: str = "") -> ClusterPolicy:
    """A policy whose plugin reads that ConfigMap."""
    return policy(devicePlugin={"config": {"name": config_map, "default": default}})


def daemon(*arguments: str, **environment: str) -> DaemonSet:
    """The plugin's own DaemonSet, as its chart makes it."""
    variables = [{"name": name, "value": value} for name, value in environment.items()]
    container = {"name": "plugin", "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.4"}
    template = {"spec": {"containers": [{**container, "args": list(arguments), "env": variables}]}}
    metadata = {"name": "nvdp-nvidia-device-plugin", "namespace": "nvidia-device-plugin"}
    raw = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": {"template": template}}
    found = decode_object(raw)
    assert isinstance(found, DaemonSet)
    return found


def owner(*witnesses: Witness, labels: Mapping[str, str] | None = None, maps: tuple[object, ...] = (SLICED,)) -> Family:
    """The family of a new node with these labels."""
    gathered = Gathered()
    for witness in witnesses:
        gathered.note(None, witness)
    families, _ = judged(maps, gathered)  # type: ignore[arg-type]
    return owner_of(labels or {}, {}, families)


@pytest.mark.parametrize(
    ("witness", "labels", "expected"),
    [
        (policy(), {}, "whole"),
        (policy(), {PLUGIN: "any"}, "whole"),
        (named("time-slicing-config"), {}, "whole"),
        (named("time-slicing-config"), {PLUGIN: "any"}, "time-slicing"),
        (named("time-slicing-config", "any"), {}, "time-slicing"),
        (named("other", "any"), {}, "whole"),
        (policy(devicePlugin={"enabled": False}), {}, "time-slicing"),
    ],
)
def test_the_operators_policy_says_which_configuration_a_node_has(
    witness: ClusterPolicy, labels: dict[str, str], expected: str
) -> None:
    """C1: the ConfigMap that it names, or none; without a label its default, or none (FALLBACK_STRATEGIES=empty)."""
    assert expected == owner(witness, labels=labels).name


@pytest.mark.parametrize(
    ("witness", "expected"),
    [
        (daemon(), "whole"),
        (daemon(DEFAULT_CONFIG="", FALLBACK_STRATEGIES="named,single"), "time-slicing"),
        (daemon(DEFAULT_CONFIG="", FALLBACK_STRATEGIES="empty"), "whole"),
        (daemon(DEFAULT_CONFIG="any", FALLBACK_STRATEGIES="empty"), "time-slicing"),
        (daemon("--config-file", "/config/any"), "time-slicing"),
    ],
)
def test_without_an_operator_its_own_daemon_set_says_so(witness: DaemonSet, expected: str) -> None:
    """C1: its configuration manager has a default and fallbacks; without either it reads no ConfigMap."""
    assert expected == owner(witness).name


@pytest.mark.parametrize(
    ("witness", "expected"),
    [
        (policy(mig={"strategy": "single"}), UnequalInstances),
        (policy(mig={"strategy": "mixed"}), type(None)),
        (policy(mig={"strategy": "none"}), InstancesHidden),
        (policy(), InstancesHidden),
        (daemon(MIG_STRATEGY="single"), UnequalInstances),
        (daemon("--mig-strategy=mixed", MIG_STRATEGY="single"), type(None)),
        (daemon("--mig-strategy", "single"), UnequalInstances),
        (daemon(), InstancesHidden),
    ],
)
def test_the_mig_strategy_is_what_the_plugin_was_started_with(witness: Witness, expected: type) -> None:
    """C1: a flag goes before a variable; stated nowhere it is the plugin's own, none."""
    labels = {LAYOUT: "two"}
    family = owner(witness, labels=labels, maps=(UNEQUAL,))

    assert expected is type(family.obstacle([A100], labels, {}))
    assert ({},) == family.assumptions(labels)


def test_the_start_beats_the_configuration_and_the_pools_label() -> None:
    """C1: k8s-device-plugin takes flags and variables before its file; the label is feature discovery's report."""
    labels = {LAYOUT: "two", STRATEGY: "mixed"}
    maps = (UNEQUAL, plugin_map("flags: {migStrategy: mixed}", "any"))
    started = policy(mig={"strategy": "single"}, devicePlugin={"config": {"name": "time-slicing-config"}})

    assert UnequalInstances is type(owner(started, labels=labels, maps=maps).obstacle([A100], labels, {}))


def test_where_neither_is_known_both_strategies_are_planned_for() -> None:
    """As before: unknown is not none; nor is it where the plugin reads a ConfigMap that is not in the input."""
    labels = {LAYOUT: "half"}
    unread = daemon(DEFAULT_CONFIG="any", FALLBACK_STRATEGIES="named,single")

    assert 2 == len(owner(labels=labels, maps=(UNEQUAL,)).assumptions(labels))
    assert 2 == len(owner(unread, labels=labels, maps=(UNEQUAL,)).assumptions(labels))


def test_the_operator_goes_before_a_daemon_set() -> None:
    """The policy is what the operator makes of its DaemonSet next; and both are NVIDIA's."""
    gathered = Gathered()
    for witness in (daemon(MIG_STRATEGY="mixed"), policy(mig={"strategy": "single"})):
        gathered.note(None, witness)
    found = gathered.evidence(()).of(Project.NVIDIA)

    assert [True, False] == [plugin.of_operator for plugin in found]
    labels = {LAYOUT: "half"}
    single = owner(daemon(MIG_STRATEGY="mixed"), policy(mig={"strategy": "single"}), labels=labels, maps=(UNEQUAL,))
    assert {"nvidia.com/gpu"} == {
        part.resource for card in single.predict([A100], labels, {}) for part in card.partitions
    }


def test_a_configuration_by_default_shows_its_replicas() -> None:
    """The policy's default is enough: no pool needs the label."""
    family = owner(named("time-slicing-config", "any"))

    assert {"nvidia.com/gpu": 4} == dict(family.kubelet_capacity(family.predict([A10G], {}, {})))
