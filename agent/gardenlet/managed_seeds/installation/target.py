"""Objects of a gardenlet in the cluster in which it runs: written from manifests, deleted by label.

Nothing is watched there, since it may be the cluster of a Shoot. Written objects are remembered, so that a pass without
changes only reads. Fields that are gone from a manifest are removed from the object.

The Deployment comes last, and only if `admit` permits it, because it restarts a gardenlet.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gardener.keys import REFERENCE_PREFIX
from kube.differences import content_hash
from kube.merge import MergeOptions, with_kept_fields
from kube.objects import Key, Object, annotations, integer, key, labels, mapping, metadata, text, uid
from kube.packing import digest
from kube.paths import at, mappings_at
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from kube.runtime.client import Client, Form, Selection
from kube.runtime.discovery import Discovery
from kube.write_mode import WriteMode
from kube.yaml import Budget, DialectError, load

NAMESPACE, NAME = "garden", "gardenlet"
_MOST_VALUES = 100_000
_LABELS = "app=gardener,role=gardenlet,heritage=Helm"
_MANAGER = "gardenlet-deployer"
_MODE, _DRY = WriteMode(field_manager=_MANAGER), WriteMode(field_manager=_MANAGER, dry_run=True)
_KINDS = {
    (each.api_version, each.kind): each
    for each in (
        DEPLOYMENTS,
        SERVICES,
        POD_DISRUPTION_BUDGETS,
        NETWORK_POLICIES,
        ROLE_BINDINGS,
        ROLES,
        CLUSTER_ROLE_BINDINGS,
        CLUSTER_ROLES,
        SERVICE_ACCOUNTS,
        CONFIG_MAPS,
        SECRETS,
        PRIORITY_CLASSES,
    )
}
"""Kinds in the order of deletion. The chart of another release may have further kinds, which are written, too."""
_NAMESPACED = frozenset(_KINDS.values()) - {CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, PRIORITY_CLASSES}
_NEVER_CHANGED = frozenset({CONFIG_MAPS, PRIORITY_CLASSES})
"""Kinds whose objects have a content hash in their names, or are shared."""

Admit = Callable[[], bool]
"""Whether a gardenlet may be restarted now."""


class NotAdmitted(Exception):
    """All objects are written except the Deployment, which must wait for others."""


@dataclass(slots=True)
class Remembered:
    """Digests of the last written objects, without status, and of their manifests, by cluster and object."""

    _known: dict[tuple[str, Resource, Key], tuple[bytes, bytes]] = field(default_factory=dict)

    def is_same(self, cluster: str, resource: Resource, live: Object, manifest: bytes) -> bool:
        return self._known.get((cluster, resource, key(live))) == (content_hash(live), manifest)

    def note(self, cluster: str, resource: Resource, live: Object, manifest: bytes) -> None:
        self._known[cluster, resource, key(live)] = (content_hash(live), manifest)

    def forget(self, cluster: str) -> None:
        self._known = {each: value for each, value in self._known.items() if each[0] != cluster}


@dataclass(eq=False, slots=True, kw_only=True)
class Target:
    """Objects of a gardenlet in a cluster.

    Args:
        cluster: its key in `remembered`.
    """

    client: Client
    discovery: Discovery
    cluster: str
    remembered: Remembered

    async def apply(self, objects: Iterable[Object], *, admit: Admit = lambda: True) -> None:
        """Write the objects.

        Raises:
            NotAdmitted: the Deployment must wait.
            KubeError: a request failed, such as for a kind that the cluster does not serve.
        """
        deployments = []
        for obj in objects:
            resource = await self._resource(obj)
            if resource == DEPLOYMENTS:
                deployments.append(obj)
            else:
                await self._write(resource, obj)
        for obj in deployments:
            await self._write(DEPLOYMENTS, obj, admit=admit)

    async def deployment(self) -> Object | None:
        return await self.client.find(DEPLOYMENTS, Key(NAMESPACE, NAME))

    async def seed_name(self) -> str:
        """Name of the Seed in the present gardenlet's configuration; empty if unknown."""
        volumes = mappings_at(await self.deployment() or {}, "spec", "template", "spec", "volumes")
        name = next((text(at(each, "configMap", "name")) for each in volumes if each.get("name") == "config"), "")
        found = await self.client.find(CONFIG_MAPS, Key(NAMESPACE, name)) if name else None
        try:
            config = load(text(at(found or {}, "data", "config.yaml")), budget=Budget(_MOST_VALUES))
        except DialectError:
            return ""
        return text(at(mapping(config), "seedConfig", "metadata", "name"))

    async def remove(self) -> list[str]:
        """Delete all objects with the labels of a gardenlet; return those that still existed."""
        self.remembered.forget(self.cluster)
        left = []
        for resource in _KINDS.values():
            namespace = NAMESPACE if resource in _NAMESPACED else ""
            selection = Selection(namespace=namespace, label_selector=_LABELS)
            for obj in await self.discovery.list_if_served(resource, selection, form=Form.METADATA):
                left.append(f"{resource.kind} {key(obj).name}")
                await self.client.delete_if_exists(resource, Key(namespace, key(obj).name), uid=uid(obj))
        return left

    async def _resource(self, obj: Object) -> Resource:
        api_version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
        return _KINDS.get((api_version, kind)) or await self.discovery.find(api_version, kind)

    async def _write(self, resource: Resource, manifest: Object, *, admit: Admit = lambda: True) -> None:
        name, content = key(manifest), digest(manifest)
        live = await self.client.find(resource, name)
        if live is None:
            if created := await self.client.create_if_missing(resource, manifest, mode=_MODE):
                self.remembered.note(self.cluster, resource, created, content)
                return
            live = await self.client.get(resource, name)
        if resource in _NEVER_CHANGED or self.remembered.is_same(self.cluster, resource, live, content):
            return
        merged = _merged(manifest, live)
        if resource == DEPLOYMENTS and await self._would_restart(merged, live) and not admit():
            raise NotAdmitted
        self.remembered.note(self.cluster, resource, await self.client.replace(resource, merged, mode=_MODE), content)

    async def _would_restart(self, merged: Object, live: Object) -> bool:
        would_be = await self.client.replace(DEPLOYMENTS, merged, mode=_DRY)
        return bool(at(would_be, "spec", "template") != at(live, "spec", "template"))


def _merged(manifest: Object, live: Object) -> Object:
    """Manifest merged with labels, annotations and fields of other clients."""
    notes = {name: value for name, value in annotations(live).items() if not name.startswith(REFERENCE_PREFIX)}
    meta = {
        **metadata(live),
        "labels": {**labels(live), **labels(manifest)},
        "annotations": {**notes, **annotations(manifest)},
    }
    meta.pop("managedFields", None)
    return with_kept_fields({**manifest, "metadata": meta}, live, MergeOptions(field_manager=_MANAGER))


def is_rolled_out(deployment: Object) -> bool:
    """Whether all pods have the present template, and there are no others."""
    status, wanted = at(deployment, "status") or {}, integer(at(deployment, "spec", "replicas"))
    return (
        integer(status.get("observedGeneration")) >= integer(metadata(deployment).get("generation"))
        and integer(status.get("updatedReplicas")) >= wanted
        and integer(status.get("replicas")) <= wanted
        and integer(status.get("availableReplicas")) >= wanted
    )
