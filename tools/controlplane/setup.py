"""What a control plane is made of: its programs, its users, its files and the flags of each program.

Every program listens on 127.0.0.1 only. RBAC is on and every user is a line of a token file, so what a role
does not grant is really refused; the API server's own self-signed certificate is the authority of all kubeconfigs.
"""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NamedTuple

from tools.controlplane.client import Object
from tools.controlplane.process import ControlPlaneError

HAMI_RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/gpumem-percentage")
_ENVTEST = {"etcd": "TEST_ASSET_ETCD", "kube_apiserver": "TEST_ASSET_KUBE_APISERVER", "kubectl": "TEST_ASSET_KUBECTL"}


@dataclass(frozen=True)
class Binaries:
    """Where each program is, None where it was not found; `stages` is a folder with kwok's Stage files."""

    etcd: Path | None = None
    kube_apiserver: Path | None = None
    kube_controller_manager: Path | None = None
    kube_scheduler: Path | None = None
    kubectl: Path | None = None
    kwok: Path | None = None
    helm: Path | None = None
    stages: Path | None = None

    @classmethod
    def find(cls, environ: Mapping[str, str], folder: Path | None = None) -> "Binaries":
        """Looks, for each, at the first of these that has it.

        `TEST_ASSET_ETCD`, `TEST_ASSET_KUBE_APISERVER` and `TEST_ASSET_KUBECTL` (each a program), then the folders
        `KUBEBUILDER_ASSETS`, `KERF_CONTROLPLANE_ASSETS` and `folder`, which is where `controlplane/build.py` puts them.
        """
        named = [environ.get(name) for name in ("KUBEBUILDER_ASSETS", "KERF_CONTROLPLANE_ASSETS")]
        folders = [Path(name) for name in named if name] + ([folder] if folder else [])
        found: dict[str, Path] = {}
        for each in fields(cls):
            own = environ.get(_ENVTEST.get(each.name, ""))
            places = [Path(own)] if own else [place / each.name.replace("_", "-") for place in folders]
            present = [place for place in places if place.exists()]
            if present:
                found[each.name] = present[0].absolute()
        return cls(**found)

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the programs that were not found, as their files are called."""
        return tuple(field.name.replace("_", "-") for field in fields(self) if getattr(self, field.name) is None)

    def need(self, name: str) -> str:
        """The path of a program; raises ControlPlaneError where it was not found."""
        path = getattr(self, name.replace("-", "_"))
        if path is None:
            hint = "run `make controlplane`, or set KERF_CONTROLPLANE_ASSETS to a folder that has it"
            raise ControlPlaneError(f"{name}: expected a program, got none (hint: {hint})")
        return str(path)


class User(NamedTuple):
    """A line of the token file."""

    token: str
    name: str
    groups: tuple[str, ...] = ()


USERS: Mapping[str, User] = {
    "admin": User("admin-token", "admin", ("system:masters",)),
    "reader": User("reader-token", "reader"),
    "kerf": User(
        "kerf-token",
        "system:serviceaccount:kerf-system:kerf",
        ("system:serviceaccounts", "system:serviceaccounts:kerf-system"),
    ),
    "kube-scheduler": User("kube-scheduler-token", "system:kube-scheduler"),
    "kube-controller-manager": User("kube-controller-manager-token", "system:kube-controller-manager"),
    "kwok": User("kwok-token", "kwok", ("system:masters",)),
}


@dataclass(frozen=True)
class ControlPlaneOptions:
    """How a control plane differs from the plain one.

    `users` are further lines of the token file. `extenders` are entries of a KubeSchedulerConfiguration for a second
    kube-scheduler that serves the profile `hami-scheduler`; with none it does not start. `scheduler` are fields of the
    first one's configuration, and `scheduler_flags` come last among its flags. `audit` writes who asked what
    (level Metadata) to a file. `apiserver_flags` come last, so they win over ours.
    """

    users: tuple[User, ...] = ()
    extenders: tuple[Mapping[str, object], ...] = ()
    scheduler: Mapping[str, object] = field(default_factory=dict)
    scheduler_flags: tuple[str, ...] = ()
    audit: bool = False
    apiserver_flags: tuple[str, ...] = ()
    with_kwok: bool = True
    with_scheduler: bool = True
    with_controller_manager: bool = True


def hami_extender(url: str, *, ca_file: Path | None = None, resources: Sequence[str] = HAMI_RESOURCES) -> Object:
    """The extender as HAMi's chart configures it; https without `ca_file` is not verified, as there.

    `ignorable` is false: while nothing answers at `url`, a pod that asks for one of `resources` is not scheduled.
    """
    extender: Object = {
        "urlPrefix": url,
        "filterVerb": "filter",
        "bindVerb": "bind",
        "weight": 1,
        "nodeCacheCapable": True,
        "httpTimeout": "30s",
        "ignorable": False,
        "managedResources": [{"name": name, "ignoredByScheduler": True} for name in resources],
    }
    if url.startswith("https:"):
        trust: Object = {"caFile": str(ca_file)} if ca_file else {"insecure": True}
        extender |= {"enableHTTPS": True, "tlsConfig": trust}
    return extender


@dataclass(frozen=True)
class Layout:
    """The folder of one control plane: what is written into it, and the command of each program."""

    folder: Path
    binaries: Binaries
    options: ControlPlaneOptions
    ports: Mapping[str, int]

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"

    @property
    def etcd_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['etcd']}"

    @property
    def ca_file(self) -> Path:
        return self.folder / "certs" / "apiserver.crt"

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit.log"

    def users(self) -> dict[str, User]:
        """Every user by the name a caller knows it by."""
        return {**USERS, **{user.name: user for user in (User(*entry) for entry in self.options.users)}}

    def write(self) -> None:
        """Writes the files that do not depend on a running server."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = [f'{token},{name},{name},"{",".join(groups)}"\n' for token, name, groups in self.users().values()]
        self._private("tokens.csv", "".join(lines))
        self._private("service-account.key", service_account_key())
        # What a test lists while it waits is most of all that is asked, and nothing reads of it.
        waiting = {"level": "None", "users": ["admin"], "verbs": ["list"]}
        rule = {"level": "Metadata", "omitStages": ["RequestReceived"]}
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [waiting, rule]}
        self._private("audit-policy.json", json.dumps(policy))
        # The server appends to a log that is there; in one that it made it would go on behind what is cut off.
        self.audit_log.touch(mode=0o600)
        for user in self.users():
            self.kubeconfig(user)

    def kubeconfig(self, user: str) -> Path:
        """The kubeconfig of `user`; the certificate it names is there once the API server has started."""
        users = self.users()
        if user not in users:
            raise ControlPlaneError(f"kubeconfig: expected one of {', '.join(users)}, got {user!r}")
        name = f"{user.replace(':', '-').replace('/', '-')}.kubeconfig"
        cluster = {"server": self.url, "certificate-authority": str(self.ca_file)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": user,
            "clusters": [{"name": "kerf", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": users[user].token}}],
            "contexts": [{"name": user, "context": {"cluster": "kerf", "user": user}}],
        }
        return self._private(name, json.dumps(content, indent=2) + "\n")

    def etcd(self) -> list[str]:
        peer = f"http://127.0.0.1:{self.ports['etcd-peer']}"
        return [
            self.binaries.need("etcd"),
            "--name=kerf",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=kerf={peer}",
            "--socket-reuse-port=true",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def kube_apiserver(self) -> list[str]:
        key = self.folder / "service-account.key"
        audit = [f"--audit-policy-file={self.folder / 'audit-policy.json'}", f"--audit-log-path={self.audit_log}"]
        return [
            self.binaries.need("kube-apiserver"),
            f"--etcd-servers={self.etcd_url}",
            *self._listening("kube-apiserver"),
            "--advertise-address=127.0.0.1",
            f"--cert-dir={self.folder / 'certs'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
            *([*audit, "--audit-log-maxsize=0"] if self.options.audit else []),
            *self.options.apiserver_flags,
        ]

    def kube_controller_manager(self) -> list[str]:
        return [
            self.binaries.need("kube-controller-manager"),
            f"--kubeconfig={self.kubeconfig('kube-controller-manager')}",
            *self._listening("kube-controller-manager"),
            f"--service-account-private-key-file={self.folder / 'service-account.key'}",
            f"--root-ca-file={self.ca_file}",
            "--leader-elect=false",
            # Each of forty controllers asks for its own token at the start; at the default of 20 a second that is 5 s.
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            # An autoscaler looks every 15 s by default, four times before it has scaled a pod up to four and rests.
            "--horizontal-pod-autoscaler-sync-period=2s",
            "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
            "--use-service-account-credentials=true",
            "--controllers=*",
        ]

    def kube_scheduler(self, name: str, profile: str, own: Mapping[str, object]) -> list[str]:
        """A scheduler process called `name` here, which schedules the pods whose schedulerName is `profile`.

        `own` are further fields of its configuration.
        """
        connection = {"kubeconfig": str(self.kubeconfig("kube-scheduler")), "qps": 500, "burst": 1000}
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False},
            "profiles": [{"schedulerName": profile}],
            **own,
        }
        return [
            self.binaries.need("kube-scheduler"),
            f"--config={self._private(f'{name}.json', json.dumps(configuration, indent=2))}",
            *self._listening(name),
            "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        ]

    def kwok(self) -> list[str]:
        stages = sorted(Path(self.binaries.need("stages")).glob("*.yaml"))
        return [
            self.binaries.need("kwok"),
            f"--kubeconfig={self.kubeconfig('kwok')}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=40",
            "--node-ip=127.0.0.1",
            "--v=WARN",
            *(f"--config={stage}" for stage in stages),
        ]

    def _listening(self, name: str) -> list[str]:
        return ["--bind-address=127.0.0.1", f"--secure-port={self.ports[name]}", "--permit-port-sharing=true"]

    def _private(self, name: str, text: str) -> Path:
        """Written again only where it differs, since a program may be reading it."""
        path = self.folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8")
        return path


def viewer(user: str) -> Object:
    """What makes a user an ordinary reader: the role `view` in the whole cluster, and what is aggregated to it."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{user}-view"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }


def service_account_key() -> str:
    """A new RSA key in PEM, by `openssl` where it is installed, else by the package `cryptography`."""
    openssl = shutil.which("openssl")
    if openssl is not None:
        made = subprocess.run([openssl, "genrsa", "2048"], capture_output=True, text=True, check=False)
        if made.returncode == 0:
            return made.stdout
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa
    except ImportError as error:
        raise ControlPlaneError(
            "the key of service accounts: expected `openssl` or the Python package `cryptography`, got neither"
        ) from error
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
