"""One pass over the Secret of a ServiceAccount: which labels it is to have, and the patch.

Of Secrets only metadata is watched. Which of them Kubernetes fills with tokens their metadata does not show, so before
a Secret is labelled the API server is asked for its type, in a way that does not send its content either.
"""

from agent.resource_manager.token_invalidator.rules import (
    SECRET_TYPE,
    Account,
    Labelled,
    Labels,
    belongs_to,
    needed_labels,
    uses,
)
from gardener import keys
from kube.errors import KubeError
from kube.objects import Key, metadata
from kube.resources import PODS, SECRETS
from kube.runtime.cache import Store
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result

IN_USE_SECONDS = 30.0
"""Until it is looked again whether Pods have stopped to use a Secret."""


class Reconciler:
    def __init__(self, *, client: Client, secrets: Store[Labelled | None], accounts: Store[Account]) -> None:
        self._client = client
        self._secrets = secrets
        self._accounts = accounts

    async def reconcile(self, key: Key) -> Result:
        secret = self._secrets.get(key)
        if secret is None:
            return Done()
        account = self._accounts.get(secret.account_key)
        if account is None or not belongs_to(secret, account):
            return Done()  # Kubernetes removes the Secret; a ServiceAccount that comes leads to a pass
        changes = needed_labels(secret, account)
        if not changes or not await self._holds_token(key):
            return Done()
        if changes.get(keys.TOKEN_INVALIDATOR_CONSIDER) and await self._is_used(key):
            del changes[keys.TOKEN_INVALIDATOR_CONSIDER]
            await self._label(secret, changes)
            return RequeueAfter(IN_USE_SECONDS)
        await self._label(secret, changes)
        return Done()

    async def _holds_token(self, key: Key) -> bool:
        """Whether Kubernetes fills the Secret with a token; any client may put its annotation on any Secret."""
        selector = f"metadata.name={key.name},type={SECRET_TYPE}"
        selection = Selection(namespace=key.namespace, field_selector=selector)
        page = await self._client.list_page(SECRETS, selection, form=Form.METADATA, limit=1)
        return bool(page["items"])

    async def _is_used(self, key: Key) -> bool:
        selection = Selection(namespace=key.namespace)
        try:
            async for pods in self._client.pages(PODS, selection):
                if any(uses(pod, key.name) for pod in pods):
                    return True
        except KubeError as error:
            raise ReconcileError(f"could not list Pods: {error}") from error
        return False

    async def _label(self, secret: Labelled, changes: Labels) -> None:
        """The Secret passes the webhook on its way, which does what the labels say."""
        if not changes:
            return
        body = {"metadata": {"resourceVersion": str(secret.version), "labels": changes}}
        answer = await self._client.patch(SECRETS, secret.key.name, body, namespace=secret.key.namespace)
        self._secrets.observe({"metadata": metadata(answer)})
