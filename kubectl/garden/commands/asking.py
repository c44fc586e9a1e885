"""Options of commands that send requests to a gardenlet."""

import click

from kubectl import options

seed = click.option(
    "--seed-kubeconfig",
    "target",
    type=options.FILE,
    metavar="FILE",
    help="Kubeconfig of the cluster of the Seed, if it is not the garden.",
)
gardenlet = click.option(
    "--gardenlet", "url", metavar="URL", help="Where the gardenlet serves its metrics, to ask it directly."
)
