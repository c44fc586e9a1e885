"""`kubectl gardener bootstrap-token`: credentials with which a new gardenlet requests its certificate."""

import secrets
from datetime import timedelta

import click

from gardener.garden.bootstrap_tokens import token_secret
from gardener.garden.seeds import BootstrapToken, bootstrap_token_id, is_seed_name
from kube.clock import format_time, utc_now
from kube.kubeconfigs import kubeconfig
from kube.objects import Key, key, uid
from kube.resources import SECRETS
from kubectl import output
from kubectl.errors import UserError
from kubectl.options import seconds_of
from kubectl.session import Session, on_cluster

_SHORTEST, _LONGEST = timedelta(minutes=10), timedelta(days=7)
_NAME = "garden"
"""Name of cluster, user and context."""


@click.command
@click.argument("name", metavar="SEED", help="Name of the Seed, which need not exist.")
@click.option("--expiration", metavar="DURATION", default="24h", show_default=True, help="Validity, from 10m to 168h.")
@click.option(
    "--server",
    metavar="URL",
    help="Address of the garden for gardenlets; default: the server of your own kubeconfig.",
)
@on_cluster(target=False)
async def command(session: Session, *, name: str, expiration: str, server: str | None) -> None:
    """Creates a bootstrap token that is valid for the gardenlet of one Seed, and prints a kubeconfig with it to stdout,
    its expiry and name to stderr. The gardenlet can request its certificate with it, and nothing else; then it deletes
    the token. A Seed has one token: an earlier one is replaced. Requires the permission to get, create and delete
    Secrets in the namespace kube-system of the garden.
    """
    if not is_seed_name(name):
        raise UserError(f"{name!r} is not a name of a Seed", hint="use lower-case letters, digits and hyphens")
    lifetime = timedelta(seconds=seconds_of(expiration))
    if not _SHORTEST <= lifetime <= _LONGEST:
        raise UserError(f"--expiration {expiration} is out of range", hint="choose a duration from 10m to 168h")
    if server is not None and not server.startswith("https://"):
        raise UserError(
            f"--server {server} is not the address of an API server", hint="write https://HOST or with :PORT"
        )
    client = session.source.client
    connection = client.transport.connection
    # The gardenlet may delete only the token with this identity.
    identity, secret, expires = bootstrap_token_id(Key("garden", name)), secrets.token_hex(8), utc_now() + lifetime
    token = token_secret(
        identity,
        secret=secret,
        description=f"For the gardenlet of the Seed {name}.",
        extra_groups=BootstrapToken(name).extra_groups,
        expires=expires,
    )
    earlier = await client.find(SECRETS, key(token))
    if earlier is not None:
        await client.delete(SECRETS, key(token), uid=uid(earlier))
        output.begin("the earlier token for this Seed is no longer valid")
    await client.create(SECRETS, token)
    text = kubeconfig(
        _NAME,
        server=server or connection.server,
        ca_bundle=connection.authority,
        user={"token": f"{identity}.{secret}"},
    )
    output.write(text.decode())
    output.begin(f"expires at {format_time(expires)}; to revoke it, delete the Secret {key(token)}")
