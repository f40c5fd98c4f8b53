"""Random mixes of pods that share cards by HAMi; each pod alone fits an empty node of the mix's pool."""

from dataclasses import dataclass
from random import Random
from typing import Any

Json = dict[str, Any]
TYPES = {"g4dn.xlarge": (1, 15_000), "g5.xlarge": (1, 22_000), "g5.12xlarge": (4, 22_000)}
"""Cards, and MiB of each that a pod may ask for."""
CORES = (None, None, 25, 50, 100)
POLICIES = (None, None, None, "binpack", "spread", "mutex")


@dataclass(frozen=True)
class Mix:
    """A pool of one type, and pods that come in one or two waves; `name` is that of the pool and begins all others."""

    name: str
    pool: Json
    waves: tuple[tuple[Json, ...], ...]


def mixed(seed: int) -> Mix:
    """The mix of a seed."""
    chance, name = Random(seed), f"mix-{seed}"
    instance_type = chance.choice(sorted(TYPES))
    pods = [_pod(f"{name}-{chance.randrange(10**6):06d}-{n}", chance, *TYPES[instance_type]) for n in range(8)]
    pods = [_bound_to(pod, name) for pod in pods[: chance.randrange(2, 9)]]
    early = chance.choice((0, 0, len(pods) // 2))
    return Mix(
        name, _pool(name, instance_type), tuple(wave for wave in (tuple(pods[:early]), tuple(pods[early:])) if wave)
    )


def in_order(mix: Mix, order: int) -> Mix:
    """The pods of each wave as they are made (0), or in another order."""
    if order == 0:
        return mix
    chance = Random(order)
    return Mix(mix.name, mix.pool, tuple(tuple(chance.sample(wave, len(wave))) for wave in mix.waves))


def _pod(name: str, chance: Random, cards: int, most_mib: int) -> Json:
    limits: Json = {"nvidia.com/gpu": str(chance.choice((1, 1, 1, min(2, cards)))), **_slice(chance, most_mib)}
    containers = [{"name": "main", "image": "main", "resources": {"limits": limits}}]
    spec: Json = {"terminationGracePeriodSeconds": 0, "containers": containers}
    if chance.random() < 0.15:
        first = {"nvidia.com/gpu": "1", **_slice(chance, most_mib)}
        spec["initContainers"] = [{"name": "first", "image": "first", "resources": {"limits": first}}]
    policy = chance.choice(POLICIES)
    metadata: Json = {"name": name, "namespace": "default"}
    if policy is not None:
        metadata["annotations"] = {"hami.io/gpu-scheduler-policy": policy}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _slice(chance: Random, most_mib: int) -> Json:
    cores = chance.choice(CORES)
    asked = {"nvidia.com/gpumem": str(chance.randrange(1, most_mib // 500 + 1) * 500)}
    if chance.random() < 0.1:
        asked = {"nvidia.com/gpumem-percentage": str(chance.randrange(10, 101, 10))}
    return asked if cores is None else {**asked, "nvidia.com/gpucores": str(cores)}


def _bound_to(pod: Json, pool: str) -> Json:
    return {**pod, "spec": {**pod["spec"], "nodeSelector": {"karpenter.sh/nodepool": pool}}}


def _pool(name: str, instance_type: str) -> Json:
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    node = {"metadata": {"labels": {"gpu": "on"}}, "spec": {"nodeClassRef": reference, "requirements": requirements}}
    spec = {"template": node, "disruption": {"consolidateAfter": "Never"}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}
