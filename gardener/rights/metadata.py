"""Metadata that a gardenlet may change on objects that others control.

Others act on metadata: labels select, owners delete, foreign finalizers protect. So only listed finalizers and
annotations may change. Labels and annotations that the garden's webhooks derive in every write are not compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gardener import keys
from kube.objects import Object, annotations, finalizers, labels, mappings, metadata

_NO_CONTENT = frozenset({"apiVersion", "kind", "metadata"})


def derived(label: str) -> bool:
    """Whether the garden's webhooks derive a label from the spec and status of a Shoot."""
    return label.startswith(keys.SEED_LABEL_PREFIX) or keys.EXTENSION_LABELS in label


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Permitted changes of a write.

    Attributes:
        adds: finalizers that may be added.
        removes: finalizers that may be removed.
        annotations: that may be added, changed or removed.
        derives_labels: whether webhooks derive some labels, which a write then changes indirectly.
        content: whether all other fields than metadata may change, too.
    """

    adds: frozenset[str] = frozenset()
    removes: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()
    derives_labels: bool = False
    content: bool = False

    def exceeded(self, old: Object, new: Object) -> Iterator[str]:
        """Changes that are not permitted, named by field."""
        before, after = frozenset(finalizers(old)), frozenset(finalizers(new))
        yield from (f'metadata.finalizers: "{each}" added' for each in sorted(after - before - self.adds))
        yield from (f'metadata.finalizers: "{each}" removed' for each in sorted(before - after - self.removes))
        changed = sorted(_changed(annotations(old), annotations(new)) - self.annotations)
        yield from (f"metadata.annotations[{each}]" for each in changed)
        names = sorted(_changed(labels(old), labels(new)))
        yield from (f"metadata.labels[{each}]" for each in names if not (self.derives_labels and derived(each)))
        if _owners(old) != _owners(new):
            yield "metadata.ownerReferences"
        if not self.content:
            yield from sorted(
                each for each in (old.keys() | new.keys()) - _NO_CONTENT if old.get(each) != new.get(each)
            )


def _changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _owners(obj: Object) -> list[Object]:
    return mappings(metadata(obj).get("ownerReferences"))
