"""What a command's module imports: its flags, and nothing that does the work.

The seconds are held by `make bench help`; here is what they come from.
"""

import json
import subprocess
import sys

import pytest

from kerf.cli.main import COMMANDS, HIDDEN
from tests.cli.program import ROOT

WORK = (
    "aiohttp",
    "asyncio",
    "boto3",
    "botocore",
    "highspy",
    "kerf.catalog",
    "kerf.controllers",
    "kerf.engine",
    "kerf.sharing",
    "kerf.sim",
    "kerf.state",
    "kubernetes",
    "msgspec",
    "numpy",
    "prometheus_client",
    "rich",
    "ruamel",
    "structlog",
    "yaml",
)
LIGHT = {"kerf.sim", "kerf.sim.traces", "kerf.sim.traces.names"}
"""What may be imported of these rooms: names that a flag offers, and the rooms in which they lie."""
LOADED = """
import json, sys
import click
from kerf.cli.main import program

context = click.Context(program)
command = program.get_command(context, sys.argv[1])
if isinstance(command, click.Group):
    for name in command.list_commands(context):
        command.get_command(context, name).get_help(context)
command.get_help(context)
print(json.dumps(list(sys.modules)))
"""


@pytest.mark.parametrize("command", [*COMMANDS, *HIDDEN])
def test_the_flags_of_a_command_load_nothing_that_does_its_work(command: str) -> None:
    """In an interpreter of its own; for a group, with all of its commands."""
    done = subprocess.run([sys.executable, "-c", LOADED, command], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = [
        name
        for name in json.loads(done.stdout)
        if name not in LIGHT and any(name == room or name.startswith(f"{room}.") for room in WORK)
    ]

    assert [] == loaded
