"""Networks of a Shoot: their form, defaults from the Seed, and that they do not overlap those of the Seed.

Reads `SEEDS`.
"""

from collections.abc import Iterator

from gardener.api.garden import SEEDS
from gardener.garden.networks import (
    canonical_errors,
    family_errors,
    overlap,
    overlap_errors,
    parsed,
    special_errors,
    vpn_errors,
)
from kube.addresses import IPNetwork
from kube.objects import Object, spec, text, texts
from kube.paths import at, mapping_at
from kube.validation import invalid, required
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec.fields import ip_families, workers_of
from webhooks.rules.shapes import child

_FIELDS = ("nodes", "pods", "services")
_PATHS = {field: f"spec.networking.{field}" for field in _FIELDS}


def set_networks(write: Write) -> None:
    """Set missing networks to those that the Seed proposes."""
    seed = _seed(write)
    if seed is None or write.is_deleting:
        return
    networking = child(write.own_spec(), "networking")
    proposed = mapping_at(spec(seed), "networks", "shootDefaults")
    for field in ("pods", "services") if workers_of(write) else ("services",):
        if not networking.get(field) and proposed.get(field):
            networking[field] = proposed[field]


def _seed(write: Write) -> Object | None:
    name = text(write.spec.get("seedName"))
    return write.garden.need(SEEDS, name) if name else None


def _networks(shoot_spec: Object) -> dict[str, str]:
    networking: Object = shoot_spec.get("networking") or {}
    return {path: networking[field] for field, path in _PATHS.items() if networking.get(field)}


def type_errors(write: Write) -> Iterator[Finding]:
    """Rule for `checks`."""
    if workers_of(write) and not at(write.spec, "networking", "type"):
        yield required("spec.networking.type", "must provide a networking type")


def network_errors(write: Write) -> Iterator[Finding]:
    """Rule for `checks`."""
    networks = _networks(write.spec)
    for path, network in networks.items():
        yield from canonical_errors(path, network)
    yield from family_errors(networks, ip_families(write.spec))
    yield from special_errors(networks)
    yield from overlap_errors(networks)


def disjoint(write: Write) -> Iterator[Finding]:
    """Its networks are apart from those of the Seed."""
    seed = _seed(write)
    if seed is None:
        return
    networks = _networks(write.spec)
    for field in ("pods", "services") if workers_of(write) else ("services",):
        if f"spec.networking.{field}" not in networks:
            error = required(f"spec.networking.{field}", f"{field} is required")
            yield Denial(str(error), error.path)
    for error in vpn_errors(networks):
        yield Denial(str(error), error.path)
    for path, network in parsed(networks).items():
        for other, taken in _of_seed(seed).items():
            if overlap(network, taken):
                error = invalid(path, networks[path], f'must not overlap with "{other}" ("{taken}")')
                yield Denial(str(error), path)


def _of_seed(seed: Object) -> dict[str, IPNetwork]:
    networks = mapping_at(spec(seed), "networks")
    named = {f"networks.{field} of the Seed": text(networks.get(field)) for field in _FIELDS}
    blocked = {
        f"networks.blockCIDRs[{i}] of the Seed": each for i, each in enumerate(texts(networks.get("blockCIDRs")))
    }
    return parsed({**named, **blocked})
