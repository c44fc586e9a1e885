"""The annotations that a manifest ought to have for what it names."""

import copy

from gardener.keys import REFERENCE_PREFIX
from gardener.references.keys import annotation_key
from gardener.references.named import kind_of
from kube.objects import Object
from kube.paths import at


def inject_annotations(obj: Object, *additional: str) -> Object:
    """A copy with an annotation for each ConfigMap and Secret that the object names.

    They are put on the object and on the pod templates in it, since pods that run protect what they use even when the
    object does not name it any more. References that are there already and name nothing any more are taken away.

    Args:
        obj: of a kind that the garbage collector looks at.
        additional: keys of annotations to be set as well, with empty values; they protect nothing.

    Raises:
        ValueError: the kind is none of those that the garbage collector looks at.
    """
    kind = kind_of(obj)
    if kind is None:
        raise ValueError(f"unhandled object type {obj.get('apiVersion')} {obj.get('kind')}")
    annotated = copy.deepcopy(obj)
    wanted = {annotation_key(slot.kind, slot.name): slot.name for slot in kind.slots(annotated)}
    wanted |= dict.fromkeys(additional, "")
    for path in ((), *kind.annotated):
        _replace_references(at(annotated, *path), wanted)
    return annotated


def _replace_references(part: Object | None, wanted: dict[str, str]) -> None:
    if part is None:
        return
    meta = part.get("metadata") or {}
    present: dict[str, str] = meta.get("annotations") or {}
    result = {key: value for key, value in present.items() if not key.startswith(REFERENCE_PREFIX)} | wanted
    if result != present:
        part["metadata"] = {**meta, "annotations": result}
