"""Kerf needs the roles of the chart, all of them and nothing else: the server's audit log of a life that has it all.

A verb too many is found by no other test, because nothing fails for it. So what is granted is compared with what was
asked, and a replica is started as the chart's Deployment would start it: flags, environment, service account and roles.
"""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from kerf.kube.resources import NODE_CLASSES, NODE_LEASES, Resource
from tests.controlplane.chart import Chart, Object, Release, rendered
from tests.controlplane.cluster import Cluster
from tests.controlplane.group_definitions import definitions
from tools.controlplane.installation import Installation, Replica
from tools.controlplane.server import Binaries
from tools.playground import hosted

VALUES: Object = {
    "logFormat": "text",
    "settings": {
        "batchIdleDuration": "2s",
        "batchMaxDuration": "10s",
        "replan": "2s",
        "disruptionPoll": "1s",
        "validation": "1s",
        "drainPoll": "500ms",
        "instancePoll": "2s",
        "orphanAge": "5s",
        "devicesDeadline": "10s",
        "backOff": "1s",
        "backOffMost": "1s",
    },
}
"""Minutes of a real cluster pass in seconds; what is asked of the server is the same."""
SERVERS_OWN = ("system:basic-user", "system:discovery", "system:public-info-viewer")
"""Roles that the server gives to all who are authenticated: to ask what one may do, and what there is."""


class Line(NamedTuple):
    """One verb on one resource, as a role grants it and as a request asks for it.

    `namespace` is empty where no role can name it beforehand, `name` where no role names it.
    """

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    @property
    def target(self) -> str:
        """What kubectl calls the resource: `nodeclaims.karpenter.sh/status`."""
        plural, _, subresource = self.resource.partition("/")
        return "/".join(filter(None, (".".join(filter(None, (plural, self.group))), subresource)))


UNSERVED = {Line(verb, "scheduling.k8s.io", "workloads", "", "") for verb in ("list", "watch")}
"""Groups of Kubernetes 1.35, behind a feature gate; the server of this tier has another version of them."""


def granted(chart: Chart) -> set[Line]:
    """Every line of the chart's roles."""
    return {
        Line(verb, group, resource, role["metadata"].get("namespace", ""), name)
        for role in chart.granted
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def requests(release: Release) -> list[Object]:
    """The audit log of the release's account, in order."""
    return [event for event in release.plane.audit_events() if event["user"]["username"] == release.user]


def is_servers_own(event: Object) -> bool:
    """Whether one of the server's own roles allowed it."""
    reason = event["annotations"]["authorization.k8s.io/reason"]
    return any(f'of ClusterRole "{role}" ' in reason for role in SERVERS_OWN)


def used(release: Release) -> set[Line]:
    """The lines that the requests of the release needed, but for those that the server grants to everybody."""
    lines = granted(release.chart)
    places, names = {line.namespace for line in lines}, {line.name for line in lines}
    return {
        Line(event["verb"], group, resource, place if place in places else "", name if name in names else "")
        for event in requests(release)
        if not is_servers_own(event)
        for group, resource, place, name in [target(event)]
    }


def target(event: Object) -> tuple[str, str, str, str]:
    """Group, resource and sub-resource, namespace and name; what is created has no name that a role could limit."""
    asked = event["objectRef"]
    resource = "/".join(asked[part] for part in ("resource", "subresource") if part in asked)
    name = "" if event["verb"] == "create" else asked.get("name", "")
    return asked.get("apiGroup", ""), resource, asked.get("namespace", ""), name


# The life.


def pool(name: str, instance_type: str, **template: Any) -> Object:
    """A pool of one on-demand type; `template` are fields of its nodes."""
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"nodeClassRef": reference, "requirements": requirements, **template}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {"metadata": {"labels": {"gpu": "on"}}, "spec": spec},
            "limits": {"nodes": 5},
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "2s"},
        },
    }


def deployment(name: str, replicas: int, pool: str, resources: dict[str, str]) -> Object:
    """Pods of one size for one pool."""
    container = {"name": "main", "image": "main", "resources": {"requests": resources, "limits": resources}}
    place = {"nodeSelector": {"karpenter.sh/nodepool": pool}, "terminationGracePeriodSeconds": 1}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **place}},
        },
    }


def gpu(memory_mib: int) -> dict[str, str]:
    """A slice of a card."""
    return {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(memory_mib)}


def definition(resource: Resource) -> Object:
    """A provider's kind, as far as a server must know it to serve it."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": resource.plural, "kind": resource.kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {"group": resource.group, "scope": "Cluster", "names": names, "versions": [version]},
    }


def learn(site: Cluster) -> None:
    """A card that registers less than was predicted, which its pool then remembers."""
    site.control_cloud(deviceFaults=[{"kind": "registers-less", "nodePool": "faulty", "memoryPercent": "80"}])
    site.plane.apply([pool("faulty", "g5.xlarge"), deployment("any-slice", 1, "faulty", gpu(1000))])
    site.until(lambda: '"g5.xlarge": 18310' in str(site.plane.get("NodePool", "faulty")), "the pool remembers it")


def grow(site: Cluster) -> None:
    """Slices of two sizes, which are pinned; pods of two sizes, whose nodes are reserved; an overlay and a budget."""
    overlay = {"requirements": [], "capacity": {"example.com/thing": "1"}}
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}
    site.plane.apply(
        [
            {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "o"}, "spec": overlay},
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "guarded", "namespace": "default"},
                "spec": budget,
            },
            pool("plain", "c5.xlarge", terminationGracePeriod="8s"),
            pool("slices", "g5.xlarge"),
        ]
    )
    site.plane.apply(
        [
            deployment("small", 4, "plain", {"cpu": "700m", "memory": "64Mi"}),
            deployment("large", 1, "plain", {"cpu": "2500m", "memory": "64Mi"}),
            deployment("guarded", 1, "plain", {"cpu": "2500m", "memory": "64Mi"}),
            deployment("small-slice", 2, "slices", gpu(10500)),
            deployment("large-slice", 2, "slices", gpu(12000)),
        ]
    )
    site.until(lambda: 11 == len(site.pods("Running")), "all pods run", 120)


def lose(site: Cluster) -> None:
    """A claim that is deleted by hand, one of its pods behind a budget; an interruption; an instance of nobody."""
    (guarded,) = [pod for pod in site.pods() if pod["metadata"]["name"].startswith("guarded")]
    claims = {claim["status"]["nodeName"]: claim["metadata"]["name"] for claim in site.plane.list("NodeClaim")}
    gone = claims[guarded["spec"]["nodeName"]]
    site.plane.kubectl("delete", "nodeclaim", gone, "--wait=false")
    (slice_pod, *_) = [pod for pod in site.pods() if pod["metadata"]["name"].startswith("small-slice")]
    interrupted = slice_pod["spec"]["nodeName"]
    site.plane.kubectl("annotate", "node", interrupted, "kerf.dev/interrupt=true")
    orphan = _orphan(site)
    site.plane.apply([orphan])

    site.until(lambda: not {gone, claims[interrupted]} & set(site.names("nodeclaims")), "both claims are gone", 60)
    site.until(lambda: orphan["metadata"]["name"] not in site.instances(), "the instance is gone")
    site.until(lambda: 11 == len(site.pods("Running")), "all pods run again", 120)


def _orphan(site: Cluster) -> Object:
    """An instance as a crash may leave it: of a claim that does not exist."""
    held = site.plane.list("ConfigMap", "kerf-system", selector="kerf.dev/kwok-instance=true")[0]
    uid = held["metadata"]["name"].removeprefix("kerf-instance-")
    kept = {"name": held["metadata"]["name"], "namespace": "kerf-system", "labels": held["metadata"]["labels"]}
    data = {"instance": held["data"]["instance"]}
    text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": kept, "data": data})
    made: Object = json.loads(text.replace(uid, "00000000-0000-0000-0000-000000000000"))
    return made


def turn(site: Cluster) -> None:
    """An open window that evicts at its end: its phase is written, and the finalizer that holds it until then."""
    selector = {"matchLabels": {"kerf.dev/window": "w"}}
    spec = {"schedule": "0 0 1 1 *", "duration": "8759h", "atEnd": "Evict", "pods": {"selector": selector}}
    version = "kerf.dev/v1alpha1"
    site.plane.apply([{"apiVersion": version, "kind": "CapacityWindow", "metadata": {"name": "w"}, "spec": spec}])
    site.until(lambda: (site.plane.get("cwin", "w") or {}).get("status", {}).get("phase"), "it has a phase")
    site.until(lambda: "finalizers" in (site.plane.get("cwin", "w") or {})["metadata"], "it is held")


def ask(site: Cluster) -> None:
    """A ProvisioningRequest that finds no room, and so keeps no node; its conditions are written."""
    spec = {
        "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
        "podSets": [{"podTemplateRef": {"name": "small"}, "count": 1}],
    }
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "1000"}}}
    metadata = {"name": "small", "namespace": "default"}
    template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata}
    request = {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": metadata}
    site.plane.apply([{**template, "template": {"spec": {"containers": [container]}}}, {**request, "spec": spec}])
    site.until(lambda: (site.plane.get("ProvisioningRequest", "small", "default") or {}).get("status"), "it is told")


def keep(site: Cluster) -> None:
    """CapacityBuffers of workloads of each kind, none of which is there: they keep no node and say so."""
    head = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer"}
    for kind in ("Deployment", "ReplicaSet", "StatefulSet"):
        spec = {"scalableRef": {"apiGroup": "apps", "kind": kind, "name": "none"}, "replicas": 1}
        site.plane.apply([{**head, "metadata": {"name": kind.lower(), "namespace": "default"}, "spec": spec}])
    site.until(lambda: all(each.get("status") for each in site.plane.list("CapacityBuffer")), "each says so")


def inquire(release: Release, replica: Replica) -> None:
    """A person asks for the last decisions, with a token of the account that may."""
    (account,) = [each for each in release.chart.of_kind("ServiceAccount") if "-decisions" in each["metadata"]["name"]]
    path = f"/api/v1/namespaces/{release.namespace}/serviceaccounts/{account['metadata']['name']}/token"
    made = release.plane.request("POST", path, {"spec": {"audiences": ["kerf.dev"]}}).good("a token")
    headers = {"Authorization": f"Bearer {made['status']['token']}"}
    asked = urllib.request.Request(f"http://{replica.address('metrics')}/debug/decisions", headers=headers)

    def is_answered() -> bool:
        try:
            with urllib.request.urlopen(asked, timeout=5) as answer:
                return bool(json.load(answer)["kind"] == "Decisions")
        except urllib.error.HTTPError:
            return False

    release.plane.wait_until(is_answered, 30, "the leader answers")


def shrink(site: Cluster) -> None:
    """All workloads end, and with them all nodes."""
    site.plane.kubectl("scale", "deployment", "--all", "--replicas=0")
    site.until(lambda: not site.names("nodeclaims"), "no claim is left", 60)
    site.until(lambda: not site.instances(), "no instance is left")


def hand_over(site: Cluster, first: Replica, second: Replica) -> None:
    """The leader ends, and the other goes on at once."""
    assert 0 == first.program.terminate(8)
    site.until(lambda: 1 == second.metric("kerf_leading"), "the second leads", 10)


@pytest.fixture(scope="module")
def releases(binaries: Binaries) -> Iterator[dict[str, Release]]:
    """Two that have lived: one that acts, and a dry run beside it."""
    shadow = {**VALUES, "settings": {**VALUES["settings"], "dryRun": True}}
    with hosted(binaries, with_hami=True) as plane:
        plane.install_crds([*(definition(resource) for resource in NODE_CLASSES[1:]), *definitions()])
        acting = Release(plane, rendered(binaries, VALUES))
        watching = Release(plane, rendered(binaries, shadow, name="shadow-kerf", namespace="shadow"))
        site = Cluster(Installation(plane))
        first, looker = acting.start("kerf-0"), watching.start("shadow-0")
        site.until(lambda: 1 == first.metric("kerf_leading"), "the first leads")
        second = acting.start("kerf-1")
        for act in (learn, grow, lose, turn, ask, keep, shrink):
            act(site)
        inquire(acting, first)
        inquire(watching, looker)
        hand_over(site, first, second)
        assert [0, 0] == [replica.program.terminate(8) for replica in (second, looker)]
        yield {"acting": acting, "dry run": watching}


@pytest.mark.parametrize("name", ["acting", "dry run"])
def test_what_is_granted_is_what_is_asked(releases: dict[str, Release], name: str) -> None:
    """Line by line: nothing is granted that Kerf never needs, in no more namespaces and for no more names."""
    release = releases[name]

    assert sorted(granted(release.chart) - UNSERVED) == sorted(used(release) - UNSERVED)


@pytest.mark.parametrize("name", ["acting", "dry run"])
def test_nothing_is_refused(releases: dict[str, Release], name: str) -> None:
    """Not one request in a whole life, not even one that is made again with success."""
    refused = [event["requestURI"] for event in requests(releases[name]) if event["responseStatus"]["code"] == 403]

    assert [] == refused


@pytest.mark.parametrize("name", ["acting", "dry run"])
def test_besides_it_asks_only_what_it_may_do_and_what_there_is(releases: dict[str, Release], name: str) -> None:
    """Both are everybody's: reviews of one's own accesses, and discovery. They need no line, so none is granted."""
    free = {event["requestURI"].partition("?")[0] for event in requests(releases[name]) if is_servers_own(event)}

    assert {
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/apis/karpenter.sh/v1",
        "/apis/karpenter.sh/v1alpha1",
        "/version",
    } == free


def test_the_life_had_what_the_log_cannot_tell_apart(releases: dict[str, Release]) -> None:
    """Two callers share some lines: the drain evicts, is held up by a budget, and deletes by force at its end."""
    pods = [event for event in requests(releases["acting"]) if event.get("objectRef", {}).get("resource") == "pods"]
    evicted = {event["responseStatus"]["code"] for event in pods if event["objectRef"].get("subresource") == "eviction"}
    deleted = {event["objectRef"]["name"].partition("-")[0] for event in pods if event["verb"] == "delete"}

    assert {201, 429} <= evicted
    assert "guarded" in deleted


def test_a_dry_run_changes_nothing_but_its_lease(releases: dict[str, Release]) -> None:
    """What it writes of the cluster are events; reviews of who asks it are kept nowhere."""
    written = {line for line in used(releases["dry run"]) if line.verb not in ("get", "list", "watch")}

    reviews = {("subjectaccessreviews", ""), ("tokenreviews", "")}
    assert {("events", ""), ("leases", "shadow"), *reviews} == {(line.resource, line.namespace) for line in written}


def listed(release: Release, namespace: str, user: str) -> set[tuple[str, str, str]]:
    """(target, name, verb) of what a service account may do, by `kubectl auth can-i --list`."""
    groups = ("system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}")
    who = (f"--as={user}", *(f"--as-group={group}" for group in groups))
    shown = release.plane.kubectl("auth", "can-i", "--list", f"--namespace={namespace}", *who).stdout
    rows = re.findall(r"^(\S*) +\[(.*?)\] +\[(.*?)\] +\[(.*?)\]$", shown, re.MULTILINE)
    assert len(shown.splitlines()) == len(rows) + 1
    return {
        (target or path, name, verb)
        for target, path, names, verbs in rows
        for name in names.split() or [""]
        for verb in verbs.split()
    }


@pytest.mark.parametrize("namespace", ["default", "kerf-system", "kube-node-lease", "shadow"])
@pytest.mark.parametrize("name", ["acting", "dry run"])
def test_the_server_grants_the_roles_and_what_everybody_has(
    releases: dict[str, Release], name: str, namespace: str
) -> None:
    """Nothing else reaches the account: beside it, one without any role may do all the rest that it may."""
    release = releases[name]
    anybody = listed(release, namespace, "system:serviceaccount:default:default")
    own = {line for line in granted(release.chart) if line.namespace in ("", namespace)}

    expected = {(line.target, line.name, line.verb) for line in own}
    assert expected == listed(release, namespace, release.user) - anybody
    assert set() == expected & anybody


def test_a_role_that_is_missing_is_named_with_its_namespace(releases: dict[str, Release]) -> None:
    """Kerf does not start, and says which line it lacks and where."""
    release = releases["acting"]
    bindings = [each for each in release.chart.of_kind("RoleBinding") if each["metadata"]["namespace"] == NODE_LEASES]
    release.plane.delete("RoleBinding", bindings[0]["metadata"]["name"], NODE_LEASES)
    release.plane.wait_until(lambda: not release.has_all(), 30, "the authoriser knows that it is gone")
    replica = release.run("kerf-2")
    code = replica.program.wait(30)
    release.plane.apply(bindings)
    release.plane.wait_until(release.has_all, 30, "the role is back")

    assert 4 == code
    line = '{apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["patch"]} in namespace kube-node-lease'
    assert f"forbidden: the role lacks 1 rule (hint: grant {line})" in replica.program.tail(5)
