"""Errors of requests to an API server, as types by what callers can do.

    KubeError
    ├── KindNotServed            discovery lists no such kind, or not in this version
    │   └── KindGone             there are no objects of it either
    ├── KindUnavailable          it exists, and no version of it is served now
    ├── HistoryRewound           the cluster went back in time; cached state has to be read again
    ├── Unreachable              no answer came: refused, reset, timed out, bad TLS
    │   ├── KindBusy             requests for this kind wait too long
    │   ├── AnswerTooLong        the answer exceeds the limit
    │   ├── TimedOut             nothing came for too long
    │   ├── Untrusted            one side does not accept the certificate of the other
    │   ├── NotUnderstood        the answer does not match the request
    │   └── NoStatus             a failure that is no Status: perhaps of a proxy
    ├── NotWritable              not sent: it can't be written as JSON, or was not read as a whole
    └── ApiError                 the API server answered with a Status of failure
        ├── BadRequest 400, Unauthorized 401, NotFound 404, Gone 410, Invalid 422
        ├── Forbidden 403 ── NamespaceTerminating
        ├── NotReady 403: nothing was decided
        ├── Conflict 409 ── AlreadyExists
        ├── TooLarge 413, and 500 if the storage of the API server rejects the size
        └── TooManyRequests 429, ServerFailure 5xx

Only the API server can state that something does not exist: an object by `NotFound`, which is made only of a Status
with this reason; a kind by `KindGone`, see `kind_definitions`. A kind that is not served (`KindNotServed`, made of
valid `discovery_documents`) may still have objects. Every other answer proves nothing about the cluster.

`str(error)` is the API server's own message, since it ends up in conditions that people and programs read.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kube.objects import mappings, text

_BY_WEBHOOK = re.compile(r'admission webhook "[^"]*" denied the request: ')


def refusal_of(error: Exception) -> str:
    """Message without the name of the webhook that refused, if one did; it means nothing to users.

    For Events and statuses of objects that users own; errors that wrap others repeat the name, too.
    """
    return _BY_WEBHOOK.sub("", str(error))


class KubeError(Exception):
    """Any failure between this process and an API server."""


class KindNotServed(KubeError):
    """The API server does not serve this kind in this version, according to its discovery documents.

    Args: remedy: advice for the message.
    """

    def __init__(self, api_version: str, kind: str, *, remedy: str = "") -> None:
        text = f'no matches for kind "{kind}" in version "{api_version}"'
        super().__init__(f"{text}; {remedy}" if remedy else text)
        self.api_version = api_version
        self.kind = kind


class KindGone(KindNotServed):
    """Nothing defines this kind, in any version: there are no objects of it."""


class KindUnavailable(KubeError):
    """No version of a kind is served, but the kind is defined: its objects are stored, and unreachable."""

    def __init__(self, api_version: str, kind: str, *, defined_by: str) -> None:
        super().__init__(
            f'no matches for kind "{kind}" in version "{api_version}"; but {defined_by} defines this kind, so its '
            "objects may still exist; serve a version of it again"
        )


class HistoryRewound(KubeError):
    """Nothing is written: the cluster was restored from a backup, and cached state may be of a discarded history."""


class Unreachable(KubeError):
    """No complete answer came; the request may or may not have been carried out."""


class KindBusy(Unreachable):
    """Too many requests for a kind wait for an answer; this one may have been ended for it, see `kind_shares`."""

    def __init__(self, group: str, kind: str, *, namespace: str, seconds: float) -> None:
        name = f"{kind} ({group})" if group else kind
        if namespace:
            name = f"{name} in namespace {namespace}"
        super().__init__(
            f"requests for {name} take more than {seconds:g} s, so they are throttled; check its conversion and "
            "admission webhooks, and its API server"
        )


class AnswerTooLong(Unreachable):
    """The answer to a request exceeds the size limit."""


class TimedOut(Unreachable):
    """Nothing came within the timeout."""


class Untrusted(Unreachable):
    """One side does not accept the certificate of the other: waiting does not change that."""


class NotUnderstood(Unreachable):
    """The answer does not match the request: no JSON, another kind, half a list. It proves nothing."""


class NotWritable(KubeError):
    """Not sent: it is no JSON, or a part was left out when it was read (`kube.runtime.codec`)."""


class NoStatus(Unreachable):
    """A failure that is no Status: it proves nothing, since it need not come from the API server.

    API servers answer so, too, for paths that they do not serve; discovery has to find out whether that is the reason.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"the response has code {status} but is not a Status, perhaps from a proxy: {text!r}")
        self.status = status


class ApiError(KubeError):
    """A failure that the API server reported."""

    def __init__(
        self,
        status: int,
        *,
        message: str,
        reason: str = "",
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.details = details or {}
        self.retry_after = retry_after
        """Seconds after which the API server accepts a retry; None if it set none."""

    @property
    def causes(self) -> Sequence[Mapping[str, Any]]:
        """Causes, each with `reason`, `message`, `field`."""
        return mappings(self.details.get("causes"))


class BadRequest(ApiError):
    pass


class Unauthorized(ApiError):
    pass


class Forbidden(ApiError):
    pass


class NamespaceTerminating(Forbidden):
    """Nothing can be created in a namespace that is being deleted."""


class NotReady(ApiError):
    """Admission has not read its inputs yet: no refusal; retry."""


class NotFound(ApiError):
    """The API server reports that there is no such object."""


class Conflict(ApiError):
    pass


class AlreadyExists(Conflict):
    pass


class Gone(ApiError):
    """The resourceVersion or continue token is too old (reasons `Expired` and `Gone`)."""


class Invalid(ApiError):
    pass


class TooLarge(ApiError):
    """An object, or a request, exceeds the limit of the storage or of the API server."""


class TooManyRequests(ApiError):
    pass


class ServerFailure(ApiError):
    pass


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    409: Conflict,
    410: Gone,
    413: TooLarge,
    422: Invalid,
    429: TooManyRequests,
}


_WITHOUT_STATUS = frozenset({401, 413, 429})
"""Statuses in addition to 5xx: an overloaded API server has no time for a Status, a rejected token may be stale, and a
request that is too large for a proxy gets no further.
"""
_LONGEST_TEXT = 100
_NOT_READY = "not yet ready to handle request"
"""Message of API server plugins, and of our webhooks, until their caches are filled."""
_NOT_STORED = ("etcdserver: request is too large", "trying to send message larger than max")
"""Messages of etcd and of its client library for too large an object. API servers pass them on as errors of their own.
"""


def from_status(
    code: int, status: Mapping[str, Any], *, fallback: str = "", retry_after: float | None = None
) -> ApiError | NoStatus:
    """Convert an answer into an error: a Status, or anything else; `fallback` is the message if it has none."""
    if status.get("kind") != "Status":
        status = {}
        if code < 500 and code not in _WITHOUT_STATUS:
            return NoStatus(code, fallback[:_LONGEST_TEXT])
    reason = text(status.get("reason"))
    details = status.get("details")
    details = details if isinstance(details, dict) else {}
    causes = mappings(details.get("causes"))
    message = text(status.get("message")) or fallback or f"the API server answered with status {code}"
    if code >= 500:
        cls: type[ApiError] = TooLarge if any(reported in message for reported in _NOT_STORED) else ServerFailure
    elif code == 404 and reason == "NotFound":
        cls = NotFound
    elif reason == "AlreadyExists":
        cls = AlreadyExists
    elif code == 403 and _NOT_READY in message:
        cls = NotReady
    elif code == 403 and {"NamespaceTerminating"} & {text(each.get("reason")) for each in causes}:
        cls = NamespaceTerminating
    else:
        cls = _BY_STATUS.get(code, ApiError)
    seconds = details.get("retryAfterSeconds")
    if retry_after is None and isinstance(seconds, int) and seconds > 0:
        retry_after = float(seconds)
    return cls(code, message=message, reason=reason, details=details, retry_after=retry_after)


def remedy(error: Exception, rights: str, *, namespace: str = "") -> str:
    """Advice for a person about a request that fails permanently; empty if unknown.

    Args:
        error: of the request.
        rights: required rights, such as "list and watch secrets".
        namespace: namespace that has to exist for the request.
    """
    match error:
        case Forbidden():
            return f"grant this user the rights to {rights}, as the roles of the installation do"
        case Unauthorized():
            return "check whether the kubeconfig or the token belongs to this cluster, and has not expired"
        case Unreachable() | TimeoutError():
            return "check whether the API server runs, and whether the kubeconfig has its address and CA"
        case NotFound() if namespace:
            return f"create the namespace {namespace}"
        case _:
            return ""
