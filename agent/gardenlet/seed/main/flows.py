"""The two flows of a seed.

Definitions are deployed before the components that need them, and deleted after them. A seed that runs the garden
itself keeps shared objects. Operations that a user requests by annotation wait for as few tasks as possible: an expired
certificate may be the reason why everything else fails.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from agent.gardenlet.flow.graph import ONCE, Graph, Task
from agent.gardenlet.flow.unit import Leaves, Unit, tasks_of
from agent.gardenlet.seed.main import definitions, ingress, optional, renewals, required, resource_manager
from agent.gardenlet.seed.main.operation import SeedOperation
from agent.gardenlet.seed.main.skipping import has_own_identity, is_garden, is_left_out
from components import cluster_identity, gardenlet_autoscaling, system
from components.seed_component import SeedComponent
from components.seed_registry import COMPONENTS
from config.gardenlet.schema import GARDENLET_AUTOSCALING


def _unit(
    component: SeedComponent, after: Collection[str], unless: Leaves[SeedOperation] | None = None
) -> Unit[SeedOperation]:
    """Unit of a component of every seed."""
    deploy, destroy = partial(optional.deploy, component=component), partial(optional.destroy, component=component)
    return Unit(id=component.name, title=component.title, deploy=deploy, after=after, unless=unless, destroy=destroy)


_AUTOSCALING = _unit(gardenlet_autoscaling.COMPONENT, ["vpa-definitions"], is_left_out(GARDENLET_AUTOSCALING))
_SYSTEM = _unit(system.COMPONENT, [*resource_manager.UNIT.after, resource_manager.UNIT.id])
_IDENTITY = _unit(cluster_identity.COMPONENT, ["extensions"], has_own_identity)
_COMPONENTS = [optional.unit_of(each) for each in COMPONENTS]


RECONCILE: Graph[SeedOperation] = Graph(
    "Seed reconciliation",
    [
        *tasks_of(
            *definitions.UNITS,
            _AUTOSCALING,
            resource_manager.UNIT,
            _SYSTEM,
            required.EXTENSIONS,
            _IDENTITY,
            ingress.UNIT,
            *_COMPONENTS,
            *renewals.TASKS,
        )
    ],
)


def _gone(unit: Unit[SeedOperation], *after: str) -> Task[SeedOperation]:
    """Task that deletes a unit, with the same ID as the one that deploys it."""
    return replace(unit.gone(after), id=unit.id)


DELETE: Graph[SeedOperation] = Graph(
    "Seed deletion",
    [
        _gone(_IDENTITY),
        # First, since its extension stays as long as it is there.
        Task("ingress-record", "Destroying managed ingress DNS record", ingress.destroy_record),
        replace(required.INSTALLATIONS_GONE, after=["cluster-identity", "ingress-record"]),
        _gone(_SYSTEM, "installations"),
        *(_gone(each, "installations") for each in _COMPONENTS),
        _gone(ingress.UNIT, *(each.name for each in COMPONENTS if "istio" in each.after)),
        Task(
            "managed-resources",
            "Ensuring all ManagedResources are gone",
            required.until_managed_resources_are_gone,
            after=["system", "istio", *(each.name for each in COMPONENTS)],
            unless=is_garden,
            retry=ONCE,
        ),
        _gone(resource_manager.UNIT, "managed-resources"),
        _gone(_AUTOSCALING, "resource-manager"),
        *definitions.removals("gardenlet-autoscaling"),
    ],
)
