"""What uses a Project: something of it is in use, be it from another Project.

    Shoots, BackupEntries   in its namespace
    Secrets, WorkloadIdentities, Quotas
                            in its namespace, that a binding of any namespace names which a Shoot uses

It is looked up in caches; before a Project is deleted, once more in what the API server says at that moment.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.controller_manager.common.api import (
    BACKUP_ENTRIES_VIEW,
    BY_CREDENTIALS_BINDING,
    BY_NAMESPACE,
    BY_QUOTA,
    BY_SECRET,
    BY_SECRET_BINDING,
    BY_WORKLOAD_IDENTITY,
    CREDENTIALS_BINDINGS_VIEW,
    QUOTAS_VIEW,
    SECRET_BINDINGS_VIEW,
    SECRETS_VIEW,
    SHOOTS_VIEW,
    WORKLOAD_IDENTITIES_VIEW,
)
from agent.controller_manager.common.rules.credentials import Credentials
from gardener import keys
from gardener.garden import users
from kube.objects import Key, Object
from kube.runtime.cache import Caches, Store, listed
from kube.runtime.client import Client
from kube.runtime.loop import ControlLoop

_NOT_CREDENTIALS = frozenset({"kubeconfig", "monitoring", "ssh-keypair"})
"""Roles of Secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    shoots: Store[Object]
    backup_entries: Store[Object]
    secrets: Store[Credentials]
    workload_identities: Store[Credentials]
    quotas: Store[Object]
    secret_bindings: Store[Object]
    credentials_bindings: Store[Object]

    @classmethod
    def watched(cls, loop: ControlLoop, caches: Caches) -> "Usage":
        return cls(
            shoots=loop.watch(caches, SHOOTS_VIEW),
            backup_entries=loop.watch(caches, BACKUP_ENTRIES_VIEW),
            secrets=loop.watch(caches, SECRETS_VIEW),
            workload_identities=loop.watch(caches, WORKLOAD_IDENTITIES_VIEW),
            quotas=loop.watch(caches, QUOTAS_VIEW),
            secret_bindings=loop.watch(caches, SECRET_BINDINGS_VIEW),
            credentials_bindings=loop.watch(caches, CREDENTIALS_BINDINGS_VIEW),
        )

    @classmethod
    async def read(cls, client: Client, namespace: str) -> "Usage":
        """Of one namespace, from the API server. Raises KubeError: then it is not known."""
        secret_bindings = await listed(client, SECRET_BINDINGS_VIEW)
        credentials_bindings = await listed(client, CREDENTIALS_BINDINGS_VIEW)
        places = {namespace, *_referring(secret_bindings, namespace), *_referring(credentials_bindings, namespace)}
        return cls(
            shoots=await listed(client, SHOOTS_VIEW, *sorted(places)),
            backup_entries=await listed(client, BACKUP_ENTRIES_VIEW, namespace),
            secrets=await listed(client, SECRETS_VIEW, namespace),
            workload_identities=await listed(client, WORKLOAD_IDENTITIES_VIEW, namespace),
            quotas=await listed(client, QUOTAS_VIEW, namespace),
            secret_bindings=secret_bindings,
            credentials_bindings=credentials_bindings,
        )

    def of(self, namespace: str) -> str:
        """One thing in the namespace that is in use; empty: there is none."""
        return next(self._used(namespace), "")

    def _used(self, namespace: str) -> Iterator[str]:
        for store in (self.shoots, self.backup_entries):
            for own in store.keys_by_index(BY_NAMESPACE, namespace):
                yield f"{store.view.resource.kind} {own}"
        by_secret_bindings = (self.secret_bindings, BY_SECRET_BINDING)
        by_credentials_bindings = (self.credentials_bindings, BY_CREDENTIALS_BINDING)
        for own, secret in self.secrets.by_index(BY_NAMESPACE, namespace):
            if secret.role in _NOT_CREDENTIALS:
                continue
            for label, by in (
                (keys.SECRET_BINDING_REFERENCE, by_secret_bindings),
                (keys.CREDENTIALS_BINDING_REFERENCE, by_credentials_bindings),
            ):
                if secret.labels.get(label) == "true" and self._is_bound(BY_SECRET, own, *by):
                    yield f"Secret {own}"
        for own in self.workload_identities.keys_by_index(BY_NAMESPACE, namespace):
            if self._is_bound(BY_WORKLOAD_IDENTITY, own, *by_credentials_bindings):
                yield f"WorkloadIdentity {own}"
        for own in self.quotas.keys_by_index(BY_NAMESPACE, namespace):
            if any(self._is_bound(BY_QUOTA, own, *by) for by in (by_secret_bindings, by_credentials_bindings)):
                yield f"Quota {own}"

    def _is_bound(self, index: str, own: Key, bindings: Store[Object], users_of_binding: str) -> bool:
        """Whether a Shoot uses a binding that names the object."""
        return any(self.shoots.count(users_of_binding, each) for each in bindings.keys_by_index(index, own))


def _referring(bindings: Store[Object], namespace: str) -> Iterator[str]:
    """Namespaces of bindings that name something in this one."""
    for own, binding in bindings.items():
        if any(each.namespace == namespace for each in users.of_binding(binding)):
            yield own.namespace
