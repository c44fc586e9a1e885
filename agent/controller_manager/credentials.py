"""Controllers of credentials that bindings refer to; only their metadata are watched.

Secrets, WorkloadIdentities   that have labels of bindings, or should have
bindings of both kinds        that come, change or go: the objects that they refer to

The credentials get labels of the kinds of bindings that refer to them, and of the providers that these name; and a
finalizer while there is any binding. Without bindings, the label of a kind of bindings shows, together with the
finalizer, that there was one. Others put the same finalizer, or users the label, on Secrets that no binding refers to;
they are left alone there.
"""

from functools import partial
from itertools import chain

import structlog

from agent.controller_manager.common.api import (
    BY_SECRET,
    BY_WORKLOAD_IDENTITY,
    CREDENTIALS_BINDINGS_VIEW,
    SECRET_BINDINGS_VIEW,
    SECRETS_VIEW,
    WORKLOAD_IDENTITIES_VIEW,
)
from agent.controller_manager.common.protection import look
from agent.controller_manager.common.rules.credentials import Bound, Credentials, changes_of_labels, reference_labels
from agent.controller_manager.context import Context
from gardener.garden import users
from gardener.garden.users import References, provider_types
from gardener.keys import (
    CREDENTIALS_BINDING_REFERENCE,
    CREDENTIALS_FINALIZER,
    PROVIDER_LABEL_PREFIX,
    SECRET_BINDING_REFERENCE,
)
from kube.objects import Key, Object, metadata
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Client
from kube.runtime.controller import Done, Result
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Bindings:
    """Bindings of both kinds, watched by a control loop of the credentials.

    Args:
        index: index by `references`, of bindings of both kinds.
    """

    def __init__(self, loop: ControlLoop, caches: Caches, references: References, *, index: str) -> None:
        def keys(change: Change[Object]) -> set[Key]:
            (old, old_types), (new, new_types) = (_reported(obj, references) for obj in (change.old, change.new))
            return old ^ new if old_types == new_types else old | new

        handler = enqueue_mapped(keys)
        self._index = index
        self._references = references
        self._stores = {
            SECRET_BINDING_REFERENCE: loop.watch(caches, SECRET_BINDINGS_VIEW, handler),
            CREDENTIALS_BINDING_REFERENCE: loop.watch(caches, CREDENTIALS_BINDINGS_VIEW, handler),
        }

    def of(self, name: Key) -> Bound[Object]:
        """Bindings that refer to an object."""
        return {label: store.values_by_index(self._index, name) for label, store in self._stores.items()}

    async def look(self, client: Client, name: Key) -> None:
        """Add the present bindings of an object to the caches."""
        for store in self._stores.values():
            await look(client, store, lambda binding: name in self._references(binding))


def _reported(binding: Object | None, references: References) -> tuple[set[Key], list[str]]:
    return (set(), []) if binding is None else (set(references(binding)), provider_types(binding))


def declare_secrets(context: Context) -> ControlLoop:
    return _declare(context, SECRETS_VIEW, users.secrets, index=BY_SECRET)


def declare_workload_identities(context: Context) -> ControlLoop:
    return _declare(context, WORKLOAD_IDENTITIES_VIEW, users.workload_identities, index=BY_WORKLOAD_IDENTITY)


def _declare(context: Context, view: View[Credentials], references: References, *, index: str) -> ControlLoop:
    kind = view.resource
    controllers, caches = context.config.controllers, context.garden.caches
    workers = max(controllers.credentials_binding.concurrent_syncs, controllers.secret_binding.concurrent_syncs)
    loop = ControlLoop(f"credentials-{kind.kind.lower()}", kind=kind, workers=workers)
    bindings = Bindings(loop, caches, references, index=index)
    credentials = loop.watch(caches, view, enqueue(when=partial(_is_to_change, bindings)))
    return loop.reconciled_by(Reconciler(client=context.garden.client, credentials=credentials, bindings=bindings))


def _is_to_change(bindings: Bindings, change: Change[Credentials]) -> bool:
    """Whether credentials need a write. A finalizer removed by hand is not restored at once: the object should go."""
    old, new = change.old, change.new
    if new is None or (not change.initial and old is not None and old.labels == new.labels):
        return False
    return bool(needed_changes(new, bindings.of(change.key)))


class Reconciler:
    """One pass over the credentials that bindings refer to: labels and finalizer are one write.

    Bindings of both kinds may refer to them, in all namespaces; only this reconciler decides about them, from the
    existing bindings. Bindings are read from the API server before credentials in deletion are released, which is
    final.

    Args:
        credentials: Secrets, or WorkloadIdentities.
    """

    def __init__(self, *, client: Client, credentials: Store[Credentials], bindings: Bindings) -> None:
        self._client = client
        self._credentials = credentials
        self._bindings = bindings

    async def reconcile(self, key: Key) -> Result:
        found = self._credentials.get(key)
        if found is not None and found.is_deleting and "finalizers" in needed_changes(found, self._bindings.of(key)):
            await self._bindings.look(self._client, key)
        bindings = self._bindings.of(key)
        if found is None:
            if any(bindings.values()):
                log.info("Bindings refer to credentials that do not exist")
            return Done()  # their creation leads to a pass
        if changes := needed_changes(found, bindings):
            await self._change(key, {**changes, "resourceVersion": str(self._credentials.version(key))})
        return Done()

    async def _change(self, key: Key, meta: dict[str, object]) -> None:
        resource = self._credentials.view.resource
        if (answer := await self._client.patch_if_exists(resource, key, {"metadata": meta})) is not None:
            self._credentials.observe({"metadata": metadata(answer)})


def needed_changes(credentials: Credentials, bound: Bound[Object]) -> Object:
    """Changes of the metadata; empty for none."""
    bindings = list(chain.from_iterable(bound.values()))
    has_finalizer = CREDENTIALS_FINALIZER in credentials.finalizers
    were_bound = credentials.were_referred_to and has_finalizer
    if not (bindings or were_bound) or (credentials.is_deleting and not has_finalizer):
        return {}
    providers = {f"{PROVIDER_LABEL_PREFIX}{each}" for binding in bindings for each in provider_types(binding)}
    wanted = reference_labels(bound) | providers
    changes: Object = {}
    if changed := changes_of_labels(credentials.labels, wanted, owned=credentials.labels):
        changes["labels"] = changed
    if has_finalizer != bool(bindings):
        kept = [each for each in credentials.finalizers if each != CREDENTIALS_FINALIZER]
        changes["finalizers"] = [*kept, CREDENTIALS_FINALIZER] if bindings else kept or None
    return changes
