"""The controller `cloudprofile`: a CloudProfile is not deleted as long as others refer to it.

Its NamespacedCloudProfiles are named first, then its Shoots; those of a NamespacedCloudProfile hold that one.
"""

from functools import partial

from agent.controller_manager.common.api import (
    BY_CLOUD_PROFILE,
    BY_PARENT,
    CLOUD_PROFILES_VIEW,
    NAMESPACED_CLOUD_PROFILES_VIEW,
    SHOOTS_VIEW,
)
from agent.controller_manager.common.protection import Protection, Users, enqueue_unprotected
from agent.controller_manager.context import Context
from gardener.api.garden import CLOUD_PROFILES
from gardener.garden.users import reason
from kube.objects import Key
from kube.runtime.loop import ControlLoop


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.cloud_profile, context.garden.caches
    loop = ControlLoop("cloudprofile", kind=CLOUD_PROFILES, workers=settings.concurrent_syncs)
    profiles = loop.watch(caches, CLOUD_PROFILES_VIEW, enqueue_unprotected())
    children = Users(loop, caches, NAMESPACED_CLOUD_PROFILES_VIEW, BY_PARENT)
    shoots = Users(loop, caches, SHOOTS_VIEW, BY_CLOUD_PROFILE)
    return loop.reconciled_by(
        Protection(
            context,
            profiles,
            users=(children, shoots),
            held_by=partial(_held_by, children, shoots),
            event="Normal",
            reporter="cloudprofile-controller",
        )
    )


def _held_by(children: Users, shoots: Users, name: Key) -> str:
    text = "Cannot delete CloudProfile, because the following {} are still referencing it"
    of_children = reason(text.format("NamespacedCloudProfiles"), children.of(name))
    return of_children or reason(text.format("Shoots"), shoots.of(name))
