"""Shoot and ManagedSeed of a replica, made from the templates of its set.

Changes of templates are brought to objects that were made from them and that others have changed since: a field that is
the same in the old and the new template is left alone, even if the object has another value.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from gardener.api.garden import MANAGED_SEED_SETS, MANAGED_SEEDS, SHOOTS
from gardener.garden.managed_seed_sets import REVISION_LABEL
from gardener.garden.managed_seeds import seed_template_path
from kube.objects import Object, annotations, key, labels, mapping, metadata, spec, text, uid
from kube.paths import at, with_value
from kube.resources import Resource

PLACEHOLDER = "replica-name"
"""Placeholder for the name of the replica in the domains of the templates."""
_SHOOT_DOMAIN = ("dns", "domain")
_SEED_DOMAIN = ("spec", "ingress", "domain")
_ABSENT: Any = object()


def owner_reference(seed_set: Object) -> Object:
    reference = MANAGED_SEED_SETS.reference(name=key(seed_set).name, uid=uid(seed_set))
    return {**reference, "controller": True, "blockOwnerDeletion": True}


def shoot_of(seed_set: Object, name: str, templates: Object, revision: str = "") -> Object:
    """Return the Shoot of a replica.

    `templates` has the fields `template` and `shootTemplate` of a set; `revision` is their name, empty if updates are
    not tracked.
    """
    template = mapping(templates.get("shootTemplate"))
    spec = _with_name(mapping(template.get("spec")), _SHOOT_DOMAIN, name)
    return _made(SHOOTS, _metadata(seed_set, name, mapping(template.get("metadata")), revision), spec)


def managed_seed_of(seed_set: Object, name: str, templates: Object, revision: str = "") -> Object:
    """Return the ManagedSeed of a replica; arguments as in `shoot_of`."""
    template = mapping(templates.get("template"))
    reported = mapping(template.get("spec"))
    spec = {**_with_name(reported, (*seed_template_path(reported), *_SEED_DOMAIN), name), "shoot": {"name": name}}
    return _made(MANAGED_SEEDS, _metadata(seed_set, name, mapping(template.get("metadata")), revision), spec)


def _with_name(spec: Object, path: tuple[str, ...], name: str) -> Object:
    domain = text(at(spec, *path))
    return with_value(spec, path, domain.replace(PLACEHOLDER, name)) if PLACEHOLDER in domain else spec


def _metadata(seed_set: Object, name: str, template: Object, revision: str) -> Object:
    annotations = mapping(template.get("annotations"))
    return {
        "name": name,
        "namespace": key(seed_set).namespace,
        "labels": {**mapping(template.get("labels")), **({REVISION_LABEL: revision} if revision else {})},
        **({"annotations": annotations} if annotations else {}),
        "ownerReferences": [owner_reference(seed_set)],
    }


def _made(resource: Resource, meta: Object, spec: Object) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}


# --- changes of templates


def updated(live: Object, old: Object | None, new: Object, *, own_labels: Mapping[str, str]) -> Object:
    """Return the object with the changes of the templates.

    Args:
        live: present object.
        old: object as the templates made it; None if unknown: nothing is removed.
        new: object as the templates make it now.
        own_labels: labels set in any case.
    """
    meta = dict(metadata(live))
    for field, of in (("labels", labels), ("annotations", annotations)):
        before = of(old) if old is not None else {}
        meta[field] = merged(before, of(new), of(live))
    meta["labels"] = {**meta["labels"], **own_labels}
    before = spec(old) if old is not None else _ABSENT
    return {**live, "metadata": meta, "spec": merged(before, spec(new), spec(live))}


def merged(old: Any, new: Any, live: Any) -> Any:
    """Apply the changes from old to new to live; no argument is modified."""
    if old == new:
        return live
    if isinstance(new, dict) and isinstance(live, dict):
        return _merged_fields(old if isinstance(old, dict) else {}, new, live)
    if _is_named(new) and _is_named(live):
        return _merged_entries(old if _is_named(old) else [], new, live)
    return new


def _merged_fields(old: Object, new: Object, live: Object) -> Object:
    kept = {name: value for name, value in live.items() if name in new or name not in old}
    for name, value in new.items():
        result = merged(old.get(name, _ABSENT), value, live.get(name, _ABSENT))
        if result is not _ABSENT:
            kept[name] = result
    return kept


def _merged_entries(old: Sequence[Object], new: Sequence[Object], live: Sequence[Object]) -> list[Object]:
    """Merge lists of named entries, in the order of the live one."""
    before, after, there = ({each["name"]: each for each in entries} for entries in (old, new, live))
    return list(_merged_fields(before, after, there).values())


def _is_named(value: Any) -> TypeGuard[list[Object]]:
    """Whether the value is a list whose entries have unique names."""
    if not isinstance(value, list) or not value:
        return False
    names = [each.get("name") for each in value if isinstance(each, dict) and isinstance(each.get("name"), str)]
    return len(names) == len(value) == len(set(names))
