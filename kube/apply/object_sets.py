"""Sets of objects with an owner, applied as a whole.

    sets = ObjectSets(client=client, discovery=discovery, caches=caches, marks=marks, on_change=enqueue_owner)
    changes = await sets.apply(objects, owner="team-a/coredns", previous=[DEPLOYMENTS, CONFIG_MAPS])

Objects that differ are written, and objects with the owner's annotation that are not in the set are removed. There is
no inventory: each object carries its owner and the digest of the manifest that was written last. So a restarted process
finds both by its watches, and writes nothing where nothing has changed. An object of another owner is neither written
nor removed; it is an error of that object alone. One without an owner is adopted if `Marks.adopts` is set.

Metadata of the live object stays, except for fields in the manifest, and for labels and annotations that no other
client has set. Everything else but the status comes from the manifest, with the fields that `kube.merge` keeps for the
kind, and with the replicas chosen by an autoscaler of the same set.

Admission runs only when an object is written, and the API server records no owner of what a webhook has added. So an
object for which the caller chooses that (`resends`) is sent although it is as desired: the manifest, without former
mutations, gets those of the current webhooks. If they are the same, the API server stores nothing.

An object may carry a label by which another component removes it once it is unused (`Marks.collected`). It is written
like all others, and never removed here: running pods may still use it.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from kube.apply.application import Application, Desired, for_each
from kube.apply.kinds import ManagedKinds
from kube.apply.live_objects import LiveObjects, Observed, id_of
from kube.apply.scaled import Bounds, Target, bounds_of, target_of, with_chosen_replicas
from kube.differences import fields_of_others, is_drifted
from kube.errors import Conflict, KubeError, NotFound
from kube.merge import MergeError, MergeOptions, with_kept_fields
from kube.objects import (
    Key,
    Object,
    annotations,
    group_of,
    is_deleting,
    key,
    mapping,
    metadata,
    object_key,
    resource_version,
    uid,
)
from kube.paths import mapping_at
from kube.resources import Resource
from kube.runtime.cache import Caches
from kube.runtime.client import Client
from kube.runtime.discovery import Discovery

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Marks on the objects, and the writer."""

    label: str
    value: str
    """Value of the label; all of these objects are watched by it."""
    owner: str
    """Annotation with the owner."""
    digest: str
    """Annotation with the digest of the manifest that was written last."""
    field_manager: str
    """Name of the client at the API server: the first part of its user agent."""
    collected: str = ""
    """Label of objects that others remove."""
    adopts: bool = False
    """Whether existing objects without an owner are taken over."""


@dataclass(slots=True)
class ChangeSet:
    """Result of applying a set; objects as `Deployment shop/front`."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    """Objects whose deletion was accepted."""
    pending: list[str] = field(default_factory=list)
    """Desired objects that are being deleted: the owner is notified when they are gone."""
    going: list[str] = field(default_factory=list)
    """Obsolete objects that are being deleted: likewise."""
    errors: dict[str, str] = field(default_factory=dict)
    """Objects that could not be written or removed, with the reason."""
    written: list[Object] = field(default_factory=list)
    """Created or updated objects, as returned by the API server."""

    @property
    def is_complete(self) -> bool:
        return not (self.going or self.pending or self.errors)

    def __bool__(self) -> bool:
        """Whether anything was written."""
        return bool(self.created or self.updated or self.removed)


class NotOursError(Exception):
    """The object belongs to another owner, or has none."""


class _BeingDeletedError(Exception):
    """The object has to be gone before it can be created again."""


class ObjectSets:
    """Args: on_change: called with the owner of an object that is not as accepted."""

    def __init__(
        self, *, client: Client, discovery: Discovery, caches: Caches, marks: Marks, on_change: Callable[[str], None]
    ) -> None:
        self._client = client
        self._discovery = discovery
        self._marks = marks
        self._kinds = ManagedKinds(caches, label_selector=f"{marks.label}={marks.value}")
        self._live = LiveObjects(
            client=client,
            discovery=discovery,
            kinds=self._kinds,
            origin=marks.owner,
            marks=(marks.collected,) if marks.collected else (),
            on_change=on_change,
            finds_by_owner=True,
        )
        self._watched: dict[str, set[Resource]] = {}
        """Kinds that owners may have objects of."""
        self._applied: dict[str, dict[str, bytes]] = {}

    @property
    def kinds(self) -> set[Resource]:
        """Kinds that owners may have objects of."""
        return set[Resource]().union(*self._watched.values())

    async def close(self) -> None:
        """Stop the watches."""
        await self._kinds.close()

    async def apply(
        self,
        objects: Iterable[Object],
        *,
        owner: str,
        previous: Iterable[Resource] = (),
        resends: Callable[[Object], bool] = lambda _: False,
    ) -> ChangeSet:
        """Make these the objects of an owner; an empty set removes all of its objects.

        Args: previous: further kinds that it may have had objects of, in addition to those of the objects, of earlier
            calls and of other owners. resends: whether an object is sent although it is as desired; see the module.
        """
        changes, found, desired = ChangeSet(), list[tuple[Object, Resource]](), set[str]()
        objects = list(objects)
        for obj in objects:
            desired.add(object_key(group_of(obj.get("apiVersion") or ""), obj.get("kind") or "", *key(obj)))
            try:
                resource = await self._discovery.find(obj.get("apiVersion") or "", obj.get("kind") or "")
                found.append((obj, resource))
            except KubeError as error:
                changes.errors[f"{obj.get('kind')} {key(obj)}"] = str(error)
        kinds = self._watched.setdefault(owner, set())
        kinds.update(previous, (resource for _, resource in found))
        await self._live.manage(owner, kinds)
        bounds = bounds_of(objects)
        applications = [self._application(obj, resource, owner, bounds, always=resends(obj)) for obj, resource in found]
        outstanding = [each for each in applications if not each.is_up_to_date()]
        await for_each(partial(_write, changes), outstanding)
        await self._remove_others(desired, owner, changes)
        if not desired and changes.is_complete:
            await self._forget(owner)
        return changes

    async def _forget(self, owner: str) -> None:
        self._applied.pop(owner, None)
        self._watched.pop(owner, None)
        await self._live.manage(owner, ())

    def _application(
        self, obj: Object, resource: Resource, owner: str, bounds: Mapping[Target, Bounds], *, always: bool
    ) -> "_Application":
        applied, own = self._applied.setdefault(owner, {}), bounds.get(target_of(obj))
        return _Application(
            *(obj, resource, owner, self._marks, own),
            live=self._live,
            client=self._client,
            applied=applied,
            always=always,
        )

    # --- removing

    async def _remove_others(self, desired: set[str], owner: str, changes: ChangeSet) -> None:
        unwanted = list[tuple[Resource, Key, Observed]]()
        own = self._watched[owner]
        # Kinds of other owners cost nothing more, and an earlier process may have written them for this owner.
        for resource in own.union(*self._watched.values()):
            if not self._live.is_listed(resource):
                if resource in own:
                    text = "obsolete objects can't be removed before the first list"
                    changes.errors[resource.kind] = text
                continue
            owned = [(name, each) for name, each in self._live.owned(resource, owner) if not each.has_marks]
            unwanted += [(resource, name, each) for name, each in owned if id_of(resource, name) not in desired]
        await for_each(partial(self._remove, owner, changes), unwanted)

    async def _remove(self, owner: str, changes: ChangeSet, unwanted: tuple[Resource, Key, Observed]) -> None:
        resource, name, observed = unwanted
        text = f"{resource.kind} {name}"
        was_deleting = observed.deleting
        try:
            is_there = was_deleting or await self._delete(resource, name, owner, observed.uid, observed.version)
        except _BeingDeletedError:
            is_there = was_deleting = True  # the watch is behind
        except KubeError as error:
            changes.errors[text] = str(error)
            return
        self._applied.get(owner, {}).pop(id_of(resource, name), None)
        if not was_deleting and is_there:
            changes.removed.append(text)
        if self._live.observed(resource, name) is not None and is_there:
            changes.going.append(text)

    async def _delete(self, resource: Resource, name: Key, owner: str, uid_: str, version: int) -> bool:
        """Delete exactly the observed object, if it still has this owner; False: it is absent, or has another owner.

        Raises: _BeingDeletedError: it is being deleted already.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                await self._delete_once(resource, name, uid_, version)
            except NotFound:
                return False
            except Conflict:
                live = await self._live.read_live(resource, name)
                if live is None or annotations(live).get(self._marks.owner) != owner:
                    return False
                if is_deleting(live):
                    raise _BeingDeletedError from None
                uid_, version = uid(live), resource_version(live)
            else:
                return True
        await self._delete_once(resource, name, uid_, version)
        return True

    async def _delete_once(self, resource: Resource, name: Key, uid_: str, version: int) -> None:
        await self._client.delete(
            resource,
            name,
            propagation="Background",
            uid=uid_,
            resource_version=str(version),
        )


async def _write(changes: ChangeSet, application: "_Application") -> None:
    try:
        written = await application.write()
    except _BeingDeletedError:
        changes.pending.append(application.text)
    except (KubeError, MergeError, NotOursError) as error:
        changes.errors[application.text] = str(error)
    else:
        before, after = written.before, written.after
        if before is not None and resource_version(before) == resource_version(after):
            return  # the API server has stored nothing
        (changes.created if before is None else changes.updated).append(application.text)
        changes.written.append(after)


class _Application(Application):
    shares = True

    def __init__(
        self, obj: Object, resource: Resource, owner: str, marks: Marks, bounds: Bounds | None, **options: Any
    ) -> None:
        fingerprint, size = _fingerprint(obj)
        self.text = f"{resource.kind} {key(obj)}"
        desired = Desired(
            resource=resource, key=key(obj), name=id_of(resource, key(obj)), size=size, fingerprint=fingerprint
        )
        super().__init__(desired, **options)
        self._rules = _Rules(obj, owner=owner, marks=marks, bounds=bounds, digest=fingerprint.hex())

    async def check(self, live: Object) -> None:
        self._rules.check(live)

    def merged(self, live: Object | None) -> Object:
        return self._rules.merged(live)

    def differs(self, merged: Object, live: Object) -> bool:
        return self._rules.differs(merged, live)


class _Rules:
    """Rules for writing one object; pure. Args: digest: of the object."""

    def __init__(self, obj: Object, *, owner: str, marks: Marks, bounds: Bounds | None, digest: str) -> None:
        self._owner, self._marks, self._bounds, self._digest = owner, marks, bounds, digest
        notes = {marks.owner: owner, marks.digest: digest}
        self._manifest = _marked(obj, labels={marks.label: marks.value}, notes=notes)

    def check(self, live: Object) -> None:
        found = annotations(live).get(self._marks.owner)
        if found != self._owner and (found or not self._marks.adopts):
            whose = f'it belongs to "{found}"' if found else f"it exists without the annotation {self._marks.owner}"
            raise NotOursError(f'{whose}, so it is not written for "{self._owner}"; delete it, or set its annotation')
        if is_deleting(live):
            raise _BeingDeletedError

    def merged(self, live: Object | None) -> Object:
        if live is None:
            return self._manifest
        manifest = with_chosen_replicas(self._manifest, live, self._bounds)
        return merged(manifest, live, field_manager=self._marks.field_manager)

    def differs(self, merged: Object, live: Object) -> bool:
        is_same = annotations(live).get(self._marks.digest) == self._digest
        return not is_same or is_drifted(merged, live, field_manager=self._marks.field_manager)


def would_write(
    obj: Object,
    live: Object | None,
    *,
    owner: str,
    marks: Marks,
    bounds: Mapping[Target, Bounds],
    resends: Callable[[Object], bool],
) -> Object | None:
    """Body that `ObjectSets.apply` would send for an object; None if nothing. Pure.

    Args: live: is not being deleted. bounds: of its set. resends: as for `apply`.

    Raises: NotOursError; MergeError.
    """
    own, digest = bounds.get(target_of(obj)), _fingerprint(obj)[0].hex()
    rules = _Rules(obj, owner=owner, marks=marks, bounds=own, digest=digest)
    if live is None:
        return rules.merged(None)
    rules.check(live)
    body = rules.merged(live)
    return body if resends(obj) or rules.differs(body, live) else None


def _fingerprint(obj: Object) -> tuple[bytes, int]:
    """Digest and size in bytes of an object."""
    body = orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(body, digest_size=16).digest(), len(body)


def _marked(obj: Object, *, labels: Mapping[str, str], notes: Mapping[str, str]) -> Object:
    meta = metadata(obj)
    marks = {"labels": {**mapping(meta.get("labels")), **labels}}
    marks["annotations"] = {**mapping(meta.get("annotations")), **notes}
    return {**obj, "metadata": {**meta, **marks}}


def merged(manifest: Object, live: Object, *, field_manager: str) -> Object:
    """Body of the PUT; see the module.

    Raises: MergeError: the kind has a rule that does not support this manifest.
    """
    meta = {name: value for name, value in metadata(live).items() if name != "managedFields"}
    for name in ("labels", "annotations"):
        meta[name] = {**_of_others(live, name, field_manager), **mapping(metadata(manifest).get(name))}
    if "ownerReferences" in metadata(manifest):
        meta["ownerReferences"] = metadata(manifest)["ownerReferences"]
    body = {name: value for name, value in manifest.items() if name != "status"} | {"metadata": meta}
    body |= {"status": live["status"]} if "status" in live else {}
    options = MergeOptions(field_manager=field_manager, preserve_eviction_requirements=True)
    return with_kept_fields(body, live, options)


def _of_others(live: Object, name: str, field_manager: str) -> Mapping[str, Any]:
    """Labels or annotations that other clients have set. Those without an owner come from admission."""
    present, recorded = mapping(metadata(live).get(name)), fields_of_others(live, field_manager)
    if recorded is None:
        return present
    found = [mapping_at(fields, "f:metadata", f"f:{name}") for fields in recorded]
    return {each: text for each, text in present.items() if any(f"f:{each}" in fields for fields in found)}
