"""The volume claims of a StatefulSet, which may have to go with it.

Its controller makes those anew that it misses, until it sees that the StatefulSet goes. So they are deleted with it
and once more when it is gone. Then it can't be seen any more which they were, so that is noted in the reference of the
StatefulSet, in the status of the ManagedResource, before it is deleted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from gardener import keys
from gardener.managed_resource.references import key_of_reference
from kube.objects import Object, group_of, label_selector_text, metadata

_GROUPS = frozenset({"apps", "extensions"})


@dataclass(frozen=True, slots=True)
class VolumeClaims:
    selector: str
    """Fits their labels."""
    templates: tuple[str, ...]
    """The names of what they are made from."""

    @classmethod
    def of(cls, live: Object) -> Self | None:
        """Those of a live object; None if it has none.

        A selector without labels would select every claim in the namespace, so it counts as none.
        """
        if live.get("kind") != "StatefulSet" or group_of(live.get("apiVersion") or "") not in _GROUPS:
            return None
        spec = live.get("spec") or {}
        match_labels = (spec.get("selector") or {}).get("matchLabels")
        templates = tuple(metadata(template).get("name") or "" for template in spec.get("volumeClaimTemplates") or [])
        return cls(label_selector_text(match_labels), templates) if templates and match_labels else None

    @classmethod
    def noted(cls, reference: Object) -> Self | None:
        """Those that were noted in a reference."""
        selector, _, templates = (reference.get("annotations") or {}).get(keys.VOLUME_CLAIMS, "").partition(" ")
        return cls(selector, tuple(templates.split(","))) if selector and templates else None

    def note_in(self, references: Sequence[Object], name: str) -> list[Object]:
        """The references, with these claims noted in that of the object key `name`."""
        note = {keys.VOLUME_CLAIMS: f"{self.selector} {','.join(self.templates)}"}
        return [
            {**each, "annotations": {**(each.get("annotations") or {}), **note}}
            if key_of_reference(each) == name
            else each
            for each in references
        ]

    def has(self, claim: str, *, stateful_set: str) -> bool:
        """Whether a claim of this name is one of this StatefulSet: others may have the same labels."""
        stem, _, ordinal = claim.rpartition("-")
        return ordinal.isdecimal() and stem in {f"{template}-{stateful_set}" for template in self.templates}
