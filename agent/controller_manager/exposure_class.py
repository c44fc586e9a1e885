"""The controller `exposureclass`: an ExposureClass is not deleted as long as Shoots refer to it."""

from functools import partial

from agent.controller_manager.common.api import BY_EXPOSURE_CLASS, EXPOSURE_CLASSES_VIEW, SHOOTS_VIEW
from agent.controller_manager.common.protection import Protection, Users, enqueue_unprotected
from agent.controller_manager.context import Context
from gardener.api.garden import EXPOSURE_CLASSES
from gardener.garden.users import reason
from kube.objects import Key
from kube.runtime.loop import ControlLoop


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.exposure_class, context.garden.caches
    loop = ControlLoop("exposureclass", kind=EXPOSURE_CLASSES, workers=settings.concurrent_syncs)
    classes = loop.watch(caches, EXPOSURE_CLASSES_VIEW, enqueue_unprotected())
    shoots = Users(loop, caches, SHOOTS_VIEW, BY_EXPOSURE_CLASS)
    return loop.reconciled_by(
        Protection(
            context,
            classes,
            users=(shoots,),
            held_by=partial(_held_by, shoots),
            event="Normal",
            reporter="exposureclass-controller",
        )
    )


def _held_by(shoots: Users, name: Key) -> str:
    text = "Cannot delete ExposureClass, because it is still associated by the following Shoots"
    return reason(text, shoots.of(name))
