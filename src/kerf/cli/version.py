"""`kerf version`: which version this program is, as `kerf --version` says."""

import click

from kerf import __version__
from kerf.cli.echo import echo
from kerf.cli.examples import ExampleCommand
from kerf.cli.exits import DONE
from kerf.cli.inputs.options import cluster_options, output_option
from kerf.cli.output.forms import is_of_fields


@click.command(
    cls=ExampleCommand,
    examples=(
        ("Which version", "kerf version"),
        ("For a script", "kerf version -o jsonpath={.clientVersion.gitVersion}"),
    ),
)
@click.option("--client", is_flag=True, help="Accepted as in kubectl. Kerf never asks the cluster for a version.")
@cluster_options
@output_option
def version(client: bool, kubeconfig: str | None, context: str | None, output: str) -> int:
    """Print the version of this program. `kerf doctor` has the version of the cluster."""
    if not is_of_fields(output):
        echo(f"kerf {__version__}")
        return DONE
    from kerf.cli.render import emit

    emit(output, lambda: {"clientVersion": {"gitVersion": f"v{__version__}"}}, lambda: ())
    return DONE
