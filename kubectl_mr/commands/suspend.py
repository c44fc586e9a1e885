"""`kubectl mr suspend`: the annotation that says hands off, with who, why and since when beside it."""

import getpass
from datetime import UTC, datetime
from typing import Annotated

import typer

from gardener.keys import IGNORE, IGNORE_REASON, IGNORED_BY, IGNORED_SINCE
from gardener.kinds import MANAGED_RESOURCES
from kube.client import Client
from kube.clock import format_time
from kube.errors import KubeError
from kube.resources import Resource
from kubectl_mr import options, output
from kubectl_mr.session import Session, on_cluster

_REVIEWS = Resource("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)


@on_cluster(target=False)
async def command(
    session: Session,
    *,
    names: options.Names,
    reason: Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why; others will want to know.")],
) -> None:
    """Nothing is done to the objects, even if others change them. Deleting a suspended ManagedResource deletes them."""
    for name in names:
        await session.managed_resource(name)
    notes = {
        IGNORE: "true",
        IGNORE_REASON: reason,
        IGNORED_BY: await _own_name(session.source.client),
        IGNORED_SINCE: format_time(datetime.now(UTC)),
    }
    for name in names:
        patch = {"metadata": {"annotations": notes}}
        await session.source.client.patch(MANAGED_RESOURCES, name, patch, namespace=session.namespace)
        output.done(f"ManagedResource {session.key(name)} is suspended; when you are done: kubectl mr resume {name}")


async def _own_name(client: Client) -> str:
    """As the API server knows who asks; else as this computer does."""
    try:
        review = await client.create(_REVIEWS, {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind})
        name = ((review.get("status") or {}).get("userInfo") or {}).get("username")
    except KubeError:
        name = None
    return name or getpass.getuser()
