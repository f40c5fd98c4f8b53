"""May a pod run there: the order of the checks, and the answer with its figures."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.explain.causes import misfit_reason, misfit_sentence, missing_text
from kerf.engine.place.fit import Placed, fit, nearest, take
from kerf.engine.place.target import Room
from kerf.model.causes import Name, NothingOffered, TargetKind, TargetName
from kerf.model.constraints import ARCH, HOSTNAME, INSTANCE_TYPE, ZONE, Requirement, Requirements, Taint, Toleration
from kerf.model.plan import Misfit, Stage
from kerf.model.pods import Container, HostPort, PodSpec, port_in_conflict
from kerf.testing.builders import a_pod, a_pool, resources
from tests.engine.worlds import (
    G5,
    G5_12X,
    M5,
    a_daemon_set,
    a_hami_pool,
    a_slice,
    offer,
    port_spec,
    refusal,
    shape_of,
    tried,
    two_containers,
)

DEDICATED = Taint("dedicated", "gpu")
TOLERATION = Toleration("dedicated", "Equal", "gpu")


def asking(key: str, operator: str, *values: str) -> Requirements:
    """One requirement."""
    return Requirements([Requirement.of(key, operator, values)])


@pytest.mark.parametrize(
    "mended, stage",
    [
        ({}, Stage.TAINTS),
        ({"tolerations": (TOLERATION,)}, Stage.REQUIREMENTS),
        ({"tolerations": (TOLERATION,), "selector": {}}, Stage.RESOURCES),
        ({"tolerations": (TOLERATION,), "selector": {}, "cpu": 1}, Stage.DEVICES),
    ],
)
def test_the_first_of_taints_requirements_resources_devices_is_named(mended: dict[str, Any], stage: Stage) -> None:
    """A pod that fails several checks is told the cheapest one; mending it leads to the next."""
    offered = offer(a_hami_pool(taints=(DEDICATED,)), G5)
    pod = a_slice(**{"cpu": 99, "gpumem": 99999, "selector": {ARCH: "arm64"}, **mended})

    assert stage == refusal(pod, offered).stage


def test_a_pod_that_passes_all_checks_takes_its_part_of_the_room() -> None:
    """What is left of node and card is what the pod does not take."""
    result = tried(a_slice(cpu=1, memory="1Gi", gpumem=8000, cores=30), offer(a_hami_pool(), G5))

    assert isinstance(result, Placed)
    assert (3000, 57) == (result.room.free["cpu"], result.room.free["pods"])
    assert (14888, 70) == (result.room.devices[0].free_memory_mib, result.room.devices[0].free_cores)
    assert [(0, 8000, 30)] == [(part.device, part.memory_mib, part.cores) for part in result.slices]


def test_an_untolerated_taint_is_shown_whole() -> None:
    """Key, value and effect of the taint are in the reason."""
    misfit = refusal(a_pod(), offer(a_pool(taints=(DEDICATED,)), M5))

    assert "did not tolerate taint dedicated=gpu:NoSchedule" == misfit_reason(misfit)


def test_a_soft_taint_keeps_no_pod_off() -> None:
    """PreferNoSchedule is a wish."""
    pool = a_pool(taints=(Taint("busy", "", "PreferNoSchedule"),))

    assert isinstance(tried(a_pod(), offer(pool, M5)), Placed)


def test_missing_quantities_of_every_resource_are_reported() -> None:
    """The reason names the resource that lacks most of its share, `missing` has them all."""
    misfit = refusal(a_pod(cpu=5, memory="64Gi"), offer(a_pool(), M5))

    assert "Insufficient memory" == misfit_reason(misfit)
    assert "1 cpu, 48Gi memory" == missing_text(misfit)
    assert (
        "Insufficient memory: needs 64Gi memory, 16Gi free, 1 cpu, 48Gi memory missing (NodePool pool/m5.xlarge)"
        == misfit_sentence(misfit)
    )


def test_a_host_port_is_taken_once() -> None:
    """A second pod with the same host port does not fit beside the first."""
    offered = offer(a_pool(), M5)
    first = tried(a_pod("a", spec=port_spec(8080)), offered)
    assert isinstance(first, Placed)

    second = fit(offered.target, first.room, shape_of(a_pod("b", spec=port_spec(8080))))
    other = fit(offered.target, first.room, shape_of(a_pod("c", spec=port_spec(8081))))

    assert isinstance(second, Misfit)
    assert (Stage.RESOURCES, "host port 8080/TCP is taken") == (second.stage, misfit_reason(second))
    assert isinstance(other, Placed)


@pytest.mark.parametrize("ip, fits", [("", False), ("0.0.0.0", False), ("127.0.0.1", False), ("::", True)])
def test_no_address_of_a_host_port_means_every_address(ip: str, fits: bool) -> None:
    """HostPortInfo.CheckConflict: `::` is an address like others, and is not 127.0.0.1."""
    one, other = HostPort(80, ip="127.0.0.1"), HostPort(80, ip=ip)

    assert [fits] * 2 == [port_in_conflict((a,), (b,)) is None for a, b in ((one, other), (other, one))]


def test_ports_that_are_taken_are_looked_at_once() -> None:
    """However many are asked for: a pod may state hundreds, and a node have thousands. An iterator can be read once."""
    asked, taken = [HostPort(port) for port in range(1, 300)], iter([HostPort(port) for port in range(299, 9_000)])

    assert HostPort(299) == port_in_conflict(asked, taken)


def test_an_init_container_lets_go_of_its_port() -> None:
    """GetHostPorts: what a sidecar takes stays taken."""
    first = Container("first", host_ports=(HostPort(80),))
    spec = PodSpec((Container("main"),), init_containers=(first, replace(first, is_sidecar=True)))

    assert (HostPort(80),) == spec.host_ports
    assert () == replace(spec, init_containers=(first,)).host_ports


def test_a_label_that_no_node_gets_is_named() -> None:
    """A selector on a label that neither pool nor type defines refuses, and says so."""
    misfit = refusal(a_pod(selector={"team": "a"}), offer(a_pool("blue"), M5))

    assert "the pod asks team In [a], NodePool blue has no label team" == misfit_reason(misfit)


@pytest.mark.parametrize("operator, values", [("DoesNotExist", ()), ("NotIn", ("a",))])
def test_an_undefined_label_satisfies_who_allows_its_absence(operator: str, values: tuple[str, ...]) -> None:
    """DoesNotExist and NotIn hold where the label is not there."""
    pod = a_pod(node_selector=asking("team", operator, *values))

    assert isinstance(tried(pod, offer(a_pool(), M5)), Placed)


def test_both_values_of_a_label_conflict_are_shown() -> None:
    """The pod's key and value stand beside the pool's."""
    pool = a_pool("blue", requirements=asking("team", "In", "b", "c"))

    misfit = refusal(a_pod(selector={"team": "a"}), offer(pool, M5))

    assert "the pod asks team In [a], NodePool blue has team In [b, c]" == misfit_reason(misfit)


def test_a_pod_narrows_what_the_pool_leaves_open() -> None:
    """Of a pool's several values a pod takes its own; the next pod with another value does not fit beside it."""
    offered = offer(a_pool(requirements=asking("team", "In", "a", "b")), M5)
    first = tried(a_pod(selector={"team": "a"}), offered)
    assert isinstance(first, Placed)

    second = fit(offered.target, first.room, shape_of(a_pod(selector={"team": "b"})))

    assert isinstance(second, Misfit)
    assert {"a"} == set(first.room.requirements["team"].values)


def test_of_a_long_list_of_values_only_those_count_that_a_node_may_have() -> None:
    """Sixty pods that list a thousand values each would make every node to be remember sixty thousand."""
    offered = offer(a_pool(requirements=asking("team", "In", "a", "b", "c")), M5)
    many = [f"x{number}" for number in range(1_000)]
    room = offered.room
    for number in range(3):
        names = [f"{number}-{name}" for name in many]
        asked = asking("team", "NotIn", *names, "b", "d").intersect(asking(INSTANCE_TYPE, "NotIn", *names))
        placed = fit(offered.target, room, shape_of(a_pod(node_selector=asked)))
        assert isinstance(placed, Placed)
        room = placed.room

    assert {"b"} == room.requirements["team"].values
    assert INSTANCE_TYPE not in room.requirements
    for team, fits in (("a", True), ("b", False), ("c", True)):
        assert fits == isinstance(fit(offered.target, room, shape_of(a_pod(selector={"team": team}))), Placed)


def test_a_pool_label_fixes_the_value() -> None:
    """A label of the template is one value; NotIn of it refuses."""
    pool = a_pool(labels={"team": "a"})
    pod = a_pod(node_selector=asking("team", "NotIn", "a"))

    assert Stage.REQUIREMENTS == refusal(pod, offer(pool, M5)).stage


def test_one_of_several_affinity_terms_is_enough() -> None:
    """Required terms are alternatives."""
    pod = a_pod(affinity=(asking(ARCH, "In", "arm64"), asking(ARCH, "In", "amd64")))

    assert isinstance(tried(pod, offer(a_pool(), M5)), Placed)


def test_the_affinity_term_that_is_sold_counts() -> None:
    """A zone that agrees and is sold out gives way to the next term's zone."""
    pool = a_pool(requirements=asking(ZONE, "In", "us-east-1a", "us-east-1z"))
    pod = a_pod(affinity=(asking(ZONE, "In", "us-east-1z"), asking(ZONE, "In", "us-east-1a")))
    sold = M5.requirements.without((ZONE,)).intersect(asking(ZONE, "In", "us-east-1a", "us-east-1z"))
    offered = offer(pool, replace(M5, requirements=sold))

    result = tried(pod, offered)

    assert isinstance(result, Placed)
    assert offered.offering_for(result.room.requirements) is not None


def test_nothing_is_bought_for_a_node_name() -> None:
    """A new node cannot have the name a pod asks for, so that buying one would never end."""
    misfit = refusal(a_pod(selector={HOSTNAME: "node-7"}), offer(a_pool("blue"), M5))

    assert "the pod asks kubernetes.io/hostname In [node-7], NodePool blue has no label kubernetes.io/hostname" == (
        misfit_reason(misfit)
    )


def test_a_slice_never_sums_over_cards() -> None:
    """Four cards of 22888 MiB do not hold one slice of 40000."""
    misfit = refusal(a_slice(gpumem=40000), offer(a_hami_pool(), G5_12X))

    assert (Stage.DEVICES, "CardInsufficientMemory", "17112 MiB") == (
        misfit.stage,
        misfit_reason(misfit),
        missing_text(misfit),
    )


def test_two_gpus_of_one_container_are_two_cards() -> None:
    """A request for two GPUs never gets one card twice."""
    result = tried(a_slice(gpu=2, gpumem=16000), offer(a_hami_pool(), G5_12X))

    assert isinstance(result, Placed)
    assert 2 == len({part.device for part in result.slices})


def test_containers_of_a_pod_may_share_a_card() -> None:
    """Two containers of 10000 MiB fit one card of 22888; two of 12000 do not."""
    offered = offer(a_hami_pool(), G5)

    assert isinstance(tried(a_pod(containers=two_containers(gpu=1, gpumem=10000)), offered), Placed)
    assert Stage.DEVICES == refusal(a_pod(containers=two_containers(gpu=1, gpumem=12000)), offered).stage


def test_slices_on_a_pool_without_hami_name_its_selector() -> None:
    """Nobody gives slices where HAMi's device plugin does not run."""
    misfit = refusal(a_slice(gpumem=1000), offer(a_pool(), G5))

    assert 'whose device plugin does not select these nodes (selector: label gpu: "on")' in misfit_reason(misfit)


def test_taking_skips_the_sum_and_asks_the_devices_only() -> None:
    """Whoever has checked the rest before places by devices alone."""
    offered = offer(a_pool(), M5)

    result = take(offered.target, Room(resources(cpu=1)), shape_of(a_pod(cpu=4)))

    assert isinstance(result, Placed)
    assert -3000 == result.room.free["cpu"]


def test_the_nearest_misfit_came_furthest_and_lacks_least() -> None:
    """Stage first, then the smallest shortfall, then the name."""
    early, far, near, twin = (
        Misfit(TargetName(TargetKind.NODE, Name(name)), stage, NothingOffered(), shortfall=shortfall)
        for name, stage, shortfall in (
            ("a", Stage.TAINTS, 1),
            ("b", Stage.DEVICES, 9),
            ("c", Stage.DEVICES, 2),
            ("d", Stage.DEVICES, 2),
        )
    )

    assert near == nearest([twin, far, early, near])


def test_a_daemon_takes_the_port_first() -> None:
    """A DaemonSet's host port is taken on every node that it runs on."""
    offered = offer(a_pool(), M5, daemon_sets=(a_daemon_set(spec=port_spec(9100)),))

    assert "host port 9100/TCP is taken" == misfit_reason(refusal(a_pod(spec=port_spec(9100)), offered))
