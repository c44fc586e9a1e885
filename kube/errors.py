"""Errors of talking to an API server, as types that say what can be done about them.

    KubeError
    ├── KindNotServed            discovery says that there is no such kind, or not in this version
    │   └── KindGone             there are no objects of it either
    ├── KindUnavailable          it exists, and no version of it is served now
    ├── HistoryRewound           the cluster went back in time; what is known of it has to be learnt anew
    ├── Unreachable              no answer came: refused, reset, timed out, bad TLS
    │   ├── KindBusy             requests for this kind wait too long
    │   ├── AnswerTooLong        more than is read of one answer
    │   ├── TimedOut             nothing came for too long
    │   ├── Untrusted            one side does not accept the certificate of the other
    │   ├── NotUnderstood        what came is not what was asked for
    │   └── NoStatus             a failure that is no Status: perhaps of a proxy
    ├── NotWritable              it is not sent: it can't be written as JSON, or was not read as a whole
    └── ApiError                 the API server answered with a Status of failure
        ├── BadRequest 400, Unauthorized 401, NotFound 404, Gone 410, Invalid 422
        ├── Forbidden 403 ── NamespaceTerminating
        ├── NotReady 403: nothing was decided
        ├── Conflict 409 ── AlreadyExists
        ├── TooLarge 413, and 500 where the storage behind the API server takes no more
        └── TooManyRequests 429, ServerFailure 5xx

Only the API server can say that something does not exist: an object by `NotFound`, which is made of a Status with this
reason and of nothing else; a kind by `KindGone`, see `gone_kinds`. A kind that is not served (`KindNotServed`, made of
good answers of discovery, see `served`) may still have objects. Every other answer says nothing about the cluster.

`str(error)` is the API server's own message, since it ends up in conditions that people and programs read.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kube.objects import mappings, text

_BY_WEBHOOK = re.compile(r'admission webhook "[^"]*" denied the request: ')


def refusal_of(error: Exception) -> str:
    """The message without the name of the webhook that refused, if one did; it means nothing to users.

    For Events and statuses of what users own; errors that wrap others repeat the name, too.
    """
    return _BY_WEBHOOK.sub("", str(error))


class KubeError(Exception):
    """Anything that goes wrong between this process and an API server."""


class KindNotServed(KubeError):
    """The API server serves no such kind in that version: its discovery documents say so.

    Args: remedy: what to do about it, for the message.
    """

    def __init__(self, api_version: str, kind: str, *, remedy: str = "") -> None:
        text = f'no matches for kind "{kind}" in version "{api_version}"'
        super().__init__(f"{text}; {remedy}" if remedy else text)
        self.api_version = api_version
        self.kind = kind


class KindGone(KindNotServed):
    """Nothing defines such a kind, in any version: there are no objects of it."""


class KindUnavailable(KubeError):
    """No version of a kind is served, but the kind is defined: its objects are stored, and can't be reached."""

    def __init__(self, api_version: str, kind: str, *, defined_by: str) -> None:
        super().__init__(
            f'no matches for kind "{kind}" in version "{api_version}"; but {defined_by} defines this kind, so its'
            " objects may still exist: have a version of it served again"
        )


class HistoryRewound(KubeError):
    """Nothing is written: the cluster was restored from a backup, and what is known of it may never have been."""


class Unreachable(KubeError):
    """No complete answer came; the request may or may not have been carried out."""


class KindBusy(Unreachable):
    """Too many requests for a kind wait for an answer; this one may have been ended for that, see `kind_shares`."""

    def __init__(self, group: str, kind: str, *, namespace: str, seconds: float) -> None:
        name = f"{kind} ({group})" if group else kind
        if namespace:
            name = f"{name} in namespace {namespace}"
        super().__init__(
            f"requests for {name} are not answered within {seconds:g} s, so that only few are sent: see to its"
            " conversion and admission webhooks, or to its API server"
        )


class AnswerTooLong(Unreachable):
    """The answer to a request is longer than what is read of one."""


class TimedOut(Unreachable):
    """Nothing came for longer than was to be waited."""


class Untrusted(Unreachable):
    """One side does not accept the certificate of the other: waiting does not change that."""


class NotUnderstood(Unreachable):
    """What came is no answer to what was asked: no JSON, another kind, half a list. Nothing follows from it."""


class NotWritable(KubeError):
    """It is not sent: it is no JSON, or something was left out when it was read (`kube.runtime.codec`)."""


class NoStatus(Unreachable):
    """A failure that is no Status: nothing follows from it, since it need not come from the API server.

    API servers answer so, too, for paths that they do not serve; whether that is so, discovery has to find out.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"the answer has the code {status} and is no Status, perhaps of a proxy: {text!r}")
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
        """Seconds after which the API server wants to be asked again, if it said so."""

    @property
    def causes(self) -> Sequence[Mapping[str, Any]]:
        """Each with `reason`, `message`, `field`."""
        return mappings(self.details.get("causes"))


class BadRequest(ApiError):
    pass


class Unauthorized(ApiError):
    pass


class Forbidden(ApiError):
    pass


class NamespaceTerminating(Forbidden):
    """Nothing new comes into being in a namespace that is being deleted."""


class NotReady(ApiError):
    """Admission has not read yet what it decides by: no refusal, and to be tried again."""


class NotFound(ApiError):
    """The API server says that there is no such object."""


class Conflict(ApiError):
    pass


class AlreadyExists(Conflict):
    pass


class Gone(ApiError):
    """The resourceVersion or continue token is too old (reasons `Expired` and `Gone`)."""


class Invalid(ApiError):
    pass


class TooLarge(ApiError):
    """An object, or a request, is larger than what is stored or read."""


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
"""Besides 5xx: an overloaded API server has no time for a Status, a token that is not taken may be a stale one, and
what is too large for a proxy gets no further.
"""
_LONGEST_TEXT = 100
_NOT_READY = "not yet ready to handle request"
"""What plugins of API servers, and our webhooks, say until their caches are filled."""
_NOT_STORED = ("etcdserver: request is too large", "trying to send message larger than max")
"""What etcd, and the library by which it is asked, say of too large an object. API servers pass it on as an error of
their own.
"""


def from_status(
    code: int, status: Mapping[str, Any], *, fallback: str = "", retry_after: float | None = None
) -> ApiError | NoStatus:
    """The error for an answer: a Status, or anything else; `fallback` is the message if it has none."""
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
        cls: type[ApiError] = TooLarge if any(said in message for said in _NOT_STORED) else ServerFailure
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
    """What a person can do about a request that can't succeed before; empty: nothing that is known.

    Args:
        error: of the request.
        rights: that the request needs, such as "list and watch secrets".
        namespace: which has to be there for it.
    """
    match error:
        case Forbidden():
            return f"give this user the rights to {rights}, as the roles of the installation do"
        case Unauthorized():
            return "see whether the kubeconfig or the token is of this cluster, and has not expired"
        case Unreachable() | TimeoutError():
            return "see whether the API server runs, and whether the kubeconfig has its address and authority"
        case NotFound() if namespace:
            return f"create the namespace {namespace}"
        case _:
            return ""
