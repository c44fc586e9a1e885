"""The controllers that keep ControllerRegistrations and Seeds as long as they have ControllerInstallations."""

from agent.controller_manager.common.api import (
    BY_REGISTRATION,
    BY_SEED,
    CONTROLLER_INSTALLATIONS_VIEW,
    CONTROLLER_REGISTRATIONS_VIEW,
    SEEDS_VIEW,
)
from agent.controller_manager.common.protection import Protection, Users, enqueue_unprotected
from agent.controller_manager.context import Context
from gardener.garden.users import reason
from gardener.keys import REGISTRATION_FINALIZER
from kube.objects import Key, Object
from kube.runtime.cache import View
from kube.runtime.loop import ControlLoop

_WORKERS = 5


def declare_registrations(context: Context) -> ControlLoop:
    name = "controllerregistration-controllerregistration-finalizer"
    return _declare(context, name, CONTROLLER_REGISTRATIONS_VIEW, index=BY_REGISTRATION)


def declare_seeds(context: Context) -> ControlLoop:
    return _declare(context, "controllerregistration-seed-finalizer", SEEDS_VIEW, index=BY_SEED)


def _declare(context: Context, name: str, view: View[Object], *, index: str) -> ControlLoop:
    """Args: index: of ControllerInstallations, by these objects."""
    kind, caches = view.resource, context.garden.caches
    loop = ControlLoop(name, kind=kind, workers=_WORKERS)
    objects = loop.watch(caches, view, enqueue_unprotected(REGISTRATION_FINALIZER))
    installations = Users(loop, caches, CONTROLLER_INSTALLATIONS_VIEW, index)

    def held_by(name: Key) -> str:
        text = f'cannot remove finalizer of {kind.kind} "{name}" because still found ControllerInstallations'
        return reason(text, installations.of(name))

    return loop.reconciled_by(
        Protection(context, objects, users=(installations,), held_by=held_by, finalizer=REGISTRATION_FINALIZER)
    )
