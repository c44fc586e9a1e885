"""Request in a Secret, its cached fields, and the time of its renewal: pure."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import orjson

from gardener import keys
from kube.clock import time_or_none
from kube.objects import (
    Key,
    Object,
    annotations,
    integer,
    is_deleting,
    key,
    labels,
    mapping,
    resource_version,
    string_map,
    uid,
)

TOKEN = "token"
_LONGEST = timedelta(hours=24)
_SHARE = 0.5
"""Share of its lifetime after which a token is renewed."""
_SPREAD = 0.05
ANNOTATIONS = (
    keys.WORKLOAD_IDENTITY_NAME,
    keys.WORKLOAD_IDENTITY_NAMESPACE,
    keys.WORKLOAD_IDENTITY_CONTEXT_OBJECT,
    keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP,
)
SELECTOR = f"{keys.SECURITY_PURPOSE}={keys.PURPOSE_WORKLOAD_IDENTITY_TOKEN_REQUESTOR}"


class InvalidSecret(ValueError):
    """The Secret must be corrected; the text names the annotation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    identity: Key
    context: Object | None
    """Object for which the token is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentitySecret:
    """Cached fields of a Secret, compared without its version. The token itself is not cached."""

    key: Key
    uid: str
    version: int = field(compare=False)
    annotations: Mapping[str, str]
    wants_token: bool
    """Whether it has the label, and is not being deleted."""
    has_token: bool
    expires: float | None
    """Expiry of the token, in Unix time; None if unknown."""

    @classmethod
    def of(cls, secret: Object) -> "IdentitySecret":
        wants = labels(secret).get(keys.SECURITY_PURPOSE) == keys.PURPOSE_WORKLOAD_IDENTITY_TOKEN_REQUESTOR
        annotated, token = annotations(secret), string_map(secret.get("data")).get(TOKEN, "")
        return cls(
            key=key(secret),
            uid=uid(secret),
            version=resource_version(secret),
            annotations={name: annotated[name] for name in ANNOTATIONS if name in annotated},
            wants_token=wants and not is_deleting(secret),
            has_token=bool(token),
            expires=_expiry(token),
        )

    def wanted(self) -> Wanted:
        """Return the request.

        Raises:
            InvalidSecret: an annotation is missing or invalid.
        """
        names = (keys.WORKLOAD_IDENTITY_NAMESPACE, keys.WORKLOAD_IDENTITY_NAME)
        for name in names:
            if not self.annotations.get(name):
                raise InvalidSecret(f'annotation "{name}" is missing; set it to the name of a WorkloadIdentity')
        context = None
        if given := self.annotations.get(keys.WORKLOAD_IDENTITY_CONTEXT_OBJECT):
            try:
                context = orjson.loads(given)
            except orjson.JSONDecodeError:
                context = None
            if not isinstance(context, dict):
                raise InvalidSecret(f'the annotation "{keys.WORKLOAD_IDENTITY_CONTEXT_OBJECT}" is not a JSON object')
        return Wanted(identity=Key(*(self.annotations[name] for name in names)), context=context)

    def renew_at(self) -> datetime | None:
        """Return the time of the renewal; None if it is due now.

        Raises:
            InvalidSecret: the annotation is no valid time.
        """
        timestamp = self.annotations.get(keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP)
        if not timestamp or not self.has_token:
            return None
        moment = time_or_none(timestamp)
        if moment is None:
            name = keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP
            raise InvalidSecret(f'annotation "{name}" is not a valid time; remove it to renew the token')
        return moment


def renew_after(lifetime: timedelta, *, jitter: float) -> timedelta:
    """Time for which a new token is used. The jitter, from 0 to 1, spreads simultaneous requests."""
    return min(lifetime * (_SHARE * (1 + _SPREAD * jitter)), _LONGEST)


def encoded(token: str) -> str:
    return base64.b64encode(token.encode()).decode()


def _expiry(encoded: str) -> float | None:
    """Expiry in an unverified token: it only orders renewals, and is a metric."""
    try:
        _, claims, _ = base64.b64decode(encoded).split(b".")
        found = integer(mapping(orjson.loads(base64.urlsafe_b64decode(claims + b"=="))).get("exp"))
    except (ValueError, binascii.Error):
        return None
    return float(found) or None
