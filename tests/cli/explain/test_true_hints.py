"""What a hint claims beside its change holds: a limit is the smallest, and that nothing helps is said of nothing."""

import json
import re
from collections.abc import Mapping

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


def hint_for(limits: dict[str, object], pool_spec: str, *others: Mapping[str, object]) -> str:
    """What is said of a pod with these limits, where a pool of these template lines is all there is."""
    pool = f"""
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: pool}}
spec:
  template:
    {pool_spec}
"""
    spec = {"containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}]}
    metadata = {"name": "p", "namespace": "default"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    text = "\n---\n".join([pool, json.dumps(pod), *map(json.dumps, others)])
    done = kerf("plan", "-f", "-", stdin=text)
    assert 3 == done.returncode, done.stdout + done.stderr
    return done.stdout


def of_family(name: str, label: str = "") -> str:
    """A template of one instance family, perhaps with a label."""
    labels = f"metadata: {{labels: {{{label}}}}}" if label else "metadata: {}"
    requirement = f"{{key: karpenter.k8s.aws/instance-family, operator: In, values: [{name}]}}"
    reference = "{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}"
    return f"{labels}\n    spec: {{nodeClassRef: {reference}, requirements: [{requirement}]}}"


def an_operator(spec: dict[str, object]) -> dict[str, object]:
    """NVIDIA's GPU operator, which runs its device plugin with these settings."""
    metadata = {"name": "cluster-policy"}
    return {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": spec}


SINGLE = an_operator({"devicePlugin": {"enabled": True}, "mig": {"strategy": "single"}})
RENAMING = (
    "version: v1\nsharing:\n  timeSlicing:\n    renameByDefault: true\n"
    "    resources: [{name: nvidia.com/gpu, replicas: 3}]\n"
)
RENAMED: tuple[Mapping[str, object], ...] = (
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "plugin", "namespace": "gpu-operator"},
        "data": {"shared": RENAMING},
    },
    an_operator({"devicePlugin": {"enabled": True, "config": {"name": "plugin", "default": "shared"}}}),
)


def test_a_mig_profile_is_asked_for_by_the_name_that_the_strategy_gives_it() -> None:
    """With `single` an instance is a GPU; another profile than the node's is not for sale there, and not offered."""
    pool = of_family("p4d", 'nvidia.com/mig.config: "all-1g.5gb"')
    own, other = (hint_for({f"nvidia.com/mig-{name}": 1}, pool, SINGLE) for name in ("1g.5gb", "2g.10gb"))

    assert "hint: ask for nvidia.com/gpu in place of nvidia.com/mig-1g.5gb" in own
    assert "no node of NodePool pool shows nvidia.com/mig-2g.10gb: its GPUs are shown as nvidia.com/gpu" in other
    assert "none is sold" not in own + other
    assert "ask for" not in other
    assert "1 nvidia.com/mig-1g.5gb missing" in own
    assert "1 nvidia.com/mig-1g.5gb, 1 nvidia.com/mig-1g.5gb missing" not in own


def test_a_configuration_that_renames_is_asked_for_where_none_does() -> None:
    """More replicas than a node has are a matter of size."""
    said = hint_for({"nvidia.com/gpu.shared": 30}, of_family("g5"), *RENAMED)

    assert "renameByDefault" not in said
    assert "is large enough; ask for less or allow others" in said
    assert "renameByDefault" in hint_for({"nvidia.com/gpu.shared": 1}, of_family("g5"))
