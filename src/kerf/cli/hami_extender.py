"""`kerf hami-extender`: our stand-in for HAMi's scheduler extender and webhook, beside a real kube-scheduler.

Only its flags are here. What serves is imported where it is needed: help, completion and wrong usage do not wait for
it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand


@click.command(
    "hami-extender",
    cls=ExampleCommand,
    examples=(("Serve on a port, and write where", "kerf hami-extender --address 127.0.0.1:9443 --url-file url"),),
)
@click.option("--kubeconfig", metavar="FILE", help="The kubeconfig. Default: the pod's service account.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
@click.option(
    "--address", default="127.0.0.1:0", show_default=True, help="Address to serve on; port 0 takes a free port."
)
@click.option("--tls-cert", metavar="FILE", help="Serve HTTPS with this certificate chain (PEM).")
@click.option("--tls-key", metavar="FILE", help="Its private key (PEM).")
@click.option("--url-file", metavar="FILE", help="Write the URL here when the cluster is read.")
@click.option("--ties", type=click.Choice(("first", "random")), default="random", show_default=True,
              help="Which of equal nodes to take: a random one, as HAMi, or the first by name.")  # fmt: skip
@click.option("--seed", type=int, help="Seed of --ties random. Without it each run differs.")
def hami_extender(**flags: Any) -> int:
    """HAMi's scheduler extender and webhook: /filter, /bind, /webhook, /healthz.

    For clusters in which HAMi does not run. Point the extender of a KubeSchedulerConfiguration and a
    MutatingWebhookConfiguration at it. Logs go to standard error; runs until SIGTERM or Ctrl-C.
    """
    from kerf.cli.extender import serve

    return serve(flags)
