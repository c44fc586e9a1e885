"""Writes of an installation in the seed: only differences, and never to an object that is being deleted."""

from collections.abc import Mapping

from agent.gardenlet.extensions.controller_installation.install import namespaces
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.keys import REFERENCE_PREFIX
from kube.apply.shared_objects import ensure
from kube.differences import merge_patch
from kube.objects import Object, annotations, key, labels, mapping, uid
from kube.resources import NAMESPACES, SECRETS
from kube.runtime.client import Client


async def write_namespace(client: Client, wanted: Object) -> Object:
    """Write and return the namespace; one that is being deleted is returned unchanged."""
    return await ensure(client, NAMESPACES, wanted, patch=namespaces.patch)


async def write_access(client: Client, secret: Object) -> None:
    """Write an access Secret; the token and foreign annotations stay."""
    await ensure(client, SECRETS, secret)


async def write_immutable(client: Client, secret: Object) -> None:
    """Create an immutable Secret, whose name depends on its content."""
    if await client.find(SECRETS, key(secret)) is None:
        await client.create_if_missing(SECRETS, secret)


async def write_managed_resource(client: Client, wanted: Object) -> Object | None:
    """Write and return the ManagedResource; None if nothing differs."""
    name = key(wanted)
    live = await client.find(MANAGED_RESOURCES, name)
    if live is None:
        return await client.create(MANAGED_RESOURCES, wanted)
    old = [each for each in annotations(live) if each.startswith(REFERENCE_PREFIX)]
    patch = {
        "metadata": {
            "labels": _lacking(labels(wanted), labels(live)),
            "annotations": {
                **_lacking(annotations(wanted), annotations(live)),
                **{each: None for each in old if each not in annotations(wanted)},
            },
        },
        "spec": merge_patch(mapping(live.get("spec")), {**mapping(live.get("spec")), **wanted["spec"]}),
    }
    if not any((patch["metadata"]["labels"], patch["metadata"]["annotations"], patch["spec"])):
        return None
    patch["metadata"]["uid"] = uid(live)
    return await client.patch(MANAGED_RESOURCES, name, patch)


def _lacking(wanted: Mapping[str, str], live: Mapping[str, str]) -> Object:
    return {name: value for name, value in wanted.items() if live.get(name) != value}
