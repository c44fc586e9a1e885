"""`kubectl gardener page`: a local page with everything that the user may see."""

import asyncio
import contextlib
import secrets
from collections.abc import Mapping
from pathlib import Path

import click

from kube.runtime.client import Client
from kubectl import output
from kubectl.errors import UserError
from kubectl.session import Session, on_cluster, open_cluster


@click.command
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; default: a free one.")
@click.option(
    "--seed-kubeconfig",
    "seeds",
    multiple=True,
    metavar="SEED=FILE",
    help="Kubeconfig of the cluster of a Seed, for its ManagedResources and flows; repeatable.",
)
@on_cluster(target=False)
async def command(session: Session, *, port: int, seeds: tuple[str, ...]) -> None:
    """Serves the page on 127.0.0.1 until Ctrl-C, and prints its address. Reads with your credentials, and shows what
    you may read; writes nothing. The address contains a random token, without which other users of this computer can't
    open it.
    """
    from kubectl.garden.page.reading import Overview  # only here, with the server: other commands need no aiohttp
    from kubectl.garden.page.server import Page
    from process.server import HttpServer

    async with contextlib.AsyncExitStack() as stack:
        clusters: dict[str, Client] = {"": session.source.client}
        for seed, file in _files(seeds).items():
            clusters[seed] = (await open_cluster(stack, session.where, file)).client
        token = secrets.token_urlsafe(16)
        page = Page(token, Overview(clusters, session.namespace))
        server = HttpServer("the page", page, host="127.0.0.1", port=port, max_connections=32, request_timeout=60.0)
        try:
            server.bind()
        except OSError as error:
            raise UserError(str(error), hint="choose another one by --port, or let the command choose") from error
        await server.start()
        stack.push_async_callback(server.stop)
        output.write(f"http://127.0.0.1:{server.port}/{token}/\n")
        output.begin("serves until Ctrl-C")
        await asyncio.Event().wait()


def _files(seeds: tuple[str, ...]) -> Mapping[str, Path]:
    """Kubeconfigs by the names of Seeds. Raises UserError."""
    found: dict[str, Path] = {}
    for each in seeds:
        name, equals, file = each.partition("=")
        if not (name and equals and file):
            raise UserError(f"--seed-kubeconfig {each!r} has no name", hint="write --seed-kubeconfig SEED=FILE")
        found[name] = Path(file)
    return found
