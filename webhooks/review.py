"""The AdmissionReview contract: from the bytes of a request to the bytes of its answer.

The answer to any request is an AdmissionReview, which reports errors by a code and a message of the status. Errors
before the request is decoded are answered without a uid, apiVersion and kind.

    body -> Request -> handler -> Answer -> response -> body

`v1` and `v1beta1` do not differ in the fields read here; the answer has the version of the request.
"""

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

import msgspec
import orjson

from kube.objects import Object
from kube.runtime import tracing
from kube.runtime.tracing import Attributes, Value
from process.logging import get_logger
from webhooks.admission import (
    Allowed,
    Answer,
    Changed,
    Denied,
    Errored,
    Failure,
    Handler,
    Kind,
    Request,
    ResourceName,
    User,
)
from webhooks.bounds import TooManyValues, demand_small_object, with_few_values
from webhooks.metrics import panics, request_metrics
from webhooks.offload import TookTooLong, offloaded
from webhooks.rules.patch import TooManyChanges, difference
from webhooks.rules.registration import WRITE

GROUP = "admission.k8s.io"
VERSIONS = frozenset({f"{GROUP}/v1", f"{GROUP}/v1beta1"})
KIND = "AdmissionReview"

TOO_LARGE = 7 * 1024**2
"""Size in bytes from which a body is too large."""

MESSAGE_LENGTH = 32 << 10

_JSON = "application/json"


Endpoint = Callable[[bytes, str], Coroutine[Any, Any, bytes]]
"""Function from an unparsed body and its content type to the body of the answer, which is JSON."""


class Review(NamedTuple):
    """A request, and the apiVersion of its answer."""

    api_version: str
    request: Request


class Reviewer:
    """Answers the reviews of one webhook; its name is for logs and spans, its path for metrics."""

    def __init__(self, name: str, handler: Handler, *, path: str) -> None:
        self._name = name
        self._handler = handler
        self._metrics = request_metrics.of(path)
        self._log = get_logger(f"webhook.{name}")

    async def __call__(self, body: bytes, content_type: str) -> bytes:
        """Return the answer to an unparsed body."""
        if not body:
            return self._failed(400, "request body is empty")
        if len(body) >= TOO_LARGE:
            return too_large()
        if content_type != _JSON and media_type(content_type) != _JSON:
            return self._failed(400, f"contentType={content_type}, expected {_JSON}")
        try:
            review = await offloaded(partial(read, body))
        except (TooManyValues, TookTooLong) as error:
            return self._failed(413, str(error))
        except ValueError as error:
            message = _shortened(str(error))
            self._log.info("Request is not an AdmissionReview", error=message)
            return self._failed(400, message)
        request = review.request
        try:
            if request.operation in WRITE:
                await offloaded(partial(demand_small_object, len(body), request.object, request.old_object))
            return await self._answered(review, await self._handler(request))
        except (TooManyValues, TookTooLong) as error:
            self._log.warning("Request exceeds a limit", **_described(request), error=str(error))
            return await self._answered(review, Errored(413, str(error)))
        except Exception as error:  # noqa: BLE001 - one request must not end the process, and needs an answer
            panics.inc()
            self._log.error("Handler crashed", **_described(request), error=error)
            if (span := tracing.recording()) is not None:
                tracing.fail(span, type(error).__name__)
            text = str(error) or type(error).__name__
            return await self._answered(review, Errored(500, f"panic: {text} [recovered]"))

    async def _answered(self, review: Review, answer: Answer) -> bytes:
        response = await offloaded(partial(response_to, review.request, answer))
        if not response["allowed"]:
            self._metrics.refused(response["status"].get("code") or 403)
        if (span := tracing.recording()) is not None:
            span.set_attributes(_attributes(self._name, review.request, response))
        return dumped({"apiVersion": review.api_version, "kind": KIND, "response": response})

    def _failed(self, code: int, message: str) -> bytes:
        self._metrics.refused(code)
        return failed(code, message)


def media_type(content_type: str) -> str:
    """Return the type without parameters such as a charset, which JSON does not have."""
    return content_type.partition(";")[0].strip().lower()


def _described(request: Request) -> dict[str, Any]:
    named = {"namespace": request.namespace, "name": request.name}
    return {"operation": request.operation, "kind": request.kind.kind, **named, "requestID": request.uid}


def _attributes(webhook: str, request: Request, response: Object) -> Attributes:
    """Attributes of the span of a request, without parts of the object itself: it may be a Secret."""
    patch, code = response.get("patch"), response["status"].get("code")
    attributes: dict[str, Value] = {
        "admission.webhook": webhook,
        "admission.uid": request.uid,
        "admission.operation": request.operation,
        "admission.kind": request.kind.kind,
        "admission.group": request.kind.group,
        "admission.version": request.kind.version,
        "k8s.namespace.name": request.namespace,
        "k8s.object.name": request.name,
        "admission.dry_run": request.dry_run,
        "admission.allowed": response["allowed"],
        "admission.patch_operations": len(orjson.loads(a2b_base64(patch))) if patch else 0,
    }
    if isinstance(code, int):
        attributes["admission.code"] = code
    return attributes


# --- reading


class _Fields(msgspec.Struct, rename="camel", gc=False):
    """Fields of a review. All may be missing or null; unknown ones are ignored."""


class _Kind(_Fields):
    group: str | None = None
    version: str | None = None
    kind: str | None = None


class _Resource(_Fields):
    group: str | None = None
    version: str | None = None
    resource: str | None = None


class _User(_Fields):
    username: str | None = None
    groups: list[str] | None = None
    uid: str | None = None
    extra: dict[str, list[str]] | None = None


class _Request(_Fields):
    uid: str | None = None
    kind: _Kind | None = None
    resource: _Resource | None = None
    sub_resource: str | None = None
    operation: str | None = None
    user_info: _User | None = None
    name: str | None = None
    namespace: str | None = None
    object: Any = None
    old_object: Any = None
    options: Any = None
    dry_run: bool | None = None


class _Review(_Fields):
    api_version: str | None = None
    kind: str | None = None
    request: _Request | None = None


_NO_KIND, _NO_RESOURCE, _NO_USER = _Kind(), _Resource(), User()


def read(body: bytes) -> Review:
    """Decode the request of a body.

    Raises:
        TooManyValues: it is too large to be decoded.
        ValueError: it is not JSON, or not an AdmissionReview; the text has the reason.
    """
    body = with_few_values(body)
    try:
        review = msgspec.convert(orjson.loads(body), _Review)
    except msgspec.ValidationError as error:
        raise ValueError(f"unable to decode into {KIND}: {error}") from None
    api_version, kind = review.api_version or f"{GROUP}/v1", review.kind or KIND
    if kind != KIND or api_version not in VERSIONS:
        raise ValueError(f'no kind "{kind}" is registered for version "{api_version}"; expected {KIND} of {GROUP}/v1')
    fields = review.request
    if fields is None:
        raise ValueError(f"{KIND} has no request")
    of, resource = fields.kind or _NO_KIND, fields.resource or _NO_RESOURCE
    request = Request(
        uid=fields.uid or "",
        kind=Kind(of.group or "", of.version or "", of.kind or ""),
        resource=ResourceName(resource.group or "", resource.version or "", resource.resource or ""),
        operation=fields.operation or "",
        name=fields.name or "",
        namespace=fields.namespace or "",
        object=fields.object,
        old_object=fields.old_object,
        options=fields.options,
        dry_run=fields.dry_run or False,
        subresource=fields.sub_resource or "",
        user=_user(fields.user_info) if fields.user_info is not None else _NO_USER,
    )
    return Review(api_version, request)


def _user(info: _User) -> User:
    extra = {name: tuple(values) for name, values in info.extra.items()} if info.extra else {}
    return User(info.username or "", tuple(info.groups or ()), info.uid or "", extra)


# --- answering


def response_to(request: Request, answer: Answer) -> Object:
    """Return the `response` of a review."""
    match answer:
        case Changed():
            return _changed(request, answer)
        case Allowed():
            status: Object = {"code": 200, "message": answer.message} if answer.message else {"code": 200}
            return {"uid": request.uid, "allowed": True, "status": status} | _warned(answer.warnings)
        case Denied():
            status = {"code": 403, "reason": "Forbidden", "message": _shortened(answer.message)}
        case Errored():
            status = {"code": answer.code, "message": _shortened(answer.message)}
        case Failure():
            return {"uid": request.uid, "allowed": False, "status": answer.status} | _warned(answer.warnings)
    return {"uid": request.uid, "allowed": False, "status": status}


def _warned(warnings: tuple[str, ...]) -> Object:
    return {"warnings": list(warnings)} if warnings else {}


def _changed(request: Request, answer: Changed) -> Object:
    try:
        operations = difference(answer.before, answer.after)
    except TooManyChanges as error:
        return response_to(request, Errored(413, str(error)))
    response: Object = {"uid": request.uid, "allowed": True}
    if operations:
        response["patchType"] = "JSONPatch"
        response["patch"] = b2a_base64(dumped(operations), newline=False).decode()
    response["status"] = {"code": 200}
    return response | _warned(answer.warnings)


def _shortened(message: str) -> str:
    """Limit a message: the client chooses the quoted values, and one may be quoted several times."""
    return message if len(message) <= MESSAGE_LENGTH else f"{message[:MESSAGE_LENGTH]}…"


def failed(code: int, message: str) -> bytes:
    """Return the answer to an undecodable request."""
    return dumped({"response": {"uid": "", "allowed": False, "status": {"code": code, "message": message}}})


def too_large() -> bytes:
    return failed(413, f"request entity is too large; limit is {TOO_LARGE} bytes")


def dumped(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # nested more deeply than orjson supports, or an invalid character
        import json

        return json.dumps(value, separators=(",", ":")).encode()
