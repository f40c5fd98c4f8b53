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
@click.option("--kubeconfig", metavar="FILE", help="As kubectl's; without it the pod's own service account.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
@click.option("--address", default="127.0.0.1:0", show_default=True, help="Where to serve; port 0 takes a free one.")
@click.option("--tls-cert", metavar="FILE", help="Serve HTTPS with this certificate chain (PEM).")
@click.option("--tls-key", metavar="FILE", help="Its private key (PEM).")
@click.option("--url-file", metavar="FILE", help="Write the URL here once the books are complete.")
@click.option("--ties", type=click.Choice(("first", "random")), default="random", show_default=True,
              help="Of equal nodes: one at random, as HAMi, or the first by name.")  # fmt: skip
@click.option("--seed", type=int, help="Of --ties random; without it each run draws other lots.")
def hami_extender(**flags: Any) -> int:
    """HAMi's scheduler extender and webhook: /filter, /bind, /webhook, /healthz.

    For clusters in which HAMi does not run. Point the extender of a KubeSchedulerConfiguration and a
    MutatingWebhookConfiguration at it. Logs go to standard error; runs until SIGTERM or Ctrl-C.
    """
    from kerf.cli.extender import serve

    return serve(flags)
