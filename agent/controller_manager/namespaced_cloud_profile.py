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
from gardener.api.garden import NAMESPACED_CLOUD_PROFILES
from gardener.garden import users
from gardener.garden.profiles import merged
from kube.objects import Key, Object, is_deleting, mapping, metadata, spec
from kube.packing import digest
from kube.runtime.cache import Store
from kube.runtime.controller import Result
from kube.runtime.loop import ControlLoop, enqueue, enqueue_users
from kube.runtime.predicates import all_of, changed, changed_or_listed, exists
from kube.runtime.status import StatusWriter


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.namespaced_cloud_profile, context.garden.caches
    loop = ControlLoop("namespacedcloudprofile", kind=NAMESPACED_CLOUD_PROFILES, workers=settings.concurrent_syncs)
    profiles = loop.watch(caches, NAMESPACED_CLOUD_PROFILES_VIEW, enqueue(when=changed_or_listed))
    parents = loop.watch(
        caches, CLOUD_PROFILES_VIEW, enqueue_users(partial(_children, profiles), when=all_of(exists, changed("spec")))
    )
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
        Reconciler(
            status=StatusWriter(context.garden.client, profiles),
            profiles=profiles,
            parents=parents,
            protection=protection,
        )
    )


def _children(profiles: Store[Object], parent: Key) -> list[Key]:
    return profiles.keys_by_index(BY_PARENT, parent)


def _held_by(shoots: Users, name: Key) -> str:
    text = "Cannot delete NamespacedCloudProfile, because the following Shoots are still referencing it"
    return users.reason(text, shoots.of(name))


class Reconciler:
    """One pass over a NamespacedCloudProfile: its status holds the content that Shoots choose from.

    Args:
        parents: the CloudProfiles.
    """

    def __init__(
        self, *, status: StatusWriter, profiles: Store[Object], parents: Store[Object], protection: Protection
    ) -> None:
        self._status = status
        self._profiles = profiles
        self._parents = parents
        self._protection = protection

    async def reconcile(self, name: Key) -> Result:
        result = await self._protection.reconcile(name)
        profile = self._profiles.get(name)
        if profile is not None and not is_deleting(profile):
            await self._render(profile)
        return result

    async def _render(self, profile: Object) -> None:
        parent = next((found for each in users.parents(profile) if (found := self._parents.get(each))), None)
        if parent is None:
            return  # rendered when the parent is created
        content, generation = merged(spec(parent), spec(profile)), metadata(profile).get("generation")
        status = mapping(profile.get("status"))
        if profile.get("rendered") == digest(content).hex() and status.get("observedGeneration") == generation:
            return
        body = {field: value for field, value in profile.items() if field != "rendered"}
        body["status"] = {**status, "cloudProfileSpec": content, "observedGeneration": generation}
        await self._status.replace(body)
