"""Comparison of recorded and live objects; see the docstring of the package."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from agent.gardenlet.common.component_objects import MARKS, may_be_mutated, owner_of_managed_resources
from agent.gardenlet.shoot.dry_run.client import Recorded, RecordingClient
from agent.gardenlet.shoot.dry_run.components import RecordedComponents
from agent.gardenlet.shoot.dry_run.rules.bundles import Bundled, bundled, differences_within, is_reference_only
from agent.gardenlet.shoot.dry_run.rules.shown import SECRET_KINDS, shown, without_noise
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.difference_reports import ObjectDifference, Place
from kube.apply.application import for_each
from kube.apply.object_sets import NotOursError, would_write
from kube.apply.scaled import Bounds, Target, bounds_of
from kube.errors import KindNotServed, KubeError
from kube.merge import MergeError
from kube.objects import Key, Object, annotations, is_deleting, key, labels, mapping, metadata, text
from kube.paths import mappings_at
from kube.resources import SECRETS, Resource
from kube.runtime.client import Selection
from kube.runtime.discovery import Discovery

_OF_SECRET = "the API server rejects it"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """Change of one object.

    Attributes:
        problem: reason why it can't be written.
    """

    resource: Resource
    name: Key
    before: Object | None
    after: Object | None
    problem: str = ""

    def shown(self, place: Place) -> ObjectDifference | None:
        """Return the visible difference; None if there is none."""
        before, after = shown(self.before, self.after)
        if before == after and not self.problem:
            return None
        return ObjectDifference(
            place=place,
            api_version=self.resource.api_version,
            kind=self.resource.kind,
            name=str(self.name),
            before=before,
            after=after,
            problem=self.problem,
        )


async def recorded(place: Place, client: RecordingClient) -> list[ObjectDifference]:
    """Differences of objects that tasks wrote directly."""

    async def one(entry: tuple[tuple[Resource, Key], Recorded]) -> ObjectDifference | None:
        (resource, name), written = entry
        return (await _written(client, resource, name, written)).shown(place)

    found = await for_each(one, list(client.written.items()))
    return [each for each in found if each is not None]


async def _written(client: RecordingClient, resource: Resource, name: Key, written: Recorded) -> _Change:
    before, after = written.before, written.after
    if before is not None and after is not None and without_noise(before) != without_noise(after):
        return await _replaced(client, resource, name, before, after)
    return _Change(resource=resource, name=name, before=before, after=after)


async def _replaced(client: RecordingClient, resource: Resource, name: Key, before: Object, body: Object) -> _Change:
    meta = {**metadata(body), "resourceVersion": metadata(before).get("resourceVersion")}
    meta.pop("managedFields", None)
    try:
        after, problem = await client.would_be(resource, {**body, "metadata": meta}), ""
    except KubeError as error:
        # Refusals of API servers quote the content.
        after, problem = body, _OF_SECRET if resource.kind in SECRET_KINDS else str(error)
    return _Change(resource=resource, name=name, before=before, after=after, problem=problem)


# --- components


@dataclass(slots=True)
class Components:
    """Comparison for one pass.

    Args:
        namespace: of the control plane.
    """

    client: RecordingClient
    discovery: Discovery
    namespace: str
    recorded: RecordedComponents
    _live: dict[Resource, list[Object]] = field(default_factory=dict)
    """Objects of components in the seed, by kind."""

    async def differences(self) -> list[ObjectDifference]:
        """Differences of the components' objects."""
        found, resources = list[_Change](), dict[tuple[str, str], Resource | None]()
        for obj in (each for objects in self.recorded.desired.values() for each in objects):
            kind = text(obj.get("apiVersion")), text(obj.get("kind"))
            if kind not in resources:
                resources[kind] = await self.discovery.kind_if_served(*kind)
        kinds = self.recorded.kinds.union(each for each in resources.values() if each is not None)
        await for_each(self._list, sorted(kinds, key=lambda each: (each.group, each.plural)))
        wanted = [(owner, obj) for owner, objects in self.recorded.desired.items() for obj in objects]
        bounds = bounds_of(obj for _, obj in wanted)
        changes = await for_each(partial(self._wanted, resources, bounds), wanted)
        found += [each for each in changes if each is not None]
        found += self._unwanted({(kind, key(obj)) for _, obj in wanted for kind in [_kind_of(obj)]})
        return await self._shown(found)

    async def _list(self, resource: Resource) -> None:
        namespace = self.namespace if resource.namespaced else ""
        selection = Selection(namespace=namespace, label_selector=f"{MARKS.label}={MARKS.value}")
        try:
            self._live[resource] = await self.client.list(resource, selection)
        except KindNotServed:
            self._live[resource] = []

    async def _wanted(
        self,
        resources: Mapping[tuple[str, str], Resource | None],
        bounds: Mapping[Target, Bounds],
        wanted: tuple[str, Object],
    ) -> _Change | None:
        owner, obj = wanted
        resource, name = resources[_kind_of(obj)], key(obj)
        if resource is None:
            guessed = Resource("", obj["apiVersion"], obj["kind"], "", namespaced=bool(name.namespace))
            problem = f"the seed does not serve {obj['kind']} of {obj['apiVersion']}"
            return _Change(resource=guessed, name=name, before=None, after=obj, problem=problem)
        if resource == MANAGED_RESOURCES:
            owner = owner_of_managed_resources(owner)
        live = await self.client.live(resource, name)
        if live is not None and is_deleting(live):
            live = None  # must be deleted first, then it is recreated
        try:
            body = would_write(obj, live, owner=owner, marks=MARKS, bounds=bounds, resends=may_be_mutated)
        except (MergeError, NotOursError) as error:
            return _Change(resource=resource, name=name, before=live, after=obj, problem=str(error))
        if body is None:
            return None
        if live is None:
            former = self._former(resource, name, owner) if MARKS.collected in labels(obj) else None
            return _Change(resource=resource, name=name, before=former, after=body)
        return await _replaced(self.client, resource, name, live, body)

    def _former(self, resource: Resource, name: Key, owner: str) -> Object | None:
        """Predecessor of an object with a content hash in its name: the newest of its component."""
        stem = name.name.rpartition("-")[0]
        found = [
            each
            for each in self._live.get(resource, ())
            if annotations(each).get(MARKS.owner) == owner and key(each).name.rpartition("-")[0] == stem
        ]
        return max(found, key=lambda each: text(metadata(each).get("creationTimestamp")), default=None)

    def _unwanted(self, desired: set[tuple[tuple[str, str], Key]]) -> Iterable[_Change]:
        """Obsolete objects of components, except those that the garbage collector removes."""
        owners = {*self.recorded.desired, *map(owner_of_managed_resources, self.recorded.desired)}
        for resource, objects in self._live.items():
            for each in objects:
                is_owned = annotations(each).get(MARKS.owner) in owners and MARKS.collected not in labels(each)
                if is_owned and ((resource.api_version, resource.kind), key(each)) not in desired:
                    yield _Change(resource=resource, name=key(each), before=each, after=None)

    # --- objects that the resource manager applies

    async def _shown(self, changes: list[_Change]) -> list[ObjectDifference]:
        """Replace the Secrets of ManagedResources by the objects in them."""
        found, bundles = list[ObjectDifference](), set[Key]()
        secrets = {key(obj): obj for objects in self.recorded.desired.values() for obj in objects if _is_secret(obj)}
        for change in changes:
            if change.resource == MANAGED_RESOURCES:
                before, after = await self._bundled(change.before, {}), await self._bundled(change.after, secrets)
                bundles |= before.secrets | after.secrets
                found += differences_within(change.name, before, after)
        for change in changes:
            is_bundle = change.resource == SECRETS and change.name in bundles
            is_bundle |= change.resource == MANAGED_RESOURCES and is_reference_only(change.before, change.after)
            difference = None if is_bundle else change.shown(Place.SEED)
            found += [difference] if difference is not None else []
        return found

    async def _bundled(self, managed: Object | None, made: Mapping[Key, Object]) -> Bundled:
        if managed is None:
            return Bundled.nothing()
        namespace = key(managed).namespace
        names = [Key(namespace, text(each.get("name"))) for each in mappings_at(managed, "spec", "secretRefs")]
        secrets = {name: made.get(name) or await self.client.live(SECRETS, name) or {} for name in names}
        return bundled(managed, {name: mapping(each.get("data")) for name, each in secrets.items()})


def _kind_of(obj: Object) -> tuple[str, str]:
    return text(obj.get("apiVersion")), text(obj.get("kind"))


def _is_secret(obj: Object) -> bool:
    return _kind_of(obj) == (SECRETS.api_version, SECRETS.kind)
