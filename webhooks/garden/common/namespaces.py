"""Kinds that only operators have: they live in the namespace `garden`."""

from collections.abc import Iterator

from kube.validation import FieldError, invalid
from webhooks.garden.common.write import Write

GARDEN = "garden"


def in_garden(write: Write) -> Iterator[FieldError]:
    """For `checks`."""
    if write.namespace != GARDEN:
        yield invalid("metadata.namespace", write.namespace, f"namespace must be {GARDEN}")
