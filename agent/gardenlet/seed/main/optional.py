"""Deployment and deletion of a seed's components: see `components.seed_component`.

A component that is not selected is deleted if it was deployed before, except if another gardenlet has deployed it.
"""

from functools import partial

from agent.gardenlet.common.secrets_manager import GeneratedSecrets
from agent.gardenlet.flow.unit import Unit
from agent.gardenlet.seed.main.operation import SeedOperation
from components.sample import kinds_in_seed
from components.seed_component import SeedComponent, SeedInputs
from components.seed_registry import COMPONENTS
from gardener.api.seed_definitions import Stage
from kube.resources import Resource

_GONE_SECONDS = 300.0


def unit_of(component: SeedComponent) -> Unit[SeedOperation]:
    return Unit(
        id=component.name,
        title=component.title,
        deploy=partial(reconcile, component=component),
        after=["cluster-identity", *component.after],
        skips=partial(_is_brought, component),
        destroy=partial(destroy, component=component),
    )


def _is_brought(component: SeedComponent, operation: SeedOperation) -> bool:
    """Whether the garden provides the component, so that it is left alone."""
    return component.is_of_garden and operation.is_garden


async def reconcile(operation: SeedOperation, component: SeedComponent) -> None:
    """Deploy a component, or delete it.

    Raises:
        ReconcileError: it can't be deployed or deleted.
    """
    if component.name in operation.components and component.is_wanted(_inputs(operation)):
        await deploy(operation, component)
    else:
        await destroy(operation, component)


async def deploy(operation: SeedOperation, component: SeedComponent) -> None:
    """Deploy a component.

    Raises:
        ReconcileError: it can't be deployed.
    """
    served = [each for each in component.asks_for if await operation.cluster.discovery.is_served(each)]
    inputs = _inputs(operation, *served)
    for config in component.secrets(inputs):
        await operation.keys.generate(config)
    await operation.objects.deploy(component.name, component.objects(inputs))


async def destroy(operation: SeedOperation, component: SeedComponent) -> None:
    """Delete a component, and wait until it is gone.

    Raises:
        ReconcileError: it is not gone in time.
    """
    await operation.objects.destroy(component.name, kinds_in_seed(component), seconds=_GONE_SECONDS)


def _inputs(operation: SeedOperation, *served: Resource) -> SeedInputs:
    return SeedInputs(
        config=operation.config,
        seed=operation.seed,
        secrets=GeneratedSecrets(operation.keys),
        identity=operation.identity,
        installs_autoscaler=operation.installs_autoscaler,
        served=served,
        login_secret=operation.login_secret,
        wildcard_certificate=operation.wildcard_certificate,
    )


def is_needed(stage: Stage, operation: SeedOperation) -> bool:
    """Whether a deployed component needs these definitions."""
    needing = {each.name for each in COMPONENTS if stage in each.needs} | ({"istio"} if stage is Stage.ISTIO else set())
    return not needing.isdisjoint(operation.components)
