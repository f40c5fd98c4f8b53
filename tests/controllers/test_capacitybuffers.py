"""CapacityBuffers with the real controllers: statuses, workloads that are looked up, tenants that ask for too much."""

from dataclasses import replace

import pytest

from kerf.controllers.capacitybuffers import CapacityBuffers
from kerf.controllers.provisioning import Provisioning
from kerf.errors import ApiError
from kerf.model.capacitybuffers import CapacityBuffer, Scalable
from kerf.model.uses import Use
from kerf.ports import WriteRefused
from kerf.sim.kubernetes.adapter import SimScalables
from kerf.sim.objects import Json
from tests.controllers.cluster import Cluster, pool

POD = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}


class Asked:
    """The simulator's workloads; counts who asks, and fails while it is told to."""

    def __init__(self, cluster: Cluster) -> None:
        self._held, self.asked, self.fails = SimScalables(cluster.api), list[str](), False

    async def scalable(self, namespace: str, kind: str, name: str) -> Scalable | None:
        """As the port says."""
        self.asked.append(name)
        if self.fails:
            raise ApiError("the server is away")
        return await self._held.scalable(namespace, kind, name)


@pytest.fixture
def asked(cluster: Cluster) -> Asked:
    """Who asks, of the cluster's own ports."""
    made = Asked(cluster)
    cluster.ports = replace(cluster.ports, scalables=made)
    return made


def start(cluster: Cluster, *, writes: bool = True) -> None:
    """What buys, and what says how it goes."""
    parts = (cluster.state, cluster.ports, cluster.book)
    plans = Provisioning(*parts, cluster.actuator, cluster.settings)
    cluster.start(plans, CapacityBuffers(*parts, cluster.settings, writes=writes))


def named_pool(namespace: str = "default") -> Json:
    """A pool that lets buffers of a namespace have room."""
    made = pool()
    made["metadata"].setdefault("annotations", {})[Use.BUFFER] = namespace
    return made


def template(name: str = "card") -> Json:
    """A PodTemplate of a whole card."""
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": _meta(name), "template": {"spec": POD}}


def deployment(replicas: int, name: str = "web") -> Json:
    """A Deployment of such pods; nobody makes them here."""
    labels = {"app": name}
    made = {"metadata": {"labels": labels}, "spec": POD}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": made}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _meta(name), "spec": spec}


def buffer(name: str = "spare", **spec: object) -> Json:
    """A CapacityBuffer; of the template where nothing else is said."""
    given = spec or {"podTemplateRef": {"name": "card"}, "replicas": 2}
    head = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer"}
    return {**head, "metadata": _meta(name), "spec": given}


def share(name: str = "spare", of: str = "web") -> Json:
    """A buffer of a half of a Deployment."""
    return buffer(name, scalableRef={"apiGroup": "apps", "kind": "Deployment", "name": of}, percentage=50)


def _meta(name: str) -> Json:
    return {"name": name, "namespace": "default"}


def told(cluster: Cluster, name: str = "spare") -> dict[str, str]:
    """The reasons of a buffer's conditions."""
    raw = cluster.api.get("CapacityBuffer", "default", name)
    assert raw is not None
    return {each["type"]: each["reason"] for each in raw.get("status", {}).get("conditions", ())}


def wanted(cluster: Cluster, name: str = "spare") -> int | None:
    """For how many pods its status says that room is to be kept."""
    raw = cluster.api.get("CapacityBuffer", "default", name)
    assert raw is not None
    found: int | None = raw.get("status", {}).get("replicas")
    return found


def test_its_status_says_how_far_its_room_is(cluster: Cluster) -> None:
    """Two nodes are bought for it at once; nothing is written again while nothing changes."""
    cluster.put(named_pool(), template(), buffer())
    start(cluster)
    cluster.at(5)

    assert 2 == len(cluster.names("NodeClaim"))
    assert {"ReadyForProvisioning": "Resolved", "Provisioning": "RequiresNewCapacity"} == told(cluster)
    assert 2 == wanted(cluster)
    raw = cluster.api.get("CapacityBuffer", "default", "spare")
    assert raw is not None
    assert ({"name": "card"}, 1) == (raw["status"]["podTemplateRef"], raw["status"]["podTemplateGeneration"])

    version = raw["metadata"]["resourceVersion"]
    cluster.at(300)
    again = cluster.api.get("CapacityBuffer", "default", "spare")
    assert again is not None
    assert version == again["metadata"]["resourceVersion"]


def test_a_template_that_comes_late_is_found(cluster: Cluster) -> None:
    """It is told."""
    cluster.put(named_pool(), buffer())
    start(cluster)
    cluster.at(5)
    assert "PodTemplateNotFound" == told(cluster)["ReadyForProvisioning"]

    cluster.put(template())
    cluster.at(10)
    assert "Resolved" == told(cluster)["ReadyForProvisioning"]
    assert 2 == len(cluster.names("NodeClaim"))


def test_a_share_follows_its_workload_within_half_a_minute(cluster: Cluster, asked: Asked) -> None:
    """Karpenter's time. A workload that goes takes the buffer's pods along."""
    cluster.put(named_pool(), deployment(2), share())
    start(cluster)
    cluster.at(5)
    assert (1, 1) == (wanted(cluster), len(cluster.names("NodeClaim")))

    cluster.at(6, lambda: cluster.api.patch("Deployment", "default", "web", {"spec": {"replicas": 6}}))
    cluster.at(60)
    assert (3, 3) == (wanted(cluster), len(cluster.names("NodeClaim")))

    cluster.at(61, lambda: cluster.api.delete("Deployment", "default", "web"))
    cluster.at(120)
    assert "ScalableRefNotFound" == told(cluster)["ReadyForProvisioning"]
    assert () == cluster.state.scalables()


def test_a_server_that_is_away_takes_no_room_away(cluster: Cluster, asked: Asked) -> None:
    """What was known counts, and it is asked for again."""
    cluster.put(named_pool(), deployment(2), share())
    start(cluster)
    cluster.at(5)
    asked.fails = True
    cluster.at(120)

    assert "Resolved" == told(cluster)["ReadyForProvisioning"]
    assert 1 == len(cluster.state.scalables())


def test_a_workload_is_asked_for_twice_a_minute_whatever_happens(cluster: Cluster, asked: Asked) -> None:
    """However many buffers name it, and however often one of them is told."""
    cluster.put(named_pool(), deployment(2), share(), share("other"))
    start(cluster)
    for number in range(10):
        cluster.put(template(f"t{number}"))
        cluster.at(number + 1)
    cluster.at(29)

    assert ["web"] == asked.asked


def test_a_thousand_names_do_not_hold_up_one(cluster: Cluster, asked: Asked) -> None:
    """A hundred are asked for at a time, the others next; a workload that no buffer names any more is forgotten."""
    cluster.put(named_pool(), *(share(f"b{n}", f"w{n}") for n in range(250)), deployment(2), share())
    start(cluster)
    cluster.at(20)

    assert 251 == len(set(asked.asked)) == len(asked.asked)
    assert "Resolved" == told(cluster)["ReadyForProvisioning"]


def test_a_dry_run_looks_up_and_writes_nothing(cluster: Cluster, asked: Asked) -> None:
    """Its plan counts the buffer all the same."""
    cluster.put(named_pool(), deployment(2), share())
    start(cluster, writes=False)
    cluster.at(60)

    assert {} == told(cluster)
    assert 1 == len(cluster.state.scalables())


@pytest.mark.parametrize("named", ["other", None])
def test_a_tenant_buys_no_more_than_it_is_let(cluster: Cluster, named: str | None) -> None:
    """A million pods: one node where nobody says anything of it, none where pools name others alone."""
    cluster.put(named_pool(named) if named else pool(), template())
    cluster.put(buffer("greedy", podTemplateRef={"name": "card"}, replicas=1_000_000))
    start(cluster)
    cluster.at(600)

    assert (0 if named else 1) == len(cluster.names("NodeClaim"))
    assert "LimitedByQuotas" == told(cluster, "greedy")["LimitedByQuotas"]
    assert 1_000_000 == wanted(cluster, "greedy")


def test_one_bad_buffer_stops_no_other(cluster: Cluster) -> None:
    """Nor a status that somebody else has written."""
    cluster.put(named_pool(), template(), buffer("bad", podTemplateRef={"name": "gone"}, replicas=1), buffer())
    start(cluster)
    cluster.at(5)

    assert ["PodTemplateNotFound", "Resolved"] == [
        told(cluster, name)["ReadyForProvisioning"] for name in ("bad", "spare")
    ]
    assert 2 == len(cluster.names("NodeClaim"))


def test_a_status_that_is_refused_stops_no_other(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A webhook of somebody refuses one of two."""
    write = cluster.ports.writer.update_capacity_buffer_status

    async def refusing(held: CapacityBuffer) -> CapacityBuffer:
        if held.name == "bad":
            raise WriteRefused("no")
        return await write(held)

    monkeypatch.setattr(cluster.ports.writer, "update_capacity_buffer_status", refusing)
    cluster.put(named_pool(), template(), buffer("bad"), buffer())
    start(cluster)
    cluster.at(60)

    assert {} == told(cluster, "bad")
    assert "Resolved" == told(cluster)["ReadyForProvisioning"]


def test_of_another_strategy_nothing_is_written(cluster: Cluster) -> None:
    """It is another's."""
    cluster.put(named_pool(), template())
    cluster.put(buffer(podTemplateRef={"name": "card"}, replicas=2, provisioningStrategy="example.com/standby"))
    start(cluster)
    cluster.at(60)

    assert {} == told(cluster)
    assert [] == cluster.names("NodeClaim")
