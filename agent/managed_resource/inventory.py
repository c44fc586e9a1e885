"""What was managed so far against what is wanted now.

`status.resources` lists what the last complete pass left. It is the memory of what has to be removed one day and must
never forget an object, whatever fails in between. So before a pass creates anything, what is to be created is listed,
too, in `status.pendingResources`, and only a pass that came to its end (`after_pass`) clears that list.
"""

from collections.abc import Iterable, Sequence

from agent.managed_resource.equivalences import Equivalences
from agent.managed_resource.references import key_of_reference, object_key, sorted_references
from kube.objects import Object, group_of

RESOURCES, PENDING = "resources", "pendingResources"


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


def all_listed(managed_resource: Object) -> list[Object]:
    """Everything that the ManagedResource may have in the target."""
    status = managed_resource.get("status") or {}
    return [*(status.get(RESOURCES) or []), *(status.get(PENDING) or [])]


def only_announced(managed_resource: Object) -> frozenset[str]:
    """The object keys of what was about to be created when no pass has come to its end since."""
    status = managed_resource.get("status") or {}
    done = {key_of_reference(reference) for reference in status.get(RESOURCES) or []}
    return frozenset(key_of_reference(reference) for reference in status.get(PENDING) or []) - done


def before_writing(new: Iterable[Object], pending: Sequence[Object]) -> list[Object]:
    """The `status.pendingResources` to store before anything is created.

    Args:
        new: the references that are listed nowhere yet.
        pending: what is listed there already; it stays until a pass is complete.
    """
    return sorted_references([*pending, *new])


def after_pass(new: Iterable[Object], carried_over: Sequence[Object] = ()) -> list[Object]:
    """What to store at the end of a pass.

    `carried_over` are references of objects that were not removed: while some documents can't be decoded, nobody knows
    whether these objects are still wanted.
    """
    return sorted_references([*new, *carried_over])
