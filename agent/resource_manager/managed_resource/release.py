"""Releasing one object in mode Ignore: our stamps are taken off, and it is left alone."""

from agent.resource_manager.managed_resource.removal import DeleteOptions, key_of_live
from gardener import keys
from gardener.managed_resource.references import key_of_reference, resource_string_of_reference
from kube.errors import KindNotServed, KubeError, NotFound
from kube.objects import Key, Object, annotations
from kube.resources import Resource


class ReleaseError(Exception):
    """An object could not be released; the message is for the condition."""

    def __init__(self, doing: str, reference: Object, error: str) -> None:
        super().__init__(f'error {doing} object "{resource_string_of_reference(reference)}": {error}')


async def release(reference: Object, options: DeleteOptions) -> None:
    """Raises ReleaseError."""
    found = await find_releasable(reference, options)
    if found is None:
        return
    resource, key = found
    stamps = {"metadata": {"annotations": {keys.ORIGIN: None, keys.DESCRIPTION: None}}}
    try:
        await options.client.patch(resource, key.name, stamps, namespace=key.namespace)
    except (KindNotServed, NotFound):
        return
    except KubeError as error:
        raise ReleaseError("patching", reference, options.owner.identity.error_text(error)) from error
    options.target.forget(key_of_reference(reference))


async def find_releasable(reference: Object, options: DeleteOptions) -> tuple[Resource, Key] | None:
    """How an object that is ours is reached. Raises ReleaseError: it may not be released, or can't be read."""
    owner, target = options.owner, options.target
    try:
        resource = await target.resource_of(reference)
        key = key_of_live(resource, reference)
        live = await target.read(resource, key)
    except (KindNotServed, NotFound):
        return None
    except KubeError as error:
        raise ReleaseError("getting", reference, owner.identity.error_text(error)) from error
    if live is None or annotations(live).get(keys.ORIGIN) != owner.origin:
        return None
    if problem := owner.problem(resource, key):
        raise ReleaseError("patching", reference, problem)
    return resource, key
