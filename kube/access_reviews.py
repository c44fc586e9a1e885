"""What is sent to an API server to ask whether a user, or the client itself, may do something."""

from collections.abc import Mapping, Sequence

from kube.objects import Object
from kube.paths import at
from kube.resources import SELF_SUBJECT_ACCESS_REVIEWS, SUBJECT_ACCESS_REVIEWS, Resource


def attributes(verb: str, resource: Resource, *, subresource: str = "", namespace: str = "", name: str = "") -> Object:
    """What somebody wants to do, in any version of the API. No namespace: in all; no name: with all objects."""
    asked = {
        "verb": verb,
        "group": resource.group,
        "resource": resource.plural,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    return {field: value for field, value in asked.items() if value}


def review(asked: Object, *, user: str, groups: Sequence[str], uid: str, extra: Mapping[str, Sequence[str]]) -> Object:
    """Whether a user may do what has these attributes."""
    who = {"user": user, "groups": groups, "uid": uid, "extra": extra}
    given = {field: value for field, value in who.items() if value}
    return _body(SUBJECT_ACCESS_REVIEWS, given | {"resourceAttributes": asked})


def self_review(asked: Object) -> Object:
    """Whether whoever sends it may do what has these attributes."""
    return _body(SELF_SUBJECT_ACCESS_REVIEWS, {"resourceAttributes": asked})


def is_allowed(answer: Object) -> bool:
    return at(answer, "status", "allowed") is True


def _body(resource: Resource, spec: Object) -> Object:
    return {**resource.type_meta, "metadata": {}, "spec": spec}
