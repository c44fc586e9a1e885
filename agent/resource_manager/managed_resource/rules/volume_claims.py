"""Volume claims of a StatefulSet, which may have to be deleted with it.

Its controller recreates missing ones until it observes the deletion of the StatefulSet. So they are deleted with it and
once more after it is gone. Then they cannot be determined any more, so they are recorded in the reference of the
StatefulSet, in the status of the ManagedResource, before its deletion.
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
    """Label selector of the claims."""
    templates: tuple[str, ...]
    """Names of the templates of the claims."""

    @classmethod
    def of(cls, live: Object) -> Self | None:
        """Return the claims of a live object; None if it has none.

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
        """Return the claims that were recorded in a reference."""
        selector, _, templates = (reference.get("annotations") or {}).get(keys.VOLUME_CLAIMS, "").partition(" ")
        return cls(selector, tuple(templates.split(","))) if selector and templates else None

    def note_in(self, references: Sequence[Object], name: str) -> list[Object]:
        """Return the references, with these claims recorded in that of the object key `name`."""
        note = {keys.VOLUME_CLAIMS: f"{self.selector} {','.join(self.templates)}"}
        return [
            {**each, "annotations": {**(each.get("annotations") or {}), **note}}
            if key_of_reference(each) == name
            else each
            for each in references
        ]

    def has(self, claim: str, *, stateful_set: str) -> bool:
        """Whether a claim of this name belongs to this StatefulSet: others may have the same labels."""
        stem, _, ordinal = claim.rpartition("-")
        return ordinal.isdecimal() and stem in {f"{template}-{stateful_set}" for template in self.templates}
