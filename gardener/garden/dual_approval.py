"""Deletions that need two people, by `dualApprovalForDeletion` of a Project: one confirms, the other deletes.

Only people count. Controllers act on behalf of others: the garbage collector deletes any object whose owner reference
names a missing owner. A ServiceAccount belongs to all who can get a token for it. So neither is one of the two.
"""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from gardener.api.garden import SHOOTS
from kube.objects import (
    Object,
    annotations,
    is_truthy,
    labels,
    mapping,
    mappings,
    matches_label_selector,
    spec,
    text,
    texts,
)

NOTICE = timedelta(days=7)
"""Minimum notice of the expiration of a Shoot, so that another person can extend it."""
_SERVICE_ACCOUNT = "system:serviceaccount:"
_OF_KUBERNETES = f"{_SERVICE_ACCOUNT}kube-system:"
_SYSTEM = ("system:", "gardener.cloud:system:")


def is_person(user: str) -> bool:
    return bool(user) and not user.startswith(_SYSTEM)


def approval_for(shoot: Object, projects: Iterable[Object]) -> Object | None:
    """The rule that applies to the Shoot. Args: projects: of its namespace."""
    for project in projects:
        approval = _of_shoots(spec(project))
        if approval is not None and _selects(approval, shoot):
            return approval
    return None


def _of_shoots(project_spec: Object) -> Object | None:
    configured = mappings(project_spec.get("dualApprovalForDeletion"))
    return next((each for each in configured if each.get("resource") == SHOOTS.plural), None)


def _selects(approval: Object, shoot: Object) -> bool:
    try:
        return matches_label_selector(mapping(approval.get("selector")), labels(shoot))
    except ValueError:
        return True  # It cannot be evaluated: two people are the safe choice.


def exempts(approval: Object, user: str) -> bool:
    """Whether the rule exempts this user: a ServiceAccount, if the Project allows it, but not one of Kubernetes."""
    is_account = user.startswith(_SERVICE_ACCOUNT) and not user.startswith(_OF_KUBERNETES)
    return is_account and approval.get("includeServiceAccounts") is False


# --- confirmation and deletion


def refusal_for(user: str, obj: Object, *, confirmation: str, confirmed_by: str) -> str:
    """Reason to refuse an action that another person has to confirm; empty if it is allowed.

    Args:
        user: the requesting user.
        obj: the stored object.
        confirmation: the annotation that confirms it.
        confirmed_by: the annotation with the user who confirmed it.
    """
    if not is_person(user):
        return "a person must do it; ServiceAccounts and controllers are not accepted"
    confirmer = annotations(obj).get(confirmed_by, "")
    if not is_truthy(annotations(obj).get(confirmation)):
        return f'first, another person must set the annotation "{confirmation}" to "true"'
    if not is_person(confirmer):
        by = f"{confirmer}, which is not a person" if confirmer else "an unknown user"
        again = f'another person must remove the annotation "{confirmation}" and set it again'
        return f"it was confirmed by {by} - {again}"
    return "you confirmed it yourself, so another person must do it" if confirmer == user else ""


# --- the rule itself


def is_loosened(old: Object, new: Object) -> bool:
    """Whether the new spec of a Project may require fewer approvals of a Shoot than the old one."""
    before, after = _of_shoots(old), _of_shoots(new)
    if before is None:
        return False
    if after is None:
        return True
    frees_accounts = after.get("includeServiceAccounts") is False and before.get("includeServiceAccounts") is not False
    return frees_accounts or not set(_requirements(after)) <= set(_requirements(before))


def _requirements(approval: Object) -> Iterator[tuple[object, ...]]:
    """Requirements of its selector; without any, it selects all Shoots."""
    selector = mapping(approval.get("selector"))
    for name, value in mapping(selector.get("matchLabels")).items():
        yield name, "In", frozenset({value})
    for each in mappings(selector.get("matchExpressions")):
        yield text(each.get("key")), text(each.get("operator")), frozenset(texts(each.get("values")))
