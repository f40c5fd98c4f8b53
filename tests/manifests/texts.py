"""Short ways from a text to what is decoded or refused."""

from textwrap import dedent, indent

import pytest

from kerf.errors import DecodeError, InputError
from kerf.manifests.decode import decode
from kerf.manifests.decoded import Decoded
from kerf.manifests.read import parse
from kerf.manifests.schema import Problem, path_text
from kerf.model.causes import FieldRefusal
from kerf.model.nodepool import NodePool
from kerf.model.pods import Pod


def said(invalid: Problem | FieldRefusal | None) -> str:
    """What is said of an invalid spec, without its hint; empty of one that is valid."""
    if isinstance(invalid, Problem):
        return str(DecodeError(path_text(invalid.path), invalid.expected, invalid.got))
    return "" if invalid is None else str(invalid)


def decoded(*texts: str, name: str = "in.yaml") -> Decoded:
    """The documents of all texts, as one file."""
    return decode(parse("\n---\n".join(dedent(text).strip("\n") for text in texts), name))


def refusal(*texts: str, name: str = "in.yaml") -> str:
    """The text of the error that refuses them."""
    with pytest.raises(InputError) as error:
        decoded(*texts, name=name)
    return str(error.value)


def refused(*texts: str, name: str = "in.yaml") -> str:
    """What is said of the pods of these texts, which no server takes, each on a line with its place and its hint."""
    found = decoded(*texts, name=name)
    pods = (*found.pods, *(workload.template for workload in found.workloads))
    reasons = [pod.invalid for pod in pods if pod.invalid is not None]
    return "\n".join(f"{why.place}: {why}" + (f" (hint: {why.hint})" if why.hint else "") for why in reasons)


def left_out(*texts: str, name: str = "in.yaml") -> str:
    """What is said of objects of these texts that no server takes and that have no pods."""
    return "\n".join(map(str, decoded(*texts, name=name).left_out))


def pool_text(template_spec: str = "", spec: str = "") -> str:
    """A NodePool with more lines in `spec` (from line 5) and at the end in `spec.template.spec`."""
    return "\n".join(
        [
            "apiVersion: karpenter.sh/v1",
            "kind: NodePool",
            "metadata: {name: pool}",
            "spec:",
            *([indent(dedent(spec).strip("\n"), "  ")] if spec else []),
            "  template:",
            "    spec:",
            "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}",
            indent(dedent(template_spec).strip("\n") or "requirements: []", "      "),
        ]
    )


def pool(template_spec: str = "", spec: str = "") -> NodePool:
    """The decoded NodePool of `pool_text`."""
    return decoded(pool_text(template_spec, spec)).node_pools[0]


def pod_text(spec: str = "containers: [{name: main}]", metadata: str = "", status: str = "") -> str:
    """A Pod `default/p` with that spec (from line 4)."""
    lines = ["apiVersion: v1", "kind: Pod", f"metadata: {{name: p, {metadata}}}", "spec:"]
    lines.append(indent(dedent(spec).strip("\n"), "  "))
    if status:
        lines += ["status:", indent(dedent(status).strip("\n"), "  ")]
    return "\n".join(lines)


def pod(spec: str = "containers: [{name: main}]", metadata: str = "", status: str = "", *others: str) -> Pod:
    """The decoded Pod of `pod_text`, beside other documents."""
    return decoded(pod_text(spec, metadata, status), *others).pods[0]


def resources_pod(requests: str = "", limits: str = "", *others: str, metadata: str = "") -> Pod:
    """A pod of one container with these requests and limits, as flow mappings without their braces."""
    resources = f"{{requests: {{{requests}}}, limits: {{{limits}}}}}"
    return pod(f"containers: [{{name: main, resources: {resources}}}]", metadata, "", *others)
