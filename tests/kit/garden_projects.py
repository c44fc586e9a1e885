"""Many Projects that are made, changed and deleted, with all that hangs on them, to be simulated again and again.

    projects = Projects(garden, client, count=12)
    projects.make()
    await projects.until_made()
    ...

What differs from run to run is left out of the `state`, so that it can be compared.
"""

import contextlib
import re
import secrets
from collections.abc import Iterator

import orjson

from agent.controller_manager.project.lifecycle.reconcile import READY, TERMINATING
from gardener.api.garden import CLOUD_PROFILES, PROJECTS, QUOTAS, SECRET_BINDINGS, SHOOTS
from gardener.keys import SECRET_BINDING_REFERENCE, SHOOT_STATUS
from kit.crash.sweep import comparable
from kit.eventually import no_problem
from kit.garden import CONFIRMED, Garden
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kube.errors import NotFound
from kube.objects import Object, is_deleting, key, labels, metadata, spec, text, uid
from kube.paths import at
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    NAMESPACES,
    RESOURCE_QUOTAS,
    ROLE_BINDINGS,
    SECRETS,
    Resource,
)
from kube.runtime.client import Client

_OF_CLUSTER = (PROJECTS, NAMESPACES, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, CLOUD_PROFILES)
_OF_NAMESPACES = (ROLE_BINDINGS, RESOURCE_QUOTAS, QUOTAS, SECRET_BINDINGS, SECRETS, CONFIG_MAPS, SHOOTS)
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LETTERS = "ghijklmnopqrstuvwxyz"
"""Not those of uids and hashes."""


class Projects:
    """Of three sorts: with a namespace of their own choice, with one that was there before, and with any.

    Each has credentials with a binding and a Quota. One more, of `place`, has a Shoot.
    """

    def __init__(self, garden: Garden, client: Client, *, count: int) -> None:
        self._garden = garden
        self._client = client
        self.mark = "".join(secrets.choice(_LETTERS) for _ in range(6))
        self.names = [f"{self.mark}{number:02}" for number in range(count)]
        self.deleted = self.names[1::4]
        """By `change`, and all that is in their namespaces."""
        self.place = ShootPlace(garden)

    def _is_chosen(self, name: str) -> bool:
        return self._sort(name) != 2

    def _was_there(self, name: str) -> bool:
        return self._sort(name) == 1

    def _sort(self, name: str) -> int:
        """Of every fourth, too, each has another sort than the next."""
        number = self.names.index(name)
        return (number + number // 3) % 3

    # --- what users do

    def make(self) -> None:
        for name in self.names:
            fields: Object = {"members": [_member("ann", "viewer", "extension:one"), _member("bob", "admin")]}
            if self._is_chosen(name):
                fields["namespace"] = f"garden-{name}"
            if self._was_there(name):
                marks = {"gardener.cloud/role": "project", "project.gardener.cloud/name": name}
                self._garden.create(NAMESPACES, f"garden-{name}", metadata={"labels": marks})
                self._garden.create(CONFIG_MAPS, "own", namespace=f"garden-{name}", data={"a": "b"})
            self._garden.create(PROJECTS, name, spec=fields)
        self.place.shoot()

    async def fill(self) -> None:
        """Needs the namespaces."""
        for name, namespace in (await self._namespaces()).items():
            if name not in self.names:
                continue
            self._garden.create(SECRETS, "cred", namespace=namespace, stringData={"key": "value"})
            self._garden.create(QUOTAS, "quota", namespace=namespace, spec=garden_object(QUOTAS)["spec"])
            reference = {"name": "cred", "namespace": namespace}
            binding: Object = {"provider": {"type": self.place.name}, "secretRef": reference}
            self._garden.create(SECRET_BINDINGS, "sb", namespace=namespace, **binding, quotas=[{"name": "quota"}])

    def change(self) -> None:
        """Those that stay get other members; the others are deleted, and so is what the Shoot needs."""
        for name in self.names:
            if name in self.deleted:
                self._delete(name)
            else:
                members = [_member("ann", "extension:two"), _member("eve", "uam", "viewer")]
                self._garden.patch(PROJECTS, name, {"spec": {"members": members, "description": "changed"}})
        self._delete(self.place.name)
        self.place.delete(CLOUD_PROFILES, self.place.name)

    def delete_shoot(self) -> None:
        self.place.delete(SHOOTS, "s")

    def _delete(self, name: str) -> None:
        self._garden.patch(PROJECTS, name, CONFIRMED)
        self._garden.delete(PROJECTS, name)

    # --- what is to come of it

    async def until_made(self) -> None:
        await no_problem(lambda: self._problem(set()))
        await no_problem(self._unnoticed)

    async def _unnoticed(self) -> str:
        """Once a Project is to go, it is too late."""
        project, shoot = self._garden.get(PROJECTS, self.place.name), self.place.get(SHOOTS, "s")
        is_noticed = at(project, "status", "lastActivityTimestamp") and SHOOT_STATUS in labels(shoot)
        return "" if is_noticed else f"the Shoot of {self.place.name} is not noticed"

    async def until_filled(self) -> None:
        async def problem() -> str:
            labelled = await self._found(SECRETS)
            missing = sum(SECRET_BINDING_REFERENCE not in labels(each) for each in labelled if key(each).name == "cred")
            return f"{missing} credentials lack labels" if missing else ""

        await no_problem(problem)

    async def until_changed(self) -> None:
        await no_problem(lambda: self._problem(set(self.deleted)))

    async def until_released(self) -> None:
        """What waited for the Shoot is gone, too."""
        await no_problem(lambda: self._problem({*self.deleted, self.place.name}))

    async def _problem(self, gone: set[str]) -> str:
        projects = {key(each).name: each for each in await self._found(PROJECTS)}
        namespaces = {key(each).name: each for each in await self._found(NAMESPACES)}
        for name in (*self.names, self.place.name):
            project = projects.get(name)
            if project is None and name not in gone:
                return f"{name} is gone"
            if project is not None and name in gone:
                return f"{name} is still there"
            if project is not None and not _is_settled(project):
                return f"{name} is not ready: {project.get('status')}"
        for name, namespace in namespaces.items():
            owner = name.removeprefix("garden-")[: len(self.mark) + 2]
            if owner in gone and (is_deleting(namespace) or not self._is_kept(owner)):
                return f"namespace {name} is still there"
        left = [each for resource in (*_OF_CLUSTER, *_OF_NAMESPACES) for each in await self._found(resource)]
        owned = (f"{each['kind']} {key(each)}" for each in left if not gone.isdisjoint(_owners(each)))
        return next((f"{each} is still there" for each in owned), "")

    def _is_kept(self, name: str) -> bool:
        return name == self.place.name or self._was_there(name)

    # --- what is there

    async def state(self) -> dict[str, Object]:
        found = [each for resource in (*_OF_CLUSTER, *_OF_NAMESPACES) for each in await self._found(resource)]
        return dict(map(self._comparable, found))

    async def kept(self) -> dict[str, str]:
        """The uids of what is not to be deleted."""
        uids: dict[str, str] = {}
        for resource in (*_OF_CLUSTER, *_OF_NAMESPACES):
            for obj in await self._found(resource):
                name = f"{key(obj)}"
                is_of_role = "extension:project" in name
                if not is_of_role and not any(each in name for each in self.deleted):
                    uids[f"{resource.kind} {name}"] = uid(obj)
        return uids

    async def clean_up(self) -> None:
        """What is left goes, whatever holds it; namespaces need a while, and they are not waited for."""
        self.place.remove()
        released = {**CONFIRMED["metadata"], "finalizers": None}
        for resource in (PROJECTS, SECRET_BINDINGS, QUOTAS, SECRETS, NAMESPACES):
            for own in map(key, await self._found(resource)):
                with contextlib.suppress(NotFound):
                    self._garden.patch(resource, own.name, {"metadata": released}, namespace=own.namespace)
                    self._garden.delete(resource, own.name, namespace=own.namespace)

    def _comparable(self, obj: Object) -> tuple[str, Object]:
        if obj["kind"] in {NAMESPACES.kind, RESOURCE_QUOTAS.kind}:
            obj = {**obj, "status": None}
        if obj["kind"] == SHOOTS.kind:
            obj = {**obj, "spec": None}  # some defaults are chosen by chance
        written = self.anonymous(orjson.dumps(comparable(obj, self.mark)).decode())
        return self.anonymous(f"{obj['kind']} {key(obj)}"), orjson.loads(written)

    def anonymous(self, written: str) -> str:
        """Without what differs from run to run."""
        written = written.replace(self.mark, "$MARK").replace(self.place.name, "$PLACE")
        return _UID.sub("<uid>", re.sub(r"(\$MARK\d\d)-[0-9a-f]{5}\b", r"\1-<hash>", written))

    async def _namespaces(self) -> dict[str, str]:
        return {key(each).name: text(spec(each).get("namespace")) for each in await self._found(PROJECTS)}

    async def _found(self, resource: Resource) -> list[Object]:
        return [each for each in await self._client.list(resource) if self._is_own(each)]

    def _is_own(self, obj: Object) -> bool:
        name = str(key(obj))
        return (self.mark in name or self.place.name in name) and key(obj).name != "kube-root-ca.crt"


def _member(name: str, *held: str) -> Object:
    return {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name, "roles": list(held)}


def _owners(obj: Object) -> Iterator[str]:
    """The names of Projects."""
    return (text(each.get("name")) for each in metadata(obj).get("ownerReferences") or () if each["kind"] == "Project")


def _is_settled(project: Object) -> bool:
    is_current = at(project, "status", "observedGeneration") == metadata(project).get("generation")
    phase = TERMINATING if is_deleting(project) else READY
    return is_current and bool(at(project, "status", "phase") == phase)
