"""Nothing of a retired object is lost in silence, whatever is in it, and what comes out is valid."""

import json
import math
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kerf.errors import InputError
from kerf.manifests.decode import decode
from kerf.manifests.migrate.migration import Migration, migrate
from kerf.manifests.migrate.objects import FieldOutcome
from kerf.manifests.migrate.writing import manifest_text
from kerf.manifests.read import parse
from kerf.manifests.schema import Path
from tests.examples import examples
from tests.property.test_manifests import JUNK, paths_of

often = examples(200, derandomize=True, database=None)

TEXTS = st.sampled_from(["a", "b-1", "on", "1", "a/b", "", "x" * 64, "nvidia.com/gpu", "é"])
KEYS = st.sampled_from(
    [
        "team",
        "example.com/a",
        "accelerator/type",
        "karpenter.sh/capacity-type",
        "karpenter.sh/provisioner-name",
        "karpenter.k8s.aws/instance-family",
        "karpenter.k8s.aws/instance-pods",
        "beta.kubernetes.io/arch",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/hostname",
    ]
)
VALUES = st.one_of(st.integers(0, 9), TEXTS, st.booleans(), st.just([1]), st.just({"x": {"y": [None, "z"]}}))
UNKNOWN = st.dictionaries(st.sampled_from(["price", "pollInterval", "foo", "bar"]), VALUES, max_size=2)


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of the fields, and some that nobody knows."""
    known = st.fixed_dictionaries({}, optional=fields)
    return st.builds(lambda some, more: {**some, **more}, known, UNKNOWN)


REQUIREMENTS = st.lists(
    st.builds(
        lambda key, operator, values, more: {"key": key, "operator": operator, "values": values, **more},
        KEYS,
        st.sampled_from(["In", "NotIn", "Gt"]),
        st.lists(TEXTS, min_size=1, max_size=2),
        UNKNOWN,
    ),
    max_size=3,
)
TAINTS = st.lists(
    st.builds(
        lambda key, value, more: {"key": key, "effect": "NoSchedule", "value": value, **more},
        st.sampled_from(["a", "b.c/d"]),
        st.sampled_from(["", "v"]),
        UNKNOWN,
    ),
    max_size=1,
)
LABELS = st.dictionaries(KEYS, TEXTS, max_size=3)
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.sampled_from([1, 0.5, "100m", "4Gi"]), max_size=2
)
SELECTOR = st.dictionaries(st.sampled_from(["a", "b", "aws-ids", "aws::name"]), st.sampled_from(["x", "x,y", ""]))
KUBELET = optional(
    maxPods=st.integers(1, 200),
    containerRuntime=st.sampled_from(["containerd", "dockerd"]),
    systemReserved=AMOUNTS,
    evictionHard=st.dictionaries(st.sampled_from(["memory.available", "other"]), st.just("5%"), max_size=2),
)
MACHINE = {
    "amiFamily": st.sampled_from(["AL2", "AL2023", "Ubuntu", "Custom"]),
    "instanceProfile": st.just("p"),
    "amiSelector": SELECTOR,
    "subnetSelector": SELECTOR,
    "securityGroupSelector": SELECTOR,
    "tags": st.dictionaries(st.sampled_from(["a", "kubernetes.io/cluster/x"]), TEXTS, max_size=2),
    "userData": st.sampled_from(["#!/bin/sh\n", "a: b # c\n\n"]),
    "metadataOptions": optional(httpTokens=st.just("optional")),
    "blockDeviceMappings": st.lists(
        optional(deviceName=st.just("/dev/xvda"), ebs=optional(volumeSize=st.sampled_from(["1Gi", "5Mi", 9]))),
        max_size=2,
    ),
    "launchTemplate": TEXTS,
}
SPEC = optional(
    requirements=REQUIREMENTS,
    labels=LABELS,
    annotations=st.dictionaries(st.sampled_from(["n", "karpenter.sh/do-not-evict"]), TEXTS, max_size=2),
    taints=TAINTS,
    startupTaints=TAINTS,
    limits=optional(resources=AMOUNTS),
    consolidation=optional(enabled=st.booleans()),
    ttlSecondsAfterEmpty=st.integers(0, 10**6),
    ttlSecondsUntilExpired=st.integers(0, 10**9),
    weight=st.integers(1, 100),
    kubeletConfiguration=KUBELET,
    provider=optional(instanceTypes=st.lists(st.just("g5.xlarge"), max_size=2), **MACHINE),
    providerRef=st.just({"name": "default"}),
)


def old(kind: str, version: str, name: str, spec: Any) -> dict[str, Any]:
    """An object of a retired kind."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "uid": "u"}, "spec": spec}


INPUTS = st.builds(
    lambda specs, template: [
        *(old("Provisioner", "karpenter.sh/v1alpha5", f"p{number}", spec) for number, spec in enumerate(specs)),
        *([old("AWSNodeTemplate", "karpenter.k8s.aws/v1alpha1", "default", template)] if template is not None else []),
    ],
    st.lists(SPEC, min_size=1, max_size=3),
    st.none() | optional(**MACHINE),
)


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of all scalars that say something."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, below in items:
        yield from leaves(below, (*path, step))
    if value is not None and not isinstance(value, dict | list):
        yield path


def at(value: Any, path: Path) -> Any:
    """The value at a path that exists."""
    for step in path:
        value = value[step]
    return value


def converted(objects: list[dict[str, Any]]) -> Migration:
    """The objects as one JSON List."""
    return migrate(parse(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), "in.json"))


@given(INPUTS)
@often
def test_every_field_is_in_the_output_or_in_the_report(objects: list[dict[str, Any]]) -> None:
    """Each scalar has a row at its path or above; what a row calls kept stands there with the same value."""
    made = converted(objects)
    new = {each.title: each.value for each in made.objects}

    for before in objects:
        rows = [row for row in made.rows if row.subject == f"{before['kind']} {before['metadata']['name']}"]
        told = {row.path for row in rows if row.path} | {("apiVersion",), ("kind",)}
        for leaf in leaves(before):
            assert any(leaf[:length] in told for length in range(1, len(leaf) + 1)), leaf
        for row in (row for row in rows if row.outcome is FieldOutcome.KEPT):
            apart = {other.path for other in rows if other.path[: len(row.path)] == row.path and other is not row}
            for leaf in leaves(at(before, row.path)):
                if not any(row.path + leaf[:length] in apart for length in range(1, len(leaf) + 1)):
                    assert at(before, row.path + leaf) == at(new[row.target], row.to + leaf)


@given(INPUTS)
@often
def test_what_comes_out_is_read_back_and_valid(objects: list[dict[str, Any]]) -> None:
    """The text says what the objects say; pools decode, which is what the API's rules are checked by."""
    made = converted(objects)
    documents = parse(manifest_text(made.objects), "out.yaml")

    assert [new.value for new in made.objects] == [document.value() for document in documents]
    assert len(objects) <= len(decode(documents).node_pools) + 1
    for new in made.objects:
        if new.value["kind"] == "EC2NodeClass":
            assert {"amiSelectorTerms", "subnetSelectorTerms", "securityGroupSelectorTerms"} <= new.value["spec"].keys()
            assert 1 == len({"role", "instanceProfile"} & new.value["spec"].keys())


@given(INPUTS)
@often
def test_what_is_new_stays_as_it_is(objects: list[dict[str, Any]]) -> None:
    """Migrating twice is migrating once."""
    text = manifest_text(converted(objects).objects)
    again = migrate(parse(text, "out.yaml"))

    assert text == manifest_text(again.objects)
    assert () == again.rows


@given(INPUTS, st.data())
@often
def test_junk_is_refused_in_words_or_migrated(objects: list[dict[str, Any]], data: st.DataObject) -> None:
    """Whatever stands somewhere in an object, there is no traceback, and what is written can be read."""
    objects = deepcopy(objects)
    path = data.draw(st.sampled_from([path for path in paths_of(objects) if len(path) > 1]))
    at(objects, path[:-1])[path[-1]] = data.draw(JUNK.filter(lambda junk: junk != math.inf))  # which JSON has not

    try:
        made = converted(objects)
    except InputError:
        return
    assert [new.value for new in made.objects] == [document.value() for document in parse(manifest_text(made.objects))]
