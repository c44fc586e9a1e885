"""Maximum number of applied versions of a ManagedResource that are kept; see `history`."""

import re

from gardener import keys
from kube.objects import Object, annotations
from kube.validation import FieldError, invalid

MOST = 100
_NUMBER = re.compile("0|[1-9][0-9]{0,2}")
_ANNOTATION = f"metadata.annotations[{keys.HISTORY_LIMIT}]"
_SHOWN = 40
"""Characters of a wrong value in a message."""


def limit_of(managed_resource: Object, *, default: int) -> tuple[int, FieldError | None]:
    """The limit, 0 for none, and the error of its annotation; the default applies if there is an error."""
    requested = annotations(managed_resource).get(keys.HISTORY_LIMIT)
    if requested is None:
        return default, None
    if _NUMBER.fullmatch(requested) and int(requested) <= MOST:
        return int(requested), None
    return default, invalid(_ANNOTATION, requested[:_SHOWN], f"must be a number from 0 to {MOST}")
