"""The controller `shoot-reference`: what Shoots refer to gets a finalizer, and loses it with the last of them.

Shoots                  that come, go, refer to something else, or whose finalizers change
Secrets and ConfigMaps  that change: the Shoots that refer to them
"""

from functools import partial

from agent.controller_manager.common.api import BY_PROTECTED, BY_REFERENCE, SECRETS_VIEW, SHOOTS_VIEW, protected_in
from agent.controller_manager.common.rules.credentials import Credentials
from agent.controller_manager.context import Context
from agent.controller_manager.shoot.reference.reconcile import Reconciler
from agent.controller_manager.shoot.reference.rules import concerns
from gardener.api.garden import SHOOTS
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS, Resource
from kube.runtime.cache import Change, Store, View
from kube.runtime.client import Form
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped

_CONFIG_MAPS_VIEW = View(
    CONFIG_MAPS, Credentials.of, form=Form.METADATA, indexes=((BY_PROTECTED, protected_in),), streams=True
)


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.shoot_reference, context.garden
    loop = ControlLoop("shoot-reference", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(garden.caches, SHOOTS_VIEW, enqueue(when=_matters))
    referable = {
        view.resource: loop.watch(garden.caches, view, enqueue_mapped(partial(_users, shoots, view.resource)))
        for view in (SECRETS_VIEW, _CONFIG_MAPS_VIEW)
    }
    return loop.reconciled_by(Reconciler(client=garden.client, shoots=shoots, referable=referable))


def _matters(change: Change[Object]) -> bool:
    if change.initial or change.old is None or change.new is None:
        return True
    return concerns(change.old) != concerns(change.new)


def _users(shoots: Store[Object], resource: Resource, change: Change[Credentials]) -> list[Key]:
    if change.initial:
        return []  # all Shoots are looked at in the beginning
    return shoots.keys_by_index(BY_REFERENCE, (resource, change.key))
