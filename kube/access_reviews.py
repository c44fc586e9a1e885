"""Access reviews: whether an API server permits a request of a user, or of the client itself."""

from collections.abc import Mapping, Sequence

from kube.objects import Object
from kube.paths import at
from kube.resources import SELF_SUBJECT_ACCESS_REVIEWS, SUBJECT_ACCESS_REVIEWS, Resource


def attributes(verb: str, resource: Resource, *, subresource: str = "", namespace: str = "", name: str = "") -> Object:
    """Attributes of a request, in any version of the API. No namespace: in all; no name: for all objects."""
    requested = {
        "verb": verb,
        "group": resource.group,
        "resource": resource.plural,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    return {field: value for field, value in requested.items() if value}


def review(
    requested: Object, *, user: str, groups: Sequence[str], uid: str, extra: Mapping[str, Sequence[str]]
) -> Object:
    """Body of a review whether a user may make the request with these attributes."""
    who = {"user": user, "groups": groups, "uid": uid, "extra": extra}
    given = {field: value for field, value in who.items() if value}
    return _body(SUBJECT_ACCESS_REVIEWS, given | {"resourceAttributes": requested})


def self_review(requested: Object) -> Object:
    """Body of a review whether the client itself may make the request with these attributes."""
    return _body(SELF_SUBJECT_ACCESS_REVIEWS, {"resourceAttributes": requested})


def is_allowed(answer: Object) -> bool:
    return at(answer, "status", "allowed") is True


def _body(resource: Resource, spec: Object) -> Object:
    return {**resource.type_meta, "metadata": {}, "spec": spec}
