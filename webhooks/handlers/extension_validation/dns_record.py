from collections.abc import Iterator
from typing import Any

from gardener.api.extensions.dns_record import DNS_RECORD as DEFINITION
from kube.addresses import domain_name_errors, ip_errors
from kube.validation import FieldError, invalid, not_supported
from webhooks.handlers.extension_validation.kind import Kind, need
from webhooks.handlers.extension_validation.rules.go_types import typed

_TYPES = ("A", "AAAA", "CNAME", "TXT")
_LONGEST_TTL = 2**31 - 1


def _errors(record: Any) -> Iterator[FieldError]:
    spec = record.spec
    for path, value in (("spec.region", spec.region), ("spec.zone", spec.zone)):
        if value == "":
            yield invalid(path, value, "field cannot be empty if specified")
    # Wildcards, and records that prove ownership of a domain to a certificate authority.
    prefix = "_" if spec.recordType == "TXT" else "*."
    yield from domain_name_errors("spec.name", spec.name.removeprefix(prefix))
    if spec.recordType not in _TYPES:
        yield not_supported("spec.recordType", spec.recordType, _TYPES)
    values = spec.values or []
    yield from need("spec.values", values)
    if spec.recordType == "CNAME" and len(values) > 1:
        yield invalid("spec.values", values, "CNAME records must have a single value")
    for index, value in enumerate(values):
        yield from _value_errors(f"spec.values[{index}]", value, spec.recordType)
    if spec.ttl is not None and not 0 <= spec.ttl <= _LONGEST_TTL:
        yield invalid("spec.ttl", spec.ttl, f"must be between 0 and {_LONGEST_TTL}, inclusive")


def _value_errors(path: str, value: str, record_type: str) -> Iterator[FieldError]:
    match record_type:
        case "A" | "AAAA":
            yield from ip_errors(path, value)
        case "CNAME":
            yield from domain_name_errors(path, value)


DNS_RECORD = Kind(
    typed=typed(DEFINITION, {}),
    resource=DEFINITION.resource,
    noun="dns record",
    required=("spec.type", "spec.secretRef.name"),
    errors=_errors,
    immutable=("spec.type", "spec.name", "spec.recordType"),
)
