"""The controller `shoot-reference`: puts a finalizer on objects that Shoots refer to, and removes it after the last
one.

Shoots                  that come, go, refer to something else, or whose finalizers change
Secrets and ConfigMaps  that change: the Shoots that refer to them

The Shoots are read from the API server before an object in deletion is released, which is final.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from agent.controller_manager.common.api import BY_PROTECTED, BY_REFERENCE, SECRETS_VIEW, SHOOTS_VIEW, protected_in
from agent.controller_manager.common.protection import look
from agent.controller_manager.common.rules.credentials import Credentials
from agent.controller_manager.context import Context
from gardener import keys
from gardener.api.garden import SHOOTS
from gardener.garden.shoots import is_abandoned, references
from kube.errors import KubeError
from kube.objects import Key, Object, finalizers, is_deleting, metadata
from kube.resources import CONFIG_MAPS, Resource
from kube.runtime.cache import Store, View
from kube.runtime.client import Client, Form
from kube.runtime.controller import Done, ReconcileError, Result
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer
from kube.runtime.loop import ControlLoop, enqueue, enqueue_users
from kube.runtime.predicates import Predicate, all_of, any_of, changed, happened, listed
from kube.runtime.presence import present

_CONFIG_MAPS_VIEW = View(
    CONFIG_MAPS, Credentials.of, form=Form.METADATA, indexes=((BY_PROTECTED, protected_in),), streams=True
)


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.shoot_reference, context.garden
    loop = ControlLoop("shoot-reference", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(garden.caches, SHOOTS_VIEW, enqueue(when=triggers))
    referable = {
        view.resource: loop.watch(
            garden.caches, view, enqueue_users(partial(_users, shoots, view.resource), when=_IS_NEWS)
        )
        for view in (SECRETS_VIEW, _CONFIG_MAPS_VIEW)
    }
    return loop.reconciled_by(Reconciler(client=garden.client, shoots=shoots, referable=referable))


def _referred(shoot: Object) -> object:
    return frozenset(references(shoot))


def _is_finalized(shoot: Object) -> object:
    return keys.REFERENCE_PROTECTION in finalizers(shoot)


triggers: Predicate[Object] = any_of(listed, changed(_referred, is_abandoned, _is_finalized))


_IS_NEWS: Predicate[Credentials] = all_of(happened, changed())
"""Changes after the start, when all Shoots are checked anyway."""


def _users(shoots: Store[Object], resource: Resource, name: Key) -> list[Key]:
    return shoots.keys_by_index(BY_REFERENCE, (resource, name))


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    shoots: Store[Object]
    referable: Mapping[Resource, Store[Credentials]]

    async def reconcile(self, key: Key) -> Result:
        """Protect the references of a Shoot, and release unused objects of its namespace.

        Raises:
            ExceptionGroup: some objects could not be protected or released; all others were.
        """
        problems = await self._release(key.namespace)
        shoot = self.shoots.get(key)
        if shoot is not None and is_abandoned(shoot):
            await self._let_go(shoot)
        elif shoot is not None:
            problems += await self._protect(key, shoot)
        if problems:
            raise ExceptionGroup("one or more referenced objects could not be protected or released", problems)
        return Done()

    # --- unused objects

    async def _release(self, namespace: str) -> list[ReconcileError]:
        problems = []
        for resource, store in self.referable.items():
            for key, found in store.by_index(BY_PROTECTED, namespace):
                if found.role is not None or self._is_referred_to(resource, key):
                    continue
                if found.is_deleting:
                    await look(self.client, self.shoots, partial(_refers, resource, key), namespace=namespace)
                if not self._is_referred_to(resource, key):
                    problems += await self._write(resource, key, found, remove=True)
        return problems

    def _is_referred_to(self, resource: Resource, key: Key) -> bool:
        return any(not is_abandoned(shoot) for shoot in self.shoots.values_by_index(BY_REFERENCE, (resource, key)))

    # --- references of the Shoot

    async def _protect(self, key: Key, shoot: Object) -> list[ReconcileError]:
        """Protect the references; the Shoot gets its finalizer last and loses it last, so that its end is observed."""
        problems, has_protected = list[ReconcileError](), False
        for resource, name in references(shoot):
            referred = Key(key.namespace, name)
            try:
                found = await present(self.client, self.referable[resource], referred)
            except KubeError as error:
                problems.append(ReconcileError(f"{resource.kind} {referred} can't be read: {error}"))
                continue
            if found is None:
                problems.append(
                    ReconcileError(f"{resource.kind} {referred} does not exist, but the Shoot refers to it; create it")
                )
            elif not found.role:
                has_protected = True
                problems += await self._write(resource, referred, found)
        if problems:
            return problems
        if not has_protected:
            await self._let_go(shoot)
        elif not is_deleting(shoot):
            self.shoots.observe(await ensure_finalizer(self.client, SHOOTS, shoot, keys.REFERENCE_PROTECTION))
        return []

    async def _let_go(self, shoot: Object) -> None:
        if written := await remove_finalizer(self.client, SHOOTS, shoot, keys.REFERENCE_PROTECTION):
            self.shoots.observe(written)

    async def _write(
        self, resource: Resource, key: Key, found: Credentials, *, remove: bool = False
    ) -> list[ReconcileError]:
        """Write the finalizer; the answer is cached without the content of Secrets."""
        store = self.referable[resource]
        obj = found.as_object(key, store.version(key))
        change = remove_finalizer if remove else ensure_finalizer
        try:
            written = await change(self.client, resource, obj, keys.REFERENCE_PROTECTION)
        except ReconcileError as error:
            problem = ReconcileError(f"{resource.kind} {key}: {error}")
            problem.__cause__ = error
            return [problem]
        if written is not None and written is not obj:
            store.observe({"metadata": metadata(written)})
        return []


def _refers(resource: Resource, key: Key, shoot: Object) -> bool:
    return (resource, key.name) in references(shoot)
