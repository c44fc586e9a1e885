"""What the copy of a Secret is like."""

from agent.controller_manager.common.rules.garden_secrets import GardenSecret, copied
from kube.objects import Object, metadata
from kube.resources import SECRETS


def copy_of(source: GardenSecret, namespace: str) -> Object:
    content = dict(source.content or {})
    meta = {
        "name": source.name,
        "namespace": namespace,
        "labels": content.pop("labels", {}),
        "annotations": content.pop("annotations", {}),
    }
    return {"apiVersion": SECRETS.api_version, "kind": SECRETS.kind, "metadata": meta, **content}


def has_to_be_made_anew(present: Object, wanted: Object) -> bool:
    """Whether the API server would refuse the change: of a type, or of what is immutable."""
    is_other_type = copied(present)["type"] != wanted["type"]
    is_frozen = present.get("immutable") is True
    return is_other_type or (is_frozen and (copied(present)["data"] != wanted["data"] or not wanted.get("immutable")))


def updated(present: Object, wanted: Object) -> Object:
    """The present copy with the content of its source; the rest of its metadata stays."""
    meta = {name: value for name, value in metadata(present).items() if name != "managedFields"}
    taken = {name: metadata(wanted)[name] for name in ("labels", "annotations")}
    return {**wanted, "metadata": {**meta, **taken}}
