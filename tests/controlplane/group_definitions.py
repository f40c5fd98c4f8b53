"""Kinds of other projects that Kerf reads, as far as a server must know them to serve them: of their published
references, and no more of them than these tests need."""

from typing import Any

from kerf.kube.resources import CLUSTER_POLICIES, POD_GROUPS, PROVISIONING_REQUESTS, VOLCANO_POD_GROUPS, Resource

Object = dict[str, Any]


def definitions() -> list[Object]:
    """PodGroup of both schedulers, ProvisioningRequest, and ClusterPolicy of NVIDIA's GPU operator."""
    return [_definition(each) for each in (POD_GROUPS, VOLCANO_POD_GROUPS, PROVISIONING_REQUESTS, CLUSTER_POLICIES)]


def _definition(resource: Resource) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    scope = "Namespaced" if resource.is_namespaced else "Cluster"
    names = {"plural": resource.plural, "kind": resource.kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{resource.group}",
            # The API server asks for it where a group ends like one of Kubernetes itself.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {"group": resource.group, "scope": scope, "names": names, "versions": [version]},
    }
