"""Cached fields of a VerticalPodAutoscaler."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gardener import keys
from kube.objects import Object, annotations, is_deleting, labels, mappings, metadata, text
from kube.packing import digest
from kube.paths import at

_RESTRICTING = (keys.DOWNSCALE_RESTRICTION, keys.MAINTENANCE_WINDOW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    is_managed: bool
    """Whether this controller manages it; few fields of others are cached."""
    annotations: bytes
    """Digest of all annotations."""
    version: str = ""
    is_deleting: bool = False
    restriction: Mapping[str, str] = field(default_factory=dict)
    """Annotations that determine the requirements."""
    requirements: tuple[Object, ...] = ()

    @classmethod
    def of(cls, obj: Object) -> "Autoscaler":
        marks = annotations(obj)
        if labels(obj).get(keys.EVICTION_REQUIREMENTS) != keys.EVICTION_REQUIREMENTS_MANAGED:
            return cls(is_managed=False, annotations=digest(marks))
        return cls(
            is_managed=True,
            annotations=digest(marks),
            version=text(metadata(obj).get("resourceVersion")),
            is_deleting=is_deleting(obj),
            restriction={name: marks[name] for name in _RESTRICTING if name in marks},
            requirements=tuple(mappings(at(obj, "spec", "updatePolicy", "evictionRequirements"))),
        )
