"""Manifests that belong together: ConfigMaps and Secrets become unique, and what names them follows."""

import copy
from collections.abc import Iterable, Sequence

from gardener.references.annotate import inject_annotations
from gardener.references.keys import Name
from gardener.references.named import Slot, kind_of
from gardener.references.unique import collectable_kind, make_unique
from kube.lists import items_of
from kube.objects import Object, key


def stamp(manifests: Sequence[Object]) -> list[Object]:
    """Copies in the same order, those of a List one by one.

    A ConfigMap or Secret is renamed if one of the manifests names it, and its own does not say `immutable`: with
    `false` it keeps its name and may change, with `true` it was named by its author. So doing this twice changes
    nothing any more. Objects that nothing names would be collected at once; they stay as they are.

    Raises:
        ValueError: lists are nested too deeply, two manifests are of the same ConfigMap or Secret, or one has no name.
    """
    objects = [copy.deepcopy(obj) for manifest in manifests for obj in items_of(manifest)]
    named = {_name(slot, obj) for obj in objects for slot in _slots(obj)}
    renamed: dict[Name, str] = {}
    stamped = []
    for obj in objects:
        name = Name(collectable_kind(obj), key(obj).namespace, key(obj).name)
        if name in renamed:
            raise ValueError(f"{obj['kind']} {key(obj)} is there twice")
        if name in named and "immutable" not in obj:
            obj = make_unique(obj)  # noqa: PLW2901 - the same object, finished
            renamed[name] = obj["metadata"]["name"]
        stamped.append(obj)
    for obj in stamped:
        for slot in _slots(obj):
            slot.holder[slot.field] = renamed.get(_name(slot, obj), slot.name)
    return [inject_annotations(obj) if kind_of(obj) else obj for obj in stamped]


def _slots(obj: Object) -> Iterable[Slot]:
    kind = kind_of(obj)
    return kind.slots(obj) if kind else ()


def _name(slot: Slot, obj: Object) -> Name:
    return Name(slot.kind, key(obj).namespace, slot.name)
