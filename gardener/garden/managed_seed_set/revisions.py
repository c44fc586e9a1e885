"""What a revision of the templates of a set is: a ControllerRevision, as StatefulSets have them."""

from collections.abc import Iterable

from kube.objects import Object, controller_of, integer, key, mapping, spec, uid
from kube.paths import mapping_at

CHANGE_CAUSE = "kubernetes.io/change-cause"
"""An annotation of the set, kept with the revision."""


def templates_of(seed_set: Object) -> Object:
    """What a revision of the set holds."""
    return {field: mapping(spec(seed_set).get(field)) for field in ("template", "shootTemplate")}


def templates_in(revision: Object) -> Object:
    return mapping_at(revision, "data", "spec")


def owned(seed_set: Object, revisions: Iterable[Object]) -> list[Object]:
    """Those of the set, the oldest first."""
    own = [each for each in revisions if (controller_of(each) or {}).get("uid") == uid(seed_set)]
    return sorted(own, key=lambda each: (integer(each.get("revision")), key(each).name))
