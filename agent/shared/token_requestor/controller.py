"""The controller `token-requestor`: its watches, and the changes that lead to a pass.

Secrets are selected by their labels in the source cluster, so no others are sent. A change counts if it touches fields
that decide about the token, and is not the controller's own; so does one of a target Secret, and the end of a
ServiceAccount, of which only metadata is watched. The rest is timers: for the renewal, and for regular checks that the
API server still accepts the token. Timers are in memory; a restart sets them again from the annotations.
"""

from agent.shared.token_requestor.memory import Memories
from agent.shared.token_requestor.metrics import TokenCollector
from agent.shared.token_requestor.reconcile import Clock, Reconciler
from agent.shared.token_requestor.token_secret import TokenSecret, label_selector
from agent.shared.token_requestor.tokens import Tokens
from agent.shared.token_requestor.watches import Accounts, TargetSecrets
from config.shared import TokenRequestor
from kube.resources import SECRETS
from kube.runtime.cache import View
from kube.runtime.events import EventRecorder
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import all_of, any_of, changed_or_listed, now, went
from process.clusters import Cluster

_LONGEST_BACKOFF = 300.0


def declare(
    settings: TokenRequestor,
    *,
    source: Cluster,
    target: Cluster,
    recorder: EventRecorder,
    metrics: TokenCollector,
    service_account_namespace: str | None = None,
    lenient: bool = False,
    clock: Clock | None = None,
) -> ControlLoop:
    """Declare the control loop.

    `source` is the cluster of the Secrets and Events, `target` that of the ServiceAccounts and target Secrets;
    `metrics` cover all token requestors of the process. `service_account_namespace` is that of all ServiceAccounts,
    None to use the annotation of each Secret. `lenient`: see `Reconciler`.
    """
    loop = ControlLoop("token-requestor", kind=SECRETS, workers=settings.concurrent_syncs, max_backoff=_LONGEST_BACKOFF)
    memories, targets = Memories(), TargetSecrets(loop, target.caches)
    accounts = Accounts(loop, target.caches, service_account_namespace or "")
    view = View(SECRETS, TokenSecret.of, label_selector=label_selector(settings.class_), most=2 << 20)
    secrets = loop.watch(
        source.caches, view, enqueue(when=all_of(changed_or_listed, any_of(went, now(memories.is_foreign))))
    )
    reconciler = Reconciler(
        store=secrets,
        source=source.client,
        target=target.client,
        targets=targets,
        accounts=accounts,
        tokens=Tokens(target.client, audiences=settings.audiences, merge_labels=settings.merge_service_account_labels),
        memories=memories,
        recorder=recorder,
        authority=lambda: target.authority,
        look_later=loop.queue.add_after,
        settings=settings,
        service_account_namespace=service_account_namespace,
        lenient=lenient,
        clock=clock or Clock(today=target.clock),
    )

    async def follow() -> None:
        unfollow = metrics.follow(lambda: (each for _, each in secrets.items() if reconciler.wants_token(each)))

        async def end() -> None:
            unfollow()

        loop.on_close(end)

    loop.on_start(follow)
    loop.on_close(targets.close, accounts.close)
    return loop.reconciled_by(reconciler)
