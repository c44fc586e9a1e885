"""ResourceQuota in the namespace of a Project, from the configuration.

The configuration gives the limited resources, and the initial limits. Existing limits stay, since operators raise them
for single Projects.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agent.controller_manager.project.lifecycle.namespace import owner_reference, with_owner
from config.controller_manager.controllers import QuotaConfiguration
from kube.objects import Object, annotations, labels, mapping, mappings, matches_label_selector, metadata, spec
from kube.resources import RESOURCE_QUOTAS

NAME = "gardener"
_KEPT = ("annotations", "labels", "name", "namespace", "ownerReferences", "uid")


def configured(quotas: Iterable[QuotaConfiguration], project: Object) -> Mapping[str, Any] | None:
    """First configuration whose selector matches the Project; None if none does: an existing quota stays."""
    having = labels(project)
    return next(
        (each.config for each in quotas if matches_label_selector(each.project_selector.as_object(), having)), None
    )


def limits_only(present: Object) -> Object:
    """Cached fields of a ResourceQuota: neither the usage, which changes all the time, nor its version."""
    meta = {field: value for field, value in metadata(present).items() if field in _KEPT}
    return {"metadata": meta, "spec": {"hard": mapping(spec(present).get("hard"))}}


def new_quota(config: Mapping[str, Any], project: Object, namespace: str) -> Object:
    marks = {"labels": labels(config), "annotations": annotations(config)}
    return {
        **RESOURCE_QUOTAS.type_meta,
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            **{field: value for field, value in marks.items() if value},
            "ownerReferences": [owner_reference(project, blocks=True)],
        },
        "spec": {"hard": _limits(config)},
    }


def change_of(present: Object, config: Mapping[str, Any], project: Object) -> Object:
    """Merge patch without resourceVersion; empty if nothing changes."""
    meta: Object = {}
    for field, wanted, having in (
        ("labels", labels(config), labels(present)),
        ("annotations", annotations(config), annotations(present)),
    ):
        missing = {name: value for name, value in wanted.items() if having.get(name) != value}
        if missing:
            meta[field] = missing
    owners = with_owner(present, project)
    if owners != mappings(metadata(present).get("ownerReferences")):
        meta["ownerReferences"] = owners
    limits, existing = _limits(config), mapping(spec(present).get("hard"))
    hard = {name: value for name, value in limits.items() if name not in existing}
    hard |= dict.fromkeys(existing.keys() - limits.keys())
    change: Object = {"metadata": meta} if meta else {}
    return {**change, "spec": {"hard": hard}} if hard else change


def _limits(config: Mapping[str, Any]) -> Object:
    return mapping(spec(config).get("hard"))
