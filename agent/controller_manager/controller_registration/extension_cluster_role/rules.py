"""Which ServiceAccounts a ClusterRole is for, and the ClusterRoleBinding that says so."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import orjson

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

LABEL_SELECTOR = "authorization.gardener.cloud/custom-extensions-permissions=true"
_SELECTOR = "authorization.gardener.cloud/extensions-serviceaccount-selector"
_FAILED = "failed computing subjects for ClusterRoleBinding"


@dataclass(frozen=True, slots=True)
class Role:
    """What is kept of a ClusterRole."""

    name: str
    uid: str
    selector: Object
    """Of ServiceAccounts, a LabelSelector."""
    problem: str
    """Why it does not select any; empty: there is none."""
    is_deleting: bool

    @classmethod
    def of(cls, role: Object) -> "Role":
        selector, problem = _parsed(annotations(role).get(_SELECTOR, ""))
        return cls(key(role).name, uid(role), selector, problem, is_deleting(role))

    def selects(self, having: Mapping[str, str]) -> bool:
        """Whether a ServiceAccount with these labels gets its rights."""
        return not self.problem and matches_label_selector(self.selector, having)


def _parsed(written: str) -> tuple[Object, str]:
    """The selector, and what is wrong with it."""
    if not written:
        return {}, f"{_FAILED}: failed parsing label selector: no service account selector annotations present"
    try:
        selector = orjson.loads(written)
        problem = "" if isinstance(selector, dict) else "it is not a LabelSelector"
        for each in mappings(mapping(selector).get("matchExpressions")):
            matches_expression({}, text(each.get("key")), each.get("operator"), texts(each.get("values")))
    except ValueError as error:
        problem = str(error)
    if problem:
        return {}, f"{_FAILED}: failed unmarshalling extensions service account selector {written}: {problem}"
    return selector, ""


def account_labels(account: Object) -> dict[str, str] | None:
    """What is kept of a ServiceAccount; None: it is not in the namespace of a Seed."""
    return labels(account) if seed_of(key(account).namespace) else None


# --- the ClusterRoleBinding


def binding_of(role: Role, accounts: Iterable[Key]) -> Object:
    """What is ours in it; all is replaced but `roleRef`, which can't be changed."""
    owner = CLUSTER_ROLES.reference(name=role.name, uid=role.uid)
    return {
        "apiVersion": CLUSTER_ROLE_BINDINGS.api_version,
        "kind": CLUSTER_ROLE_BINDINGS.kind,
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
    """What is kept of a ClusterRoleBinding; None: no ClusterRole controls it."""
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
    """A merge patch; None: it is as it should be."""
    owners = metadata(wanted)["ownerReferences"]
    is_owned = metadata(binding).get("ownerReferences") == owners
    if is_owned and (binding.get("subjects") or []) == wanted["subjects"]:
        return None
    meta = {"resourceVersion": metadata(binding)["resourceVersion"], "ownerReferences": owners}
    return {"metadata": meta, "subjects": wanted["subjects"]}
