"""The controller `token-requestor-workload-identity`: Secrets of the seed, selected by label.

No other Secrets are received. Timers for renewals are in memory; a restart sets them again.
"""

from collections.abc import Iterable
from datetime import timedelta

from agent.gardenlet.context import Context
from agent.gardenlet.tokens.workload_identities.identity_secret import SELECTOR, IdentitySecret
from agent.gardenlet.tokens.workload_identities.reconcile import Reconciler
from kube.resources import SECRETS
from kube.runtime.cache import View
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import changed_or_listed

_LONGEST_BACKOFF = 60.0


def declare(context: Context) -> ControlLoop:
    settings = context.config.controllers.token_requestor_workload_identity
    loop = ControlLoop(
        "token-requestor-workload-identity",
        kind=SECRETS,
        workers=settings.concurrent_syncs,
        max_backoff=_LONGEST_BACKOFF,
    )
    view = View(SECRETS, IdentitySecret.of, label_selector=SELECTOR, most=2 << 20)
    secrets = loop.watch(context.seed.caches, view, enqueue(when=changed_or_listed))
    expiries = context.metrics.identity_tokens

    def ends() -> Iterable[float]:
        return (each.expires for _, each in secrets.items() if each.wants_token and each.expires is not None)

    async def follow() -> None:
        unfollow = expiries.follow(ends)

        async def end() -> None:
            unfollow()

        loop.on_close(end)

    loop.on_start(follow)
    return loop.reconciled_by(
        Reconciler(
            secrets=secrets,
            seed=context.seed.client,
            garden=context.api,
            lifetime=timedelta(seconds=settings.token_expiration_duration),
            look_later=loop.queue.add_after,
            today=context.clock,
        )
    )
