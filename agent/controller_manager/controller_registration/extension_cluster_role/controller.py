"""The controller `controllerregistration-extension-clusterrole`.

ClusterRoles          with the label
ServiceAccounts       in namespaces of Seeds: the ClusterRoles that select them, or did so before
ClusterRoleBindings   that a ClusterRole controls, and that have been changed by hand
"""

from functools import partial

from agent.controller_manager.context import Context
from agent.controller_manager.controller_registration.extension_cluster_role.rules import (
    LABEL_SELECTOR,
    Role,
    account_labels,
    binding_of,
    controlled,
    has_other_role,
    patch_for,
)
from kube.errors import AlreadyExists
from kube.objects import Key, Object
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, SERVICE_ACCOUNTS
from kube.runtime.cache import Change, Store, View
from kube.runtime.client import Client, Form
from kube.runtime.controller import Done, ReconcileError, Result, TerminalError
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import changed, changed_or_listed

_WORKERS = 5
_ROLES_VIEW = View(CLUSTER_ROLES, Role.of, form=Form.METADATA, label_selector=LABEL_SELECTOR)
_ACCOUNTS_VIEW = View(SERVICE_ACCOUNTS, account_labels, form=Form.METADATA)
_BINDINGS_VIEW = View(CLUSTER_ROLE_BINDINGS, controlled)


def declare(context: Context) -> ControlLoop:
    caches = context.garden.caches
    loop = ControlLoop("controllerregistration-extension-clusterrole", kind=CLUSTER_ROLES, workers=_WORKERS)
    roles = loop.watch(caches, _ROLES_VIEW, enqueue(when=changed_or_listed))
    accounts = loop.watch(caches, _ACCOUNTS_VIEW, enqueue_mapped(partial(_selecting, roles)))
    bindings = loop.watch(caches, _BINDINGS_VIEW, enqueue(when=changed()))
    return loop.reconciled_by(
        Reconciler(client=context.garden.client, roles=roles, accounts=accounts, bindings=bindings)
    )


def _selecting(roles: Store[Role], change: Change[dict[str, str] | None]) -> list[Key]:
    states = [state for state in (change.old, change.new) if state is not None]
    return [key for key, role in roles.items() if any(role.selects(state) for state in states)]


class Reconciler:
    """One pass over a ClusterRole: the ServiceAccounts that it selects are the subjects of its ClusterRoleBinding.

    Args:
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
