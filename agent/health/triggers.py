"""Which events lead to a check, and of which ManagedResource.

An event is given as the object before and after; `old` is None for a creation, `new` for a deletion.
"""

from agent.health import keys
from agent.health.checks import deployment
from agent.health.checks.rule import Check, Malformed, Rule, field, quoted
from agent.health.findings import is_skipped
from agent.health.gate import applied_status, class_of, finalizer, is_ignored, is_responsible
from kube.objects import Key, Object, annotations, finalizers, metadata, resource_version


def managed_resource_matters(old: Object | None, new: Object | None, *, resource_class: str) -> bool:
    """Whether an event of a ManagedResource leads to a check of it."""
    if new is None or is_ignored(new):
        return False
    if finalizer(resource_class) not in finalizers(new) and not is_responsible(new, resource_class=resource_class):
        return False
    return (
        old is None or class_of(old) != class_of(new) or applied_status(old) != applied_status(new) or is_ignored(old)
    )


def origin(obj: Object, *, cluster_id: str) -> Key | None:
    """The ManagedResource that the object belongs to; None if to none, or to one of another cluster.

    Raises:
        ValueError: the annotation is not `[<cluster id>:]<namespace>/<name>`.
    """
    text = annotations(obj).get(keys.ORIGIN)
    if text is None:
        return None
    cluster, colon, path = text.rpartition(":")
    namespace, _, name = path.partition("/")
    if ":" in cluster or "/" in name or not namespace or not name:
        raise ValueError(f"unexpected origin format: {quoted(text)}")
    return Key(namespace, name) if (cluster if colon else "") == cluster_id else None


def health_matters(rule: Rule | None, old: Object | None, new: Object | None) -> bool:
    """Whether an event of a managed object may change the health of its ManagedResource.

    `rule` is None for kinds that are healthy if they exist, or of which nothing but metadata is known.
    """
    if old is None or new is None:
        present = old or new
        return present is not None and not is_skipped(present)
    if _is_resync(old, new) or is_skipped(old) != is_skipped(new):
        return True
    if rule is None or is_skipped(new):
        return False
    return _is_fine(rule.health, old, if_malformed=False) != _is_fine(rule.health, new, if_malformed=False)


def progress_matters(rule: Rule, old: Object | None, new: Object | None) -> bool:
    """Whether an event of a managed object may change if its ManagedResource is progressing.

    Pods are not looked at here: they have events of their own. But a Deployment that wants another number of
    them is to be checked.
    """
    if old is None or new is None or rule.progress is None:
        return False
    if _is_resync(old, new) or is_skipped(old) != is_skipped(new):
        return True
    if is_skipped(new):
        return False
    if rule is deployment.RULE and field(old, "spec.replicas") != field(new, "spec.replicas"):
        return True
    return _is_fine(rule.progress, old, if_malformed=True) != _is_fine(rule.progress, new, if_malformed=True)


def owner(obj: Object, kind: str) -> str | None:
    """The name of the last owner of this kind in `apps/v1`: leads from a pod to its Deployment in two steps."""
    owners = metadata(obj).get("ownerReferences") or []
    names: list[str] = [
        reference["name"]
        for reference in owners
        if reference.get("apiVersion") == "apps/v1" and reference.get("kind") == kind
    ]
    return names[-1] if names else None


def _is_resync(old: Object, new: Object) -> bool:
    return resource_version(old) == resource_version(new)


def _is_fine(check: Check, obj: Object, *, if_malformed: bool) -> bool:
    try:
        return check(obj) is None
    except Malformed:
        return if_malformed
