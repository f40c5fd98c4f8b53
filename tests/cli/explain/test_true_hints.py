"""What a hint claims beside its change holds: a limit is the smallest, and that nothing helps is said of nothing."""

import json
import re

import pytest

from tests.cli.program import POOL_003, ROOT, kerf


def hints_of(name: str, text: str) -> list[str]:
    """The hints of a plan of the text with the catalogue of that name."""
    done = kerf("plan", "--catalog", f"tests/data/hints/{name}.catalog.json", "-f", "-", stdin=text)
    return [
        line.strip().removeprefix("hint: ") for line in done.stdout.splitlines() if line.strip().startswith("hint: ")
    ]


def manifests(name: str) -> str:
    """The cluster of that name."""
    return (ROOT / f"tests/data/hints/{name}.yaml").read_text(encoding="utf-8")


def test_the_smallest_limit_places_the_pods_and_the_next_smaller_does_not() -> None:
    """Ten pods of two sizes on shared GPUs: quick searches need ten GPUs, the plan's own search needs nine."""
    text = manifests("limit-in-slots")
    (hint,) = hints_of("limit-in-slots", text)
    found = re.match(
        r"(\d+) \((\d+) GPUs\) is the smallest nvidia.com/gpu limit of NodePool pool0 that places all", hint
    )

    assert found is not None, hint
    limits = int(found[1]), int(found[1]) - int(found[1]) // int(found[2])
    left = [hints_of("limit-in-slots", text.replace("nvidia.com/gpu: '2'", f"nvidia.com/gpu: '{n}'")) for n in limits]
    assert [[], [hint]] == left


def test_another_type_of_the_pool_is_named_where_the_one_that_is_asked_does_not_do() -> None:
    """The pool allows the type that the pods ask, and it holds none of them; the hint is a type that does."""
    hints = hints_of("another-type", manifests("another-type"))

    assert 'let the pod ask node.kubernetes.io/instance-type "t3", which NodePool pool0 allows, with T4' in hints


FAMILY = '{key: karpenter.k8s.aws/instance-family, operator: In, values: ["g5"]}'
TYPES = '{key: node.kubernetes.io/instance-type, operator: In, values: ["g5.xlarge"]}'


@pytest.mark.parametrize(
    "annotations, limits, hint",
    [
        ({"nvidia.com/use-gputype": "Tesla T1000"}, {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000}, ""),
        ({"nvidia.com/use-gpuuuid": "GPU-1"}, {"nvidia.com/gpu": 1}, "take the annotation off the pod"),
        ({}, {"example.com/fuse": 1}, "no instance type that NodePool g5-nodepool allows has example.com/fuse"),
        ({}, {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 900000}, "is large enough; ask for less or allow others"),
        ({}, {"cpu": "4000"}, "cpu of container main is the most that fits in NodePool g5-nodepool"),
    ],
)
def test_words_about_size_are_said_where_size_is_the_cause(
    annotations: dict[str, str], limits: dict[str, object], hint: str
) -> None:
    """Every other cause has words of its own, or none."""
    pool = (ROOT / POOL_003).read_text(encoding="utf-8").replace(TYPES, FAMILY)
    spec = {"containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}]}
    metadata = {"name": "p", "annotations": annotations}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    done = kerf("plan", "-f", "-", stdin=f"{pool}\n---\n{json.dumps(pod)}")
    said = [line.strip() for line in done.stdout.splitlines() if line.strip().startswith("hint: ")]

    assert 3 == done.returncode, done.stderr
    assert (hint in "".join(said)) if hint else (not said), said
