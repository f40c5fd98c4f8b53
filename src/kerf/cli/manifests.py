"""`kerf manifests`: what to apply to a cluster so that Kerf runs there, for those who install without Helm.

Nothing here is a second truth: definitions come from `kerf.kube.crds`, roles from the accesses that the code declares,
flags from `kerf run` itself. The chart is held to the same objects by a test. No image of Kerf is published, so the
Deployment needs the name of one.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from kerf import __version__
from kerf.cli.echo import echo
from kerf.cli.examples import ExampleCommand
from kerf.cli.exits import DONE
from kerf.cli.run.command import CLOUDS, run
from kerf.cli.run.options import NO_CLOUD
from kerf.config import settings_of, settings_table

Object = dict[str, Any]
METRICS_PORT, HEALTH_PORT = 8080, 8081
METRICS_PORT_NAME, HEALTH_PORT_NAME = "http-metrics", "http"
USER_ID = 65532
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_FIXED = {
    "namespace": "it is what --namespace of `kerf manifests` says",
    "cloud": "it is what --cloud of `kerf manifests` says",
    "dry_run": "it is what --dry-run of `kerf manifests` says, which sets the role as well",
    "metrics_address": "the Service and the probes need the port that is set",
    "health_address": "the Service and the probes need the port that is set",
    "kubeconfig": "in a pod Kerf uses its service account",
    "context": "in a pod Kerf uses its service account",
    "config": "the pod has no such file; give flags",
}
SINCE = {"MutatingAdmissionPolicy": (1, 36), "ValidatingAdmissionPolicy": (1, 30)}
"""The Kubernetes in which a kind is stable, and so served without a switch."""
_VERSION = re.compile(r"v?(\d{1,3})\.(\d{1,3})(?:[.+-].*)?", re.ASCII)
_NO_IMAGE = "no image of Kerf is published; give one that has `kerf` on its PATH with --image"


@dataclass(frozen=True)
class Installation:
    """What is to be installed; `run_flags` are further flags of `kerf run`."""

    namespace: str
    name: str
    cloud: str
    is_dry_run: bool = False
    image: str = ""
    replicas: int = 2
    run_flags: tuple[str, ...] = ()

    @property
    def labels(self) -> dict[str, str]:
        """What the objects of this installation are found by; also the selector of its pods."""
        return {"app.kubernetes.io/name": "kerf", "app.kubernetes.io/instance": self.name}

    def metadata(self) -> Object:
        """Name, namespace and labels, made again so that YAML has no aliases."""
        return {"name": self.name, "namespace": self.namespace, "labels": self.labels}


def _checked_name(_context: click.Context, parameter: click.Parameter, value: str) -> str:
    # A Service must begin with a letter, a namespace need not.
    first = "a letter" if parameter.name == "name" else "a letter or digit"
    if _NAME.fullmatch(value) is None or (parameter.name == "name" and not value[0].isalpha()):
        expected = f"at most 63 of a-z, 0-9 and -, first {first}, last no -"
        raise click.BadParameter(f"expected {expected}, got {value!r}", param=parameter)
    return value


def _read_version(_context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, int]:
    found = _VERSION.fullmatch(value)
    if found is None:
        raise click.BadParameter(f"expected a version such as 1.31, got {value[:80]!r}", param=parameter)
    return int(found[1]), int(found[2])


@click.command(
    cls=ExampleCommand,
    examples=(
        (
            "Install all of Kerf in a test cluster",
            "kerf manifests --cloud kwok --image registry.example/kerf:1 | kubectl apply --server-side -f -",
        ),
        ("Only what lets others use kerf plan", "kerf manifests --reader"),
        ("With flags of kerf run", "kerf manifests --cloud kwok --image registry.example/kerf:1 -- --batch-idle=2s"),
    ),
)
@click.option(
    "--crds",
    "has_crds",
    is_flag=True,
    help="Print definitions of NodePool, NodeClaim, NodeOverlay, CapacityWindow, KWOKNodeClass.",
)
@click.option(
    "--policies",
    "has_policies",
    is_flag=True,
    help="Print the policies that hold pods for windows, and a PriorityClass. Needs Kubernetes 1.36.",
)
@click.option("--rbac", "has_rbac", is_flag=True, help="Print the service account and its roles.")
@click.option(
    "--reader",
    "has_reader",
    is_flag=True,
    help="Print only the role that lets users with the role view use `kerf plan`.",
)
@click.option(
    "--deployment", "has_deployment", is_flag=True, help="Print the Deployment, Service and PodDisruptionBudget."
)
@click.option("--namespace", default="kerf-system", show_default=True, callback=_checked_name, help="Where Kerf runs.")
@click.option("--name", default="kerf", show_default=True, callback=_checked_name, help="Name of every object.")
@click.option("--image", default="", metavar="IMAGE", help="Image with `kerf` on its PATH. Needed for the Deployment.")
@click.option(
    "--replicas",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Number of replicas. One acts, the others wait.",
)
@click.option(
    "--cloud",
    type=click.Choice(CLOUDS),
    help="The cloud that launches nodes. Needed for roles and Deployment; with --crds it adds the kinds of that cloud.",
)
@click.option(
    "--kubernetes-version",
    "version",
    default="1.36",
    show_default=True,
    metavar="VERSION",
    callback=_read_version,
    help="Version of the cluster. Below 1.36, leave out what such a server does not know.",
)
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Kerf plans and reports, and may not act.")
@click.option("-o", "--output", type=click.Choice(("yaml", "json")), default="yaml", show_default=True)
@click.argument("run_flags", nargs=-1, metavar="[-- FLAGS OF kerf run]")
def manifests(
    has_crds: bool,
    has_policies: bool,
    has_rbac: bool,
    has_reader: bool,
    has_deployment: bool,
    output: str,
    version: tuple[int, int],
    cloud: str | None,
    **flags: Any,
) -> int:
    """Print what to apply to a cluster: CRDs, policies, roles, Deployment.

    Without --crds, --policies, --rbac, --reader and --deployment: all of it. Goes to `kubectl apply --server-side -f
    -`.
    """
    installation = Installation(cloud=cloud or "", **flags)
    is_all = not (has_crds or has_policies or has_rbac or has_reader or has_deployment)
    if not installation.cloud and (is_all or has_rbac or has_deployment):
        raise click.UsageError(f"--cloud: {NO_CLOUD}")
    if has_deployment and not installation.image:
        raise click.UsageError(f"--deployment: {_NO_IMAGE}")
    values = _check_run_flags(installation.run_flags)
    if installation.cloud == "aws" and installation.image and not values.get("cluster_name"):
        raise click.UsageError("--cloud aws: expected the name of the EKS cluster, e.g. `-- --cluster-name=prod`")
    parts: list[str] = []
    objects: list[Object] = []
    if has_rbac or has_deployment or is_all:
        objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": installation.namespace}})
    if has_crds or is_all:
        from kerf.kube.crds import crd_texts

        parts = list(crd_texts(installation.cloud).values())
    # A dry run opens no gate: what gives them must not be there either, unless it is asked for.
    if has_policies or (is_all and not installation.is_dry_run):
        parts += _policies(version)
    if has_rbac or is_all:
        objects += rbac_objects(installation)
    elif has_reader:
        objects.append(reader_object(installation))
    if has_deployment or (is_all and installation.image):
        objects += deployment_objects(installation)
    elif is_all:
        echo(f"note: without Deployment, Service and PodDisruptionBudget: {_NO_IMAGE}", err=True)
    echo(_written(parts, objects, output), nl=False)
    return DONE


def _policies(version: tuple[int, int]) -> list[str]:
    """The documents of the policies that a server of that version knows; a note on what it does not."""
    from kerf.kube.policies import policy_texts

    texts = [text for texts in policy_texts().values() for text in texts.split("---\n")]
    served = [text for text in texts if SINCE.get(_kind(text), version) <= version]
    if len(served) < len(texts):
        unknown = " and ".join(sorted(kind for kind, since in SINCE.items() if since > version))
        echo(
            f"note: without the policies that gate pods: Kubernetes {version[0]}.{version[1]} does not serve"
            f" {unknown}; write the gates into the templates of the workloads",
            err=True,
        )
    return served


def _kind(text: str) -> str:
    """What a document is, a policy for its binding."""
    found = re.search(r"^kind: (\w+)$", text, re.MULTILINE)
    return "" if found is None else found[1].removesuffix("Binding")


def rbac_objects(installation: Installation) -> list[Object]:
    """The service account, its roles and their bindings, in the order to apply them, and the roles of readers."""
    from kerf.kube.rbac import decision_roles, roles

    made = roles(installation.namespace, installation.name, installation.cloud, is_dry_run=installation.is_dry_run)
    asking = decision_roles(installation.namespace, installation.name)
    own, others = (
        [{**each, "metadata": {**each["metadata"], "labels": installation.labels}} for each in part]
        for part in (made, asking)
    )
    return [*own, reader_object(installation), *others]


def reader_object(installation: Installation) -> Object:
    """The role of those who look and act not; the server adds it to `view`."""
    from kerf.cli.inputs.live import READS
    from kerf.kube.rbac import reader_role

    role: Object = reader_role(f"{installation.name}-reader", READS)
    role["metadata"]["labels"] |= installation.labels
    return role


def deployment_objects(installation: Installation) -> list[Object]:
    """Service, PodDisruptionBudget and Deployment, in the order to apply them."""
    port = {"name": METRICS_PORT_NAME, "port": METRICS_PORT, "targetPort": METRICS_PORT_NAME, "protocol": "TCP"}
    service = {"type": "ClusterIP", "ports": [port], "selector": installation.labels}
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": installation.labels}}
    replicas = {
        "replicas": installation.replicas,
        "revisionHistoryLimit": 10,
        "strategy": {"rollingUpdate": {"maxUnavailable": 1}},
        "selector": {"matchLabels": installation.labels},
        "template": {"metadata": {"labels": installation.labels}, "spec": _pod(installation)},
    }
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": installation.metadata(), "spec": service},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": installation.metadata(), "spec": budget},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": installation.metadata(), "spec": replicas},
    ]


def _pod(installation: Installation) -> Object:
    not_on_ours = {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": installation.labels}}
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": installation.labels},
    }
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "serviceAccountName": installation.name,
        "priorityClassName": "system-cluster-critical",
        "securityContext": {"fsGroup": USER_ID, "seccompProfile": {"type": "RuntimeDefault"}},
        "dnsPolicy": "ClusterFirst",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        # A node that Kerf may remove must not carry Kerf: the one who would launch the next node goes with it.
        "affinity": {
            "nodeAffinity": {required: {"nodeSelectorTerms": [not_on_ours]}},
            "podAntiAffinity": {required: [apart]},
        },
        "topologySpreadConstraints": [spread],
        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
        "containers": [_container(installation)],
    }


def _container(installation: Installation) -> Object:
    return {
        "name": "controller",
        "image": installation.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["kerf"],
        "args": [
            "run",
            f"--namespace={installation.namespace}",
            f"--metrics-address=0.0.0.0:{METRICS_PORT}",
            f"--health-address=0.0.0.0:{HEALTH_PORT}",
            "--log-format=json",
            "--log-level=info",
            f"--cloud={installation.cloud}",
            *(["--dry-run"] if installation.is_dry_run else []),
            *installation.run_flags,
        ],
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "ports": [
            {"name": METRICS_PORT_NAME, "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": HEALTH_PORT_NAME, "containerPort": HEALTH_PORT, "protocol": "TCP"},
        ],
        "livenessProbe": _probe("/healthz", 30),
        "readinessProbe": _probe("/readyz", 5),
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "runAsNonRoot": True,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def _probe(path: str, delay_s: int) -> Object:
    # The time limit is long because one big plan holds the event loop for seconds, which is no reason to kill Kerf.
    asked = {"path": path, "port": HEALTH_PORT_NAME}
    return {"httpGet": asked, "initialDelaySeconds": delay_s, "timeoutSeconds": 30}


def _check_run_flags(given: Sequence[str]) -> dict[str, Any]:
    """The flags by name. Refuse here what `kerf run` would refuse in the pod; this shell's variables have no part."""
    context = click.Context(run, info_name="kerf run")
    values, rest, _ = run.make_parser(context).parse_args(list(given))
    if rest:
        raise click.UsageError(f"{rest[0]}: expected a flag of `kerf run`")
    known = {str(parameter.name): parameter for parameter in run.params}
    for name in values:
        if name in _FIXED:
            raise click.UsageError(f"{known[name].opts[0]} cannot be given to `kerf run` here: {_FIXED[name]}")
        known[name].type_cast_value(context, values[name])
    settings_of({setting.field: values[setting.field] for setting in settings_table() if setting.field in values})
    return dict(values)


def _written(texts: Sequence[str], objects: Sequence[Object], output: str) -> str:
    """CRDs keep their comments in YAML; the Namespace comes first, because all else may be in it."""
    import yaml

    first = sum(each["kind"] == "Namespace" for each in objects)
    if output == "json":
        items = [*objects[:first], *map(yaml.safe_load, texts), *objects[first:]]
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2) + "\n"
    dumped = [yaml.safe_dump(each, sort_keys=False) for each in objects]
    documents = [*dumped[:first], *texts, *dumped[first:]]
    return f"# Of kerf {__version__}.\n" + "---\n".join(documents)
