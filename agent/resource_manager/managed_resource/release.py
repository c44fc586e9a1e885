"""Releasing one object: our stamps are taken off, as far as they are not true any more, and it is left alone."""

from collections.abc import Set as AbstractSet

from agent.resource_manager.managed_resource.delete_options import DeleteOptions
from gardener import keys
from gardener.managed_resource.references import key_of_reference, resource_string_of_reference
from kube.apply.live_objects import key_of_live
from kube.errors import KindGone, KubeError, NotFound
from kube.objects import Object, annotations
from kube.objects import key as key_of
from kube.resources import Resource

STAMPS = frozenset({keys.ORIGIN, keys.DESCRIPTION})


class ReleaseError(Exception):
    """An object could not be released; the message is for the condition."""

    def __init__(self, doing: str, reference: Object, error: str) -> None:
        super().__init__(f'error {doing} object "{resource_string_of_reference(reference)}": {error}')


async def release(reference: Object, options: DeleteOptions, *, stamps: AbstractSet[str] = STAMPS) -> None:
    """Args: stamps: the annotations to take off. Raises ReleaseError."""
    found = await find_releasable(reference, options)
    if found is None:
        return
    resource, live = found
    key, present = key_of(live), stamps & annotations(live).keys()
    if not present:
        return
    patch = {"metadata": {"annotations": dict.fromkeys(sorted(present))}}
    try:
        await options.client.patch(resource, key.name, patch, namespace=key.namespace)
    except NotFound:
        return
    except KubeError as error:
        raise ReleaseError("patching", reference, options.owner.identity.error_text(error)) from error
    options.live.forget(key_of_reference(reference))


async def find_releasable(reference: Object, options: DeleteOptions) -> tuple[Resource, Object] | None:
    """An object that is ours, and its kind. Raises ReleaseError: it may not be released, or can't be read."""
    owner, target = options.owner, options.live
    try:
        resource = await target.resource_of(reference)
        key = key_of_live(resource, reference)
        live = await target.read(resource, key)
    except (KindGone, NotFound):
        return None
    except KubeError as error:
        raise ReleaseError("getting", reference, owner.identity.error_text(error)) from error
    if live is None or annotations(live).get(keys.ORIGIN) != owner.origin:
        return None
    if problem := owner.problem(resource, key):
        raise ReleaseError("patching", reference, problem)
    return resource, live
