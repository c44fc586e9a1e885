"""Errors of talking to an API server, as types that say what can be done about them.

    KubeError
    ├── KindNotServed            discovery knows no such kind
    ├── Unreachable              no answer came: refused, reset, timed out, bad TLS
    │   └── AnswerTooLong        more than is read of one answer
    └── ApiError                 the API server answered with a Status of failure
        ├── BadRequest 400, Unauthorized 401, NotFound 404, Gone 410, Invalid 422
        ├── Forbidden 403 ── NamespaceTerminating
        ├── Conflict 409 ── AlreadyExists
        └── TooManyRequests 429, ServerFailure 5xx

`str(error)` is the API server's own message, since it ends up in conditions that people and programs read.
"""

from collections.abc import Mapping
from typing import Any


class KubeError(Exception):
    """Anything that goes wrong between this process and an API server."""


class KindNotServed(KubeError):
    """The API server serves no such kind in that version, as far as discovery knows."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no matches for kind "{kind}" in version "{api_version}"')
        self.api_version = api_version
        self.kind = kind


class Unreachable(KubeError):
    """No complete answer came; the request may or may not have been carried out."""


class AnswerTooLong(Unreachable):
    """The answer to a request is longer than what is read of one."""


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
    def causes(self) -> list[Mapping[str, Any]]:
        """Each with `reason`, `message`, `field`."""
        return self.details.get("causes") or []


class BadRequest(ApiError):
    pass


class Unauthorized(ApiError):
    pass


class Forbidden(ApiError):
    pass


class NamespaceTerminating(Forbidden):
    """Nothing new comes into being in a namespace that is being deleted."""


class NotFound(ApiError):
    pass


class Conflict(ApiError):
    pass


class AlreadyExists(Conflict):
    pass


class Gone(ApiError):
    """The resourceVersion or continue token is too old (reasons `Expired` and `Gone`)."""


class Invalid(ApiError):
    pass


class TooManyRequests(ApiError):
    pass


class ServerFailure(ApiError):
    pass


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def from_status(
    code: int, status: Mapping[str, Any], *, fallback: str = "", retry_after: float | None = None
) -> ApiError:
    """The error for a Status object (`kind: Status`); `fallback` is the message if it has none."""
    reason = status.get("reason") or ""
    details = status.get("details") or {}
    if code >= 500:
        cls: type[ApiError] = ServerFailure
    elif reason == "AlreadyExists":
        cls = AlreadyExists
    elif code == 403 and any(cause.get("reason") == "NamespaceTerminating" for cause in details.get("causes") or ()):
        cls = NamespaceTerminating
    else:
        cls = _BY_STATUS.get(code, ApiError)
    if retry_after is None and details.get("retryAfterSeconds"):
        retry_after = float(details["retryAfterSeconds"])
    message = status.get("message") or fallback or f"the API server answered with status {code}"
    return cls(code, message=message, reason=reason, details=details, retry_after=retry_after)
