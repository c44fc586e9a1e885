"""Labels of what SecretBindings and CredentialsBindings refer to.

Such a label says that bindings of a kind refer to an object, not which. So one owner decides, from all bindings that
there are.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias, TypeVar

from gardener.keys import CREDENTIALS_BINDING_REFERENCE, SECRET_BINDING_REFERENCE

T = TypeVar("T")

REFERENCE_LABELS = frozenset({SECRET_BINDING_REFERENCE, CREDENTIALS_BINDING_REFERENCE})

Bound: TypeAlias = Mapping[str, Sequence[T]]
"""The bindings that refer to an object, or their keys, by the label of their kind."""


def reference_labels(bound: Bound[T]) -> set[str]:
    return {label for label, bindings in bound.items() if bindings}


def changes_of_labels(
    present: Mapping[str, str], wanted: Collection[str], *, owned: Collection[str]
) -> dict[str, str | None]:
    """So that of the owned labels there are those that are wanted; None for one that is to go."""
    added = {label: "true" for label in sorted(wanted) if present.get(label) != "true"}
    return {**added, **{label: None for label in sorted(owned) if label in present and label not in wanted}}
