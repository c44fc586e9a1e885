"""The controller `controllerregistration-extension-clusterrole`.

ClusterRoles          with the label
ServiceAccounts       in namespaces of Seeds: the ClusterRoles that select them, or did so before
ClusterRoleBindings   that a ClusterRole controls, and that have been changed by hand
"""

from functools import partial

from agent.controller_manager.context import Context
from agent.controller_manager.controller_registration.extension_cluster_role.reconcile import Reconciler
from agent.controller_manager.controller_registration.extension_cluster_role.rules import (
    LABEL_SELECTOR,
    Role,
    account_labels,
    controlled,
)
from kube.cache import Change, Store, View
from kube.client import Form
from kube.loop import ControlLoop, changed, changed_or_listed, enqueue, enqueue_mapped
from kube.objects import Key
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, SERVICE_ACCOUNTS

_WORKERS = 5
_ROLES_VIEW = View(CLUSTER_ROLES, Role.of, form=Form.METADATA, label_selector=LABEL_SELECTOR)
_ACCOUNTS_VIEW = View(SERVICE_ACCOUNTS, account_labels, form=Form.METADATA)
_BINDINGS_VIEW = View(CLUSTER_ROLE_BINDINGS, controlled)


def declare(context: Context) -> ControlLoop:
    caches = context.garden.caches
    loop = ControlLoop("controllerregistration-extension-clusterrole", kind=CLUSTER_ROLES, workers=_WORKERS)
    roles = loop.watch(caches, _ROLES_VIEW, enqueue(when=changed_or_listed))
    accounts = loop.watch(caches, _ACCOUNTS_VIEW, enqueue_mapped(partial(_selecting, roles)))
    bindings = loop.watch(caches, _BINDINGS_VIEW, enqueue(when=changed))
    return loop.reconciled_by(
        Reconciler(client=context.garden.client, roles=roles, accounts=accounts, bindings=bindings)
    )


def _selecting(roles: Store[Role], change: Change[dict[str, str] | None]) -> list[Key]:
    states = [state for state in (change.old, change.new) if state is not None]
    return [key for key, role in roles.items() if any(role.selects(state) for state in states)]
