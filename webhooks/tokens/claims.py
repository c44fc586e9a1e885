"""Permitted content of a token request, and the content of the token."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kube.objects import Key, Object, group_of, key, mapping, text, uid
from kube.paths import at
from kube.resources import Resource

DEFAULT = timedelta(hours=1)
SHORTEST, LONGEST = timedelta(hours=1), timedelta(hours=48)
"""Limits of the lifetime; a requested one outside of them is changed to the nearer limit."""
LEAST_SECONDS, MOST_SECONDS = 600, 1 << 32
"""Seconds that may be requested."""


class InvalidRequest(ValueError):
    """A request is invalid; the message names the field."""


@dataclass(frozen=True, slots=True)
class ContextObject:
    """Object for which the token is used."""

    group: str
    kind: str
    key: Key
    uid: str

    def is_a(self, resource: Resource) -> bool:
        kind = (self.group, self.kind) == (resource.group, resource.kind)
        return kind and bool(self.key.namespace) == resource.namespaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    lifetime: timedelta
    context: ContextObject | None


def parse(body: Object) -> Wanted:
    """Parse the spec of a token request.

    Raises:
        InvalidRequest: a field is invalid.
    """
    given = mapping(body.get("spec"))
    seconds = given.get("expirationSeconds")
    if seconds is None:
        lifetime = DEFAULT
    elif type(seconds) is not int or not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise InvalidRequest(
            f"spec.expirationSeconds: must be a number of seconds from {LEAST_SECONDS} (10 minutes) to {MOST_SECONDS}"
        )
    else:
        lifetime = timedelta(seconds=seconds)
    return Wanted(lifetime=min(max(lifetime, SHORTEST), LONGEST), context=_context(given.get("contextObject")))


def _context(value: object) -> ContextObject | None:
    if value is None:
        return None
    given, path = mapping(value), "spec.contextObject"
    for field in ("kind", "apiVersion", "name", "uid"):
        if not text(given.get(field)):
            raise InvalidRequest(f"{path}.{field}: is required")
    where = Key(text(given.get("namespace")), text(given["name"]))
    return ContextObject(group_of(text(given["apiVersion"])), text(given["kind"]), where, text(given["uid"]))


def subject(identity: Object) -> str:
    where = key(identity)
    return f"gardener.cloud:workloadidentity:{where.namespace}:{where.name}:{uid(identity)}"


def claims(
    identity: Object,
    *,
    issuer: str,
    now: datetime,
    lifetime: timedelta,
    context: Mapping[str, Object],
) -> Object:
    """Return the claims of a token; `context` are the objects that it is used for: `shoot`, `seed`, `project`."""
    begin = int(now.timestamp())
    audiences: Sequence[object] = at(identity, "spec", "audiences") or []
    return {
        "iss": issuer,
        "sub": subject(identity),
        "aud": list(audiences),
        "iat": begin,
        "nbf": begin,
        "exp": begin + int(lifetime.total_seconds()),
        "jti": str(uuid.uuid4()),
        "gardener.cloud": {
            "workloadIdentity": _reference(identity),
            **{name: _reference(obj) for name, obj in context.items()},
        },
    }


def _reference(obj: Object) -> Object:
    where = key(obj)
    place = {"namespace": where.namespace} if where.namespace else {}
    return {"name": where.name, **place, "uid": uid(obj)}
