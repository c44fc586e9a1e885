"""Common parts of the rules of all kinds.

A rule gets the result so far, the live object (on creation: the manifest) and the options, and returns the result. It
ignores parts of the wrong type: the API server has the better messages for those.
"""

from dataclasses import dataclass


class MergeError(ValueError):
    """The manifest can't be merged with a live object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOptions:
    field_manager: str
    """Our name as the writer: fields that it has set, and that the manifest no longer has, are removed."""
    preserve_replicas: bool = False
    preserve_resources: bool = False
    preserve_eviction_requirements: bool = False
