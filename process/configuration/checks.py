"""Rules for values of the configuration, by their names in the schema."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from kube.clock import format_duration
from kube.names import dns_label_problems, dns_subdomain_problems, label_value_problems
from kube.quantities import parse_quantity
from kube.validation import (
    ErrorKind,
    FieldError,
    forbidden,
    invalid,
    invalid_for,
    label_errors,
    label_selector_errors,
    not_supported,
    required,
    toleration_errors,
)
from process.configuration.fields import Check, as_object, members

HIGHEST_PORT = 65535
_MILLION = 1_000_000
_ALL_ADDRESSES = frozenset({"", "0.0.0.0", "::"})


def required_value(detail: str = "") -> Check:
    def errors(path: str, value: str) -> Iterator[FieldError]:
        if not value:
            yield required(path, detail)

    return Check("required", errors)


def one_of(*supported: str) -> Check:
    def errors(path: str, value: str) -> Iterator[FieldError]:
        if value not in supported:
            yield not_supported(path, value, supported)

    return Check("one of " + ", ".join(f"`{choice}`" for choice in supported), errors)


def at_least(bound: int, detail: str = "") -> Check:
    detail = detail or f"must be at least {bound}"

    def errors(path: str, value: int) -> Iterator[FieldError]:
        if value < bound:
            yield invalid(path, value, detail)

    return Check(detail, errors)


def in_range(least: int, most: int) -> Check:
    detail = f"must be from {least} to {most}"

    def errors(path: str, value: int) -> Iterator[FieldError]:
        if not least <= value <= most:
            yield invalid(path, value, detail)

    return Check(detail, errors)


def lasts_at_least(seconds: float, detail: str = "") -> Check:
    detail = detail or f"must be at least {format_duration(seconds)}"

    def errors(path: str, value: float) -> Iterator[FieldError]:
        if value < seconds:
            yield invalid_duration(path, value, detail)

    return Check(detail, errors)


def _lasts_longer_than_zero(path: str, value: float) -> Iterator[FieldError]:
    if value <= 0:
        yield invalid_duration(path, value, "must be greater than zero")


def _port(path: str, value: int) -> Iterator[FieldError]:
    if value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")
    if value > HIGHEST_PORT:
        yield invalid(path, value, f"must be less than or equal to {HIGHEST_PORT}")


def _share(path: str, value: int) -> Iterator[FieldError]:
    if not 0 <= value <= _MILLION:
        yield invalid(path, value, f"must be from 0 to {_MILLION}")


def _http_url(path: str, value: str) -> Iterator[FieldError]:
    try:
        url = urlsplit(value)
        good = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        yield forbidden(path, "must be a URL")
        return
    if "@" in url.netloc or url.query or url.fragment:
        # They may hold secrets, and the error is logged.
        yield forbidden(path, "a URL may not have credentials, a query or a fragment here")
    elif not good or any(char.isspace() for char in value):
        yield invalid(path, value, "must be a URL such as http://host:4318")


def _namespace(path: str, value: str) -> Iterator[FieldError]:
    return invalid_for(path, value, dns_label_problems(value))


def _namespace_if_given(path: str, value: str) -> Iterator[FieldError]:
    if value:
        yield from _namespace(path, value)


def _object_name(path: str, value: str) -> Iterator[FieldError]:
    return invalid_for(path, value, dns_subdomain_problems(value))


def _label_value(path: str, value: str) -> Iterator[FieldError]:
    return invalid_for(path, value, label_value_problems(value))


def _machine_namespace(path: str, value: str) -> Iterator[FieldError]:
    if value:
        yield from _namespace(path, value)
    else:
        yield invalid(path, value, "machine namespace must be nil or not empty")


def _lock_kind(path: str, value: str) -> Iterator[FieldError]:
    if value in {"endpoints", "configmaps", "endpointsleases", "configmapsleases"}:
        yield invalid(path, value, f"{value} lock is removed, migrate to leases")
    elif value != "leases":
        yield invalid(path, value, f"Invalid lock-type {value}")


def _quantity(path: str, value: str) -> Iterator[FieldError]:
    try:
        is_positive = parse_quantity(value) > 0
    except ValueError as error:
        yield invalid(path, value, str(error))
        return
    if not is_positive:
        yield invalid(path, value, "must be greater than 0")


def _label_selector(path: str, value: Any) -> Iterator[FieldError]:
    return label_selector_errors(path, as_object(value))


def _toleration(path: str, value: Any) -> Iterator[FieldError]:
    return toleration_errors(path, as_object(value))


def each(check: Check) -> Check:
    """Return the rule for every element of a list."""

    def errors(path: str, values: tuple[Any, ...]) -> Iterator[FieldError]:
        for index, value in enumerate(values):
            yield from check.errors(f"{path}[{index}]", value)

    return Check(check.demand and f"each: {check.demand}", errors)


def even_if_disabled(check: Check) -> Check:
    return replace(check, even_if_disabled=True)


def invalid_duration(path: str, seconds: float, detail: str) -> FieldError:
    return FieldError(ErrorKind.INVALID, path, format_duration(seconds), detail)


def distinct_ports(server: Any, path: str) -> Iterator[FieldError]:
    """Yield errors of two servers on one port, unless they listen on different addresses or take any free port (0)."""
    earlier: list[tuple[str, int, str]] = []
    for member in members(type(server)):
        endpoint, where = getattr(server, member.attribute), f"{path}.{member.name}"
        for address, port, other in earlier:
            shared = endpoint.bind_address == address or _ALL_ADDRESSES & {endpoint.bind_address, address}
            if shared and endpoint.port == port > 0:
                yield invalid(f"{where}.port", port, f"must differ from {other}.port")
        earlier.append((endpoint.bind_address, endpoint.port, where))


longer_than_zero = Check("must be greater than zero", _lasts_longer_than_zero)
share = Check(f"0 to {_MILLION}", _share)
http_url = Check("URL with `http` or `https`, a host, and no credentials or query", _http_url)
port = Check(f"0 to {HIGHEST_PORT}", _port)
namespace = Check("", _namespace)
namespace_if_given = Check("", _namespace_if_given)
not_empty_namespace = Check("not empty when given", _machine_namespace)
object_name = Check("", _object_name)
label_value = Check("", _label_value)
labels = Check("", label_errors)
lock_kind = Check("only `leases`", _lock_kind)
quantity = Check("quantity greater than 0", _quantity)
label_selector = Check("", _label_selector)
toleration = Check("valid toleration", _toleration)
