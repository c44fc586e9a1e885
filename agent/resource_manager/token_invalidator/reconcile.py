"""One pass over the Secret of a ServiceAccount: the required labels, and the patch.

Only metadata of Secrets are watched. They do not show which Secrets Kubernetes fills with tokens, so before labelling,
a Secret's type is requested from the API server, in a way that does not transfer its content either.
"""

from agent.resource_manager.token_invalidator.rules import (
    SECRET_TYPE,
    Account,
    Labelled,
    Labels,
    belongs_to,
    needed_labels,
)
from agent.resource_manager.token_invalidator.usage import Unused, Usage
from gardener import keys
from kube.objects import Key, metadata, uid
from kube.resources import SECRETS
from kube.runtime.cache import Store
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import Done, RequeueAfter, Result


class Reconciler:
    def __init__(self, *, client: Client, secrets: Store[Labelled | None], accounts: Store[Account]) -> None:
        self._client = client
        self._secrets = secrets
        self._accounts = accounts
        self._usage = Usage(client)
        self._holding: dict[Key, str] = {}
        """uids of Secrets that hold tokens: the type of a Secret never changes."""

    async def reconcile(self, key: Key) -> Result:
        secret = self._secrets.get(key)
        if secret is None:
            self._holding.pop(key, None)
            return Done()
        account = self._accounts.get(secret.account_key)
        if account is None or not belongs_to(secret, account):
            return Done()  # Kubernetes removes the Secret; a new ServiceAccount leads to a pass
        changes = needed_labels(secret, account)
        if not changes or not await self._holds_token(secret):
            return Done()
        if changes.get(keys.TOKEN_INVALIDATOR_CONSIDER):
            usage = await self._usage.of(key)
            if not isinstance(usage, Unused):
                del changes[keys.TOKEN_INVALIDATOR_CONSIDER]
                await self._label(secret, changes)
                return RequeueAfter(usage.seconds)
        await self._label(secret, changes)
        return Done()

    async def _holds_token(self, secret: Labelled) -> bool:
        """Whether Kubernetes fills the Secret with a token; any client may put its annotation on any Secret."""
        key = secret.key
        if self._holding.get(key) == secret.uid:
            return True
        selector = f"metadata.name={key.name},type={SECRET_TYPE}"
        selection = Selection(namespace=key.namespace, field_selector=selector)
        page = await self._client.list_page(SECRETS, selection, form=Form.METADATA, limit=1)
        if any(uid(each) == secret.uid for each in page["items"]):
            self._holding[key] = secret.uid
            return True
        return False

    async def _label(self, secret: Labelled, changes: Labels) -> None:
        """Patch the labels; the webhook acts on them while the Secret passes it."""
        if not changes:
            return
        body = {"metadata": {"resourceVersion": str(secret.version), "labels": changes}}
        answer = await self._client.patch(SECRETS, secret.key, body)
        self._secrets.observe({"metadata": metadata(answer)})
