"""Events of a ManagedResource that lead to a pass, and the order of passes after a start."""

from gardener import keys
from gardener.conditions import RESOURCES_APPLIED, RESOURCES_HEALTHY
from gardener.managed_resource.conditions import APPLY_PROGRESSING
from gardener.managed_resource.inventory import PENDING
from gardener.responsibility import belongs_to_class, is_ignored, must_wait
from kube.objects import Object, annotations, condition, finalizers, is_deleting, metadata
from kube.runtime.cache import Change
from kube.runtime.priorities import CHANGE, LAST, RESYNC, Priority

_ACTED_ON = (
    keys.IMPERSONATED_SERVICE_ACCOUNT,
    keys.FIELD_VALIDATION,
    keys.DEPENDS_ON,
    keys.ADOPT,
    keys.IGNORE_DIFFERENCES,
    keys.HISTORY_LIMIT,
)
_OPERATIONS = {keys.OPERATION_RECONCILE, keys.OPERATION_RESTORE, keys.OPERATION_MIGRATE}


def needs_reconcile(change: Change[Object], *, resource_class: str) -> bool:
    """Whether a change leads to a pass: a creation or deletion, or an update of relevant fields.

    Status updates, and any update of an ignored ManagedResource, would only cost a pass without work.
    """
    old, new = change.old, change.new
    subject = new if new is not None else old
    if subject is None:
        return False
    if old is None or new is None:
        return belongs_to_class(subject, resource_class=resource_class)
    # If one write removes class and finalizer, applied objects still have to be removed.
    if not any(belongs_to_class(each, resource_class=resource_class) for each in (new, old)):
        return False
    if is_ignored(old) != is_ignored(new):
        return True
    if is_ignored(new) and not is_deleting(new):
        return False
    return (
        metadata(old).get("generation") != metadata(new).get("generation")
        or annotations(new).get(keys.OPERATION) in _OPERATIONS
        or any(annotations(old).get(name) != annotations(new).get(name) for name in _ACTED_ON)
        or _became_unhealthy(old, new)
        or must_wait(old, resource_class=resource_class) != must_wait(new, resource_class=resource_class)
    )


def _became_unhealthy(old: Object, new: Object) -> bool:
    before, after = condition(old, RESOURCES_HEALTHY), condition(new, RESOURCES_HEALTHY)
    if after is None or after.get("status") != "False":
        return False
    return before is None or before.get("status") == "True"


def first_priority(managed_resource: Object, *, is_outdated: bool = False) -> Priority:
    """Priority at the start of a process: ManagedResources that the previous process has not finished come last.

    They may be the reason why that process ended; so the others get their turn each time. Changed ones come first,
    since an
    object that is about to be removed may have moved there.
    """
    applied = condition(managed_resource, RESOURCES_APPLIED)
    if applied is None:
        return LAST if finalizers(managed_resource) else RESYNC
    if applied.get("reason") == APPLY_PROGRESSING:
        return LAST
    return CHANGE if is_outdated else RESYNC


def is_applied(managed_resource: Object) -> bool:
    """Whether the last pass was complete, so that it wants the listed objects, unless it has changed since."""
    applied = condition(managed_resource, RESOURCES_APPLIED) or {}
    is_complete = not (managed_resource.get("status") or {}).get(PENDING)
    return is_complete and applied.get("status") == "True"
