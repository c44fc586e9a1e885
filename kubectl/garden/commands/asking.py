"""Options of commands that send requests to a gardenlet."""

import click

from kubectl import options

seed = click.option(
    "--seed-kubeconfig",
    "target",
    type=options.FILE,
    metavar="FILE",
    help="Kubeconfig of the seed cluster, if it is not the garden cluster.",
)
gardenlet = click.option(
    "--gardenlet", "url", metavar="URL", help="URL of the gardenlet's metrics server, to send the request directly."
)
