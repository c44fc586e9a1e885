"""Programs of the agent; the `kind` in the configuration file selects one.

The parts of a program are imported only if it is selected: its schema, its control loops, and its servers.
"""

from typing import TYPE_CHECKING, Any

from config import controller_manager, gardenlet, resource_manager, scheduler
from process.program import Program

if TYPE_CHECKING:
    from config.controller_manager.schema import ControllerManagerConfiguration
    from config.gardenlet.schema import GardenletConfiguration
    from config.resource_manager.schema import ResourceManagerConfiguration
    from config.scheduler.schema import SchedulerConfiguration
    from process.program import Compose


def _resource_manager() -> "Compose[ResourceManagerConfiguration]":
    from agent.resource_manager.app import compose

    return compose


def _controller_manager() -> "Compose[ControllerManagerConfiguration]":
    from agent.controller_manager.app import compose

    return compose


def _scheduler() -> "Compose[SchedulerConfiguration]":
    from agent.scheduler.app import compose

    return compose


def _gardenlet() -> "Compose[GardenletConfiguration]":
    from agent.gardenlet.app import compose

    return compose


PROGRAMS: tuple[Program[Any], ...] = (
    Program(
        name="resource-manager-agent",
        summary="Applies objects of ManagedResources in the source cluster to the target cluster, and keeps them "
        "applied.",
        component=resource_manager.COMPONENT,
        compose=_resource_manager,
    ),
    Program(
        name="controller-manager",
        summary="Maintains Projects, Seeds, Shoots and referenced objects in the garden cluster.",
        component=controller_manager.COMPONENT,
        compose=_controller_manager,
    ),
    Program(
        name="scheduler",
        summary="Chooses Seeds for the Shoots of the garden cluster.",
        component=scheduler.COMPONENT,
        compose=_scheduler,
    ),
    Program(
        name="gardenlet",
        summary="Registers a seed in the garden cluster and maintains the Shoots on it.",
        component=gardenlet.COMPONENT,
        compose=_gardenlet,
    ),
)
