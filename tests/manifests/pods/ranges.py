"""LimitRanges, and pods of one container that they allow or refuse; a real server is asked the same."""

from typing import Any

Item = dict[str, Any]

PODS: Item = {"type": "Pod", "min": {"cpu": "200m"}, "max": {"memory": "1Gi"}, "maxLimitRequestRatio": {"cpu": "2"}}
CONTAINERS: Item = {"type": "Container", "min": {"cpu": "200m"}, "max": {"memory": "1Gi"}}
RATIO: Item = {"type": "Container", "maxLimitRequestRatio": {"cpu": "1500m"}}
ASKED: dict[str, tuple[Item, list[Item]]] = {
    # (the range, what each container of a pod asks)
    "sum below the min": (PODS, [{"requests": {"cpu": "50m"}, "limits": {"cpu": "100m", "memory": "1Mi"}}] * 3),
    "sum at the min": (PODS, [{"requests": {"cpu": "50m"}, "limits": {"cpu": "100m", "memory": "1Mi"}}] * 4),
    "sum over the max": (PODS, [{"limits": {"cpu": "100m", "memory": "512Mi"}}] * 3),
    "sum at the max": (PODS, [{"limits": {"cpu": "100m", "memory": "512Mi"}}] * 2),
    "no limit beside a max": (PODS, [{"requests": {"cpu": "200m", "memory": "1Mi"}, "limits": {"cpu": "300m"}}]),
    "no request beside a ratio": (PODS, [{"limits": {"memory": "1Mi"}}]),
    "ratio too large": (PODS, [{"requests": {"cpu": "200m"}, "limits": {"cpu": "401m", "memory": "1Mi"}}]),
    "ratio as it may be": (PODS, [{"requests": {"cpu": "200m"}, "limits": {"cpu": "400m", "memory": "1Mi"}}]),
    "container below the min": (CONTAINERS, [{"requests": {"cpu": "199m"}}]),
    "container without a request": (CONTAINERS, [{}]),
    "container over the max": (CONTAINERS, [{"limits": {"memory": "2Gi"}}]),
    "container with a request over the max": (CONTAINERS, [{"requests": {"memory": "2Gi"}}]),
    "ratio of a container": (RATIO, [{"requests": {"cpu": "100m"}, "limits": {"cpu": "151m"}}]),
    "ratio of a container as it may be": (RATIO, [{"requests": {"cpu": "100m"}, "limits": {"cpu": "150m"}}]),
}
TAKEN = {
    "sum at the min",
    "sum at the max",
    "ratio as it may be",
    "container without a request",
    "ratio of a container as it may be",
}


def objects(name: str) -> tuple[Item, Item]:
    """(LimitRange, Pod) of a case, without a namespace."""
    item, asked = ASKED[name]
    containers = [{"name": f"c{number}", "image": "a", "resources": each} for number, each in enumerate(asked)]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r"}, "spec": {"limits": [item]}}
    return limits, pod
