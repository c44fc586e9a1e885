"""Force deletion: remove a Shoot's remains from the seed even if extensions don't respond.

The Shoot's own cluster is ignored. Objects of each kind are deleted, and controllers have a limited time to clean up;
then finalizers are removed, and the objects are reported, since resources that belong to them may be left.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from agent.gardenlet.common.extension_objects.kinds import OF_SHOOTS, Kind
from agent.gardenlet.common.shoot_clusters import ShootClusters
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.flow.unit import Unit, Wait
from agent.gardenlet.shoot.main import cluster_objects
from gardener import keys
from gardener.api.druid import ETCDS
from gardener.api.extensions import ALL_EXTENSIONS
from gardener.api.kinds import MANAGED_RESOURCES, OF_MACHINES
from gardener.extension_contract import timestamp
from kube.apply.application import for_each
from kube.errors import Conflict, KindNotServed, NotFound
from kube.objects import Key, Object, annotations, finalizers, held_by, is_deleting, key, metadata, spec, uid
from kube.resources import (
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    INGRESSES,
    JOBS,
    PODS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    Resource,
)
from kube.runtime.client import Form, Selection
from kube.runtime.waiting import NotInTimeError, Waiting
from process.clusters import Cluster

_OF_SHOOT = [each for each in ALL_EXTENSIONS if each.namespaced]
_WORKLOADS = (CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, JOBS, STATEFUL_SETS, PODS)
_OTHERS = (INGRESSES, SERVICES, VOLUME_CLAIMS, SECRETS, CONFIG_MAPS)
_MOST_REMEMBERED = 50


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds for controllers to release an object. Attributes: longest: replaces the usual times of extensions."""

    objects: float = 120.0
    longest: float | None = None


USUAL = Patience()


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Attributes:
    name: of the Shoot.
    technical_id: name of its namespace in the seed.
    left_behind: objects that were released by force, with the reason that held each.
    """

    name: Key
    technical_id: str
    seed: Cluster
    garden: Cluster
    waiting: Waiting
    shoots: ShootClusters
    patience: Patience = USUAL
    left_behind: list[str] = field(default_factory=list)


# --- objects of extensions


async def delete_extensions(removal: Removal) -> None:
    """Delete extension objects, annotated so that extensions may leave resources behind."""
    for resource in _OF_SHOOT:
        for each in await _list(removal, resource):
            await _confirm(removal, resource, each, {keys.CONFIRM_FORCE_DELETION: "true"})
            await _delete(removal, resource, each)


async def wait_for_extensions(removal: Removal) -> None:
    """Wait for extension objects, and finally release them by force."""
    await asyncio.gather(*(_until_gone(removal, each, _seconds(removal, each)) for each in _OF_SHOOT))


EXTENSIONS = Unit(
    id="extensions",
    verb="Deleting",
    title="extension resources",
    deploy=delete_extensions,
    wait=Wait("extension resources have been deleted", wait_for_extensions, id="extensions-gone"),
)


def _seconds(removal: Removal, resource: Resource) -> float:
    usual = OF_SHOOTS.get(resource, Kind(resource=resource)).longest
    return usual if removal.patience.longest is None else removal.patience.longest


async def delete_machines(removal: Removal) -> None:
    """Delete objects of machines after their manager: extensions have removed them or never will."""
    await removal.seed.client.delete_if_exists(DEPLOYMENTS, Key(removal.technical_id, "machine-controller-manager"))
    for resource in OF_MACHINES:
        await _remove(removal, resource, seconds=0.0)


# --- objects of Gardener


async def delete_managed_resources(removal: Removal) -> None:
    """Delete ManagedResources with their objects in the seed; those in the Shoot's cluster stay."""
    client = removal.seed.client
    of_shoot = set[Key]()
    for each in await _list(removal, MANAGED_RESOURCES, form=Form.WHOLE):
        name = key(each)
        if spec(each).get("keepObjects") is True:
            await client.patch_if_exists(MANAGED_RESOURCES, name, {"spec": {"keepObjects": False}})
        await _delete(removal, MANAGED_RESOURCES, each)
        if not spec(each).get("class"):
            of_shoot.add(name)
    await _let_go(removal, MANAGED_RESOURCES, lambda each: key(each) in of_shoot, is_expected=True)
    await _until_gone(removal, MANAGED_RESOURCES, removal.patience.objects)


async def delete_cluster(removal: Removal) -> None:
    """Delete the Cluster object, which no extension needs any more."""
    with suppress(KindNotServed):
        await cluster_objects.delete(removal.seed.client, removal.technical_id)


async def delete_etcds(removal: Removal) -> None:
    """Delete the etcds, and finally release them by force."""
    for each in await _list(removal, ETCDS):
        await _confirm(removal, ETCDS, each, {})
        await _delete(removal, ETCDS, each)
    await _until_gone(removal, ETCDS, removal.patience.objects)


async def delete_others(removal: Removal) -> None:
    """Delete all other objects in the namespace, and finally release them by force."""
    await removal.shoots.drop(removal.technical_id)
    for resource in _WORKLOADS:
        for each in await _list(removal, resource):
            await _delete(removal, resource, each)
    for resource in (*_WORKLOADS, *_OTHERS):
        await _remove(removal, resource, seconds=removal.patience.objects)


# --- objects of one kind


async def _list(removal: Removal, resource: Resource, *, form: Form = Form.METADATA) -> list[Object]:
    """Objects in the namespace; empty if the seed does not serve the kind."""
    selection = Selection(namespace=removal.technical_id)
    return await removal.seed.discovery.list_if_served(resource, selection, form=form)


async def _confirm(removal: Removal, resource: Resource, obj: Object, notes: dict[str, str]) -> None:
    """Confirm a deletion, as admission requires for protected objects."""
    wanted = {**notes, keys.CONFIRM_DELETION: "true"}
    if wanted.items() <= annotations(obj).items():
        return
    stamped = {**wanted, keys.TIMESTAMP: timestamp(removal.seed.clock())}
    with suppress(NotFound, Conflict):
        await removal.seed.client.annotate(resource, key(obj), stamped, uid=uid(obj))


async def _delete(removal: Removal, resource: Resource, obj: Object) -> None:
    if not is_deleting(obj):
        with suppress(NotFound, Conflict):
            await removal.seed.client.delete(resource, key(obj), uid=uid(obj), propagation="Background")


async def _remove(removal: Removal, resource: Resource, *, seconds: float) -> None:
    await for_each(partial(_delete, removal, resource), await _list(removal, resource))
    await _until_gone(removal, resource, seconds)


async def _until_gone(removal: Removal, resource: Resource, seconds: float) -> None:
    """Wait up to `seconds` for all objects that are being deleted, then remove finalizers; ignore new objects."""
    until = asyncio.get_running_loop().time() + seconds
    left = [each for each in await _list(removal, resource) if is_deleting(each)]
    for each in left:
        rest = until - asyncio.get_running_loop().time()
        with suppress(NotInTimeError):
            await removal.waiting.until_gone(
                resource,
                key(each),
                seconds=max(rest, 0.0),
                expected_uid=uid(each),
                report=partial(_report, resource, each),
            )
    await _let_go(removal, resource, is_deleting)


def _report(resource: Resource, obj: Object, reason: str) -> None:
    waits_for(f"{resource.kind} {key(obj).name}: {reason}")


async def _let_go(
    removal: Removal, resource: Resource, which: Callable[[Object], bool], *, is_expected: bool = False
) -> None:
    """Remove the finalizers of matching objects. Args: is_expected: not to be reported."""
    for each in await _list(removal, resource):
        if not which(each):
            continue
        name = key(each)
        with suppress(NotFound, Conflict):
            if resource == PODS:
                await removal.seed.client.delete(resource, name, uid=uid(each), grace_seconds=0)
            if finalizers(each):
                body = {"metadata": {"resourceVersion": metadata(each)["resourceVersion"], "finalizers": None}}
                await removal.seed.client.patch(resource, name, body)
                if not is_expected and len(removal.left_behind) < _MOST_REMEMBERED:
                    removal.left_behind.append(f"{resource.kind} {name.name} ({held_by(each)})")


def text_of(left_behind: Sequence[str]) -> str:
    return f"Resources of these objects may remain, since they were deleted by force: {', '.join(left_behind)}"
