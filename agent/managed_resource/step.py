"""From what the status of a ManagedResource lists to what its plan wants."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agent.managed_resource import conditions
from agent.managed_resource.conditions import Condition
from agent.managed_resource.equivalences import Equivalences
from agent.managed_resource.inventory import PENDING, Inventory, after_pass, all_listed, before_writing
from agent.managed_resource.plan import Plan
from agent.managed_resource.references import key_of_reference, sorted_references
from kube.objects import Object, condition, metadata


@dataclass(frozen=True, slots=True)
class Step:
    """What a pass has to do, and what it leaves in the status if it comes to its end."""

    equivalences: Equivalences
    previous: Mapping[str, Object]
    pairs: Sequence[tuple[Object, Object | None]]
    dropped: Sequence[Object]
    released: Sequence[Object]
    carried: Sequence[Object]
    """Not wanted as far as can be seen, but some documents could not be decoded, or they may not be removed."""
    kept: Collection[str]
    """Object keys of what would have to go, or to be released, and may not be touched."""
    final: list[Object]
    is_changed: bool
    is_settled: bool
    pending: Sequence[Object]
    present: Sequence[Object]

    @classmethod
    def of(cls, managed_resource: Object, plan: Plan, *, kept: Collection[str] = ()) -> "Step":
        """Args: kept: as in the step; it stays in the list."""
        status = managed_resource.get("status") or {}
        equivalences = Equivalences((managed_resource.get("spec") or {}).get("equivalences") or ())
        inventory = Inventory(all_listed(managed_resource), equivalences)
        found = [(reference, inventory.find(reference)) for reference in sorted_references(plan.references)]
        pairs = [(new, old) for new, old in found if key_of_reference(new) not in plan.refused]
        # What was applied before it was forbidden is still there.
        refused = [old for new, old in found if key_of_reference(new) in plan.refused and old is not None]
        released = [old for reference in plan.released if (old := inventory.find(reference)) is not None]
        unwanted = inventory.unwanted()
        carried = unwanted if plan.decode_errors else [old for old in unwanted if key_of_reference(old) in kept]
        carried = [*refused, *carried, *(old for old in released if key_of_reference(old) in kept)]
        final = after_pass((reference for reference, _ in pairs), carried)
        changed = conditions.needs_reset(
            old_references=status.get("resources") or [],
            new_references=final,
            old_checksum=status.get("secretsDataChecksum") or "",
            new_checksum=plan.checksum,
        )
        applied = condition(managed_resource, conditions.APPLIED) or {}
        complete = applied.get("status") == "True" or applied.get("reason") == conditions.DECODING_FAILED
        observed = status.get("observedGeneration") == metadata(managed_resource).get("generation")
        return cls(
            equivalences=equivalences,
            previous={key_of_reference(reference): old for reference, old in pairs if old is not None},
            pairs=pairs,
            dropped=[] if plan.decode_errors else [old for old in unwanted if key_of_reference(old) not in kept],
            released=[old for old in released if key_of_reference(old) not in kept],
            carried=carried,
            kept=kept,
            final=final,
            is_changed=changed,
            is_settled=complete and observed and not changed,
            pending=status.get(PENDING) or [],
            present=status.get("conditions") or [],
        )

    @property
    def has_new(self) -> bool:
        """Whether something is to be created that is not listed yet."""
        return any(old is None for _, old in self.pairs)

    def before(self) -> list[Object]:
        """What has to be listed beside `status.resources` before anything is created."""
        return before_writing((new for new, old in self.pairs if old is None), self.pending)

    def reset(self) -> list[Condition]:
        return conditions.reset(self.present)
