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
@click.option("--client", is_flag=True, help="As kubectl's: without the cluster, which is never asked.")
@cluster_options
@output_option
def version(client: bool, kubeconfig: str | None, context: str | None, output: str) -> int:
    """The version of this program; that of the cluster is in `kerf doctor`."""
    if not is_of_fields(output):
        echo(f"kerf {__version__}")
        return DONE
    from kerf.cli.render import emit

    emit(output, lambda: {"clientVersion": {"gitVersion": f"v{__version__}"}}, lambda: ())
    return DONE
