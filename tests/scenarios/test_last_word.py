"""The scheduler has the last word: what it refuses twice on a node that was bought is given back, said, and not bought
again until something changes. Whole lives in virtual time, with the real controllers."""

from itertools import pairwise
from pathlib import Path
from textwrap import dedent

from kerf.sim.course.report import SimulationReport
from kerf.sim.course.scenario import read_scenario
from kerf.sim.simulation import run

POOL = """\
    - apiVersion: karpenter.sh/v1
      kind: NodePool
      metadata: {name: gpus}
      spec:
        disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 1m}
        template:
          spec:
            nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
            requirements:
              - {key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge]}
              - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
"""
PARTS = {
    "affinity to no pod": """\
              affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
                {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: absent}}}]}}
""",
    "a missing claim": """\
              volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
""",
    "apart": """\
              affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
                {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}
""",
}
SAID = "node(s) had no free licence"
REFUSED = f"[{{at: 0s, refuse: {{podLabels: {{app: web}}, message: {SAID}}}}}]"
"""A plugin of the scheduler that Kerf does not know takes no node for the pods."""
DISKS = """\
    - apiVersion: storage.k8s.io/v1
      kind: StorageClass
      metadata: {name: disks}
      provisioner: ebs.csi.aws.com
      volumeBindingMode: WaitForFirstConsumer
"""


def deployment(name: str, part: str = "", *, replicas: int = 1, limits: str = "{nvidia.com/gpu: 1}") -> str:
    """A Deployment of pods that ask for a GPU, with a part of their spec."""
    return f"""\
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {{name: {name}}}
      spec:
        replicas: {replicas}
        selector: {{matchLabels: {{app: {name}}}}}
        template:
          metadata: {{labels: {{app: {name}}}}}
          spec:
              containers: [{{name: main, resources: {{limits: {limits}}}}}]
{part}"""


def simulated(directory: Path, duration: str, *objects: str, timeline: str = "[]") -> SimulationReport:
    """What comes of a pool and these objects in that time."""
    text = f"""\
apiVersion: kerf.dev/v1alpha1
kind: Scenario
metadata: {{name: last-word}}
spec:
  duration: {duration}
  timeline: {timeline}
  objects:
{POOL}{"".join(objects)}"""
    path = directory / "s.yaml"
    path.write_text(text, encoding="utf-8")
    return run(read_scenario(str(path)))


def times(report: SimulationReport, what: str, about: str = "") -> list[float]:
    """When rows of a kind came, of objects whose name holds `about`."""
    return [row.at_s for row in report.rows if row.what == what and about in row.object]


def whys(report: SimulationReport, what: str, about: str = "") -> list[str]:
    """What the rows of a kind say."""
    return [row.why for row in report.rows if row.what == what and about in row.object]


def test_a_node_that_its_pod_cannot_use_is_given_back_with_the_schedulers_words(tmp_path: Path) -> None:
    """G3: bought once, refused twice, given back; the pod's event says what the scheduler said; nothing is bought."""
    report = simulated(tmp_path, "17m", deployment("web"), timeline=REFUSED)

    (message,) = whys(report, "RejectedByScheduler", "pod/")
    assert SAID in message
    assert (1, 1) == (report.totals.launches, report.totals.deletions)
    assert 0 == report.samples[-1].nodes


def test_the_pod_says_when_a_node_is_planned_for_it_again(tmp_path: Path) -> None:
    """As long as it waits: the event of the plan names the instant."""
    report = simulated(tmp_path, "17m", deployment("web"), timeline=REFUSED)
    (at_s,) = times(report, "RejectedByScheduler", "pod/")
    after = [row.why for row in report.rows if row.what == "FailedScheduling" and row.at_s >= at_s]

    assert after
    assert all("has changed, or until 2026-01-05T07:1" in text and SAID in text for text in after)


def test_a_refusal_ends_and_means_its_own_namespace_alone(tmp_path: Path) -> None:
    """The pod waits as long as it lasts; a refusal elsewhere delays nothing."""
    ends = REFUSED.replace("message", "for: 4m, message")
    late = times(simulated(tmp_path, "20m", deployment("web"), timeline=ends), "bound", "web")
    elsewhere = REFUSED.replace("message", "namespace: other, message")
    early = times(simulated(tmp_path, "20m", deployment("web"), timeline=elsewhere), "bound", "web")

    assert 1 == len(late) == len(early)
    assert early[0] < 4 * 60 <= late[0]


def test_a_day_of_refusals_costs_at_most_twenty_launches(tmp_path: Path) -> None:
    """F9: pauses grow; a healthy workload beside it is served as if it were alone."""
    report = simulated(tmp_path, "24h", deployment("web", PARTS["affinity to no pod"]), deployment("good"))

    assert report.totals.launches <= 1 + 20
    assert [126] == times(report, "bound", "good")


def test_the_second_replica_that_keeps_apart_gets_a_node_of_its_own(tmp_path: Path) -> None:
    """G2: one machine had room for both; two are bought at once, and the scheduler refuses neither."""
    half = deployment("web", PARTS["apart"], replicas=2, limits="{cpu: 1}")
    report = simulated(tmp_path, "40m", half)

    assert 2 == len(times(report, "bound", "web"))
    assert (2, 2) == (report.samples[-1].nodes, report.totals.launches)
    assert [] == whys(report, "RejectedByScheduler", "pod/")


def test_nothing_is_bought_for_a_pod_that_must_be_with_one_that_is_not_there(tmp_path: Path) -> None:
    """No node would have the company that it asks for."""
    report = simulated(tmp_path, "17m", deployment("web", PARTS["affinity to no pod"]))

    assert 0 == report.totals.launches
    assert all(
        "pod affinity: a node to be bought has no pod" in why for why in whys(report, "FailedScheduling", "pod/")
    )


def test_constraints_that_make_no_sense_cost_no_node(tmp_path: Path) -> None:
    """A circle, a topology key that no node has, a selector that means every pod: one node, for whom it serves."""
    affinity = "affinity: {%s: {requiredDuringSchedulingIgnoredDuringExecution: [\n"
    term = "                {topologyKey: %s, labelSelector: %s}]}}\n"
    indent = " " * 14
    parts = {
        "a": ("podAffinity", "kubernetes.io/hostname", "{matchLabels: {app: b}}"),
        "b": ("podAffinity", "kubernetes.io/hostname", "{matchLabels: {app: a}}"),
        "nowhere": ("podAffinity", "example.com/no-such", "{}"),
        "alone": ("podAntiAffinity", "topology.kubernetes.io/region", "{}"),
    }
    objects = [deployment(name, indent + affinity % kind + term % tuple(rest)) for name, (kind, *rest) in parts.items()]
    report = simulated(tmp_path, "15m", *objects)

    assert 1 == report.totals.launches
    assert "circle" in " ".join(whys(report, "FailedScheduling", "pod/default/a"))
    assert "example.com/no-such" in " ".join(whys(report, "FailedScheduling", "pod/default/nowhere"))


def test_a_pod_made_again_without_the_affinity_is_served(tmp_path: Path) -> None:
    """The pause is the old pod's, not the workload's."""
    (tmp_path / "good.yaml").write_text(dedent(deployment("web").replace("    - api", "      api", 1)))
    timeline = "[{at: 16m, apply: good.yaml}]"
    report = simulated(tmp_path, "30m", deployment("web", PARTS["affinity to no pod"]), timeline=timeline)

    assert len(times(report, "bound", "web")) == 1
    assert times(report, "bound", "web")[0] <= 16 * 60 + 126 + 10


def test_nothing_is_bought_for_a_pod_whose_claim_is_missing(tmp_path: Path) -> None:
    """Kerf looks claims up itself, so the scheduler need not refuse the pod on a node first."""
    report = simulated(tmp_path, "17m", deployment("web", PARTS["a missing claim"]))

    assert [] == times(report, "claim created", "")
    assert all('persistentvolumeclaim "data" not found' in why for why in whys(report, "FailedScheduling", "pod/"))


def test_a_claim_that_comes_lets_the_pod_be_bought_for_at_once(tmp_path: Path) -> None:
    """What the refusal names has changed: with a StatefulSet its claim is there, and no other is missing."""
    database = deployment("db", limits="{cpu: 1}", replicas=0).replace("Deployment", "StatefulSet")
    database += "        volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: disks}}]\n"
    web = deployment("web", PARTS["a missing claim"].replace("claimName: data", "claimName: data-db-0"))
    timeline = "[{at: 15m30s, scale: {statefulset: db, replicas: 1}}]"
    report = simulated(tmp_path, "30m", web, database, DISKS, timeline=timeline)

    (bound_s,) = times(report, "bound", "web")
    assert bound_s <= 15.5 * 60 + 2 * 126 + 15


def test_a_pod_that_is_refused_for_ever_costs_ever_fewer_nodes(tmp_path: Path) -> None:
    """The pause doubles from five minutes to a day, and the event says how often it was in vain."""
    report = simulated(tmp_path, "24h", deployment("web"), timeline=REFUSED)
    at_s = times(report, "claim created")
    between = [later - earlier for earlier, later in pairwise(at_s)]

    assert 9 == len(at_s)
    assert all(later > 1.3 * earlier for earlier, later in pairwise(between))
    assert "refused 8 times by now" in whys(report, "RejectedByScheduler", "pod/")[7]
