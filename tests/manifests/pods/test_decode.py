"""Pods: what they ask for, what the API server would add, and what it would refuse."""

import json

import pytest
import yaml

from kerf.errors import DecodeError
from kerf.manifests.decode import decode_object
from kerf.manifests.pods.live import live_pod
from kerf.model.constraints import Requirement, Requirements, Toleration
from kerf.model.pods import HostPort, Owner, Pod
from kerf.model.quantities import Resources
from tests.manifests.texts import decoded, pod, pod_text, refused, resources_pod, said

SLICE = Resources({"nvidia.com/gpu": 1, "nvidia.com/gpucores": 50, "nvidia.com/gpumem": 1000})


@pytest.mark.parametrize(
    "requests, limits, expected",
    [
        ("", "nvidia.com/gpu: 1", {"nvidia.com/gpu": 1}),
        ("", "cpu: 500m, memory: 1Gi", {"cpu": 500, "memory": 2**30}),
        ("cpu: 100m", "cpu: 1, memory: 1Gi", {"cpu": 100, "memory": 2**30}),
        ("cpu: 1.5", "", {"cpu": 1500}),
        ("cpu: 1e3m", "", {}),
    ],
)
def test_requests_default_to_limits(requests: str, limits: str, expected: dict[str, int]) -> None:
    """The API server completes requests; document 004's pods state limits only."""
    if not expected:
        assert "expected a quantity, got '1e3m'" in refused(
            pod_text(f"containers: [{{name: a, resources: {{requests: {{{requests}}}}}}}]")
        )
        return
    assert Resources(expected) == resources_pod(requests, limits).spec.containers[0].requests


def test_hami_slices_are_read_as_they_are_written() -> None:
    """003-1: one GPU, half of its cores, 1000 MiB."""
    text = "nvidia.com/gpu: 1, nvidia.com/gpucores: 50, nvidia.com/gpumem: 1000"
    container = resources_pod(text, text).spec.containers[0]

    assert (SLICE, SLICE) == (container.requests, container.limits)


@pytest.mark.parametrize(
    "requests, limits, why",
    [
        ("cpu: 2", "cpu: 1", "requests.cpu: expected at most 1, the limit, got 2"),
        (
            "memory: 2Gi",
            "memory: 2G",
            "requests.memory: expected at most 2G, the limit, got '2Gi'",
        ),
        (
            "nvidia.com/gpu: 1",
            "nvidia.com/gpu: 2",
            'requests["nvidia.com/gpu"]: expected 2, as the limit, got 1',
        ),
        (
            "",
            "nvidia.com/gpu: 0.5",
            'limits["nvidia.com/gpu"]: expected a whole number, got 0.5',
        ),
        (
            "",
            "nvidia.com/gpu: 1500m",
            "limits[\"nvidia.com/gpu\"]: expected a whole number, got '1500m'",
        ),
        (
            "nvidia.com/gpu: 1",
            "",
            'limits["nvidia.com/gpu"]: expected 1, as the request, got <nothing>',
        ),
        ("cpu: 1", "cpu: 1", ""),
        ("", "nvidia.com/gpumem: 4Gi", ""),
    ],
)
def test_what_the_api_server_would_refuse_makes_a_pod_invalid(requests: str, limits: str, why: str) -> None:
    """Such a pod decodes, so that the others are planned. (Whether 4Gi of gpumem makes sense is HAMi's to say.)"""
    prefix = "spec.containers[0].resources." if why else ""
    assert f"{prefix}{why}" == said(resources_pod(requests, limits).invalid)


def test_a_live_pod_is_never_invalid() -> None:
    """The API server has accepted it; later releases may accept more."""
    assert resources_pod("cpu: 2", "cpu: 1", metadata="uid: u").invalid is None


@pytest.mark.parametrize(
    "spec, why",
    [
        ("containers: []", "spec.containers: expected at least one container, got <a list of 0>"),
        ("restartPolicy: Never", "spec.containers: expected at least one container, got <nothing>"),
        (
            "containers: [{name: a}, {name: a}]",
            "spec.containers[1].name: expected a name that no other",
        ),
        (
            "containers: [{name: a}]\ninitContainers: [{name: a}]",
            "spec.containers[0].name: expected a name that no other",
        ),
    ],
)
def test_a_pod_without_sensible_containers_is_invalid(spec: str, why: str) -> None:
    """As the API server's validation has it."""
    assert why in said(pod(spec).invalid)


LIMIT_RANGE = """
apiVersion: v1
kind: LimitRange
metadata: {name: defaults, namespace: default}
spec:
  limits:
    - {type: Container, default: {cpu: 2, memory: 1Gi}, defaultRequest: {cpu: 500m}, min: {ephemeral-storage: 1Gi}}
    - {type: Pod, max: {cpu: 64}}
"""


def test_limit_range_defaults_reach_new_pods() -> None:
    """Request from defaultRequest, else from default, else from min; what the container states stays."""
    assert Resources({"cpu": 500, "memory": 2**30, "ephemeral-storage": 2**30}) == (
        resources_pod("", "", LIMIT_RANGE).spec.containers[0].requests
    )
    assert Resources({"cpu": 1000, "memory": 2**30, "ephemeral-storage": 2**30}) == (
        resources_pod("cpu: 1", "", LIMIT_RANGE).spec.containers[0].requests
    )


@pytest.mark.parametrize("metadata", ["uid: u", "namespace: elsewhere"])
def test_limit_range_defaults_leave_live_pods_and_other_namespaces_alone(metadata: str) -> None:
    """A live pod shows what it really got."""
    assert Resources() == resources_pod("", "", LIMIT_RANGE, metadata=metadata).spec.containers[0].requests


PRIORITIES = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high-priority}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: usual}
value: 7
globalDefault: true
"""


@pytest.mark.parametrize(
    "spec, metadata, expected",
    [
        ("containers: [{name: a}]\npriorityClassName: high-priority", "", (1000, "high-priority")),
        ("containers: [{name: a}]", "", (7, "usual")),
        (
            "containers: [{name: a}]\npriorityClassName: system-node-critical",
            "",
            (2_000_001_000, "system-node-critical"),
        ),
        ("containers: [{name: a}]\npriorityClassName: high-priority\npriority: 5", "uid: u", (5, "high-priority")),
        ("containers: [{name: a}]", "uid: u", (0, "")),
    ],
)
def test_priority_comes_from_the_class_or_the_global_default(
    spec: str, metadata: str, expected: tuple[int, str]
) -> None:
    """001's PriorityClass; a live pod carries its number itself."""
    read = pod(spec, metadata, "", PRIORITIES).spec

    assert expected == (read.priority, read.priority_class)


@pytest.mark.parametrize(("stated", "expected"), [(-1, 1), (0, 0), (2**63 - 1, 292 * 365 * 86_400)])
def test_any_grace_period_that_a_server_takes_is_read(stated: int, expected: int) -> None:
    """A pod that cannot be read is not seen, and its node would go as empty."""
    read = pod(f"{{containers: [{{name: a}}], terminationGracePeriodSeconds: {stated}}}").spec.termination_grace_s

    assert expected <= read < 1.01 * expected + 1
    far = f"{{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: {2**63 - 1}}}"
    assert 2**63 - 1 == pod(f"{{containers: [{{name: a}}], tolerations: [{far}]}}").spec.tolerations[0].seconds


def test_a_pod_is_read_whole() -> None:
    """Everything scheduling depends on."""
    spec = pod(
        """
        containers: [{name: a, ports: [{containerPort: 80, hostPort: 8080}], securityContext: {privileged: true}}]
        initContainers: [{name: b, restartPolicy: Always}, {name: c}]
        nodeSelector: {beta.kubernetes.io/arch: arm64}
        tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}, {operator: Exists}]
        overhead: {cpu: 250m}
        schedulerName: hami-scheduler
        schedulingGates: [{name: wait}]
        terminationGracePeriodSeconds: 0
        volumes: [{name: v, persistentVolumeClaim: {claimName: data}}, {name: w, emptyDir: {}}]
        """
    ).spec

    assert ([True, False], True) == ([c.is_sidecar for c in spec.init_containers], spec.containers[0].is_privileged)
    assert (HostPort(8080),) == spec.host_ports
    assert Requirements.of_labels({"kubernetes.io/arch": "arm64"}) == spec.node_selector
    assert (Toleration("gpu", "Exists", "", "NoSchedule"), Toleration("", "Exists")) == spec.tolerations
    assert (Resources({"cpu": 250}), "hami-scheduler", ("wait",)) == (
        spec.overhead,
        spec.scheduler_name,
        spec.scheduling_gates,
    )
    assert (0, ("data",)) == (spec.termination_grace_s, spec.claims)


def test_pods_on_the_network_of_the_node_take_its_ports() -> None:
    """The API server sets hostPort to containerPort for them."""
    read = pod("containers: [{name: a, ports: [{containerPort: 53, protocol: UDP}]}]\nhostNetwork: true")

    assert (HostPort(53, "UDP"),) == read.spec.host_ports


def affinity_text(required: str, preferred: str = "") -> str:
    """A pod spec with these node affinity terms."""
    terms = f"requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{required}]}}"
    wishes = f", preferredDuringSchedulingIgnoredDuringExecution: [{preferred}]" if preferred else ""
    return f"containers: [{{name: a}}]\naffinity: {{nodeAffinity: {{{terms}{wishes}}}}}"


def test_node_affinity_terms_are_alternatives() -> None:
    """Terms are or-ed, the expressions of one and-ed; preferred ones keep their weight."""
    one = "matchExpressions: [{key: a, operator: In, values: [x]}, {key: b, operator: Gt, values: ['3']}]"
    two = "matchExpressions: [{key: a, operator: NotIn, values: [y]}]"
    spec = pod(affinity_text(f"{{{one}}}, {{{two}}}", f"{{weight: 5, preference: {{{two}}}}}")).spec
    not_y = Requirements([Requirement.of("a", "NotIn", ["y"])])

    assert (
        Requirements([Requirement.of("a", "In", ["x"]), Requirement.of("b", "Gt", ["3"])]),
        not_y,
    ) == spec.affinity
    assert ((5, not_y),) == spec.preferred


def test_an_empty_affinity_term_selects_nothing() -> None:
    """Beside another term it does not count; alone no node will do."""
    term = "matchExpressions: [{key: a, operator: Exists}]"

    assert 1 == len(pod(affinity_text(f"{{}}, {{{term}}}")).spec.affinity)
    assert all(alternative.unsatisfied_by({"a": "b"}) for alternative in pod(affinity_text("{}")).spec.alternatives)


def test_constraints_that_are_not_planned_for_are_named() -> None:
    """001-26: the engine says so beside its plan instead of passing over them."""
    volumes = "volumes: [{name: s, ephemeral: {volumeClaimTemplate: {}}}]"
    spec = f"containers: [{{name: a}}]\nresourceClaims: [{{name: gpu}}]\n{volumes}"

    assert ("resourceClaims",) == pod(spec).spec.not_planned


def test_the_state_of_a_live_pod_is_read() -> None:
    """Times are seconds; the controller is the owner; the scheduler's message is kept."""
    read = pod(
        "containers: [{name: a}]\ninitContainers: [{name: s, restartPolicy: Always}, {name: i}]",
        "uid: u, creationTimestamp: 2026-01-05T07:00:00Z, deletionTimestamp: '2026-01-05T08:00:30+01:00',"
        " ownerReferences: [{kind: Foo, name: f}, {kind: ReplicaSet, name: r, uid: x, controller: true}]",
        """
        phase: Pending
        nominatedNodeName: n
        startTime: 2026-01-05T07:00:01.5Z
        conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes}]
        initContainerStatuses:
          - {name: s, state: {running: {}}}
          - {name: i, state: {terminated: {exitCode: 0}}}
        """,
    )

    assert (30, 1.5) == (
        read.deleted_s and read.deleted_s - read.created_s,
        read.started_s and read.started_s - read.created_s,
    )
    assert (Owner("ReplicaSet", "r", "x"), "0/3 nodes", "n", True) == (
        read.owner,
        read.unschedulable,
        read.nominated_node,
        read.initialised,
    )


@pytest.mark.parametrize(
    "status, is_ready",
    [
        ("{phase: Running, conditions: [{type: Ready, status: 'True'}]}", True),
        ("{phase: Running, conditions: [{type: Ready, status: 'False'}]}", False),
        ("{phase: Running, conditions: [{type: Ready, status: Unknown}]}", False),
        ("{phase: Running}", True),
        ("{phase: Pending}", False),
        ("{phase: Succeeded}", False),
        ("{}", False),
    ],
)
def test_a_pod_is_ready_when_it_says_so_or_runs_and_says_nothing(status: str, is_ready: bool) -> None:
    """The same from a live API. A dump of an older Kerf has no Ready condition."""
    read = pod("containers: [{name: a}]", "uid: u, namespace: d", status)
    raw = {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": {"containers": [{"name": "a"}]}}
    live = live_pod(json.dumps({**raw, "status": yaml.safe_load(status)}).encode())

    assert (is_ready, is_ready) == (read.is_ready, live.is_ready)


def test_equal_specs_are_one_object() -> None:
    """A hundred thousand pods of one workload must not cost a hundred thousand specs."""
    first, second = (pod(metadata=f"labels: {{n: '{n}'}}") for n in (1, 2))

    assert first.spec is second.spec


def test_a_reservation_is_no_part_of_a_spec() -> None:
    """What Kerf adds to a pod says where a plan has put it; the pod's own tolerations are what it is."""
    ours = "{key: kerf.dev/reserved-for, operator: Equal, value: claim-1, effect: NoSchedule}"
    plain = pod("containers: [{name: a}]\ntolerations: [{key: k}]", "uid: u")
    planned = pod(f"containers: [{{name: a}}]\ntolerations: [{{key: k}}, {ours}]", "uid: v")

    assert plain.spec is planned.spec
    assert ((), ("claim-1",)) == (plain.reserved_for, planned.reserved_for)


def test_live_pods_share_a_spec_although_token_volumes_differ() -> None:
    """Every live pod has a volume and mounts of its own name, and its node."""

    def live(suffix: str) -> Pod:
        mounts = f"volumeMounts: [{{name: kube-api-access-{suffix}}}]"
        volumes = f"volumes: [{{name: kube-api-access-{suffix}, projected: {{}}}}]"
        return pod(f"containers: [{{name: a, {mounts}}}]\n{volumes}\nnodeName: node-{suffix}", "uid: u")

    first, second = live("abc"), live("def")

    assert first.spec is second.spec
    assert ("node-abc", "node-def") == (first.node_name, second.node_name)


@pytest.mark.parametrize(
    "spec, expected",
    [
        ("containers: main", "in.yaml:5:15: spec.containers: expected a list, got 'main'"),
        ("containers: [{image: x}]", "spec.containers[0].name: expected a value, got <nothing>"),
        ("containers: [{name: a, resources: {limits: {nvidia.com/gpu: -1}}}]", 'limits["nvidia.com/gpu"]: expected'),
        ("containers: [{name: a, resources: {limits: {cpu: [1]}}}]", "expected a quantity, got <a list of 1>"),
        ("containers: [{name: a}]\nnodeSelector: {gpu: on}", 'got True (hint: quote it: "on")'),
        ("- a", "spec: expected a mapping, got <a list of 1>"),
    ],
)
def test_a_pod_of_the_wrong_form_is_refused(spec: str, expected: str) -> None:
    """The path leads through the template to the value; the others of the input are planned."""
    assert expected in refused(pod_text(spec))


def test_unknown_fields_of_equal_specs_are_warned_about_each_time() -> None:
    """Although the spec is decoded once; and never for a live pod, whose server knows more than we do."""
    spec = "containers: [{name: a, imagee: x}]"
    other = pod_text(spec).replace("name: p", "name: q")
    warning = "spec.containers[0].imagee: unknown field, ignored; is `image` meant?"

    assert (f"in.yaml:5:26: {warning}", f"in.yaml:11:26: {warning}") == decoded(pod_text(spec), other).warnings[:2]
    assert () == decoded(pod_text(spec, "uid: u")).warnings


def test_an_object_of_a_live_api_is_decoded_or_refused_by_name() -> None:
    """Kinds that nobody follows are None."""
    live = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u"}, "spec": {"containers": []}}
    read = decode_object(live)
    with pytest.raises(DecodeError, match=r"^Pod p: spec.containers: expected a list, got 'x'$"):
        decode_object({**live, "spec": {"containers": "x"}})

    assert isinstance(read, Pod)
    assert None is decode_object({"apiVersion": "v1", "kind": "Endpoints"})
    assert None is decode_object({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}})


@pytest.mark.parametrize(
    "whole, counted",
    [
        ("requests: {cpu: 4}", {"cpu": 4000, "memory": 2**30}),
        ("requests: {cpu: 4, memory: 8Gi}, limits: {cpu: 6, memory: 8Gi}", {"cpu": 4000, "memory": 8 * 2**30}),
        ("limits: {cpu: 6, hugepages-2Mi: 4Mi}", {"cpu": 2000, "memory": 2**30, "hugepages-2Mi": 4 * 2**20}),
        ("", {"cpu": 2000, "memory": 2**30}),
    ],
)
def test_what_a_pod_asks_as_a_whole_counts_in_place_of_its_containers(whole: str, counted: dict[str, int]) -> None:
    """A limit alone counts only of what no container requests (KEP-2837)."""
    container = "{name: %s, resources: {requests: {cpu: 1, memory: 512Mi}}}"
    text = f"containers: [{container % 'a'}, {container % 'b'}]\nresources: {{{whole}}}"

    assert Resources({**counted, "pods": 1}) == pod(text).spec.requests


@pytest.mark.parametrize(
    "whole, why",
    [
        (
            "requests: {nvidia.com/gpu: 1}",
            'spec.resources.requests["nvidia.com/gpu"]: expected cpu, memory or hugepages',
        ),
        ("requests: {cpu: 2}, limits: {cpu: 1}", "spec.resources.requests.cpu: expected at most 1, the limit, got 2"),
    ],
)
def test_what_no_pod_may_ask_as_a_whole_makes_it_invalid(whole: str, why: str) -> None:
    """As the API server refuses it."""
    assert why in said(pod(f"containers: [{{name: a}}]\nresources: {{{whole}}}").invalid)


def test_limits_of_the_pod_as_a_whole_are_read() -> None:
    """KEP-2837: cpu, memory and hugepages."""
    read = pod("containers: [{name: a}]\nresources: {limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 1}}")

    assert {"cpu": 2000, "memory": 2**30} == dict(read.spec.limits)
