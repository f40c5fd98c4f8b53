"""What stays as it was written: comments, quotes, flow style, and documents of other kinds. And Helm values."""

import json
from textwrap import dedent

import pytest

from kerf.errors import InputError
from kerf.manifests.migrate.comments import comments_of
from kerf.manifests.migrate.migration import migrate
from kerf.manifests.migrate.objects import FieldOutcome
from kerf.manifests.migrate.writing import manifest_text
from kerf.manifests.read import parse
from tests.manifests.migrate.migrating import migrated, outcomes, provisioner, row, text_of


def test_comments_are_found_where_they_stand() -> None:
    """Above a line, at its end, and after the last; a # in a scalar is none."""
    found = comments_of('# a\n# b\nx: 1  # c\ny: "# no"  # d\nz: |\n  # no\n  text\nu: a#no\n\n# e\n')

    assert {2: ("# a", "# b")} == found.above
    assert {2: "# c", 3: "# d"} == found.after
    assert ("# e",) == found.tail


def test_comments_follow_their_lines() -> None:
    """To the new place of the line; those of lines that are gone go with them."""
    written = text_of("""
        # our pool
        apiVersion: karpenter.sh/v1alpha5
        kind: Provisioner
        metadata:
          name: p  # its name
        # what it may buy
        spec:
          # machines
          requirements:
            # spot is fine
            - key: "karpenter.sh/capacity-type"  # key
              operator: In
              values: ['spot', on-demand]
            # nothing has this
            - {key: a, operator: In, values: [a/b]}
          # five minutes
          ttlSecondsAfterEmpty: 300  # as ops asked
          limits:  # of all nodes
            resources:
              cpu: 10
          providerRef: {name: default}
        # the end
    """)

    assert (
        dedent("""\
        # our pool
        apiVersion: karpenter.sh/v1
        kind: NodePool
        metadata:
          name: p  # its name
        # what it may buy
        spec:
          template:
            spec:
              nodeClassRef:
                group: karpenter.k8s.aws
                kind: EC2NodeClass
                name: default
              # machines
              requirements:
                # spot is fine
                - key: "karpenter.sh/capacity-type"  # key
                  operator: In
                  values: ['spot', on-demand]
        """)
        == written[: written.index("        - key: kubernetes.io/os")]
    )
    assert "    # five minutes\n    consolidateAfter: 300s  # as ops asked\n  limits:  # of all nodes\n" in written
    assert written.endswith("    cpu: 10\n# the end\n")
    assert "nothing has this" not in written


def test_texts_that_look_like_something_else_stay_texts() -> None:
    """For every reader of YAML 1.1, with and without quotes in the source."""
    values = ["on", "y", "1e3", "0x10", "null", "1_000", "12:30", "a: b", "# x", "", "2020-01-01", "é", "a\nb"]
    labels = {f"k{number}": value for number, value in enumerate(values)}
    source = {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "p"}}
    documents = parse(json.dumps({**source, "spec": {"annotations": labels}}), "in.json")

    written = manifest_text(migrate(documents).objects)
    again = next(document.value() for document in parse(written))
    assert labels == again["spec"]["template"]["metadata"]["annotations"]


def test_anchors_and_merges_are_written_out() -> None:
    """kubectl would take them; a reader should not have to."""
    written = text_of("""
        apiVersion: karpenter.sh/v1alpha5
        kind: Provisioner
        metadata: {name: p}
        spec:
          taints: [&t {key: a, effect: NoSchedule}]
          startupTaints: [{<<: *t, key: b}]
    """)

    assert "{key: b, effect: NoSchedule}" in written.replace("effect: NoSchedule, key: b", "key: b, effect: NoSchedule")
    assert "*" not in written


OTHERS = """
    # kept as it is
    apiVersion: v1
    kind: Service
    metadata:   {name: s}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: d}
    spec:
      template:
        metadata: {annotations: {karpenter.sh/do-not-evict: "true"}}  # busy
        spec:
          nodeSelector: {karpenter.sh/provisioner-name: p}
          topologySpreadConstraints:
            - labelSelector: {matchExpressions: [{key: karpenter.sh/provisioner-name}]}
"""


def test_other_kinds_pass_and_get_todays_names() -> None:
    """A pod that says do-not-evict would be evicted today."""
    written = text_of(OTHERS)

    assert written.startswith("# kept as it is\napiVersion: v1\nkind: Service\nmetadata:   {name: s}\n---\n")
    assert '{annotations: {karpenter.sh/do-not-disrupt: "true"}}  # busy\n' in written
    assert 2 == written.count("karpenter.sh/nodepool")
    assert 3 == migrated(OTHERS).count(FieldOutcome.CHANGED)
    assert not migrated(OTHERS).needs_look


def test_both_names_at_once() -> None:
    """The new one wins, and a difference has to be looked at."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {karpenter.sh/do-not-disrupt: 'true',"
    same = migrated(pod + " karpenter.sh/do-not-evict: 'true'}}")
    other = migrated(pod + " karpenter.sh/do-not-evict: 'false'}}")

    assert [False, True] == [same.needs_look, other.needs_look]
    assert {"karpenter.sh/do-not-disrupt": "true"} == other.objects[0].value["metadata"]["annotations"]


def test_the_settings_config_map_says_where_it_went() -> None:
    """It is nobody's today, so it is not written."""
    made = migrated("""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: karpenter-global-settings}
        data: {batchIdleDuration: 1s, aws.interruptionQueueName: q, aws.enablePodENI: "true"}
    """)

    assert () == made.objects
    assert "value settings.interruptionQueue of the chart" == row(made, 'data["aws.interruptionQueueName"]').hint
    assert "always taken" in row(made, 'data["aws.enablePodENI"]').why


VALUES = """
    # ours
    controller:
      clusterName: my  # which
      clusterEndpoint: https://x
      image: a/b:v0.16.3
      resources: {requests: {cpu: 1}}
    aws: {defaultInstanceProfile: nodes}
    settings:
      aws: {interruptionQueueName: q, enablePodENI: true}
      featureGates: {driftEnabled: true, nodeRepair: true}
    logConfig: {logLevel: {global: debug}, enabled: true}
    clusterName: twice
    tolerations: []
    frobnicate: 1
"""


def test_values_of_the_old_charts() -> None:
    """001-4: all three generations of names to today's."""
    made = migrated(VALUES)

    assert made.is_values
    assert {
        "settings": {
            "clusterName": "my",
            "clusterEndpoint": "https://x",
            "interruptionQueue": "q",
            "featureGates": {"nodeRepair": True},
        },
        "controller": {"resources": {"requests": {"cpu": 1}}},
        "logLevel": "debug",
        "tolerations": [],
    } == made.objects[0].value
    gone = ["controller.image", "aws.defaultInstanceProfile", "settings.featureGates.driftEnabled", "clusterName"]
    assert [FieldOutcome.NOT_KEPT] * 6 == outcomes(made, *gone, "frobnicate", "logConfig.enabled")
    assert not row(made, "settings.aws.enablePodENI").needs_look
    assert text_of(VALUES).startswith("# ours\nsettings:\n  clusterName: my  # which\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (dedent(VALUES) + "---\n" + dedent(OTHERS), "in.yaml:2:1: expected Helm values alone, or manifests alone"),
        ("a: b", "in.yaml:1:1: apiVersion: expected text such as v1 or Pod, got <nothing>"),
        ("[1]", "in.yaml:1:1: expected a Kubernetes object or values of Karpenter's chart, got <a list of 1>"),
        (provisioner("weight: 0"), "in.yaml:6:11: spec.weight: expected a whole number from 1 to 100, got 0"),
        (provisioner("labels: {a: 1}"), "in.yaml:6:15: spec.labels.a: expected text, got 1"),
        (
            provisioner().replace("alpha5", "alpha3"),
            "in.yaml:1:13: apiVersion: expected karpenter.sh/v1alpha5, got 'karpenter.sh/v1alpha3'",
        ),
        ("kind: [", "in.yaml:2:1: expected YAML, got <"),
    ],
)
def test_bad_input_is_refused_with_its_place(text: str, told: str) -> None:
    """Nothing is written then."""
    with pytest.raises(InputError) as error:
        migrated(text)

    assert told in str(error.value)
