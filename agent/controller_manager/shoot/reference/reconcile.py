"""One pass over a Shoot: what it refers to is protected, and what no Shoot of its namespace refers to is released.

Before something in deletion is released, the API server is asked for its Shoots: nothing brings back what has gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from agent.controller_manager.common.api import BY_PROTECTED, BY_REFERENCE
from agent.controller_manager.common.protection import look
from agent.controller_manager.common.rules.credentials import Credentials
from gardener import keys
from gardener.api.garden import SHOOTS
from gardener.garden.shoots import is_abandoned, references
from kube.objects import Key, Object, is_deleting, metadata
from kube.resources import Resource
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, Result
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    shoots: Store[Object]
    referable: Mapping[Resource, Store[Credentials]]

    async def reconcile(self, key: Key) -> Result:
        """Raises an ExceptionGroup: something could not be protected or released; all else was."""
        problems = await self._release(key.namespace)
        shoot = self.shoots.get(key)
        if shoot is not None and is_abandoned(shoot):
            await self._let_go(shoot)
        elif shoot is not None:
            problems += await self._protect(key, shoot)
        if problems:
            raise ExceptionGroup("not all is protected or released", problems)
        return Done()

    # --- what nobody refers to

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

    # --- what the Shoot refers to

    async def _protect(self, key: Key, shoot: Object) -> list[ReconcileError]:
        """Shoots get the finalizer last and lose it last: with it, this controller hears of their end."""
        problems, has_protected = list[ReconcileError](), False
        for resource, name in references(shoot):
            referred = Key(key.namespace, name)
            found = self.referable[resource].get(referred)
            if found is None:
                problems.append(
                    ReconcileError(f"{resource.kind} {referred} does not exist, and the Shoot refers to it")
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
        """Of Secrets nothing but metadata is kept, whatever the answer holds."""
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
