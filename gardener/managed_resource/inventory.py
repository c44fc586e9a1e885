"""Managed objects compared with the wanted ones.

`status.resources` lists the objects that the last complete pass left. It is the record of objects to remove one day
and must never lose one, even if a step fails in between. So before a pass creates objects, these are listed,
too, in `status.pendingResources`, and only a completed pass clears that list.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from gardener.conditions import RESOURCES_APPLIED
from gardener.keys import MANAGED_BY
from gardener.managed_resource import conditions
from gardener.managed_resource.equivalences import Equivalences
from gardener.managed_resource.plan import Plan
from gardener.managed_resource.references import key_of_reference, sorted_references
from kube.objects import Object, condition, group_of, metadata, object_key

RESOURCES, PENDING = "resources", "pendingResources"


class Inventory:
    """The old references; a look-up marks those that are still wanted."""

    def __init__(self, references: Iterable[Object], equivalences: Equivalences) -> None:
        self._references = {key_of_reference(reference): reference for reference in references}
        self._equivalences = equivalences
        self._wanted: set[str] = set()

    def find(self, reference: Object) -> Object | None:
        """The old reference of the same object, also under an equivalent kind; marks it as wanted."""
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
    """Object keys of announced objects that no pass has completed since."""
    status = managed_resource.get("status") or {}
    announced = frozenset(key_of_reference(reference) for reference in status.get(PENDING) or [])
    return announced and announced - {key_of_reference(reference) for reference in status.get(RESOURCES) or []}


def shortened(references: Iterable[Object]) -> list[Object]:
    """The references without the label that every object gets, which is redundant.

    `status.resources` keeps it, as in the original.
    """
    short = []
    for each in references:
        labels = {name: text for name, text in (each.get("labels") or {}).items() if name != MANAGED_BY}
        rest = {name: value for name, value in each.items() if name != "labels"}
        short.append({**rest, "labels": labels} if labels else rest)
    return short


@dataclass(frozen=True, slots=True)
class InventoryDiff:
    """Actions of a pass, and the status if it completes. Objects are references, unless noted otherwise."""

    equivalences: Equivalences
    previous: Mapping[str, Object]
    """References that are listed already, by the object keys of the wanted ones."""
    new: Sequence[Object]
    """Objects to create that are not listed yet."""
    unwanted: Sequence[Object]
    """Objects to remove."""
    released: Sequence[Object]
    """Objects to release, since they are in mode Ignore now."""
    retained: Sequence[Object]
    """Objects that seem not wanted, but stay: some documents could not be decoded; or it is unknown whether their kind
    is namespaced, so they may be the wanted ones; or they may not be removed.
    """
    restricted: Collection[str]
    """Object keys of objects that would have to be removed or released, but may not be."""
    final: list[Object]
    """`status.resources` at the end of the pass."""
    pending: Sequence[Object]
    """`status.pendingResources` of an earlier, incomplete pass."""
    is_changed: bool
    """Whether the described objects differ from the end of the last pass."""
    is_settled: bool
    """Whether the last complete pass, possibly of an earlier process, applied these same manifests."""

    @classmethod
    def of(cls, managed_resource: Object, plan: Plan, *, restricted: Collection[str] = ()) -> Self:
        """Compare status and plan. Args: restricted: object keys that may not be touched, and stay listed."""
        status = managed_resource.get("status") or {}
        equivalences = Equivalences((managed_resource.get("spec") or {}).get("equivalences") or ())
        listed = Inventory(all_listed(managed_resource), equivalences)
        wanted, new, retained = [], [], []
        previous = {}
        for reference in plan.references:
            name, old = key_of_reference(reference), listed.find(reference)
            if name not in plan.restricted:
                wanted.append(reference)
                if old is None:
                    new.append(reference)
                else:
                    previous[name] = old
            elif old is not None:
                retained.append(old)  # applied before it was forbidden, so it still exists
        released = [old for reference in plan.released if (old := listed.find(reference)) is not None]
        unwanted = listed.unwanted()

        def stays(old: Object) -> bool:
            group_kind = group_of(old.get("apiVersion") or ""), old.get("kind") or ""
            return bool(plan.decode_errors) or group_kind in plan.unresolved or key_of_reference(old) in restricted

        retained += [*filter(stays, unwanted), *(old for old in released if key_of_reference(old) in restricted)]
        final = sorted_references([*wanted, *retained]) if retained else wanted
        is_changed = conditions.needs_reset(
            old_references=status.get(RESOURCES) or [],
            new_references=final,
            old_checksum=status.get("secretsDataChecksum") or "",
            new_checksum=plan.checksum,
        )
        applied = condition(managed_resource, RESOURCES_APPLIED) or {}
        is_complete = applied.get("status") == "True" or applied.get("reason") == conditions.DECODING_FAILED
        is_observed = status.get("observedGeneration") == metadata(managed_resource).get("generation")
        return cls(
            equivalences=equivalences,
            previous=previous,
            new=new,
            unwanted=[old for old in unwanted if not stays(old)],
            released=[old for old in released if key_of_reference(old) not in restricted],
            retained=retained,
            restricted=restricted,
            final=final,
            pending=status.get(PENDING) or [],
            is_changed=is_changed,
            is_settled=is_complete and is_observed and not is_changed,
        )

    def announced(self) -> list[Object]:
        """Value of `status.pendingResources` before anything is created."""
        return sorted_references([*self.pending, *self.new])
