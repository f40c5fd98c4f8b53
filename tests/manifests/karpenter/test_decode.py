"""NodePools, NodeClaims and NodeOverlays: what is read, and what their CRDs refuse."""

import pytest

from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, Requirement, Requirements, Taint
from kerf.model.nodeclaim import Condition, NodeClassRef
from kerf.model.nodepool import Budget, Disruption
from kerf.model.quantities import Resources
from tests.manifests.texts import decoded, pool, pool_text, refusal


def test_a_pool_has_the_defaults_of_its_crd() -> None:
    """karpenter.sh/v1: expireAfter 720h, consolidateAfter 0s, one budget of 10 %, no limits, no weight."""
    read = pool()

    assert NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default") == read.node_class
    assert (720 * 3600, None, None, 0, None) == (
        read.expire_after_s,
        read.termination_grace_period_s,
        read.limits,
        read.weight,
        read.replicas,
    )
    assert Disruption(0, "WhenEmptyOrUnderutilized", (Budget("10%"),)) == read.disruption


def test_a_pool_is_read_whole() -> None:
    """Every field that steers provisioning and disruption."""
    read = pool(
        """
        requirements:
          - {key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge], minValues: 1}
          - {key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["3"]}
        taints: [{key: gpu, value: "true", effect: NoSchedule}]
        startupTaints: [{key: boot, effect: NoExecute}]
        expireAfter: Never
        terminationGracePeriod: 1h30m
        """,
        """
        limits: {cpu: 10, memory: 40Gi, nodes: 3}
        weight: 20
        disruption:
          consolidateAfter: 30s
          consolidationPolicy: WhenEmpty
          budgets:
            - {nodes: "0", schedule: "0 9 * * 1-5", duration: 8h, reasons: [Drifted]}
            - {nodes: "5"}
        """,
    )

    assert (
        Requirements(
            [
                Requirement(INSTANCE_TYPE, values=frozenset({"g5.xlarge"}), min_values=1),
                Requirement("karpenter.k8s.aws/instance-cpu", True, at_least=4),
            ]
        )
        == read.requirements
    )
    assert ((Taint("gpu", "true"),), (Taint("boot", "", "NoExecute"),)) == (read.taints, read.startup_taints)
    assert (None, 5400) == (read.expire_after_s, read.termination_grace_period_s)
    assert Resources({"cpu": 10_000, "memory": 40 * 2**30, "nodes": 3}) == read.limits
    assert 20 == read.weight
    budgets = (Budget("0", ("Drifted",), "0 9 * * 1,2,3,4,5", 8 * 3600), Budget("5"))
    assert Disruption(30, "WhenEmpty", budgets) == read.disruption


@pytest.mark.parametrize(
    "template_spec, spec, expected",
    [
        (
            "requirements: [{key: a, operator: Equals, values: [x]}]",
            "",
            "in.yaml:8:41: spec.template.spec.requirements[0].operator: expected one of In, NotIn, Exists,"
            " DoesNotExist, Gt, Lt, Gte, Lte, got 'Equals'",
        ),
        (
            "requirements: [{key: a, operator: Gt, values: [many]}]",
            "",
            "requirements[0].values: expected exactly one whole number that is not negative, for Gt, got <a list of 1>",
        ),
        ("requirements: [{key: a, operator: In}]", "", "values: expected at least one value, for In, got <nothing>"),
        ("requirements: [{key: a, operator: Exists, values: [x]}]", "", "expected no values, for Exists"),
        (
            "requirements: [{key: a, operator: In, values: [x], minValues: 2}]",
            "",
            "minValues: expected at most the 1 values of this requirement, got 2",
        ),
        (
            "requirements: [{key: accelerator, operator: In, values: [nvidia.com/gpu]}]",
            "",
            "values[0]: expected text that is a label value (at most 63 letters, digits, -, _ and .),"
            " got 'nvidia.com/gpu' (hint: requirements compare labels; a resource such as nvidia.com/gpu is",
        ),
        ("requirements: [{key: karpenter.sh/nodepool, operator: Exists}]", "", "karpenter.sh, which is reserved"),
        ("requirements: [{key: mykarpenter.sh/a, operator: Exists}]", "", "karpenter.sh, which is reserved"),
        ("requirements: [{key: kubernetes.io/hostname, operator: Exists}]", "", "a label other than the node's name"),
        ("requirements: [{key: a..b/c, operator: Exists}]", "", "expected a label key such as example.com/name"),
        (
            "requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spott]}]",
            "",
            "requirements[0].values: expected at least 1 of reserved, spot, on-demand, got <a list of 1>",
        ),
        ("requirements: []\ntaints: [{key: a, value: '', effect: NoExecute}]", "", "value: expected text such as"),
        (
            "requirements: []\ntaints: [{key: a, effect: NoExecute}]\nstartupTaints: [{key: a, effect: NoExecute}]",
            "",
            "startupTaints[0]: expected one taint of a key and an effect, got 'a:NoExecute'",
        ),
        ("requirements: [{key: a, operator: In, values: [on]}]", "", 'got True (hint: quote it: "on")'),
        ("requirments: []", "", "requirements: expected a value, got <nothing> (hint: is `requirments` meant as"),
        ("requirements: []\ntaints: [{key: a, effect: Sometimes}]", "", "expected one of NoSchedule, PreferNoSchedule"),
        ("requirements: []\nexpireAfter: 30d", "", "expireAfter: expected a duration such as 30s, 10m or 1h30m"),
        ("", "limits: {cpu: -1}", "in.yaml:5:17: spec.limits.cpu: expected a quantity that is not negative, got -1"),
        ("", "limits: {cpu: 4 cores}", "spec.limits.cpu: expected a quantity, got '4 cores'"),
        ("", "limits: {resources: {cpu: 4}}", "spec.limits.resources: expected a quantity, got <a mapping>"),
        ("", "limits: {cpu: 1.5}", 'spec.limits.cpu: expected text or a whole number, got 1.5 (hint: quote it: "1.5")'),
        ("", "limits: {cpu: }", "spec.limits.cpu: expected a quantity, got <nothing>"),
        ("", "limits: {cpu: 1e1.5}", "spec.limits.cpu: expected a quantity, got '1e1.5'"),
        ("", "limits: [cpu]", "spec.limits: expected a mapping of resources to quantities, got <a list of 1>"),
        ("", "weight: 200", "spec.weight: expected a whole number from 1 to 100, got 200"),
        ("", "weight: heavy", "spec.weight: expected a whole number from 1 to 100, got 'heavy'"),
        ("", "disruption: {budgets: [{nodes: 5}]}", 'a percentage such as 10%, got 5 (hint: quote it: "5")'),
        (
            "",
            "disruption: {budgets: [{reasons: [Empty, Empty]}]}",
            "reasons[1]: expected each reason once, got 'Empty'",
        ),
        ("", "disruption: {budgets: [{schedule: '@daily', duration: 30m1h}]}", "a duration in hours and minutes"),
        ("", "disruption: {budgets: [{nodes: 10 percent}]}", "a number of nodes or a percentage such as 10%"),
        ("", "disruption: {budgets: [{schedule: '@daily'}]}", "budgets[0].duration: expected schedule and duration"),
        ("", "disruption: {budgets: [{schedule: 0 99 * * *, duration: 1h}]}", "a cron expression of five fields"),
        ("", "disruption: {consolidationPolicy: Sometimes}", "expected one of WhenEmpty, WhenEmptyOrUnderutilized"),
        ("", "replicas: 2\nweight: 3", "spec.weight: expected no weight on a pool with replicas, got 3"),
        ("", "replicas: 3000000000", "spec.replicas: expected a whole number from 0 to 2147483647, got 3000000000"),
        ("", "replicas: 2\nlimits: {cpu: 3}", "spec.limits.cpu: expected only `nodes` on a pool with replicas"),
    ],
)
def test_a_pool_that_its_crd_refuses_is_refused(template_spec: str, spec: str, expected: str) -> None:
    """Types at any depth, and the rules between fields; place, path, expected, got."""
    assert expected in refusal(pool_text(template_spec, spec))


def test_labels_of_the_reserved_domain_are_refused() -> None:
    """A pool gives its own name by itself, and karpenter.sh is kept for Karpenter, save the capacity type."""
    template = "template: {metadata: {labels: {karpenter.sh/x: a, karpenter.sh/capacity-type: spot}}, spec: {}}"
    text = pool_text().partition("spec:")[0] + f"spec: {{{template}}}"

    assert 1 == refusal(
        text.replace("spec: {}", "spec: {nodeClassRef: {group: a, kind: B, name: c}, requirements: []}")
    ).count("reserved")


def test_a_pool_gives_at_most_a_hundred_labels() -> None:
    """And what else its template's metadata states is dropped, and warned about."""
    labels = ", ".join(f"l{number}: a" for number in range(101))
    metadata = f"template:\n  metadata: {{name: x, labels: {{{labels}}}}}\n  spec: "
    text = pool_text(spec="").replace("template:\n    spec:", metadata.replace("\n", "\n  "))

    assert "spec.template.metadata.labels: expected at most 100 entries, got 101" in refusal(text)
    assert ("in.yaml:6:16: spec.template.metadata.name: unknown field, ignored",) == (
        decoded(text.replace("l100: a", "")).warnings
    )


def test_all_errors_of_a_document_are_reported() -> None:
    """Nobody should have to mend them one at a time."""
    text = pool_text("requirements: [{key: a, operator: Equals}]", "weight: 0\nlimits: {cpu: x}")

    assert ["weight", "cpu", "operator"] == [
        line.split(": expected")[0].rpartition(".")[2] for line in refusal(text).splitlines()
    ]


def test_unknown_fields_are_warned_about_with_the_nearest_name() -> None:
    """They are ignored, as the API server would drop them."""
    assert (
        "in.yaml:5:3: spec.limit: unknown field, ignored; is `limits` meant?",
        "in.yaml:10:7: spec.template.spec.zzz: unknown field, ignored",
    ) == decoded(pool_text("requirements: []\nzzz: 1", "limit: {cpu: 3}")).warnings


@pytest.mark.parametrize(
    "version, kind, expected",
    [
        (
            "karpenter.sh/v1alpha5",
            "Provisioner",
            "got <retired karpenter.sh/v1alpha5 Provisioner> (hint: `kerf migrate`",
        ),
        ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate", "`kerf migrate` rewrites it to EC2NodeClass"),
        (
            "karpenter.sh/v1beta1",
            "NodePool",
            "expected karpenter.sh/v1, got 'karpenter.sh/v1beta1' (hint: `kerf migrate`",
        ),
        ("karpenter.sh/v1", "Nodepool", "kind: expected one of NodeClaim, NodeOverlay, NodePool, got 'Nodepool'"),
    ],
)
def test_retired_kinds_name_the_command_that_rewrites_them(version: str, kind: str, expected: str) -> None:
    """001's Provisioner and AWSNodeTemplate are an error, never a guess."""
    assert expected in refusal(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}")


def test_an_overlay_is_read_and_an_impossible_one_refused() -> None:
    """karpenter.sh/v1alpha1: one price at most, extended resources only, prices are text."""
    text = "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: o}\nspec:\n  requirements: []\n"
    (overlay,) = decoded(text + "  priceAdjustment: '-10%'\n  capacity: {nvidia.com/gpu: 10}\n  weight: 7").overlays

    assert ("-10%", None, Resources({"nvidia.com/gpu": 10}), 7) == (
        overlay.price_adjustment,
        overlay.price,
        overlay.capacity,
        overlay.weight,
    )
    assert "only one of price and priceAdjustment" in refusal(text + "  price: '1'\n  priceAdjustment: '+1'")
    for adjustment in ("-101%", "-100.0%", "-099%"):
        assert "expected at least -100%" in refusal(text + f"  priceAdjustment: '{adjustment}'")
    assert "which is reserved" in refusal(text.replace("[]", "[{key: karpenter.sh/a, operator: Exists}]"))
    assert "spec.capacity.cpu: expected an extended resource" in refusal(text + "  capacity: {cpu: 1}")
    assert 'got 1.5 (hint: quote it: "1.50")' in refusal(text + "  price: 1.50")


def test_a_claim_is_read_with_its_status() -> None:
    """The pool is the one its label names."""
    (claim,) = decoded(
        """
        apiVersion: karpenter.sh/v1
        kind: NodeClaim
        metadata: {name: c, labels: {karpenter.sh/nodepool: pool}, creationTimestamp: 2026-01-05T07:00:00Z}
        spec:
          nodeClassRef: {group: g.example, kind: K, name: n}
          requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]
          resources: {requests: {cpu: 100m}}
        status:
          providerID: aws:///i-1
          nodeName: node-1
          conditions: [{type: Launched, status: "True", lastTransitionTime: 2026-01-05T07:01:00Z}]
          lastPodEventTime: 2026-01-05T07:02:00Z
        """
    ).node_claims

    assert ("pool", "aws:///i-1", "node-1", 100) == (
        claim.node_pool,
        claim.provider_id,
        claim.node_name,
        claim.requests["cpu"],
    )
    assert Requirements.of_labels({CAPACITY_TYPE: "spot"}) == claim.requirements
    assert (Condition("Launched", "True", since_s=claim.created_s + 60),) == claim.conditions
    assert claim.created_s + 120 == claim.last_pod_event_s
