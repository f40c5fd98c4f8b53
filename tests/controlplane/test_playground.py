"""`make playground`: what it prints works as it is printed, and Ctrl-C leaves nothing."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.program import ROOT
from tools.controlplane.server import Binaries

THREE = "kubectl apply -f examples/003-hami/nodepool.yaml -f examples/003-hami/workload.yaml"


@contextmanager
def playground(*flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The running program, and what it says once it is up."""
    command = [sys.executable, "-m", "tools.playground", "--fast", *flags]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = ""
            while "Ctrl-C here stops" not in said:
                line = process.stdout.readline()
                assert line, process.stderr.read() if process.stderr is not None else ""
                said += line
            yield process, said
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def shell(said: str, command: str) -> str:
    """What a person sees who has typed the two lines `export` before."""
    exports = "\n".join(re.findall(r"^ +(export .*)$", said, re.MULTILINE))
    done = subprocess.run(["sh", "-c", f"{exports}\n{command}"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def programs(folder: str) -> list[str]:
    """The command lines of all processes that have to do with the folder."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(entry.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return [line for line in lines if folder in line]


def test_what_it_proposes_works_and_nothing_is_left(binaries: Binaries) -> None:
    """The commands of its first proposal, then Ctrl-C: neither a process nor a file."""
    del binaries
    with playground() as (process, said):
        folder = re.findall(r"KUBECONFIG=(\S+)/", said)[0]
        assert f"  {THREE}\n" in said
        shell(said, f"{THREE} && kubectl scale deployment/gpu-inference --replicas=3")
        ready = "kubectl wait --timeout=60s deployment/gpu-inference --for=jsonpath='{.status.readyReplicas}'=3"
        assert "deployment.apps/gpu-inference condition met\n" == shell(said, ready)
        assert "2 nodes, 2.012 USD/h" in shell(said, "kubectl kerf nodes")
        assert 6 < len(programs(folder))

        process.send_signal(signal.SIGINT)
        assert (0, "stopped") == (process.wait(60), process.communicate()[1].splitlines()[-1])
    assert ([], False) == (programs(folder), Path(folder).exists())


def test_an_empty_one_has_no_kerf(binaries: Binaries) -> None:
    """To install it there oneself."""
    del binaries
    with playground("--empty") as (_, said):
        assert "error: the cluster has no NodePool of karpenter.sh/v1" in shell(said, "kubectl kerf plan")
        assert "hami-webhook" in shell(said, "kubectl get mutatingwebhookconfigurations")


def test_the_cloud_of_aws_can_be_played_with(binaries: Binaries) -> None:
    """Its proposals as they are printed: a pod of the guide runs; when the type is sold out another one comes."""
    del binaries
    apply = "kubectl apply -f examples/eks"
    with playground("--cloud=aws") as (process, said):
        sell_out = next(each for each in re.findall(r"^ +(curl .*)$", said, re.MULTILINE) if "sell_out" in each)
        assert f"  {apply}\n" in said
        shell(said, apply)
        runs = "kubectl wait --timeout=60s pod/first-gpu --for=jsonpath='{.status.phase}'=Running"
        assert "pod/first-gpu condition met\n" == shell(said, runs)
        assert "1 node, 0.526 USD/h" in shell(said, "kubectl kerf nodes")

        assert "{}" == shell(said, f"{sell_out} 2>/dev/null")
        shell(said, "kubectl delete nodeclaims --all && kubectl create -f examples/eks/pod.yaml")
        assert "pod/first-gpu condition met\n" == shell(said, runs)
        told = "kubectl get events --field-selector reason=InsufficientCapacityError"
        assert "g4dn.xlarge" in shell(said, told)
        process.send_signal(signal.SIGINT)
        assert (0, "stopped") == (process.wait(60), process.communicate()[1].splitlines()[-1])
