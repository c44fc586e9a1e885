"""SubjectAccessReviews on the wire, `v1` and `v1beta1`."""

from dataclasses import dataclass
from typing import Any

import orjson

from gardener.rights.requests import Attributes, Requirement, Selector
from kube.objects import Object
from webhooks.authorizers.decisions import Decision, Effect
from webhooks.bounds import TooManyValues, demand_few_values

KIND = "SubjectAccessReview"
V1, V1BETA1 = "authorization.k8s.io/v1", "authorization.k8s.io/v1beta1"


class Unreadable(Exception):
    """The request body is not a SubjectAccessReview."""

    def __init__(self, code: int, text: str, *, api_version: str = V1) -> None:
        super().__init__(text)
        self.code = code
        self.api_version = api_version
        """API version of the answer."""


@dataclass(frozen=True, slots=True)
class Review:
    api_version: str
    attributes: Attributes


def decode(body: bytes, content_type: str) -> Review:
    """Parse a request.

    Raises:
        Unreadable: the body is not a SubjectAccessReview, or is too large.
    """
    if not body:
        raise Unreadable(422, "request body is empty")
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise Unreadable(400, f"contentType={content_type}, expected application/json")
    try:
        demand_few_values(body)
        review = orjson.loads(body)
    except TooManyValues as error:
        raise Unreadable(413, str(error)) from error
    except orjson.JSONDecodeError as error:
        raise Unreadable(400, f"couldn't get version/kind; json parse error: {error}") from error
    if not isinstance(review, dict):
        raise Unreadable(400, f"the body is not a {KIND}")
    api_version, kind = review.get("apiVersion") or V1, review.get("kind") or KIND
    if kind != KIND or api_version not in (V1, V1BETA1):
        raise Unreadable(400, f'no kind "{kind}" is registered for version "{api_version}"')
    try:
        return Review(api_version, _attributes(_part(review, "spec"), api_version))
    except _WrongType as error:
        raise Unreadable(400, f"unable to decode {KIND}: {error}", api_version=api_version) from error


def encode(api_version: str, decision: Decision) -> bytes:
    status: Object = {"allowed": decision.effect is Effect.ALLOW}
    if decision.effect is Effect.DENY:
        status["denied"] = True
    if decision.reason:
        status["reason"] = decision.reason
    return _encode(api_version, status)


def encode_error(api_version: str, code: int, text: str) -> bytes:
    return _encode(api_version, {"allowed": False, "evaluationError": f"{code} {text}"})


def _encode(api_version: str, status: Object) -> bytes:
    return orjson.dumps({"apiVersion": api_version, "kind": KIND, "metadata": {}, "spec": {}, "status": status})


# --- in


class _WrongType(ValueError):
    pass


def _attributes(spec: Object, api_version: str) -> Attributes:
    resource = spec.get("resourceAttributes")
    requested = _part(spec, "resourceAttributes" if resource is not None else "nonResourceAttributes")
    return Attributes(
        user=_text(spec, "user"),
        groups=tuple(_texts(spec, "groups" if api_version == V1 else "group")),
        is_resource_request=resource is not None,
        path=_text(requested, "path") if resource is None else "",
        verb=_text(requested, "verb"),
        namespace=_text(requested, "namespace"),
        group=_text(requested, "group"),
        resource=_text(requested, "resource"),
        subresource=_text(requested, "subresource"),
        name=_text(requested, "name"),
        field_selector=_selector(_part(requested, "fieldSelector")),
        label_selector=_selector(_part(requested, "labelSelector")),
    )


def _selector(selector: Object) -> Selector:
    requirements = selector.get("requirements") or []
    if not isinstance(requirements, list) or not all(isinstance(one, dict) for one in requirements):
        raise _WrongType("requirements must be a list of objects")
    return Selector(
        raw=_text(selector, "rawSelector"),
        requirements=tuple(
            Requirement(_text(one, "key"), _text(one, "operator"), tuple(_texts(one, "values"))) for one in requirements
        ),
    )


def _part(parent: Object, name: str) -> Object:
    value: Any = parent.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _WrongType(f"{name} must be an object")
    return value


def _text(parent: Object, name: str) -> str:
    value: Any = parent.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _WrongType(f"{name} must be a string")
    return value


def _texts(parent: Object, name: str) -> list[str]:
    value: Any = parent.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _WrongType(f"{name} must be a list of strings")
    return value
