from collections.abc import Iterator
from typing import Any

from gardener.api.extensions.self_hosted_shoot_exposure import SELF_HOSTED_SHOOT_EXPOSURE as DEFINITION
from kube.addresses import ip_errors
from kube.names import dns_subdomain_problems
from kube.objects import group_of
from kube.validation import FieldError, invalid, invalid_for, not_supported, required
from webhooks.handlers.extension_validation.kind import Kind, need
from webhooks.handlers.extension_validation.rules.go_types import typed

_ADDRESS_TYPES = ("ExternalDNS", "ExternalIP", "Hostname", "InternalDNS", "InternalIP")
_HIGHEST_PORT = 65535


_DECLARED = {
    "credentialsRef": "*v1.ObjectReference",
    **dict.fromkeys(
        (
            *("credentialsRef.apiVersion", "credentialsRef.fieldPath", "credentialsRef.kind", "credentialsRef.name"),
            *("credentialsRef.namespace", "credentialsRef.resourceVersion", "credentialsRef.uid"),
        ),
        "value",
    ),
}


def _errors(exposure: Any) -> Iterator[FieldError]:
    spec = exposure.spec
    if spec.credentialsRef is not None:
        yield from _credentials_errors(spec.credentialsRef, exposure.metadata.namespace)
    if not 1 <= spec.port <= _HIGHEST_PORT:
        yield invalid("spec.port", spec.port, f"must be between 1 and {_HIGHEST_PORT}, inclusive")
    yield from need("spec.endpoints", spec.endpoints)
    for index, endpoint in enumerate(spec.endpoints or ()):
        path = f"spec.endpoints[{index}]"
        yield from need(f"{path}.nodeName", endpoint.nodeName)
        for number, address in enumerate(endpoint.addresses or ()):
            yield from _address_errors(f"{path}.addresses[{number}]", address)


def _credentials_errors(reference: Any, namespace: str) -> Iterator[FieldError]:
    path = "spec.credentialsRef"
    if not reference.apiVersion:
        yield required(f"{path}.apiVersion", "must provide an apiVersion")
    if not reference.kind:
        yield required(f"{path}.kind", "must provide a kind")
    if not reference.namespace:
        yield required(f"{path}.namespace", "must provide a namespace")
    elif reference.namespace != namespace:
        yield invalid(f"{path}.namespace", reference.namespace, "must equal metadata.namespace")
    if not reference.name:
        yield required(f"{path}.name", "must provide a name")
    else:
        yield from invalid_for(f"{path}.name", reference.name, dns_subdomain_problems(reference.name))
    if (reference.apiVersion, reference.kind) != ("v1", "Secret"):
        version = reference.apiVersion.rpartition("/")[2]
        shown = {"Group": group_of(reference.apiVersion), "Version": version, "Kind": reference.kind}
        yield not_supported(path, shown, ("/v1, Kind=Secret",))


def _address_errors(path: str, address: Any) -> Iterator[FieldError]:
    if not address.type:
        yield required(f"{path}.type", "field is required")
    elif address.type not in _ADDRESS_TYPES:
        yield not_supported(f"{path}.type", address.type, _ADDRESS_TYPES)
    where = f"{path}.address"
    match address.type:
        case _ if not address.address:
            yield required(where, "field is required")
        case "ExternalIP" | "InternalIP":
            yield from ip_errors(where, address.address, lenient=True)
        case "Hostname" | "ExternalDNS" | "InternalDNS":
            yield from invalid_for(where, address.address, dns_subdomain_problems(address.address))
        case _:
            yield invalid(where, address.address, f'invalid address for unsupported address type "{address.type}"')


SELF_HOSTED_SHOOT_EXPOSURE = Kind(
    typed=typed(DEFINITION, _DECLARED),
    resource=DEFINITION.resource,
    noun="SelfHostedShootExposure",
    required=("spec.type",),
    errors=_errors,
    immutable=("spec.type",),
)
