"""The controller `controllerregistration-extension-clusterrole`: ServiceAccounts get the ClusterRoles that select them.

ClusterRoles          with the label
ServiceAccounts       in namespaces of Seeds: the ClusterRoles that select them, or did so before
ClusterRoleBindings   that a ClusterRole controls, and that have been changed by hand
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import orjson

from agent.controller_manager.context import Context
from gardener.garden.seeds import seed_of
from kube.objects import (
    Key,
    Object,
    annotations,
    controller_of,
    is_deleting,
    key,
    labels,
    mapping,
    mappings,
    matches_expression,
    matches_label_selector,
    metadata,
    text,
    texts,
    uid,
)
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, SERVICE_ACCOUNTS
from kube.runtime.cache import Store, View
from kube.runtime.client import Client, Form
from kube.runtime.controller import Done, ReconcileError, Result, TerminalError
from kube.runtime.fan_out import Changes
from kube.runtime.loop import ControlLoop, enqueue, enqueue_affected
from kube.runtime.predicates import changed, changed_or_listed

LABEL_SELECTOR = "authorization.gardener.cloud/custom-extensions-permissions=true"
_SELECTOR = "authorization.gardener.cloud/extensions-serviceaccount-selector"
_FAILED = "failed computing subjects for ClusterRoleBinding"
_WORKERS = 5


@dataclass(frozen=True, slots=True)
class Role:
    """Cached fields of a ClusterRole."""

    name: str
    uid: str
    selector: Object
    """LabelSelector of ServiceAccounts."""
    problem: str
    """Reason why the selector is invalid; empty if it is valid."""
    is_deleting: bool

    @classmethod
    def of(cls, role: Object) -> "Role":
        selector, problem = _parsed(annotations(role).get(_SELECTOR, ""))
        return cls(key(role).name, uid(role), selector, problem, is_deleting(role))

    def selects(self, having: Mapping[str, str]) -> bool:
        """Whether a ServiceAccount with these labels gets its rights."""
        return not self.problem and matches_label_selector(self.selector, having)


def _parsed(written: str) -> tuple[Object, str]:
    """Parse the selector; return it and its problem, if any."""
    if not written:
        return {}, f"{_FAILED}: failed parsing label selector: no service account selector annotations present"
    try:
        selector = orjson.loads(written)
        problem = "" if isinstance(selector, dict) else "it is not a valid LabelSelector"
        for each in mappings(mapping(selector).get("matchExpressions")):
            matches_expression({}, text(each.get("key")), each.get("operator"), texts(each.get("values")))
    except ValueError as error:
        problem = str(error)
    if problem:
        return {}, f"{_FAILED}: failed unmarshalling extensions service account selector {written}: {problem}"
    return selector, ""


def account_labels(account: Object) -> dict[str, str] | None:
    """Cached labels of a ServiceAccount; None if it is outside the namespaces of Seeds."""
    return labels(account) if seed_of(key(account).namespace) else None


# --- the ClusterRoleBinding


def binding_of(role: Role, accounts: Iterable[Key]) -> Object:
    """Desired ClusterRoleBinding; all fields are replaced but `roleRef`, which can't be changed."""
    owner = CLUSTER_ROLES.reference(name=role.name, uid=role.uid)
    return {
        **CLUSTER_ROLE_BINDINGS.type_meta,
        "metadata": {
            "name": role.name,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": False}],
        },
        "roleRef": {"apiGroup": CLUSTER_ROLES.group, "kind": CLUSTER_ROLES.kind, "name": role.name},
        "subjects": [
            {"kind": SERVICE_ACCOUNTS.kind, "name": account.name, "namespace": account.namespace}
            for account in sorted(accounts)
        ],
    }


def controlled(binding: Object) -> Object | None:
    """Cached fields of a ClusterRoleBinding; None if no ClusterRole controls it."""
    controller = controller_of(binding)
    if controller is None or controller.get("kind") != CLUSTER_ROLES.kind:
        return None
    kept = ("name", "ownerReferences", "resourceVersion")
    return {
        "metadata": {name: value for name, value in metadata(binding).items() if name in kept},
        "roleRef": binding.get("roleRef"),
        "subjects": binding.get("subjects") or [],
    }


def has_other_role(binding: Object, wanted: Object) -> bool:
    return mapping(binding.get("roleRef")) != mapping(wanted.get("roleRef"))


def patch_for(binding: Object, wanted: Object) -> Object | None:
    """Merge patch; None if nothing changes."""
    owners = metadata(wanted)["ownerReferences"]
    is_owned = metadata(binding).get("ownerReferences") == owners
    if is_owned and (binding.get("subjects") or []) == wanted["subjects"]:
        return None
    meta = {"resourceVersion": metadata(binding)["resourceVersion"], "ownerReferences": owners}
    return {"metadata": meta, "subjects": wanted["subjects"]}


_ROLES_VIEW = View(CLUSTER_ROLES, Role.of, form=Form.METADATA, label_selector=LABEL_SELECTOR)
_ACCOUNTS_VIEW = View(SERVICE_ACCOUNTS, account_labels, form=Form.METADATA)
_BINDINGS_VIEW = View(CLUSTER_ROLE_BINDINGS, controlled)


def declare(context: Context) -> ControlLoop:
    caches = context.garden.caches
    loop = ControlLoop("controllerregistration-extension-clusterrole", kind=CLUSTER_ROLES, workers=_WORKERS)
    roles = loop.watch(caches, _ROLES_VIEW, enqueue(when=changed_or_listed))
    accounts = loop.watch(caches, _ACCOUNTS_VIEW, enqueue_affected(partial(_selecting, roles)))
    bindings = loop.watch(caches, _BINDINGS_VIEW, enqueue(when=changed()))
    return loop.reconciled_by(
        Reconciler(client=context.garden.client, roles=roles, accounts=accounts, bindings=bindings)
    )


def _selecting(roles: Store[Role], _account: Key, changes: Changes[dict[str, str]]) -> list[Key]:
    """ClusterRoles that select the ServiceAccount, or have done so before."""
    return [key for key, role in roles.items() if changes.any(role.selects)]


class Reconciler:
    """One pass over a ClusterRole: the ServiceAccounts that it selects are the subjects of its ClusterRoleBinding.

    Args:
        accounts: labels of the ServiceAccounts in namespaces of Seeds.
        bindings: bindings that ClusterRoles control.
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
            if created := await self._client.create_if_missing(CLUSTER_ROLE_BINDINGS, wanted):
                self._bindings.observe(created)
                return Done()
            present = await self._client.get(CLUSTER_ROLE_BINDINGS, role.name)
        if has_other_role(present, wanted):
            raise ReconcileError(
                f"ClusterRoleBinding {role.name} refers to another role, which can't be changed; delete it"
            )
        patch = patch_for(present, wanted)
        if patch is not None:
            self._bindings.observe(await self._client.patch(CLUSTER_ROLE_BINDINGS, role.name, patch))
        return Done()
