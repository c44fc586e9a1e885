"""The controller `garbage-collector`: a round when this process begins to lead, then one in a sync period.

Nothing is watched: what refers to what is read when it is needed, which is seldom.
"""

from agent.resource_manager.context import Context
from agent.resource_manager.garbage_collector.reconcile import Reconciler, initialize_metrics
from kube.objects import Key
from kube.runtime.loop import ControlLoop


def declare(context: Context) -> ControlLoop:
    settings, target = context.config.controllers.garbage_collector, context.target
    initialize_metrics()
    loop = ControlLoop(
        "garbage-collector",
        time_limit=settings.sync_period,
        max_backoff=settings.sync_period,
        initial_keys=[Key("", "round")],
    )
    return loop.reconciled_by(
        Reconciler(client=target.client, settings=settings, namespaces=target.namespaces, utcnow=target.clock)
    )
