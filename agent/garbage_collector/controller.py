"""The controller `garbage-collector`: a round when this process begins to lead, then one in a sync period.

Nothing is watched: what refers to what is read when it is needed, which is seldom.
"""

from datetime import UTC, datetime

from agent.context import Context
from agent.garbage_collector import metrics
from agent.garbage_collector.rounds import Rounds, Settings
from kube.controller import Controller
from kube.objects import Key

_ROUND = Key("", "round")


class GarbageCollectorLoop:
    def __init__(self, context: Context) -> None:
        settings = context.config.controllers.garbage_collector
        rounds = Rounds(
            client=context.target.client,
            settings=Settings(
                namespaces=context.target.namespaces,
                minimum_age=settings.minimum_object_lifetime,
                dry_run=settings.dry_run,
                sync_period=settings.sync_period,
            ),
            utcnow=lambda: datetime.now(UTC),
        )
        self.controller = Controller(
            "garbage-collector", rounds.reconcile, time_limit=settings.sync_period, max_backoff=settings.sync_period
        )
        metrics.begin()

    async def start(self) -> None:
        self.controller.queue.add(_ROUND)

    def kinds_changed(self, group: str) -> None:
        """Kinds are looked for anew in each round."""

    async def close(self) -> None:
        """There is nothing to give back."""
