"""A command in a process of its own gives what it gives in the process of the tests, where all others of them run."""

from pathlib import Path

import pytest

from tests.cli.program import CLUSTER, POOL_000, ROOT, WORKLOAD_000, files, kerf, kerf_process

SCENARIO = "examples/000-gpu-pools/scenario.yaml"
RETIRED = "examples/001-migrate/provisioner.yaml"
COMMANDS = {
    "plan": ("plan", *files(POOL_000, WORKLOAD_000)),
    "plan as JSON": ("plan", *files(POOL_000, WORKLOAD_000), "-o", "json"),
    "explain": ("explain", *files(POOL_000, WORKLOAD_000), "pod/gpu-app-1"),
    "simulate": ("simulate", SCENARIO),
    "lint": ("lint", POOL_000),
    "migrate": ("migrate", "-f", RETIRED),
    "gpus": ("gpus", "-f", CLUSTER),
    "nodes": ("nodes", "-f", CLUSTER),
    "advise": ("advise", "instance-types", "-f", POOL_000),
    "run": ("run", "--batch-idle=2"),
    "manifests": ("manifests", "--cloud=kwok", "--image", "kerf:1"),
    "completion": ("completion", "bash"),
    "hami-extender": ("hami-extender", "--nothing"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_process_of_its_own_makes_no_difference(name: str) -> None:
    """The same exit code, and the same bytes on both streams."""
    here, apart = kerf(*COMMANDS[name]), kerf_process(*COMMANDS[name])

    assert (apart.returncode, apart.stdout, apart.stderr) == (here.returncode, here.stdout, here.stderr)
    assert here.stdout + here.stderr


def test_standard_input_is_read_in_both() -> None:
    """Manifests in a pipe."""
    text = "---\n".join((ROOT / Path(path)).read_text(encoding="utf-8") for path in (POOL_000, WORKLOAD_000))
    here, apart = kerf("plan", "-f", "-", stdin=text), kerf_process("plan", "-f", "-", stdin=text)

    assert (apart.returncode, apart.stdout, apart.stderr) == (here.returncode, here.stdout, here.stderr)
