"""User data as a provider would write it, for the tests of the machine room."""

import base64
import json
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import Any

CLUSTER, ENDPOINT, CA = "prod", "https://127.0.0.1:6443", "Q0E="
UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}


def node_config(labels: str = "team=a", **cluster: str) -> dict[str, Any]:
    """A NodeConfig for the cluster, with one taint."""
    named = {"name": CLUSTER, "apiServerEndpoint": ENDPOINT, "certificateAuthority": CA, "cidr": "10.100.0.0/16"}
    kubelet = {"config": {"maxPods": 58, "registerWithTaints": [UNREGISTERED]}, "flags": [f"--node-labels={labels}"]}
    spec = {"cluster": {**named, **cluster}, "kubelet": kubelet}
    return {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}


def mime(*parts: object) -> str:
    """A MIME message: a text is a shell script, anything else a NodeConfig."""
    message = MIMEMultipart()
    for part in parts:
        body = MIMEText(part if isinstance(part, str) else json.dumps(part), "plain", "us-ascii")
        kind = "text/x-shellscript" if isinstance(part, str) else "application/node.eks.aws"
        body.replace_header("Content-Type", kind)
        message.attach(body)
    return message.as_string()


def encoded(text: str) -> str:
    """As a launch template has it."""
    return base64.b64encode(text.encode()).decode()
