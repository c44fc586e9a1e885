"""The controller `token-requestor`: which Secrets it watches, and which changes lead to a pass.

Secrets are selected by their labels in the source cluster, so no others are sent. A change counts if it touches what
decides about the token, and is not the controller's own. The rest is timers: for the renewal, and to ask now and then
whether the API server still accepts the token. Timers are in memory; a restart sets them anew from the annotations.
"""

from collections.abc import Callable, Iterator

from agent.context import Context
from agent.token_requestor.authority import Authority
from agent.token_requestor.metrics import requested_tokens
from agent.token_requestor.reconcile import Clock, Reconciler, Settings
from agent.token_requestor.tokens import Tokens
from agent.token_requestor.watched import TokenSecret, label_selector
from kube.cache import Change, View
from kube.controller import Controller
from kube.objects import Key
from kube.queue import CHANGE, RESYNC
from kube.resources import SECRETS

_LONGEST_BACKOFF = 300.0


class TokenRequestorLoop:
    """Args:
    service_account_namespace: of all ServiceAccounts; None: what each Secret says.
    """

    def __init__(
        self, context: Context, *, service_account_namespace: str | None = None, clock: Clock | None = None
    ) -> None:
        config, settings = context.config, context.config.controllers.token_requestor
        self._caches = context.source.caches
        self._view = View(SECRETS, TokenSecret.of, label_selector=label_selector(settings.class_))
        self._secrets = self._caches.acquire(self._view, needed_at_start=True)
        self._unsubscribe: Callable[[], None] = lambda: None
        kubeconfig = config.target_client_connection.kubeconfig or config.source_client_connection.kubeconfig
        self._reconciler = Reconciler(
            store=self._secrets,
            source=context.source.client,
            target=context.target.client,
            tokens=Tokens(
                context.target.client,
                audiences=settings.audiences,
                merge_labels=settings.merge_service_account_labels,
            ),
            recorder=context.recorder,
            authority=Authority(kubeconfig),
            look_later=self._look_later,
            settings=Settings(
                resource_class=settings.class_,
                service_account_namespace=service_account_namespace,
                restore_kubeconfig=settings.restore_target_kubeconfig,
            ),
            clock=clock,
        )
        self.controller = Controller(
            "token-requestor",
            self._reconciler.reconcile,
            kind=SECRETS,
            concurrency=settings.concurrent_syncs,
            max_backoff=_LONGEST_BACKOFF,
        )

    async def start(self) -> None:
        await self._secrets.synced.wait()
        requested_tokens.follow(self._concerned)
        self._unsubscribe = self._secrets.subscribe(self._secret_changed)

    async def close(self) -> None:
        self._unsubscribe()
        await self._caches.release(self._view)

    def kinds_changed(self, group: str) -> None:
        """Secrets and ServiceAccounts are always there."""

    def _concerned(self) -> Iterator[TokenSecret]:
        return (secret for _, secret in self._secrets.items() if self._reconciler.is_concerned(secret))

    def _secret_changed(self, change: Change[TokenSecret]) -> None:
        if change.new is None:
            self._reconciler.memories.forget(change.key)
            return
        if change.old == change.new and not change.initial:
            return
        if self._reconciler.memories.is_own_write(change.new):
            return
        self.controller.queue.add(change.key, RESYNC if change.initial else CHANGE)

    def _look_later(self, key: Key, seconds: float) -> None:
        self.controller.queue.add_after(key, seconds)
