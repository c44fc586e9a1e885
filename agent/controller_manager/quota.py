"""The controller `quota`: labels Quotas that bindings refer to, and keeps them from deletion."""

from functools import partial

from agent.controller_manager.common.api import BY_QUOTA, CREDENTIALS_BINDINGS_VIEW, QUOTAS_VIEW, SECRET_BINDINGS_VIEW
from agent.controller_manager.common.protection import Protection, Users
from agent.controller_manager.common.rules.credentials import REFERENCE_LABELS, changes_of_labels, reference_labels
from agent.controller_manager.context import Context
from gardener.api.garden import QUOTAS
from gardener.garden.users import listed
from gardener.keys import CREDENTIALS_BINDING_REFERENCE, SECRET_BINDING_REFERENCE
from kube.objects import Key, Object, is_deleting, key, labels, metadata
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Result
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import changed_or_listed


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.quota, context.garden.caches
    loop = ControlLoop("quota", kind=QUOTAS, workers=settings.concurrent_syncs)
    quotas = loop.watch(caches, QUOTAS_VIEW, enqueue(when=changed_or_listed))
    secret_bindings = Users(loop, caches, SECRET_BINDINGS_VIEW, BY_QUOTA)
    credentials_bindings = Users(loop, caches, CREDENTIALS_BINDINGS_VIEW, BY_QUOTA)
    protection = Protection(
        context,
        quotas,
        users=(secret_bindings, credentials_bindings),
        held_by=partial(_held_by, secret_bindings, credentials_bindings),
        event="Normal",
        reporter="quota-controller",
    )
    return loop.reconciled_by(
        Reconciler(
            client=context.garden.client,
            quotas=quotas,
            secret_bindings=secret_bindings,
            credentials_bindings=credentials_bindings,
            protection=protection,
        )
    )


def _held_by(secret_bindings: Users, credentials_bindings: Users, name: Key) -> str:
    secrets, credentials = secret_bindings.of(name), credentials_bindings.of(name)
    if not secrets and not credentials:
        return ""
    return (
        "Cannot delete Quota, because the following resources are still referencing it: "
        f"SecretBindings - {listed(secrets)}, CredentialsBindings - {listed(credentials)}"
    )


class Reconciler:
    """One pass over a Quota: it is kept while bindings refer to it, and has labels of their kinds."""

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
        # An unused one in deletion is released now.
        if quota is not None and (wanted or not is_deleting(quota)):
            await self._label(quota, wanted)
        return result

    async def _label(self, quota: Object, wanted: set[str]) -> None:
        changes = changes_of_labels(labels(quota), wanted, owned=REFERENCE_LABELS)
        if not changes:
            return
        own = key(quota)
        body = {"metadata": {"resourceVersion": metadata(quota)["resourceVersion"], "labels": changes}}
        self._quotas.observe(await self._client.patch(QUOTAS, own, body))
