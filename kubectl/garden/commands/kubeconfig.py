"""`kubectl gardener kubeconfig`: short-lived credentials for a Shoot."""

from datetime import timedelta
from http import HTTPStatus

import click

from gardenapi.api import Kubeconfig, Role, recognized
from gardener.api.garden import AUTHENTICATION_API, SHOOTS
from kube.clock import format_time
from kube.errors import NoStatus, ServerFailure
from kube.objects import Key
from kube.paths import at
from kubectl import output
from kubectl.errors import UserError
from kubectl.garden.selection import completed
from kubectl.garden.why.operation import hibernates
from kubectl.options import seconds_of
from kubectl.reader import Reader
from kubectl.session import Session, on_cluster

_API_SERVICE = "{1}.{0}".format(*AUTHENTICATION_API.split("/"))


ADMIN = click.option(
    "--admin", is_flag=True, help="Give all rights, instead of read access to everything except Secrets."
)
EXPIRATION = click.option(
    "--expiration",
    metavar="DURATION",
    default="1h",
    show_default=True,
    help="Validity, from 10m to 24h; other durations are set to the nearest limit.",
)


@click.command
@click.argument("name", metavar="SHOOT", help="Name of the Shoot.", shell_complete=completed(SHOOTS))
@ADMIN
@EXPIRATION
@on_cluster(target=False, garden=True)
async def command(session: Session, *, name: str, admin: bool, expiration: str) -> None:
    """Prints the kubeconfig to stdout, and its expiry to stderr. It contains a private key: write it to a file that
    only you can read. Requires the permission to create shoots/viewerkubeconfig, or with --admin
    shoots/adminkubeconfig.
    """
    made = await requested(session, session.key(name), admin=admin, expiration=expiration)
    output.write(output.as_written(made.content.decode()).rstrip("\n") + "\n")
    output.begin(f"expires at {format_time(made.expires)}")


async def requested(session: Session, own: Key, *, admin: bool, expiration: str) -> Kubeconfig:
    """Have the garden issue a kubeconfig of a Shoot. Raises UserError, KubeError."""
    lifetime = timedelta(seconds=seconds_of(expiration))
    client = session.source.client
    shoot = await Reader(client).demand(SHOOTS, own)
    garden = await recognized(client)
    try:
        made = await garden.kubeconfig(shoot, Role.ADMIN if admin else Role.VIEWER, lifetime=lifetime)
    except (NoStatus, ServerFailure) as error:
        if error.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        raise no_server(error) from error
    if at(shoot, "status", "hibernated") is True:
        output.warn(f"the Shoot is hibernated: its API server does not run; wake it up: {hibernates(shoot, False)}")
    elif at(shoot, "spec", "hibernation", "enabled") is True:
        output.warn(f"the Shoot goes to sleep now: its API server ends; wake it up: {hibernates(shoot, False)}")
    return made


def no_server(error: NoStatus | ServerFailure) -> UserError:
    """Explain the answer of an API server for a path whose server is missing or away."""
    if error.status == HTTPStatus.NOT_FOUND:
        hint = f"its operator has to install the webhook server of a garden, with APIService {_API_SERVICE}"
        return UserError("this garden has no server that makes kubeconfigs", hint=hint)
    hint = f"have its operator check whether the webhook server runs: kubectl get apiservice {_API_SERVICE}"
    return UserError(f"the server that makes kubeconfigs does not answer: {error}", hint=hint)
