"""Relations between a ManagedSeed, its Shoot, and the Seed that the Shoot becomes."""

from collections.abc import Iterator
from dataclasses import dataclass

from kube.objects import Object, spec, text
from kube.paths import at, mapping_at

DEFAULT_CAPACITY = "250"
"""Shoots that a Seed has room for by default."""


ROUTING_FEATURE_GATE = "TopologyAwareHints"
ROUTING_COMPONENTS = {
    "kubeAPIServer": "kube-apiserver",
    "kubeControllerManager": "kube-controller-manager",
    "kubeProxy": "kube-proxy",
}
"""Components in the cluster of a Seed that topology-aware routing needs, by the Shoot field of their settings."""


def disabled_routing(shoot_spec: Object) -> Object:
    """The part of `kubernetes` of a Shoot that disables topology-aware routing."""
    return {
        field: {"featureGates": {ROUTING_FEATURE_GATE: False}}
        for field in ROUTING_COMPONENTS
        if at(shoot_spec, "kubernetes", field, "featureGates", ROUTING_FEATURE_GATE) is False
    }


def seed_template_path(managed_seed: Object) -> tuple[str, ...]:
    """Path of metadata and spec of the Seed.

    Args: managed_seed: the spec of a ManagedSeed, or of the template of a ManagedSeedSet.
    """
    has_template = managed_seed.get("seedTemplate") is not None
    return ("seedTemplate",) if has_template else ("gardenlet", "config", "seedConfig")


@dataclass(frozen=True, slots=True)
class HostProperty:
    """Required value of a field of the Seed, and names of the field and of its source in the Shoot."""

    path: tuple[str, ...]
    value: str
    name: str
    source: str


def properties_of_host(shoot: Object) -> Iterator[HostProperty]:
    """Properties of the Shoot, as far as known, that the Seed has to match."""
    networking = mapping_at(shoot, "spec", "networking")
    for name in ("nodes", "pods", "services"):
        cidr = f"{name} CIDR"
        yield from _property(("networks", name), text(networking.get(name)), cidr, cidr)
    provider = text(at(shoot, "spec", "provider", "type"))
    yield from _property(("provider", "type"), provider, "provider type", "provider type")
    yield from _property(("provider", "region"), text(spec(shoot).get("region")), "provider region", "region")
    if domain := domain_of(shoot):
        yield from _property(("ingress", "domain"), f"ingress.{domain}", "ingress domain", "DNS domain")


def _property(path: tuple[str, ...], value: str, name: str, source: str) -> Iterator[HostProperty]:
    if value:
        yield HostProperty(path, value, name, source)


def domain_of(shoot: Object) -> str:
    return text(at(shoot, "spec", "dns", "domain"))
