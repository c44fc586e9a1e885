"""The resource manager of a seed: deployed, or a local process that must be active."""

from datetime import datetime, timedelta

from agent.gardenlet.flow.graph import ONCE
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.flow.unit import Unit
from agent.gardenlet.seed.main import definitions
from agent.gardenlet.seed.main.definitions import are_served
from agent.gardenlet.seed.main.operation import GARDEN, SeedOperation
from agent.gardenlet.seed.main.skipping import is_garden
from components import resource_manager
from components.secrets import tables
from components.secrets.configs import BUNDLE
from config.gardenlet.schema import RESOURCE_MANAGER
from gardener.api.kinds import SERVICE_MONITORS
from kube.clock import time_or_none
from kube.objects import Key, Object, integer, spec, text
from kube.resources import DEPLOYMENTS, LEASES
from kube.runtime.controller import TerminalError
from process.configuration.fields import as_object

_READY_SECONDS = 300.0
_GONE_SECONDS = 300.0
_NAME = Key(GARDEN, resource_manager.NAME)
"""Name of its Deployment and its Lease."""


async def deploy(operation: SeedOperation) -> None:
    """Deploy the resource manager, and wait until it is ready or holds its Lease.

    Raises:
        ReconcileError: that takes too long.
    """
    if RESOURCE_MANAGER not in operation.components:
        await _until_held(operation)
        return
    await operation.objects.deploy(resource_manager.NAME, resource_manager.objects(await _values(operation)))
    await operation.waiting.until_ready(
        DEPLOYMENTS, _NAME, resource_manager.unready, seconds=_READY_SECONDS, report=waits_for
    )


async def destroy(operation: SeedOperation) -> None:
    """Delete the resource manager, and the objects that its garbage collector can't delete any more.

    Raises:
        ReconcileError: it is not gone in time.
    """
    kinds = resource_manager.objects(resource_manager.Values(image="", server_secret="", ca_bundle=""))
    await operation.objects.destroy(resource_manager.NAME, kinds, seconds=_GONE_SECONDS)
    await operation.objects.destroy_collected()


async def _values(operation: SeedOperation) -> resource_manager.Values:
    image = operation.config.images.resource_manager
    if not image:
        raise TerminalError("images.resourceManager is not set in the configuration of the gardenlet; set it")
    server = await operation.keys.generate(tables.resource_manager_server(GARDEN, tables.CA_SEED))
    bundle = operation.keys.get(tables.CA_SEED.name).bundle
    return resource_manager.Values(
        image=image,
        server_secret=server.current.name,
        ca_bundle=bundle.data[BUNDLE].decode() if bundle is not None else "",
        zones=operation.zones,
        autoscaled=operation.installs_autoscaler,
        monitored=await are_served(operation, SERVICE_MONITORS),
        additional_namespaces=[
            as_object(each) for each in operation.config.controllers.network_policy.additional_namespace_selectors
        ],
        patience=as_object(operation.config.node_toleration),
    )


async def _until_held(operation: SeedOperation) -> None:
    clock = operation.cluster.clock

    def unheld(lease: Object | None) -> str:
        return not_held(lease, now=clock())

    await operation.waiting.until_ready(LEASES, _NAME, unheld, seconds=_READY_SECONDS, report=waits_for)


def not_held(lease: Object | None, *, now: datetime) -> str:
    """Reason why no replica holds the Lease; empty if one does."""
    if lease is None:
        return "no resource manager has run yet; start it, or configure the gardenlet to deploy it"
    renewed, seconds = time_or_none(spec(lease).get("renewTime")), integer(spec(lease).get("leaseDurationSeconds"))
    if not text(spec(lease).get("holderIdentity")) or renewed is None or renewed + timedelta(seconds=seconds) < now:
        return "no resource manager holds its Lease; start it, or configure the gardenlet to deploy it"
    return ""


UNIT = Unit(
    id="resource-manager",
    verb="Deploying and waiting for",
    title="gardener-resource-manager to be healthy",
    deploy=deploy,
    after=[each.id for each in definitions.UNITS],
    skips=is_garden,
    retry=ONCE,
    destroy=destroy,
    destroyed="gardener-resource-manager",
)
