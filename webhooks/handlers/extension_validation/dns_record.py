from collections.abc import Iterator

from gardener.api.extensions import DNS_RECORDS
from kube.addresses import domain_name_errors, ip_errors
from kube.validation import FieldError, invalid, not_supported
from webhooks.handlers.extension_validation.kind import DefaultSpec, Kind, Resource, SecretReference, need
from webhooks.rules.shapes import Int64

_TYPES = ("A", "AAAA", "CNAME", "TXT")
_LONGEST_TTL = 2**31 - 1


class DNSRecordSpec(DefaultSpec):
    secret_ref: SecretReference = SecretReference()
    region: str | None = None
    zone: str | None = None
    name: str = ""
    record_type: str = ""
    values: list[str] | None = None
    ttl: Int64 | None = None


class DNSRecord(Resource):
    spec: DNSRecordSpec = DNSRecordSpec()


def _errors(record: DNSRecord) -> Iterator[FieldError]:
    spec = record.spec
    for path, value in (("spec.region", spec.region), ("spec.zone", spec.zone)):
        if value == "":
            yield invalid(path, value, "field cannot be empty if specified")
    # Wildcards; and what proves to a certificate authority that a domain is one's own.
    prefix = "_" if spec.record_type == "TXT" else "*."
    yield from domain_name_errors("spec.name", spec.name.removeprefix(prefix))
    if spec.record_type not in _TYPES:
        yield not_supported("spec.recordType", spec.record_type, _TYPES)
    values = spec.values or []
    yield from need("spec.values", values)
    if spec.record_type == "CNAME" and len(values) > 1:
        yield invalid("spec.values", values, "CNAME records must have a single value")
    for index, value in enumerate(values):
        yield from _value_errors(f"spec.values[{index}]", value, spec.record_type)
    if spec.ttl is not None and not 0 <= spec.ttl <= _LONGEST_TTL:
        yield invalid("spec.ttl", spec.ttl, f"must be between 0 and {_LONGEST_TTL}, inclusive")


def _value_errors(path: str, value: str, record_type: str) -> Iterator[FieldError]:
    match record_type:
        case "A" | "AAAA":
            yield from ip_errors(path, value)
        case "CNAME":
            yield from domain_name_errors(path, value)


DNS_RECORD = Kind(
    typed=DNSRecord,
    resource=DNS_RECORDS,
    noun="dns record",
    required=("spec.type", "spec.secretRef.name"),
    errors=_errors,
    immutable=("spec.type", "spec.name", "spec.recordType"),
)
