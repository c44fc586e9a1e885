"""The controller `token-invalidator`: Secrets get the labels that their ServiceAccount's settings call for.

Of Secrets only metadata is watched. Which of them Kubernetes fills with tokens their metadata does not tell, so before
a Secret is labelled the API server is asked for its type, in a way that does not send its content either.

    Secrets           with the annotation of a token
    ServiceAccounts   whose settings change: the Secrets that name it, and those that it lists

Everything happens in the target cluster, where the webhook of the same name works as well.
"""

from collections.abc import Callable

from agent.context import Context
from agent.token_invalidator import keys
from agent.token_invalidator.rules import (
    Account,
    Labelled,
    Labels,
    account_matters,
    belongs_to,
    needed_labels,
    uses,
)
from kube.cache import Change, View
from kube.client import Form, Selection
from kube.controller import Controller, Done, ReconcileError, RequeueAfter, Result
from kube.errors import KubeError
from kube.objects import Key, metadata
from kube.queue import CHANGE, RESYNC
from kube.resources import PODS, SECRETS, SERVICE_ACCOUNTS

IN_USE_SECONDS = 30.0
"""Until it is looked again whether Pods have stopped to use a Secret."""

_BY_ACCOUNT = "account"


def _account_of(secret: Labelled | None) -> tuple[Key, ...]:
    return () if secret is None else (secret.account_key,)


_SECRETS_VIEW = View(SECRETS, Labelled.of, form=Form.METADATA, indexes=((_BY_ACCOUNT, _account_of),))
_ACCOUNTS_VIEW = View(SERVICE_ACCOUNTS, Account.of)


class TokenInvalidatorLoop:
    """See the module; `context` says where and with which configuration."""

    def __init__(self, context: Context) -> None:
        self._client = context.target.client
        self._caches = context.target.caches
        self._secrets = self._caches.acquire(_SECRETS_VIEW, needed_at_start=True)
        self._accounts = self._caches.acquire(_ACCOUNTS_VIEW, needed_at_start=True)
        self._unsubscribe: list[Callable[[], None]] = []
        self.controller = Controller(
            "token-invalidator",
            self._reconcile,
            kind=SECRETS,
            concurrency=max(context.config.controllers.token_invalidator.concurrent_syncs, 1),
        )

    async def start(self) -> None:
        await self._secrets.synced.wait()
        await self._accounts.synced.wait()
        self._unsubscribe = [
            self._secrets.subscribe(self._secret_changed),
            self._accounts.subscribe(self._account_changed),
        ]

    async def close(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        await self._caches.release(_SECRETS_VIEW)
        await self._caches.release(_ACCOUNTS_VIEW)

    def kinds_changed(self, group: str) -> None:
        """Secrets and ServiceAccounts are always there."""

    # --- mapping events to keys

    def _secret_changed(self, change: Change[Labelled | None]) -> None:
        if change.new is not None:
            self.controller.queue.add(change.key, RESYNC if change.initial else CHANGE)

    def _account_changed(self, change: Change[Account]) -> None:
        if change.new is None or not account_matters(change.old, change.new):
            return
        namespace = change.key.namespace
        listed = change.new.secrets | (change.old.secrets if change.old is not None else frozenset())
        named = {found for found, _ in self._secrets.by_index(_BY_ACCOUNT, change.key)}
        for secret in sorted(named | {Key(namespace, name) for name in listed}):
            self.controller.queue.add(secret, RESYNC if change.initial else CHANGE)

    # --- one pass

    async def _reconcile(self, key: Key) -> Result:
        secret = self._secrets.get(key)
        if secret is None:
            return Done()
        account = self._accounts.get(secret.account_key)
        if account is None or not belongs_to(secret, account):
            return Done()  # Kubernetes removes the Secret; a ServiceAccount that comes is told
        changes = needed_labels(secret, account)
        if not changes or not await self._holds_token(key):
            return Done()
        if changes.get(keys.CONSIDER) and await self._is_used(key):
            del changes[keys.CONSIDER]
            await self._label(secret, changes)
            return RequeueAfter(IN_USE_SECONDS)
        await self._label(secret, changes)
        return Done()

    async def _holds_token(self, key: Key) -> bool:
        """Whether Kubernetes fills the Secret with a token; anybody may put its annotation on any Secret."""
        selector = f"metadata.name={key.name},type={keys.SECRET_TYPE}"
        selection = Selection(namespace=key.namespace, field_selector=selector)
        page = await self._client.list_page(SECRETS, selection, form=Form.METADATA, limit=1)
        return bool(page["items"])

    async def _is_used(self, key: Key) -> bool:
        selection = Selection(namespace=key.namespace)
        token = ""
        try:
            while True:
                page = await self._client.list_page(PODS, selection, continue_token=token)
                if any(uses(pod, key.name) for pod in page["items"]):
                    return True
                token = metadata(page).get("continue") or ""
                if not token:
                    return False
        except KubeError as error:
            raise ReconcileError(f"could not list Pods: {error}") from error

    async def _label(self, secret: Labelled, changes: Labels) -> None:
        """The Secret passes the webhook on its way, which does what the labels say."""
        if not changes:
            return
        body = {"metadata": {"resourceVersion": str(secret.version), "labels": changes}}
        answer = await self._client.patch(SECRETS, secret.key.name, body, namespace=secret.key.namespace)
        self._secrets.observe({"metadata": metadata(answer)})
