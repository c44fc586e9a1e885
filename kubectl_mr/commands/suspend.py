"""`kubectl mr suspend`: the annotation that says hands off, with who, why and since when beside it."""

import getpass
from datetime import UTC, datetime
from typing import Annotated

import typer

from agent.api import MANAGED_RESOURCES
from agent.overview.states import SUSPEND_REASON, SUSPENDED_BY, SUSPENDED_SINCE
from agent.responsibility import IGNORE
from kube.client import Client
from kube.errors import KubeError
from kube.objects import format_time
from kube.resources import Resource
from kubectl_mr import options, output
from kubectl_mr.session import Session, Where, run

_REVIEWS = Resource("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)


def command(
    *,
    names: options.Names,
    reason: Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why; others will want to know.")],
    namespace: options.NamespaceFlag = None,
    context: options.ContextFlag = None,
    kubeconfig: options.KubeconfigFlag = None,
) -> None:
    """Objects are left as they are, whoever changes them. Deleting a suspended ManagedResource still deletes them."""

    async def work(session: Session) -> None:
        for name in names:
            await session.managed_resource(name)
        notes = {
            IGNORE: "true",
            SUSPEND_REASON: reason,
            SUSPENDED_BY: await _own_name(session.source.client),
            SUSPENDED_SINCE: format_time(datetime.now(UTC)),
        }
        for name in names:
            patch = {"metadata": {"annotations": notes}}
            await session.source.client.patch(MANAGED_RESOURCES, name, patch, namespace=session.namespace)
            output.done(
                f"ManagedResource {session.key(name)} is suspended; when you are done: kubectl mr resume {name}"
            )

    run(Where(kubeconfig=kubeconfig, context=context, namespace=namespace), work)


async def _own_name(client: Client) -> str:
    """As the API server knows who asks; else as this computer does."""
    try:
        review = await client.create(_REVIEWS, {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind})
        name = ((review.get("status") or {}).get("userInfo") or {}).get("username")
    except KubeError:
        name = None
    return name or getpass.getuser()
