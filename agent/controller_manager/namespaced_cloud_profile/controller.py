"""The controller `namespacedcloudprofile`: kept as long as Shoots refer to it, rendered from it and its parent.

NamespacedCloudProfiles   that are new or changed
CloudProfiles             whose spec changed: those below it
Shoots                    that refer to another one than before: both
"""

from functools import partial

from agent.controller_manager.common.api import (
    BY_NAMESPACED_CLOUD_PROFILE,
    BY_PARENT,
    CLOUD_PROFILES_VIEW,
    NAMESPACED_CLOUD_PROFILES_VIEW,
    SHOOTS_VIEW,
)
from agent.controller_manager.common.protection import Protection, Users
from agent.controller_manager.context import Context
from agent.controller_manager.namespaced_cloud_profile.reconcile import Reconciler
from gardener.garden.resources import NAMESPACED_CLOUD_PROFILES
from gardener.garden.users import reason
from kube.cache import Change, Store
from kube.loop import ControlLoop, changed_or_listed, enqueue, enqueue_mapped
from kube.objects import Key, Object, spec


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.namespaced_cloud_profile, context.garden.caches
    loop = ControlLoop("namespacedcloudprofile", kind=NAMESPACED_CLOUD_PROFILES, workers=settings.concurrent_syncs)
    profiles = loop.watch(caches, NAMESPACED_CLOUD_PROFILES_VIEW, enqueue(when=changed_or_listed))
    parents = loop.watch(caches, CLOUD_PROFILES_VIEW, enqueue_mapped(partial(_children, profiles), when=_renders))
    shoots = Users(loop, caches, SHOOTS_VIEW, BY_NAMESPACED_CLOUD_PROFILE, nearby=True)
    protection = Protection(
        context,
        profiles,
        users=(shoots,),
        held_by=partial(_held_by, shoots),
        event="Normal",
        reporter="namespacedcloudprofile-controller",
    )
    return loop.reconciled_by(
        Reconciler(client=context.garden.client, profiles=profiles, parents=parents, protection=protection)
    )


def _children(profiles: Store[Object], change: Change[Object]) -> list[Key]:
    return profiles.keys_by_index(BY_PARENT, change.key)


def _renders(change: Change[Object]) -> bool:
    """Whether something else follows from the parent now."""
    if change.new is None:
        return False
    return change.old is None or spec(change.old) != spec(change.new)


def _held_by(shoots: Users, name: Key) -> str:
    text = "Cannot delete NamespacedCloudProfile, because the following Shoots are still referencing it"
    return reason(text, shoots.of(name))
