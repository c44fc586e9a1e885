"""What was managed so far against what is wanted now.

`status.resources` is the memory of what has to be removed one day. It must never forget an object, whatever fails
in between, so before the first write it gets the union of the old and the new references (`before_writing`); only
a pass that came to its end leaves the new ones alone (`after_pass`).
"""

from collections.abc import Iterable, Sequence

from agent.managed_resource.equivalences import Equivalences
from agent.managed_resource.references import key_of_reference, object_key, sorted_references
from kube.objects import Object, group_of


class Inventory:
    """The old references, of which each that is wanted again gets marked by a look-up."""

    def __init__(self, references: Iterable[Object], equivalences: Equivalences) -> None:
        self._references = {key_of_reference(reference): reference for reference in references}
        self._equivalences = equivalences
        self._wanted: set[str] = set()

    def find(self, reference: Object) -> Object | None:
        """The old reference of the same object, be it under an equivalent kind; it counts as wanted from now on."""
        for key in self._keys(reference):
            if key in self._references:
                self._wanted.add(key)
                return self._references[key]
        return None

    def _keys(self, reference: Object) -> Iterable[str]:
        yield key_of_reference(reference)
        names = reference.get("namespace") or "", reference.get("name") or ""
        own = group_of(reference.get("apiVersion") or ""), reference.get("kind") or ""
        for group, kind in self._equivalences.others(*own):
            yield object_key(group, kind, *names)

    def unwanted(self) -> list[Object]:
        """The references that no look-up found, sorted."""
        return sorted_references(reference for key, reference in self._references.items() if key not in self._wanted)


def before_writing(wanted: Iterable[tuple[Object, Object | None]], kept: Sequence[Object]) -> list[Object]:
    """What to store before anything is written: whatever happens then, no object is forgotten.

    A known object keeps the labels and annotations of its old reference, since these tell what is still to be taken
    away from it. It gets the apiVersion and kind of the new one: listed under two equivalent kinds it would be removed
    under the former.

    Args:
        wanted: the new references, each with the old one that was found for it.
        kept: old references that are not wanted, or are about to be released.
    """
    return sorted_references([*(_with_old_traits(new, old) for new, old in wanted), *kept])


def _with_old_traits(new: Object, old: Object | None) -> Object:
    if old is None:
        return new
    traits = {name: old[name] for name in ("labels", "annotations") if old.get(name)}
    return {name: value for name, value in new.items() if name not in {"labels", "annotations"}} | traits


def after_pass(new: Iterable[Object], carried_over: Sequence[Object] = ()) -> list[Object]:
    """What to store at the end of a pass.

    `carried_over` are references of objects that were not removed: while some documents can't be decoded, nobody knows
    whether these objects are still wanted.
    """
    return sorted_references([*new, *carried_over])
