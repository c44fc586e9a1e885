from collections.abc import Iterator, Sequence
from typing import Any

from gardener.api.extensions.network import NETWORK as DEFINITION
from kube.addresses import IPNetwork, parse_cidr
from kube.validation import FieldError, duplicate, forbidden, invalid, not_supported
from webhooks.handlers.extension_validation.kind import Kind, need
from webhooks.handlers.extension_validation.rules.go_types import typed

_FAMILIES = ("IPv4", "IPv6")
_POD_CIDR, _SERVICE_CIDR, _IP_FAMILIES = "spec.podCIDR", "spec.serviceCIDR", "spec.ipFamilies"


def _errors(network: Any) -> Iterator[FieldError]:
    spec = network.spec
    families = spec.ipFamilies or []
    wrong = False
    for error in _family_errors(families):
        wrong = True
        yield error
    if not wrong:  # else the expected ranges are unknown
        yield from _range_errors(spec, families)


def _family_errors(families: Sequence[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, family in enumerate(families):
        path = f"{_IP_FAMILIES}[{index}]"
        if family not in _FAMILIES:
            yield not_supported(path, family, _FAMILIES)
        if family in seen:
            yield duplicate(path, family)
        seen.add(family)


def _range_errors(spec: Any, families: Sequence[str]) -> Iterator[FieldError]:
    yield from need(_POD_CIDR, spec.podCIDR)
    yield from need(_SERVICE_CIDR, spec.serviceCIDR)
    ranges = {path: text for path, text in ((_POD_CIDR, spec.podCIDR), (_SERVICE_CIDR, spec.serviceCIDR)) if text}
    parsed = {path: parse_cidr(text) for path, text in ranges.items()}
    for path, network in parsed.items():
        if network is None:
            yield invalid(path, ranges[path], f"invalid CIDR address: {ranges[path]}")
    if len(families) < 2:
        # With both families, the ranges may be of the other one.
        primary = families[0] if families else "IPv4"
        for path, network in parsed.items():
            if network is not None and f"IPv{network.version}" != primary:
                yield invalid(path, str(network.network_address), f"must be a valid {primary} address")
    pods, services = parsed.get(_POD_CIDR), parsed.get(_SERVICE_CIDR)
    if list(families) != ["IPv6"] and pods is not None and services is not None and _overlap(pods, services):
        detail = f'must not overlap with "{_POD_CIDR}" ("{spec.podCIDR}")'
        yield invalid(_SERVICE_CIDR, spec.serviceCIDR, detail)


def _overlap(one: IPNetwork, other: IPNetwork) -> bool:
    return one.version == other.version and one.overlaps(other)


def _changes(new: Any, old: Any) -> Iterator[FieldError]:
    families, before = new.spec.ipFamilies or [], old.spec.ipFamilies or []
    if families != before and sorted((families, before), key=len) != [["IPv4"], ["IPv4", "IPv6"]]:
        shown = f"oldIPFamilies=[{' '.join(before)}], newIPFamilies=[{' '.join(families)}]"
        yield forbidden(_IP_FAMILIES, f"unsupported IP family update: {shown}")


NETWORK = Kind(
    typed=typed(DEFINITION, {}),
    resource=DEFINITION.resource,
    noun="network",
    required=("spec.type",),
    errors=_errors,
    immutable=("spec.type", _POD_CIDR, _SERVICE_CIDR),
    changes=_changes,
)
