"""Controllers of kinds that only need in-use protection: objects are kept as long as others refer to them.

cloudprofile           NamespacedCloudProfiles are named first, then Shoots; those of the former hold that one
controllerdeployment   ControllerRegistrations; only metadata are watched, since there may be whole charts
controllerregistration, seed
                       ControllerInstallations
exposureclass          Shoots
secretbinding          Shoots of the namespace
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.controller_manager.common.api import (
    BY_CLOUD_PROFILE,
    BY_DEPLOYMENT,
    BY_EXPOSURE_CLASS,
    BY_PARENT,
    BY_REGISTRATION,
    BY_SECRET_BINDING,
    BY_SEED,
    CLOUD_PROFILES_VIEW,
    CONTROLLER_DEPLOYMENTS_VIEW,
    CONTROLLER_INSTALLATIONS_VIEW,
    CONTROLLER_REGISTRATIONS_VIEW,
    EXPOSURE_CLASSES_VIEW,
    NAMESPACED_CLOUD_PROFILES_VIEW,
    SECRET_BINDINGS_VIEW,
    SEEDS_VIEW,
    SHOOTS_VIEW,
)
from agent.controller_manager.common.protection import Protection, Users, enqueue_unprotected
from agent.controller_manager.context import Context
from config.controller_manager.controllers import Controllers
from gardener.garden.users import reason
from gardener.keys import DEPLOYMENT_FINALIZER, GARDENER_FINALIZER, REGISTRATION_FINALIZER
from kube.objects import Key, Object
from kube.runtime.cache import View
from kube.runtime.events import EventType
from kube.runtime.loop import ControlLoop

_REFERENCED = "Cannot delete {kind}, because the following {users} are still referencing it"
_ASSOCIATED = "Cannot delete {kind}, because it is still associated by the following {users}"
_FINALIZED = 'cannot remove finalizer of {kind} "{name}" because still found {users}'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A kind whose objects are kept as long as they are in use.

    Attributes:
        name: name of the controller.
        users: views of the users, with their index by the objects that they refer to.
        text: reason why an object is kept, before the names of its users.
        event: type of the Event about it; None if it is only logged.
        nearby: whether users refer to objects of their own namespace only.
    """

    name: str
    view: View[Object]
    workers: Callable[[Controllers], int]
    users: Mapping[View[Object], str]
    text: str
    finalizer: str = GARDENER_FINALIZER
    event: EventType | None = None
    nearby: bool = False

    def declare(self, context: Context) -> ControlLoop:
        kind, caches = self.view.resource, context.garden.caches
        loop = ControlLoop(self.name, kind=kind, workers=self.workers(context.config.controllers))
        objects = loop.watch(caches, self.view, enqueue_unprotected(self.finalizer))
        users = {
            view.resource.kind: Users(loop, caches, view, index, nearby=self.nearby)
            for view, index in self.users.items()
        }

        def held_by(own: Key) -> str:
            reasons = (
                reason(self.text.format(kind=kind.kind, name=own, users=f"{each}s"), found.of(own))
                for each, found in users.items()
            )
            return next(filter(None, reasons), "")

        protection = Protection(
            context,
            objects,
            users=list(users.values()),
            held_by=held_by,
            finalizer=self.finalizer,
            event=self.event,
            reporter=f"{self.name}-controller",
        )
        return loop.reconciled_by(protection)


declare_cloud_profiles = _Kept(
    name="cloudprofile",
    view=CLOUD_PROFILES_VIEW,
    workers=lambda controllers: controllers.cloud_profile.concurrent_syncs,
    users={NAMESPACED_CLOUD_PROFILES_VIEW: BY_PARENT, SHOOTS_VIEW: BY_CLOUD_PROFILE},
    text=_REFERENCED,
    event="Normal",
).declare

declare_controller_deployments = _Kept(
    name="controllerdeployment",
    view=CONTROLLER_DEPLOYMENTS_VIEW,
    workers=lambda controllers: controllers.controller_deployment.concurrent_syncs,
    users={CONTROLLER_REGISTRATIONS_VIEW: BY_DEPLOYMENT},
    text=_FINALIZED,
    finalizer=DEPLOYMENT_FINALIZER,
).declare

declare_controller_registrations = _Kept(
    name="controllerregistration-controllerregistration-finalizer",
    view=CONTROLLER_REGISTRATIONS_VIEW,
    workers=lambda _: 5,
    users={CONTROLLER_INSTALLATIONS_VIEW: BY_REGISTRATION},
    text=_FINALIZED,
    finalizer=REGISTRATION_FINALIZER,
).declare

declare_seeds = _Kept(
    name="controllerregistration-seed-finalizer",
    view=SEEDS_VIEW,
    workers=lambda _: 5,
    users={CONTROLLER_INSTALLATIONS_VIEW: BY_SEED},
    text=_FINALIZED,
    finalizer=REGISTRATION_FINALIZER,
).declare

declare_exposure_classes = _Kept(
    name="exposureclass",
    view=EXPOSURE_CLASSES_VIEW,
    workers=lambda controllers: controllers.exposure_class.concurrent_syncs,
    users={SHOOTS_VIEW: BY_EXPOSURE_CLASS},
    text=_ASSOCIATED,
    event="Normal",
).declare

declare_secret_bindings = _Kept(
    name="secretbinding",
    view=SECRET_BINDINGS_VIEW,
    workers=lambda controllers: controllers.secret_binding.concurrent_syncs,
    users={SHOOTS_VIEW: BY_SECRET_BINDING},
    text=_REFERENCED,
    event="Warning",
    nearby=True,
).declare
