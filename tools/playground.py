"""A cluster to play with: a control plane on loopback with Kerf, its acted-out cloud and HAMi, until Ctrl-C.

    make playground
    make playground ARGS=--cloud=aws

Everything is real but the machines: nodes are objects, their pods run at once, and launching costs nothing. What takes
time on a cloud takes a few seconds here, so that a person sees each stage pass by; with --fast it takes none. The tests
start the same cluster, so that what is tried by hand is what they hold.

With --cloud=aws the cloud is moto behind the fault proxy, Kerf calls it as it calls AWS, and a machine joins only if
its user data is right. HAMi is left out there.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from kerf.cli.inputs.live import READS
from kerf.clouds.kwok.records import KwokLatencies
from kerf.kube.crds import crds
from kerf.kube.rbac import decision_roles, reader_role, roles
from kerf.sim.hami.server import webhook_configuration
from kerf.testing.faultproxy.server import FaultProxy
from tools.controlplane.eks import REGION, EksAccount
from tools.controlplane.installation import NAMESPACE, Installation, Replica, install_policies
from tools.controlplane.moto import moto
from tools.controlplane.server import Binaries, ControlPlane, ControlPlaneError, ControlPlaneOptions
from tools.hami import USER, start_hami

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "controlplane" / "build.py"
UNHURRIED = {"launch": "5s", "register": "5s", "devicesReady": "5s", "terminate": "5s"}
HURRIED = {"launch": "300ms", "register": "300ms", "devicesReady": "300ms", "terminate": "300ms"}
"""Latencies of the acted-out cloud: as a person watches them, and as a test waits for them."""
FAST = (
    "--batch-idle=300ms",
    "--batch-max=1s",
    "--replan=2s",
    "--disruption-poll=1s",
    "--validation=1s",
    "--drain-poll=500ms",
    "--instance-poll=2s",
    "--orphan-age=5s",
)
"""Flags of `kerf run` with which minutes pass in seconds; what is decided, and in which order, is the same."""
_POLL_S = 0.5

_WELCOME = """\
Kubernetes {version} is up{what}. In another terminal:

  cd {root}
  export KUBECONFIG={kubeconfig}
  export PATH={path}:$PATH

{tries}
Ctrl-C here stops all of it and leaves nothing.
"""
_TRIES = """\
Three things to try:

  1. GPU slices from zero nodes to two. Two pods share a card, the third gets another:
       kubectl apply -f examples/003-hami/nodepool.yaml -f examples/003-hami/workload.yaml
       kerf plan --replicas deployment/default/gpu-inference=3
       kubectl scale deployment/gpu-inference --replicas=3
       kerf nodes -w

  2. What is on each card, and what happens when fewer pods want it:
       kerf gpus
       kubectl scale deployment/gpu-inference --replicas=1
       kubectl get nodeclaims -w

  3. A pool whose limit is too small, and the change that helps:
       kubectl patch nodepool g5-nodepool --type merge -p '{{"spec": {{"limits": {{"nodes": "2"}}}}}}'
       kubectl scale deployment/gpu-inference --replicas=7
       kubectl kerf explain deployment/gpu-inference

HAMi's webhook takes over every pod here that asks for a GPU, whole ones included. The other examples are for clusters
without it: label their pods hami.io/webhook: ignore.

Kerf's log: {log}
The cloud, its latencies and faults: kubectl -n {namespace} edit configmap kerf-kwok
"""
_TRIES_AWS = """\
Three things to try:

  1. The objects of docs/guides/eks.md: a GPU pod from no node to a bound one.
       kubectl apply -f examples/eks
       kubectl get nodeclaims -w
       kerf nodes

  2. The type is sold out: another one comes, and the claim's events say why.
       curl -d '{{"instance_type": "g4dn.xlarge"}}' {proxy}/_faultproxy/stock/sell_out
       kubectl delete nodeclaims --all --wait=false
       kubectl get events --field-selector reason=InsufficientCapacityError

  3. What Kerf asks of AWS, call by call, and which other switches there are:
       curl -s {proxy}/_faultproxy/calls | tail -c 2000
       curl -d {{}} {proxy}/_faultproxy/help

Kerf's log: {log}
"""
_EMPTY = "Nothing is installed yet: docs/guides/cluster.md goes on from here.\n"


@contextmanager
def hosted(
    binaries: Binaries,
    *,
    with_hami: bool,
    hami_flags: tuple[str, ...] = (),
    audit: bool = True,
    folder: Path | None = None,
) -> Iterator[ControlPlane]:
    """A control plane without Kerf, with HAMi's scheduler and webhook where they are wanted; see ControlPlane."""
    with ControlPlane(binaries, ControlPlaneOptions(audit=audit, users=(USER,)), folder) as plane:
        if with_hami:
            hami = start_hami(plane, *hami_flags)
            if hami.ca_file is not None:
                plane.apply([webhook_configuration(f"{hami.url}/webhook", hami.ca_file.read_bytes())])
        yield plane


def install(plane: ControlPlane, latencies: Mapping[str, str], cloud: str = "kwok") -> Installation:
    """What Kerf needs there: its kinds, its namespace, its roles, and those of its readers. It is not started."""
    installation = Installation(plane)
    readers = (reader_role("kerf-reader", READS), *decision_roles(NAMESPACE, "kerf"))
    installation.prepare(crds(cloud), [*roles(NAMESPACE, "kerf", cloud), *readers], latencies)
    install_policies(plane)
    return installation


def programs() -> Binaries:
    """Those of the environment or of the cache; built first where one is missing, which takes minutes."""
    cache = subprocess.run([sys.executable, BUILD, "--print"], capture_output=True, text=True, check=True).stdout
    found = Binaries.find(os.environ, Path(cache.strip()))
    if found.missing:
        subprocess.run([sys.executable, BUILD], stdout=sys.stderr, check=True)
        found = Binaries.find(os.environ, Path(cache.strip()))
    return found


def welcome(plane: ControlPlane, replica: Replica | None, account: EksAccount | None = None) -> str:
    """How to use it, in commands that can be copied."""
    tools = (plane.binaries.kubectl, plane.binaries.helm, Path(sys.executable))
    path = ":".join(dict.fromkeys(str(tool.parent) for tool in tools if tool is not None))
    log = str(replica.program.log) if replica is not None else ""
    if account is not None:
        what, tries = ", with Kerf and AWS acted out by moto", _TRIES_AWS.format(log=log, proxy=account.proxy.url)
    elif replica is not None:
        what, tries = ", with Kerf, its acted-out cloud and HAMi", _TRIES.format(log=log, namespace=NAMESPACE)
    else:
        what, tries = ", with HAMi and without Kerf", _EMPTY
    return _WELCOME.format(
        version=plane.request("GET", "/version").good("/version")["gitVersion"],
        what=what,
        root=ROOT,
        kubeconfig=plane.kubeconfig(),
        path=path,
        tries=tries,
    )


def play(binaries: Binaries, *, is_fast: bool, is_empty: bool) -> None:
    """Until KeyboardInterrupt. Raises ControlPlaneError when a program ends by itself."""
    with hosted(binaries, with_hami=True, audit=False) as plane:
        replica = None
        if not is_empty:
            installation = install(plane, HURRIED if is_fast else UNHURRIED)
            replica = installation.start(*(FAST if is_fast else ()))
        print(welcome(plane, replica), flush=True)
        _wait(plane)


def play_aws(binaries: Binaries, *, is_fast: bool) -> None:
    """The same with the cloud aws."""
    step_s = 0.3 if is_fast else 5.0
    with (
        moto() as url,
        FaultProxy(url, region=REGION) as proxy,
        hosted(binaries, with_hami=False, audit=False) as plane,
    ):
        proxy.instances.take_time(step_s, step_s)
        account = EksAccount(proxy, plane, partial(_client, proxy.url))
        installation = install(plane, {}, "aws")
        with account.room(step_s, KwokLatencies(devices_ready_s=step_s)):
            own = (*(FAST if is_fast else ()), *account.flags)
            replica = installation.start(*own, environment=account.environment)
            print(welcome(plane, replica, account), flush=True)
            _wait(plane)


def _wait(plane: ControlPlane) -> None:
    started = set(plane.pids())
    while started <= set(plane.pids()):
        time.sleep(_POLL_S)
    (ended, *_) = sorted(started - set(plane.pids()))
    raise ControlPlaneError(f"{ended} has ended\n{plane.program(ended).tail(20)}")


def _client(url: str, service: str) -> Any:
    # Half a second, which without --cloud=aws is not spent.
    import boto3

    return boto3.session.Session("access", "secret", region_name=REGION).client(service, endpoint_url=url)


def main() -> int:
    """0 after Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(prog="make playground", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fast", action="store_true", help="launching, registering and waiting take almost no time")
    parser.add_argument("--cloud", choices=("kwok", "aws"), default="kwok", help="who launches nodes")
    parser.add_argument("--empty", action="store_true", help="without Kerf, which you then install yourself")
    chosen = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        # SIGINT too, because a shell lets its background jobs ignore it.
        signal.signal(number, signal.default_int_handler)
    print("starting ...", file=sys.stderr, flush=True)
    try:
        if chosen.cloud == "aws" and not chosen.empty:
            play_aws(programs(), is_fast=chosen.fast)
        else:
            play(programs(), is_fast=chosen.fast, is_empty=chosen.empty)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    except ControlPlaneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
