"""One pass over a Quota: it is kept while bindings refer to it, and has labels of their kinds."""

from agent.controller_manager.common.protection import Protection, Users
from agent.controller_manager.common.rules.bindings import REFERENCE_LABELS, changes_of_labels, reference_labels
from gardener.garden.resources import QUOTAS
from gardener.keys import CREDENTIALS_BINDING_REFERENCE, SECRET_BINDING_REFERENCE
from kube.cache import Store
from kube.client import Client
from kube.controller import Result
from kube.objects import Key, Object, is_deleting, key, labels, metadata


class Reconciler:
    def __init__(
        self,
        *,
        client: Client,
        quotas: Store[Object],
        secret_bindings: Users,
        credentials_bindings: Users,
        protection: Protection,
    ) -> None:
        self._client = client
        self._quotas = quotas
        self._users = {
            SECRET_BINDING_REFERENCE: secret_bindings,
            CREDENTIALS_BINDING_REFERENCE: credentials_bindings,
        }
        self._protection = protection

    async def reconcile(self, name: Key) -> Result:
        result = await self._protection.reconcile(name)
        quota = self._quotas.get(name)
        wanted = reference_labels({label: users.of(name) for label, users in self._users.items()})
        # One in deletion that nobody refers to goes just now.
        if quota is not None and (wanted or not is_deleting(quota)):
            await self._label(quota, wanted)
        return result

    async def _label(self, quota: Object, wanted: set[str]) -> None:
        changes = changes_of_labels(labels(quota), wanted, owned=REFERENCE_LABELS)
        if not changes:
            return
        own = key(quota)
        body = {"metadata": {"resourceVersion": metadata(quota)["resourceVersion"], "labels": changes}}
        self._quotas.observe(await self._client.patch(QUOTAS, own.name, body, namespace=own.namespace))
