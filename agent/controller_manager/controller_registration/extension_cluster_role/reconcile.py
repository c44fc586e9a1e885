"""One pass over a ClusterRole: the ServiceAccounts that it selects are the subjects of its ClusterRoleBinding."""

from agent.controller_manager.controller_registration.extension_cluster_role.rules import (
    Role,
    binding_of,
    has_other_role,
    patch_for,
)
from kube.cache import Store
from kube.client import Client
from kube.controller import Done, ReconcileError, Result, TerminalError
from kube.errors import AlreadyExists
from kube.objects import Key, Object
from kube.resources import CLUSTER_ROLE_BINDINGS


class Reconciler:
    """Args:
    accounts: the labels of ServiceAccounts in namespaces of Seeds.
    bindings: those that ClusterRoles control.
    """

    def __init__(
        self,
        *,
        client: Client,
        roles: Store[Role],
        accounts: Store[dict[str, str] | None],
        bindings: Store[Object | None],
    ) -> None:
        self._client = client
        self._roles = roles
        self._accounts = accounts
        self._bindings = bindings

    async def reconcile(self, key: Key) -> Result:
        role = self._roles.get(key)
        if role is None or role.is_deleting:
            return Done()  # garbage collection removes the binding
        if role.problem:
            raise TerminalError(role.problem)
        selected = [
            account for account, having in self._accounts.items() if having is not None and role.selects(having)
        ]
        wanted = binding_of(role, selected)
        present = self._bindings.get(key)
        if present is None:
            try:
                self._bindings.observe(await self._client.create(CLUSTER_ROLE_BINDINGS, wanted))
                return Done()
            except AlreadyExists:
                present = await self._client.get(CLUSTER_ROLE_BINDINGS, role.name)
        if has_other_role(present, wanted):
            raise ReconcileError(
                f"ClusterRoleBinding {role.name} refers to another role, which can't be changed; delete it"
            )
        patch = patch_for(present, wanted)
        if patch is not None:
            self._bindings.observe(await self._client.patch(CLUSTER_ROLE_BINDINGS, role.name, patch))
        return Done()
