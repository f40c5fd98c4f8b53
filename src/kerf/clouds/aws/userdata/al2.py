"""AL2: a shell script that calls `bootstrap.sh` of the image, after the user's own parts."""

from kerf.clouds.aws.userdata.facts import NodeFacts
from kerf.clouds.aws.userdata.flags import kubelet_flags, safe
from kerf.clouds.aws.userdata.mime import SHELL, Part, archive, is_mime, parts_of

_LOG = "exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1"


def render(facts: NodeFacts) -> str:
    """The archive. Raises Unusable on MIME that cannot be read, and where a value could end its quotes."""
    custom: tuple[Part, ...] = ()
    if facts.custom:
        custom = parts_of(facts.custom) if is_mime(facts.custom) else (Part.of(SHELL, facts.custom),)
    return archive((*custom, Part.of(SHELL, _script(facts))))


def _script(facts: NodeFacts) -> str:
    cluster, kubelet = facts.cluster, facts.kubelet
    # bootstrap.sh takes no `--flag=value`.
    arguments = [f"/etc/eks/bootstrap.sh '{safe(cluster.name)}' --apiserver-endpoint '{safe(cluster.endpoint)}'"]
    if cluster.ca_bundle:
        arguments[0] += f" --b64-cluster-ca '{safe(cluster.ca_bundle)}'"
    if kubelet.cluster_dns:
        arguments += ["--ip-family ipv6"] if ":" in kubelet.cluster_dns[0] else []
        arguments.append(f"--dns-cluster-ip '{safe(kubelet.cluster_dns[0])}'")
    if kubelet.max_pods is not None:
        arguments.append("--use-max-pods false")
    arguments.append(f"--kubelet-extra-args '{kubelet_flags(facts)}'")
    if facts.is_raid0:
        arguments.append("--local-disks raid0")
    return "\n".join(["#!/bin/bash -xe", _LOG, " \\\n".join(arguments)])
