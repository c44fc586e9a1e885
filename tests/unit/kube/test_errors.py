"""Which type of error an answer of an API server becomes."""

from typing import Any

import pytest

from kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NamespaceTerminating,
    NoStatus,
    NotFound,
    NotReady,
    ServerFailure,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    from_status,
    refusal_of,
)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (413, "Request entity too large: limit is 3145728"),
        (500, "etcdserver: request is too large"),
        (500, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (3 vs. 2)"),
    ],
)
def test_what_is_not_stored_for_its_size_is_too_large(code: int, message: str) -> None:
    assert type(from_status(code, {"kind": "Status", "message": message})) is TooLarge


def test_other_failures_of_servers_are_no_matter_of_size() -> None:
    assert type(from_status(500, {"kind": "Status", "message": "etcdserver: leader changed"})) is ServerFailure


@pytest.mark.parametrize(
    ("code", "reason", "details", "expected"),
    [
        (400, "BadRequest", {}, BadRequest), (401, "Unauthorized", {}, Unauthorized),
        (403, "Forbidden", {"causes": [{"reason": "FieldValueInvalid"}]}, Forbidden),
        (403, "Forbidden", {"causes": [{"reason": "NamespaceTerminating"}]}, NamespaceTerminating),
        (404, "NotFound", {}, NotFound), (404, "", {}, ApiError),
        (409, "Conflict", {}, Conflict), (409, "AlreadyExists", {}, AlreadyExists),
        (410, "Expired", {}, Gone), (418, "Teapot", {}, ApiError), (422, "Invalid", {}, Invalid),
        (429, "TooManyRequests", {}, TooManyRequests), (503, "ServiceUnavailable", {}, ServerFailure),
    ],
)  # fmt: skip
def test_the_type_follows_code_and_reason(code: int, reason: str, details: Any, expected: type[ApiError]) -> None:
    error = from_status(code, {"kind": "Status", "reason": reason, "message": "m", "details": details})
    assert isinstance(error, ApiError)
    assert (type(error), error.status, error.reason, str(error)) == (expected, code, reason, "m")
    assert error.causes == details.get("causes", [])


@pytest.mark.parametrize("code", [401, 413, 429, 500, 502])
def test_some_failures_need_no_status(code: int) -> None:
    error = from_status(code, {}, fallback="<html>")
    assert isinstance(error, ApiError)
    assert (error.status, str(error)) == (code, "<html>")


@pytest.mark.parametrize("code", [302, 400, 403, 404, 409])
def test_of_other_failures_without_a_status_nothing_follows(code: int) -> None:
    error = from_status(code, {"kind": "Page"}, fallback="x" * 500)
    assert isinstance(error, NoStatus)
    assert len(str(error)) < 200


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        (None, {}, None),
        (None, {"retryAfterSeconds": 3}, 3.0),
        (7.0, {"retryAfterSeconds": 3}, 7.0),
        (None, {"retryAfterSeconds": "x"}, None),
        (None, {"retryAfterSeconds": float("nan")}, None),
        (None, {"retryAfterSeconds": -1}, None),
        (None, "x", None),
    ],
)
def test_when_to_ask_again_is_in_header_or_status(header: float | None, details: Any, seconds: float | None) -> None:
    error = from_status(429, {"kind": "Status", "details": details}, retry_after=header)
    assert isinstance(error, ApiError)
    assert error.retry_after == seconds
    assert str(error) == "the API server answered with status 429"


@pytest.mark.parametrize("odd", [7, ["m"], {"a": "b"}])
def test_fields_of_other_types_are_as_absent(odd: Any) -> None:
    """Any server may stand behind an aggregated API."""
    status = {"kind": "Status", "reason": odd, "message": odd, "details": {"causes": [odd, {"reason": odd}]}}
    error = from_status(403, status, fallback="a text")
    assert (type(error), str(error)) == (Forbidden, "a text")


@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        ('admission webhook "a.example.com" denied the request: no "b" there', 'no "b" there'),
        ('shoots "s" is forbidden: admission webhook "a"', 'shoots "s" is forbidden: admission webhook "a"'),
        (
            'Error while setting up ResourceQuota: admission webhook "a" denied the request: no',
            "Error while setting up ResourceQuota: no",
        ),
        ('admission webhook "a" denied the request without explanation',) * 2,
    ],
)
def test_a_refusal_is_shown_without_the_name_of_the_webhook(message: str, refusal: str) -> None:
    error = Forbidden(403, message=message)
    assert (refusal_of(error), str(error)) == (refusal, message)


@pytest.mark.parametrize(
    "message",
    [
        'admission webhook "shoots.garden.gardener.cloud" denied the request: not yet ready to handle request',
        'shoots.core.gardener.cloud "s" is forbidden: not yet ready to handle request',
    ],
)
def test_admission_that_has_not_begun_yet_does_not_refuse(message: str) -> None:
    error = from_status(403, {"kind": "Status", "reason": "Forbidden", "message": message})
    assert isinstance(error, NotReady)
    assert not isinstance(error, Forbidden)
