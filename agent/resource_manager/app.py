"""Parts of the resource manager that not every program has; see `process.composition`.

caches          ManagedResources and their Secrets: every replica keeps them to be able to take over at once
servers         status page, if enabled
work            bootstrap, then the control loops
"""

from collections.abc import Sequence

from agent.resource_manager.bootstrap import DefinitionCheck, cluster_identity
from agent.resource_manager.common.recent_changes import KEPT, RecentChanges
from agent.resource_manager.context import Context, Metrics
from agent.resource_manager.controllers import CONTROLLERS, compose_controllers, watch_source
from agent.resource_manager.health.evaluation import rules_of
from agent.resource_manager.managed_resource.source import Source
from agent.resource_manager.status_page.lister import Lister
from config.resource_manager.schema import ResourceManagerConfiguration
from gardener import keys
from kube.runtime.loop import ControlLoop
from process.composition import Composition, Parts
from process.controllers import Controllers
from process.memory import keep_large_apart
from process.server import HttpServer


def compose(base: Composition[ResourceManagerConfiguration]) -> Parts:
    keep_large_apart()
    config = base.config
    declared = CONTROLLERS.load(config)
    base.describe_leader({keys.CLASS: config.controllers.resource_class})
    rules = rules_of(config.controllers.health)
    source, target = base.clusters["source"], base.clusters["target"]
    # Watches run from here on: readiness must cover every watch that it depends on.
    source_objects = watch_source(source)
    page = config.server.status_page
    changes = RecentChanges(limit=KEPT if page.port else 0)
    lister = _lister(config, source_objects, changes)
    metrics = Metrics()

    async def control_loops() -> Sequence[ControlLoop]:
        context = Context(
            config=config,
            source=source,
            target=target,
            recorder=base.clusters.recorder("source"),
            target_recorder=base.clusters.recorder("target"),
            cluster_id=await cluster_identity(config.controllers.cluster_id, source.client),
            health_rules=rules,
            changes=changes,
            metrics=metrics,
        )
        return compose_controllers(context, declared, source_objects=source_objects, lister=lister)

    servers: list[HttpServer] = []
    if page.port:
        # Import it only if the page is enabled: that takes time.
        from agent.resource_manager.status_page.object_page import LiveReader
        from agent.resource_manager.status_page.server import status_page_server

        live = LiveReader(target.client, target.discovery)
        servers.append(status_page_server(lister, live, host=page.bind_address, port=page.port))
    return Parts(
        servers=servers,
        metrics=[metrics.managed_resources, metrics.tokens],
        ready=[DefinitionCheck(source.discovery)],
        work=[Controllers(base.clusters, config=config, kinds_of=("target",), compose=control_loops)],
    )


def _lister(config: ResourceManagerConfiguration, source_objects: Source, changes: RecentChanges) -> Lister:
    election = config.leader_election
    return Lister(
        managed_resources=source_objects.managed_resources,
        secrets=source_objects.secrets,
        changes=changes,
        resource_class=config.controllers.resource_class,
        lease=f"{election.resource_namespace}/{election.resource_name}" if election.leader_elect else "",
    )
