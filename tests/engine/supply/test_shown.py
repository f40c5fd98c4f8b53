"""What nodes show of resources, what is left of that, and that no resource is without bound."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.explain.plan import plan
from kerf.engine.place.fit import Placed, fit
from kerf.engine.place.shapes import Shape
from kerf.engine.place.trial import Trial
from kerf.engine.supply.offered import OfferedType
from kerf.model.causes import ShownOtherwise
from kerf.model.instancetypes import InstanceType
from kerf.model.nodeclaim import LAUNCHED, NodeClaim
from kerf.model.pods import Container, Pod, PodSpec
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap, DaemonSet
from kerf.testing.builders import (
    a_claim,
    a_container,
    a_market,
    a_node,
    a_pod,
    a_pool,
    an_instance_type,
    cards,
    resources,
)
from tests.engine.worlds import (
    G5,
    G5_12X,
    HAMI,
    M5,
    a_daemon_set,
    a_hami_node,
    a_hami_pool,
    bought,
    offer,
    only_unplaced,
    planned,
    refusal,
    refused,
    seen,
    shape_of,
    some,
)
from tests.sharing.nvidia.builders import A100 as CUT
from tests.sharing.nvidia.builders import LAYOUT, PLUGIN, cut, mig_map, plugin_map, sharing

FOO, VGPU, MIG = "example.com/foo", "nvidia.com/vgpu", "nvidia.com/mig-1g.5gb"
SHARED = "nvidia.com/gpu.shared"
A100 = an_instance_type("p4", cpu=96, memory="96Gi", devices=cards(2, 40960, "A100"), price="9")
ONE_SLICE = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 12_000}


def hami_map(**names: str) -> ConfigMap:
    """HAMi's ConfigMap with other names of its resources than the chart's."""
    text = "".join(f"  {key}: {name}\n" for key, name in names.items())
    return ConfigMap("kube-system", "hami-scheduler-device", {"device-config.yaml": f"nvidia:\n{text}"})


RENAMED = hami_map(resourceCountName=VGPU)
SLICED = plugin_map(sharing("timeSlicing"))
HIDDEN = plugin_map(sharing("timeSlicing", renameByDefault=True))
SEVENTHS = mig_map(sevenths=cut(g1_5=7))
POOLS: Mapping[str, tuple[Mapping[str, str], tuple[ConfigMap, ...]]] = {
    "whole": ({}, ()),
    "whole beside a renamed HAMi": ({}, (RENAMED,)),
    "time-sliced": ({PLUGIN: "shared"}, (SLICED,)),
    "time-sliced and renamed": ({PLUGIN: "shared"}, (HIDDEN,)),
    "MPS": ({PLUGIN: "shared"}, (plugin_map(sharing("mps")),)),
    "HAMi": (HAMI, (hami_map(),)),
    "HAMi, its count renamed": (HAMI, (RENAMED,)),
    "HAMi, all renamed": (
        HAMI,
        (
            hami_map(
                resourceCountName=VGPU,
                resourceMemoryName="nvidia.com/vmem",
                resourceMemoryPercentageName="nvidia.com/vpercent",
                resourceCoreName="nvidia.com/vcores",
                resourcePriorityName="nvidia.com/vpriority",
            ),
        ),
    ),
    "HAMi that adds no GPU": (HAMI, (hami_map(resourceCountName=VGPU, defaultGPUNum="0"),)),
    "MIG": ({LAYOUT: "sevenths"}, (SEVENTHS,)),
    "MIG as single": ({LAYOUT: "sevenths"}, (SEVENTHS, plugin_map("flags: {migStrategy: single}\n"))),
}
NAMES = (
    "nvidia.com/gpu",
    SHARED,
    VGPU,
    MIG,
    "nvidia.com/mig-3g.20gb",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "nvidia.com/priority",
    "nvidia.com/vmem",
    "nvidia.com/vpriority",
    "amd.com/gpu",
    FOO,
)


def asking(amounts: Mapping[str, int], *, in_init: bool = False, overhead: Mapping[str, int] | None = None) -> Pod:
    """A pod with one container of these limits, or with an init container of them beside an idle one."""
    held = Container("main", Resources(amounts), Resources(amounts))
    idle = Container("idle")
    spec = PodSpec((idle,) if in_init else (held,), (held,) if in_init else (), Resources(overhead or {}))
    return Pod("default", "p", spec)


def held_by(offered: OfferedType, pod: Pod, most: int = 200) -> int:
    """How many such pods an empty node holds; `most` where there is no end."""
    room, shape = offered.room, Shape((pod,))
    for count in range(most):
        result = fit(offered.target, room, shape)
        if not isinstance(result, Placed):
            return count
        room = result.room
    return most


def a_wide_type(name: str) -> OfferedType:
    """A type with room for very many small pods, in a pool of that kind."""
    labels, maps = POOLS[name]
    kind = replace(A100, capacity=A100.capacity.replaced({"pods": 1_000}))
    shapes = (CUT, CUT) if "MIG" in name else kind.devices
    return offer(a_pool(labels=dict(labels)), replace(kind, devices=shapes), config_maps=maps)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("how", ["container", "init container", "overhead", "beside a GPU"])
def test_no_resource_is_without_bound_on_any_node(pool: str, how: str) -> None:
    """Whoever shares the cards, and whatever they are called: two cards serve no two hundred pods that ask for one."""
    offered = a_wide_type(pool)
    asked = {
        name: {
            "container": asking({name: 1}),
            "init container": asking({name: 1}, in_init=True),
            "overhead": asking({}, overhead={name: 1}),
            "beside a GPU": asking({"nvidia.com/gpu": 1, name: 1}),
        }[how]
        for name in NAMES
    }

    assert [] == [name for name, pod in asked.items() if held_by(offered, pod) > 20]


@pytest.mark.parametrize("gpus", [1, 8])
def test_nodes_of_hami_have_no_gpu_by_a_name_that_it_does_not_give_them(gpus: int) -> None:
    """What its ConfigMap calls `nvidia.com/vgpu` is not there as `nvidia.com/gpu`, whatever the type is sold with."""
    decided = planned(some(40, gpu=gpus), [a_hami_pool()], [G5, G5_12X], config_maps=(RENAMED,))

    assert [] == bought(decided)
    assert 40 == len(refused(decided))


def test_the_refusal_names_the_name_that_the_nodes_show_and_its_patch_places_the_pod() -> None:
    """A pod of the old name waits for ever, and the new one is what it should ask for."""
    decided = planned([a_pod(gpu=1)], [a_hami_pool()], [G5], config_maps=(RENAMED,))
    left = only_unplaced(decided)
    cause = refusal(a_pod(gpu=1), offer(a_hami_pool(), G5, config_maps=(RENAMED,))).cause

    assert isinstance(cause, ShownOtherwise)
    assert ("HAMi", VGPU) == (cause.title, cause.shown)
    assert "nvidia.com/gpu, which HAMi shows as nvidia.com/vgpu here" in left.reason
    assert f"ask for {VGPU} in place of nvidia.com/gpu" == left.hint
    assert [("g5.xlarge", 1)] == bought(planned([asking({VGPU: 1})], [a_hami_pool()], [G5], config_maps=(RENAMED,)))


OTHERS = hami_map(resourceCountName=VGPU, resourceMemoryName="acme.io/memory", resourceCoreName="acme.io/cores")


@pytest.mark.parametrize(
    "asked, as_shown",
    [
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 5_000}, {VGPU: 1, "acme.io/memory": 5_000}),
        ({"nvidia.com/gpumem": 5_000}, {"acme.io/memory": 5_000}),
        ({"nvidia.com/gpucores": 50}, {"acme.io/cores": 50}),
        ({VGPU: 1, "nvidia.com/gpumem": 5_000}, {VGPU: 1, "acme.io/memory": 5_000}),
    ],
)
def test_the_hint_names_each_name_that_hamis_configuration_has_changed(
    asked: dict[str, int], as_shown: dict[str, int]
) -> None:
    """One new name beside an old one places no pod; no type would do, so none is asked for."""
    left = only_unplaced(planned([asking(asked)], [a_hami_pool()], [G5], config_maps=(OTHERS,)))
    pairs = zip(
        sorted(asked.keys() - as_shown.keys()), sorted(as_shown.keys() - asked.keys(), reverse=True), strict=True
    )

    assert len(bought(planned([asking(as_shown)], [a_hami_pool()], [G5], config_maps=(OTHERS,))))
    assert "ask for " + " and ".join(f"{new} in place of {old}" for old, new in pairs) == left.hint
    assert left.patch is not None


def test_where_no_name_helps_it_is_said_by_which_the_cards_are_shown() -> None:
    """No other type is to be allowed: the pool's nodes show none of the old name, whatever they are."""
    pod = asking({"nvidia.com/gpu": 1, "cpu": 900_000})
    left = only_unplaced(planned([pod], [a_hami_pool()], [G5], config_maps=(RENAMED,)))

    assert f"no node of NodePool {a_hami_pool().name} shows nvidia.com/gpu: its GPUs are shown as {VGPU}" in left.hint


def test_a_pod_that_asks_by_both_names_fits_no_node_of_hami() -> None:
    """Its memory is HAMi's and its number of GPUs is of no plugin: kube-scheduler finds it on no node of HAMi's."""
    mixed = asking({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1_000})
    decided = planned([mixed], [a_hami_pool(), a_pool("whole")], [G5], config_maps=(RENAMED,))

    assert [] == bought(decided)


def test_whole_gpus_are_bought_beside_a_hami_that_renames_its_own() -> None:
    """On nodes that it does not manage NVIDIA's plugin goes on with its own name."""
    decided = planned(some(4, gpu=1), [a_hami_pool(), a_pool("whole")], [G5_12X], config_maps=(RENAMED,))

    assert [("g5.12xlarge", 4)] == bought(decided)
    assert ["whole"] == [launch.node_pool for launch in decided.launches]


def on_a_node_of_hami(shown: int, pods: int, claim: NodeClaim | None = None) -> int:
    """How many of so many pods of one `nvidia.com/gpu` go to a node of the renamed HAMi that shows so many of these."""
    allocatable: dict[str, int | str] = {"cpu": 4, "memory": "16Gi", "pods": 58, VGPU: 10}
    allocatable |= {"nvidia.com/gpu": shown} if shown else {}
    node = a_hami_node(a_node(allocatable=allocatable))
    snapshot = seen(RENAMED, node, *([claim] if claim is not None else []))
    return len(plan(replace(snapshot, pending=tuple(some(pods, gpu=1))), a_market(G5)).placements)


@pytest.mark.parametrize("shown, expected", [(0, 0), (1, 1), (3, 3)])
def test_a_node_that_is_there_has_what_it_shows(shown: int, expected: int) -> None:
    """Where NVIDIA's plugin runs beside HAMi's by its own name, kube-scheduler counts what that one shows."""
    assert expected == on_a_node_of_hami(shown, 5)


def test_a_pod_of_a_whole_gpu_is_not_thought_onto_a_running_node_of_hami() -> None:
    """Consolidation asks the same question: a running pod was evicted for a place that was none."""
    node = a_hami_node(a_node(allocatable={"cpu": 4, "memory": "16Gi", "pods": 58, VGPU: 10}))
    trial = Trial(seen(RENAMED, node), a_market(G5))

    assert 1 == len(trial.misfits(shape_of(a_pod(gpu=1))))
    assert 0 == len(trial.misfits(shape_of(asking({VGPU: 1}))))


def test_a_node_of_hami_on_its_way_has_no_gpu_by_another_name() -> None:
    """Its type is sold with one GPU, and it will not show it so."""
    claim = a_claim(instance_type="g5.xlarge", reached=(LAUNCHED,), labels=HAMI, allocatable=G5.allocatable)
    snapshot = replace(seen(RENAMED, claim), pending=tuple(some(3, gpu=1)))

    assert () == plan(snapshot, a_market(G5)).placements


def test_cards_of_a_pods_overhead_are_taken_from_others() -> None:
    """kube-scheduler counts a RuntimeClass's overhead beside the containers: two such pods have four cards."""
    pods = [replace(asking({"nvidia.com/gpu": 1}, overhead={"nvidia.com/gpu": 1}), name=f"p-{n}") for n in range(3)]
    decided = planned(pods, [a_pool()], [G5_12X])

    assert [("g5.12xlarge", 1), ("g5.12xlarge", 2)] == bought(decided)


def test_no_node_gives_a_priority_without_a_gpu() -> None:
    """HAMi's webhook leaves such a pod alone, and no node shows the resource."""
    decided = planned([asking({"nvidia.com/priority": 1})], [a_hami_pool()], [G5])

    assert "no container asks for nvidia.com/gpu" in only_unplaced(decided).reason


# What pods of DaemonSets take.


def a_monitor(amounts: Mapping[str, int], **of_spec: Any) -> DaemonSet:
    """A DaemonSet whose pods ask for these amounts."""
    held = Container("main", Resources(amounts), Resources(amounts))
    return a_daemon_set("monitor", spec=PodSpec((held,), **of_spec))


DAEMONS: Mapping[str, tuple[str, Mapping[str, int], Mapping[str, int], int, int]] = {
    # pool, what the DaemonSet asks, what each pod asks, how many pods fit without it and with it
    "a whole card": ("whole", {"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1}, 2, 1),
    "all cards": ("whole", {"nvidia.com/gpu": 2}, {"nvidia.com/gpu": 1}, 2, 0),
    "more than there are": ("whole", {"nvidia.com/gpu": 3}, {"nvidia.com/gpu": 1}, 2, 0),
    "a time slice": ("time-sliced", {"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1}, 8, 7),
    "a renamed time slice": ("time-sliced and renamed", {SHARED: 1}, {SHARED: 1}, 8, 7),
    "a share by MPS": ("MPS", {"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1}, 8, 7),
    "an instance": ("MIG", {MIG: 3}, {MIG: 1}, 14, 11),
    "an instance as single": ("MIG as single", {"nvidia.com/gpu": 3}, {"nvidia.com/gpu": 1}, 14, 11),
    "a slice": ("HAMi", {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 30_000}, ONE_SLICE, 6, 3),
    "a whole card of HAMi's": ("HAMi", {"nvidia.com/gpu": 1}, ONE_SLICE, 6, 3),
    "a slice by another name": ("HAMi, its count renamed", {VGPU: 1, "nvidia.com/gpumem": 30_000},
                                {VGPU: 1, "nvidia.com/gpumem": 12_000}, 6, 3),
    "what another family gives": ("whole", {"nvidia.com/gpumem": 30_000}, {"nvidia.com/gpu": 1}, 2, 2),
    "what no node gives": ("whole", {FOO: 3}, {"nvidia.com/gpu": 1}, 2, 2),
}  # fmt: skip


@pytest.mark.parametrize("case", DAEMONS)
def test_daemonsets_take_cards_of_new_nodes_by_the_familys_rule(case: str) -> None:
    """Only cpu and memory were taken, so nodes were bought again and again for pods that had no card there."""
    pool, daemon, pod, without, beside = DAEMONS[case]
    labels, maps = POOLS[pool]
    kind = replace(A100, devices=(CUT, CUT)) if "MIG" in pool else A100
    free, taken = (
        offer(a_pool(labels=dict(labels)), kind, config_maps=maps, daemon_sets=daemon_sets)
        for daemon_sets in ((), (a_monitor(daemon),))
    )

    assert (without, beside) == (held_by(free, asking(pod)), held_by(taken, asking(pod)))


def test_nothing_is_bought_for_pods_whose_cards_a_daemonset_takes() -> None:
    """The DaemonSet has all eight GPUs of each new node, so a node more would not help."""
    pod = a_pod(gpu=4, cpu=1)
    decided = planned([pod], [a_pool()], [G5_12X], daemon_sets=(a_monitor({"nvidia.com/gpu": 4}),))

    assert [] == bought(decided)
    assert [pod.key] == refused(decided)


def test_a_node_on_its_way_has_the_cards_that_its_daemonsets_leave() -> None:
    """A claim in flight serves one pod where its DaemonSet takes one of its two cards."""
    kind = an_instance_type("g5.two", cpu=8, memory="32Gi", devices=cards(2), price="2")
    claim = a_claim(instance_type="g5.two", reached=(LAUNCHED,))
    snapshot = seen(claim)
    daemons = (a_monitor({"nvidia.com/gpu": 1}),)
    decided = plan(replace(snapshot, pending=tuple(some(2, gpu=1)), daemon_sets=daemons), a_market(kind))

    assert 1 == len(decided.placements)


def test_claims_wait_for_what_their_daemonsets_get_and_for_nothing_that_no_node_shows() -> None:
    """A claim that asked for `example.com/foo` never initialised, and neither did one that asked for more cards."""
    pods = (a_pod(cpu=1),)
    daemons = (
        a_monitor({"cpu": 500, FOO: 1}),
        replace(a_monitor({"nvidia.com/gpu": 8, "nvidia.com/gpumem": 5}), name="hungry"),
    )
    (launch,) = planned(pods, [a_pool(types=["g5.xlarge"])], [G5], daemon_sets=daemons).launches

    assert resources(cpu="1500m", pods=3, gpu=1) == launch.requests


# Labels that a node gets on its way.

_LIFE = ("karpenter.sh/registered", "karpenter.sh/initialized")


@pytest.mark.parametrize("label", _LIFE)
def test_daemonsets_that_select_nodes_which_are_up_are_counted(label: str) -> None:
    """They run on each node once it is up, so their cpu is not there for others (kubernetes-sigs/karpenter#2161)."""
    daemon = a_daemon_set(cpu=1, selector={label: "true"})
    decided = planned([a_pod(cpu=4)], [a_pool()], [M5], daemon_sets=(daemon,))

    assert [] == bought(decided)


@pytest.mark.parametrize("label", _LIFE)
@pytest.mark.parametrize("value, expected", [("true", [("m5.xlarge", 1)]), ("false", [])])
def test_pods_that_select_nodes_which_are_up_are_bought_for(
    label: str, value: str, expected: list[tuple[str, int]]
) -> None:
    """A node to be will have the label with that one value; no claim asks for it, which the API would refuse."""
    decided = planned([a_pod(selector={label: value})], [a_pool()], [M5])

    assert expected == bought(decided)
    assert not any(label in launch.requirements or label in launch.labels for launch in decided.launches)


@pytest.mark.parametrize("label", _LIFE)
def test_a_node_on_its_way_takes_pods_that_wait_for_it_to_be_up(label: str) -> None:
    """Bought for them, it must not refuse them while it starts, or another is bought."""
    snapshot = seen(a_claim(reached=(LAUNCHED,)), a_pool())
    decided = plan(replace(snapshot, pending=(a_pod(selector={label: "true"}),)), a_market(M5))

    assert 1 == len(decided.placements)
    assert [] == bought(decided)


def test_a_driver_writes_the_zone_of_its_node_in_a_label_of_its_own() -> None:
    """A pod that selects a zone by the label of the EBS driver gets a node of that zone (Karpenter's AWS provider)."""
    pod = a_pod(selector={"topology.ebs.csi.aws.com/zone": "us-east-1b"})
    kind = an_instance_type(zones=("us-east-1a", "us-east-1b"))
    (launch,) = planned([pod], [a_pool()], [kind]).launches

    assert "us-east-1b" == launch.offering.zone


# Huge pages.


@pytest.mark.parametrize("pages, memory, expected", [({"hugepages-2Mi": "8Gi"}, 8, 1), ({"hugepages-2Mi": "8Gi"}, 9, 0),
                                                     ({"hugepages-2Mi": "4Gi", "hugepages-1Gi": "4Gi"}, 9, 0),
                                                     ({"hugepages-1Gi": "32Gi"}, 1, 0)])  # fmt: skip
def test_huge_pages_are_taken_off_the_memory_of_new_nodes(pages: Mapping[str, str], memory: int, expected: int) -> None:
    """As kubelet and Karpenter do; of 16 GiB with 8 GiB of pages 8 are left."""
    kind = replace(M5, capacity=M5.capacity.replaced(Resources.parse(pages)))
    held = a_container(memory=f"{memory}Gi")

    assert expected == len(planned([a_pod(containers=(held,))], [a_pool()], [kind]).launches)


# Neuron devices and their cores.

DEVICE, NEW_DEVICE, CORE = "aws.amazon.com/neuron", "aws.amazon.com/neurondevice", "aws.amazon.com/neuroncore"


def a_neuron_type(name: str, devices: int, cores: int, price: str = "4", *, newer: int = 0) -> InstanceType:
    """A type whose Neuron devices have so many cores together."""
    kind = an_instance_type(name, cpu=96, memory="96Gi", price=price)
    return replace(kind, capacity=kind.capacity.replaced({DEVICE: devices, NEW_DEVICE: newer, CORE: cores}))


INF1 = a_neuron_type("inf1.24xlarge", 16, 64)


def a_batch(**counts: int) -> list[Pod]:
    """Pods by what they ask: `d12` for twelve devices, `n2` for two by the newer name, `c40` for forty cores."""
    names = {"d": DEVICE, "n": NEW_DEVICE, "c": CORE}
    return [
        replace(asking({names[what[0]]: int(what[1:])}), name=f"{what}-{number}")
        for what, count in counts.items()
        for number in range(count)
    ]


@pytest.mark.parametrize(
    "pods, nodes",
    [
        (a_batch(d12=1, c16=1), 1),
        (a_batch(d12=1, c17=1), 2),
        (a_batch(d12=1, c40=1, c2=1), 2),
        (a_batch(d8=2), 1),
        (a_batch(d1=8, c1=32), 1),
        (a_batch(d1=8, c1=33), 2),
        (a_batch(n8=1, d8=1), 1),
        (a_batch(n8=1, d8=1, c1=1), 2),
    ],
)
def test_neuron_devices_and_their_cores_are_one_silicon(pods: list[Pod], nodes: int) -> None:
    """Sixteen devices have 64 cores: twelve devices leave sixteen of them, under whichever name they are asked for."""
    kind = a_neuron_type("inf1.24xlarge", 16, 64, newer=16)
    launches = planned(pods, [a_pool()], [kind]).launches

    assert (nodes, len(pods)) == (len(launches), sum(len(launch.pods) for launch in launches))


def test_claims_ask_for_neuron_by_the_name_that_pods_ask() -> None:
    """A plugin may show devices alone, and a claim that waited for cores would never initialise."""
    (launch,) = planned(a_batch(d3=1), [a_pool()], [INF1]).launches

    assert 3 == launch.requests[DEVICE]
    assert CORE not in launch.requests


def test_each_type_has_cores_of_its_own_in_a_device() -> None:
    """Two devices of inf2 have four cores, of inf1 eight: the cheapest type that holds a pod of both is bought."""
    types = [a_neuron_type("inf2", 2, 4, "1"), a_neuron_type("inf1", 2, 8, "2")]
    decided = planned([asking({DEVICE: 1, CORE: 3})], [a_pool()], types)

    assert [("inf1", 1)] == bought(decided)


@pytest.mark.parametrize("running, expected", [({DEVICE: 12}, 16), ({CORE: 41}, 23), ({DEVICE: 16}, 0)])
def test_what_runs_takes_of_both(running: Mapping[str, int], expected: int) -> None:
    """On a node that is there, single cores go where neither devices nor cores of pods are."""
    allocatable: dict[str, int | str] = {"cpu": 96, "memory": "96Gi", "pods": 100, DEVICE: 16, CORE: 64}
    there = replace(asking(running), name="there", node_name="node", phase="Running")
    snapshot = seen(a_node(allocatable=allocatable), there)

    assert expected == len(plan(replace(snapshot, pending=tuple(a_batch(c1=70))), a_market(M5)).placements)
