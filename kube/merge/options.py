"""What the rules of the kinds have in common.

A rule gets the result so far, the live object (on creation: the manifest) and the options, and returns the result. It
takes no notice of parts that are of the wrong type: the API server has the better words for that.
"""

from dataclasses import dataclass


class MergeError(ValueError):
    """The manifest can't be merged with a live object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOptions:
    field_manager: str
    """Who writes: what it has set once, and the manifest does not have any more, goes."""
    preserve_replicas: bool = False
    preserve_resources: bool = False
    preserve_eviction_requirements: bool = False
