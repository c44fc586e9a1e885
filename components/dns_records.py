"""Names of a Shoot's API server: DNSRecords, reconciled by extensions of DNS providers."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from components.parts import made
from gardener.api.extensions import DNS_RECORDS
from kube.objects import Object
from kube.resources import SECRETS

INTERNAL, EXTERNAL = "internal", "external"
_IP_STACK = "dns.gardener.cloud/ip-stack"


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Parameters of a DNSRecord.

    Attributes:
        shoot: name of the Shoot.
        role: `INTERNAL` or `EXTERNAL`.
        host: the name.
        addresses: targets: of one kind, or one host name.
        provider: type of the DNS provider.
        credentials: for the provider; content of a Secret.
        zone: empty: the extension finds it.
        ttl: seconds for which resolvers may cache an answer.
    """

    namespace: str
    shoot: str
    role: str
    host: str
    addresses: Sequence[str]
    provider: str
    credentials: Mapping[str, bytes] = field(repr=False)
    zone: str = ""
    ttl: int = 120


def name(shoot: str, role: str) -> str:
    return f"{shoot}-{role}"


def secret(values: Values) -> Object:
    """Secret of a DNSRecord, to be written before the record is reconciled or deleted."""
    data = {key: base64.b64encode(value).decode() for key, value in values.credentials.items()}
    return made(SECRETS, _secret_name(values), namespace=values.namespace, type="Opaque", data=data)


def record(values: Values) -> Object:
    spec = {
        "type": values.provider,
        "name": values.host,
        "recordType": record_type(values.addresses),
        "values": list(values.addresses),
        "ttl": values.ttl,
        "secretRef": {"name": _secret_name(values), "namespace": values.namespace},
        **({"zone": values.zone} if values.zone else {}),
    }
    return made(
        DNS_RECORDS,
        name(values.shoot, values.role),
        namespace=values.namespace,
        annotations={_IP_STACK: "ipv6" if spec["recordType"] == "AAAA" else "ipv4"},
        spec=spec,
    )


def record_type(addresses: Sequence[str]) -> str:
    try:
        version = ip_address(addresses[0]).version
    except (IndexError, ValueError):
        return "CNAME"
    return "A" if version == 4 else "AAAA"


def _secret_name(values: Values) -> str:
    return f"dnsrecord-{name(values.shoot, values.role)}"


def internal_host(shoot: str, project: str, domain: str) -> str:
    """Args: domain: of the garden, for internal names; with or without the part `internal`."""
    inner = domain if "internal" in domain else f"internal.{domain}"
    return f"api.{shoot}.{project}.{inner}"


def external_host(domain: str) -> str:
    """Args: domain: `spec.dns.domain` of the Shoot."""
    return f"api.{domain}"


def advertised(*, internal: str, external: str, issuer: str) -> list[Object]:
    """`status.advertisedAddresses` of a Shoot. Args: internal, external: hosts; empty: there is none."""
    found = [("external", external), ("internal", internal)]
    urls = [(each, f"https://{host}") for each, host in found if host]
    return [{"name": each, "url": url} for each, url in [*urls, ("service-account-issuer", issuer)]]
