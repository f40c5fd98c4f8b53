"""The packaged CustomResourceDefinitions: the form Karpenter accepts, our words, and a page that tells both.

That a server accepts and refuses manifests by them is shown in the control-plane tier.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder

from kerf.kube.crds import crd_texts, crds
from kerf.manifests.karpenter import form as kinds_karpenter
from kerf.manifests.karpenter.decode import node_pool_of
from kerf.manifests.kinds import EFFECTS
from kerf.manifests.schema import ListOf, MapOf, Record, Schema
from kerf.manifests.windows import form as kinds_windows
from kerf.model.constraints import OPERATORS
from tools.document_crds import fields, page

ROOT = Path(__file__).parents[2]
BY_KIND = {definition["spec"]["names"]["kind"]: definition for definition in crds()}
VERSIONS = {kind: definition["spec"]["versions"][0] for kind, definition in BY_KIND.items()}
SCHEMAS = {kind: version["schema"]["openAPIV3Schema"] for kind, version in VERSIONS.items()}
FIELDS = {kind: {path: inner for path, inner, _ in fields(schema)} for kind, schema in SCHEMAS.items()}

IN_NEEDS_VALUES = (
    "requirements with operator 'In' must have a value defined",
    "self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)",
)
ONE_NUMBER = (
    "self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte')"
    " ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)"
)
COMPARES_ONE = (
    "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value",
    ONE_NUMBER,
)
MIN_VALUES = (
    "requirements with 'minValues' must have at least that many values specified in the 'values' field",
    "self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)",
)
DOMAIN = (
    'label domain "karpenter.sh" is restricted',
    'self in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"]'
    ' || !self.find("^([^/]+)").endsWith("karpenter.sh")',
)
HOSTNAME = ('label "kubernetes.io/hostname" is restricted', 'self != "kubernetes.io/hostname"')
OWN_POOL = ('label "karpenter.sh/nodepool" is restricted', 'self != "karpenter.sh/nodepool"')
FILLED = {name: [(f"{name} may not be empty", "self != ''")] for name in ("group", "kind", "name")}
TEMPLATE = "spec.template.spec"
RULES = {
    "NodePool": {
        "spec": [
            (
                "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning"
                " modes",
                "has(self.replicas) == has(oldSelf.replicas)",
            ),
            (
                "only 'limits.nodes' is supported on static NodePools",
                "!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0"
                " || (size(self.limits) == 1 && 'nodes' in self.limits))",
            ),
            ("'weight' is not supported on static NodePools", "!has(self.replicas) || !has(self.weight)"),
        ],
        "spec.template.metadata.labels": [
            (
                DOMAIN[0],
                'self.all(x, x in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"]'
                ' || !x.find("^([^/]+)").endsWith("karpenter.sh"))',
            ),
            (OWN_POOL[0], 'self.all(x, x != "karpenter.sh/nodepool")'),
            (HOSTNAME[0], 'self.all(x, x != "kubernetes.io/hostname")'),
        ],
        f"{TEMPLATE}.requirements": [IN_NEEDS_VALUES, COMPARES_ONE, MIN_VALUES],
        f"{TEMPLATE}.requirements[].key": [DOMAIN, OWN_POOL, HOSTNAME],
        f"{TEMPLATE}.nodeClassRef": [
            (f"nodeClassRef.{name} is immutable", f"self.{name} == oldSelf.{name}") for name in ("group", "kind")
        ],
        **{f"{TEMPLATE}.nodeClassRef.{name}": rules for name, rules in FILLED.items()},
        "spec.disruption.budgets": [
            ("'schedule' must be set with 'duration'", "self.all(x, has(x.schedule) == has(x.duration))")
        ],
    },
    "NodeClaim": {
        "spec": [("spec is immutable", "self == oldSelf")],
        "spec.requirements": [IN_NEEDS_VALUES, COMPARES_ONE, MIN_VALUES],
        "spec.requirements[].key": [DOMAIN, HOSTNAME],
        **{f"spec.nodeClassRef.{name}": rules for name, rules in FILLED.items()},
    },
    "NodeOverlay": {
        "spec": [
            ("cannot set both 'price' and 'priceAdjustment'", "!has(self.price) || !has(self.priceAdjustment)"),
        ],
        "spec.requirements": [
            (
                "requirements with operator 'NotIn' must have a value defined",
                "self.all(x, x.operator == 'NotIn' ? x.values.size() != 0 : true)",
            ),
            IN_NEEDS_VALUES,
            ("requirements operator 'Gt', 'Lt', 'Gte' or 'Lte' must have a single positive integer value", ONE_NUMBER),
        ],
        "spec.requirements[].key": [DOMAIN, HOSTNAME],
        "spec.capacity": [
            ("invalid resource restricted", "self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))")
        ],
    },
    "KWOKNodeClass": {},
    "CapacityWindow": {
        "spec.duration": [("duration must be at least 1m", "duration(self) >= duration('1m')")],
        "spec.pods.selector": [
            (
                "selector must require the label kerf.dev/window, since only pods with it are held",
                "(has(self.matchLabels) && 'kerf.dev/window' in self.matchLabels) || (has(self.matchExpressions) &&"
                " self.matchExpressions.exists(e, e.key == 'kerf.dev/window' && (e.operator == 'In' || e.operator =="
                " 'Exists')))",
            )
        ],
        "spec.quota.gpuHours": [
            (
                "gpuHours must be more than 0",
                "type(self) == int ? self > 0 : quantity(self).isGreaterThan(quantity('0'))",
            )
        ],
    },
}
"""Kind and field to (words, rule), as Karpenter v1.15.0 has them, and those of our own kind."""


def known(schema: Schema | None, path: str = "") -> Iterator[str]:
    """The fields that the decoder knows, named as `fields` names those of a definition."""
    if isinstance(schema, Record):
        for name, inner in schema._fields.items():
            yield f"{path}.{name}".removeprefix(".")
            yield from known(inner, f"{path}.{name}".removeprefix("."))
    elif isinstance(schema, ListOf):
        yield f"{path}[]"
        yield from known(schema._item, f"{path}[]")
    elif isinstance(schema, MapOf):
        yield from known(schema._value, path)


def test_the_definitions_come_in_the_order_of_their_files() -> None:
    """So that a listing of them is the same bytes everywhere."""
    expected = ["autoscaling.x-k8s.io_capacitybuffers.yaml", "karpenter.kwok.sh_kwoknodeclasses.yaml"]
    expected += [f"karpenter.sh_{plural}.yaml" for plural in ("nodeclaims", "nodeoverlays", "nodepools")]
    expected += ["kerf.dev_capacitywindows.yaml"]

    assert expected == list(crd_texts())
    assert expected == [f"{crd['spec']['group']}_{crd['spec']['names']['plural']}.yaml" for crd in crds()]


def test_the_kinds_of_a_cloud_come_with_that_cloud_alone() -> None:
    """Karpenter's chart may own them, so ours never does."""
    ec2 = "karpenter.k8s.aws_ec2nodeclasses.yaml"

    assert [*crd_texts(), ec2] == list(crd_texts("aws"))
    assert list(crd_texts()) == list(crd_texts("kwok"))
    assert not (ROOT / "charts/kerf/files/crds" / ec2).exists()


@pytest.mark.parametrize(
    ("kind", "version", "short_names", "category"),
    [
        ("NodePool", "karpenter.sh/v1", [], "karpenter"),
        ("NodeClaim", "karpenter.sh/v1", [], "karpenter"),
        ("NodeOverlay", "karpenter.sh/v1alpha1", ["overlays"], "karpenter"),
        ("KWOKNodeClass", "karpenter.kwok.sh/v1alpha1", ["kwoknc", "kwokncs"], "karpenter"),
        ("CapacityWindow", "kerf.dev/v1alpha1", ["cwin"], "kerf"),
    ],
)
def test_a_kind_has_its_names(kind: str, version: str, short_names: list[str], category: str) -> None:
    """One version, for the whole cluster, its status apart, and found by `kubectl get karpenter` or `get kerf`."""
    spec, served = BY_KIND[kind]["spec"], VERSIONS[kind]

    assert version == f"{spec['group']}/{served['name']}"
    assert (short_names, [category]) == (spec["names"].get("shortNames", []), spec["names"]["categories"])
    assert ("Cluster", True, True, {}) == (
        spec["scope"],
        served["served"],
        served["storage"],
        served["subresources"]["status"],
    )
    assert f"{spec['names']['plural']}.{spec['group']}" == BY_KIND[kind]["metadata"]["name"]


def test_a_pool_can_be_scaled() -> None:
    """A static pool's number is what `kubectl scale` and an autoscaler write."""
    assert {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.nodes"} == (
        VERSIONS["NodePool"]["subresources"]["scale"]
    )


@pytest.mark.parametrize("kind", RULES)
def test_a_kind_has_karpenters_rules(kind: str) -> None:
    """Every rule between fields, with the words that a user is refused with, and no other."""
    found = {
        path: [(rule["message"], rule["rule"]) for rule in inner["x-kubernetes-validations"]]
        for path, inner in FIELDS[kind].items()
        if "x-kubernetes-validations" in inner
    }

    assert RULES[kind] == found


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_field_has_a_type(kind: str) -> None:
    """A structural schema: without it the server serves no defaults and prunes nothing."""
    free = "x-kubernetes-int-or-string"
    untyped = [path for path, inner in FIELDS[kind].items() if "type" not in inner and free not in inner]
    maps = [inner["additionalProperties"] for inner in FIELDS[kind].values() if "additionalProperties" in inner]

    assert [] == untyped
    assert all("type" in inner or inner.get("x-kubernetes-int-or-string") for inner in maps)
    assert ["object"] * 2 == [SCHEMAS[kind]["type"], SCHEMAS[kind]["properties"]["metadata"]["type"]]


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_field_has_words_that_give_default_and_bounds(kind: str) -> None:
    """`kubectl explain` shows words only: a default or a bound that is not in them is not seen."""
    for path, inner in FIELDS[kind].items():
        if path.endswith("[]") or path.startswith("status.conditions[]"):
            continue
        stated = [inner[key] for key in ("default", "minimum", "maximum", "maxItems", "maxProperties") if key in inner]
        words = inner["description"]
        assert [] == [value for value in stated if isinstance(value, str | int) and str(value) not in words], path


def test_a_claim_shows_karpenters_columns_first() -> None:
    """Scripts count columns; ours say the stage that is not reached, why, and why the node goes."""
    columns = VERSIONS["NodeClaim"]["additionalPrinterColumns"]
    narrow, wide = (
        ["Type", "Capacity", "Zone", "Node", "Ready", "Age"],
        ["ImageID", "ID", "NodePool", "NodeClass", "Drifted"],
    )

    assert [*narrow, *wide, "Awaits", "Reason", "Leaves", "Message"] == [column["name"] for column in columns]
    assert '.status.conditions[?(@.status!="True")].type' == columns[11]["jsonPath"]
    assert [*wide, "Message"] == [column["name"] for column in columns if column.get("priority") == 1]


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("NodePool", kinds_karpenter.NODE_POOL),
        ("NodeClaim", kinds_karpenter.NODE_CLAIM),
        ("NodeOverlay", kinds_karpenter.NODE_OVERLAY),
        ("CapacityWindow", kinds_windows.CAPACITY_WINDOW),
    ],
)
def test_the_decoder_knows_the_fields_of_the_server(kind: str, schema: Record) -> None:
    """Those of a spec, no more and no fewer: a field that one of them lacks would be lost or warned of."""
    within = ("spec.warm[].template.", "spec.pods.selector.matchLabels")
    told = [
        {path for path in paths if path.startswith("spec") and not path.startswith(within)}
        for paths in (FIELDS[kind], known(schema))
    ]

    assert told[0] == told[1]


def test_the_decoder_fills_in_the_defaults_of_the_server() -> None:
    """A pool that no server has seen means the same as one that has been stored."""
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    template: dict[str, Any] = {"nodeClassRef": reference, "requirements": []}
    expire_after = FIELDS["NodePool"][f"{TEMPLATE}.expireAfter"]["default"]
    disruption = {
        name: FIELDS["NodePool"][f"spec.disruption.{name}"]["default"] for name in ("consolidateAfter", "budgets")
    }
    policy = FIELDS["NodePool"]["spec.disruption.consolidationPolicy"]["default"]
    bare = {"metadata": {"name": "p"}, "spec": {"template": {"spec": template}}}
    stored = {
        "metadata": {"name": "p"},
        "spec": {
            "template": {"spec": {**template, "expireAfter": expire_after}},
            "disruption": {**disruption, "consolidationPolicy": policy},
        },
    }

    assert node_pool_of(stored) == node_pool_of(bare)


def test_the_words_of_the_server_are_those_of_the_model() -> None:
    """Operators and effects."""
    pool = FIELDS["NodePool"]

    assert sorted(OPERATORS) == sorted(pool[f"{TEMPLATE}.requirements[].operator"]["enum"])
    assert list(EFFECTS) == pool[f"{TEMPLATE}.taints[].effect"]["enum"]


def test_the_wheel_carries_the_definitions() -> None:
    """They are data, which a build can forget."""
    carried = {included.distribution_path for included in WheelBuilder(str(ROOT)).recurse_included_files()}

    assert [] == [name for name in crd_texts() if f"kerf/kube/crds/{name}" not in carried]
    assert "kerf/kube/crds/aws/karpenter.k8s.aws_ec2nodeclasses.yaml" in carried


def test_the_page_is_the_one_that_the_definitions_make() -> None:
    """`python tools/document_crds.py > docs/reference/crds.md` writes it."""
    assert page() == (ROOT / "docs" / "reference" / "crds.md").read_text(encoding="utf-8")
