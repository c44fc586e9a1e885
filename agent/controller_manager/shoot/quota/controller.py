"""The controller `shoot-quota`: Shoots are deleted when the lifetime that their Quotas allow has ended.

Shoots    that come, or get another binding or another time in the annotation; and a timer
Bindings  that change: the Shoots that use them
Quotas    that change: the Shoots whose bindings name them
"""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from agent.controller_manager.common.api import (
    BY_CREDENTIALS_BINDING,
    BY_QUOTA,
    BY_SECRET_BINDING,
    CREDENTIALS_BINDINGS_VIEW,
    PROJECTS_VIEW,
    QUOTAS_VIEW,
    SECRET_BINDINGS_VIEW,
    SHOOTS_VIEW,
)
from agent.controller_manager.context import Context
from agent.controller_manager.shoot.quota.reconcile import Reconciler
from agent.controller_manager.shoot.quota.rules import concerns
from gardener.api.garden import CREDENTIALS_BINDINGS, QUOTAS, SECRET_BINDINGS, SHOOTS
from kube.objects import Key, Object
from kube.runtime.cache import Change, Store
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped

_BINDINGS = {BY_CREDENTIALS_BINDING: CREDENTIALS_BINDINGS_VIEW, BY_SECRET_BINDING: SECRET_BINDINGS_VIEW}


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.shoot_quota, context.garden.caches
    loop = ControlLoop("shoot-quota", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(caches, SHOOTS_VIEW, enqueue(when=_matters))
    bindings = {
        index: loop.watch(caches, view, enqueue_mapped(partial(_users_of_binding, shoots, index), when=_is_later))
        for index, view in _BINDINGS.items()
    }
    quotas = loop.watch(caches, QUOTAS_VIEW, enqueue_mapped(partial(_users_of_quota, shoots, bindings), when=_is_later))
    stores = {
        CREDENTIALS_BINDINGS: bindings[BY_CREDENTIALS_BINDING],
        SECRET_BINDINGS: bindings[BY_SECRET_BINDING],
        QUOTAS: quotas,
    }
    return loop.reconciled_by(
        Reconciler(
            client=context.garden.client,
            shoots=shoots,
            projects=loop.watch(caches, PROJECTS_VIEW),
            stores=stores,
            recorder=context.recorder,
            sync_period=timedelta(seconds=settings.sync_period),
            clock=context.clock,
            dry_run=context.dry_run,
        )
    )


def _matters(change: Change[Object]) -> bool:
    if change.initial or change.old is None or change.new is None:
        return True
    return concerns(change.old) != concerns(change.new)


def _is_later(change: Change[Object]) -> bool:
    """In the beginning all Shoots are looked at anyway."""
    return not change.initial and change.old != change.new


def _users_of_binding(shoots: Store[Object], index: str, change: Change[Object]) -> list[Key]:
    return shoots.keys_by_index(index, change.key)


def _users_of_quota(shoots: Store[Object], bindings: dict[str, Store[Object]], change: Change[Object]) -> Iterator[Key]:
    for index, store in bindings.items():
        for binding in store.keys_by_index(BY_QUOTA, change.key):
            yield from shoots.keys_by_index(index, binding)
