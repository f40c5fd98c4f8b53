"""HAMi for a control plane on this machine: our stand-in, or a real one that runs beside it.

A real one is taken when KERF_HAMI_EXTENDER_URL says where it answers. It needs the new API server, so the kubeconfig
of an administrator is written to KERF_HAMI_KUBECONFIG as soon as there is one, for it to start with. Used by the tests
against a real control plane and by the playground.
"""

import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import trustme

from kerf.cli import extender
from kerf.kube.rbac import rules
from kerf.kube.resources import HAMI, declared
from tools.controlplane.server import ControlPlane, ControlPlaneError, User

USER = User("hami-token", "hami")
"""Whom the control plane must know (ControlPlaneOptions.users) for our stand-in to run under its own role."""
NAME, ENTRY = "hami-extender", "from kerf.cli.main import entry; entry()"
_READY_S = 60
_GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Hami:
    """Where HAMi answers; `ca_file` is None for a real one, which is not verified."""

    url: str
    ca_file: Path | None


def start_hami(plane: ControlPlane, *flags: str) -> Hami:
    """HAMi's extender and webhook by HTTPS, and the kube-scheduler that asks it; they end with the control plane.

    `flags` are those of `kerf hami-extender`, e.g. `--ties first`.
    """
    given = os.environ.get("KERF_HAMI_EXTENDER_URL")
    hami = _real(plane, given) if given else _ours(plane, flags)
    plane.start_hami_scheduler(hami.url, ca_file=hami.ca_file)
    return hami


def _real(plane: ControlPlane, url: str) -> Hami:
    wanted = os.environ.get("KERF_HAMI_KUBECONFIG")
    if wanted:
        Path(wanted).write_text(plane.kubeconfig().read_text(encoding="utf-8"), encoding="utf-8")
    parts = urlsplit(url)

    def answers() -> bool:
        with socket.create_connection((str(parts.hostname), parts.port or 443), 1):
            return True

    plane.wait_until(answers, _READY_S, f"HAMi answers at {url}")
    return Hami(url, None)


def _ours(plane: ControlPlane, flags: tuple[str, ...]) -> Hami:
    plane.apply(role())
    certificates = plane.folder / "hami"
    certificates.mkdir()
    authority, paths = trustme.CA(), {name: certificates / f"{name}.pem" for name in ("ca", "cert", "key")}
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(paths["ca"]))
    issued.cert_chain_pems[0].write_to_path(str(paths["cert"]))
    issued.private_key_pem.write_to_path(str(paths["key"]))
    url_file = certificates / "url"
    serving = ("--tls-cert", str(paths["cert"]), "--tls-key", str(paths["key"]), "--url-file", str(url_file))
    kubeconfig = ("--kubeconfig", str(plane.kubeconfig(USER.name)))
    program = plane.launch(NAME, [sys.executable, "-c", ENTRY, NAME, *kubeconfig, *serving, *flags])

    def is_ready() -> bool:
        if program.pid is None:
            raise ControlPlaneError(f"our HAMi has ended\n{program.tail(20)}")
        return url_file.exists()

    plane.wait_until(is_ready, _READY_S, "our HAMi serves")
    return Hami(url_file.read_text(encoding="utf-8").strip(), paths["ca"])


def role() -> list[dict[str, Any]]:
    """What our stand-in may do: what its code declares, and no more."""
    assert extender.WATCHED
    name = {"name": USER.name}
    return [
        {"apiVersion": f"{_GROUP}/v1", "kind": "ClusterRole", "metadata": name, "rules": rules(declared(HAMI))},
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": name,
            "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", **name},
            "subjects": [{"apiGroup": _GROUP, "kind": "User", **name}],
        },
    ]
