"""Removal of the credentials of the first certificate request: from then on the certificate is enough.

The user of these credentials is read from the request, with the new certificate. Missing objects are no error: an
earlier attempt or another client has removed them.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from agent.gardenlet.bootstrap.access import GardenAccess
from agent.gardenlet.bootstrap.pace import AGAIN_SECONDS, Pace
from agent.gardenlet.bootstrap.rules.unfinished import ANNOTATION, Unfinished, credentials_of, unfinished
from kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound
from kube.objects import Key, Object, mapping, metadata, spec, text
from kube.paths import pointer_step
from kube.resources import CERTIFICATE_SIGNING_REQUESTS, SECRETS
from kube.runtime.client import JSON_PATCH, Client

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
_ATTEMPTS = 10


async def finish(access: GardenAccess, garden: Client) -> None:
    """Remove the credentials of a bootstrap of this process, or of one that died before the removal.

    Failures are logged, and retried at the next start.
    """
    secret = await access.stored_secret()
    left = unfinished(secret)
    if secret is None or left is None:
        return
    try:
        await _when_permitted(access.pace, lambda: _remove(access, garden, left))
        await access.pace.patiently("record that the bootstrap is finished", lambda: _forget(access, secret))
    except KubeError as error:
        log.error(
            "Cannot delete the bootstrap credentials; delete them, or grant the gardenlet this right",
            error=str(error),
            credentials_of=left.user,
        )


async def _when_permitted(pace: Pace, remove: Callable[[], Awaitable[None]]) -> None:
    """Repeat while forbidden: without authorizer, the controller manager grants rights of a new Seed a moment later."""
    for _ in range(_ATTEMPTS):
        with suppress(Forbidden):
            await pace.patiently("remove the bootstrap credentials", remove)
            return
        await pace.sleep(AGAIN_SECONDS)
    await pace.patiently("remove the bootstrap credentials", remove)


async def _remove(access: GardenAccess, garden: Client, left: Unfinished) -> None:
    where = access.settings.bootstrap_kubeconfig
    if where is not None and left.bootstrap_uid:
        with suppress(NotFound, Conflict):  # another Secret did not make the request
            await access.seed.client.delete(SECRETS, Key(where.namespace, where.name), uid=left.bootstrap_uid)
    # The garden removes requests after an hour; their creator was stored with the annotation.
    user = await _requester(garden, left.request) or left.user
    for resource, namespace, name in credentials_of(user):
        own = Key(namespace, name)
        if await garden.delete_if_exists(resource, own):
            log.info("Deleted the bootstrap credentials", kind=resource.kind, name=str(own))


async def _requester(garden: Client, request: str) -> str:
    """Creator of the request; empty if the request, and perhaps the right to read it, is gone."""
    with suppress(NotFound, Forbidden):
        return text(spec(await garden.get(CERTIFICATE_SIGNING_REQUESTS, request)).get("username"))
    return ""


async def _forget(access: GardenAccess, secret: Object) -> None:
    """Remove the annotation, unless it belongs to a later bootstrap."""
    where = access.settings.kubeconfig_secret
    assert where is not None
    noted = mapping(metadata(secret).get("annotations"))[ANNOTATION]
    patch = [
        {"op": "test", "path": f"/metadata/annotations/{pointer_step(ANNOTATION)}", "value": noted},
        {"op": "remove", "path": f"/metadata/annotations/{pointer_step(ANNOTATION)}"},
    ]
    with suppress(NotFound, Invalid):
        await access.seed.client.patch(SECRETS, Key(where.namespace, where.name), patch, content_type=JSON_PATCH)
