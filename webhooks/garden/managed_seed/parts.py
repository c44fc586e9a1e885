"""Where things are in a ManagedSeed, and what its Shoot says about the Seed that it becomes."""

from collections.abc import Iterator
from dataclasses import dataclass

from gardener.garden.domains import NAMESPACE, UNMANAGED, is_below
from gardener.garden.resources import CREDENTIALS_BINDINGS, SECRET_BINDINGS, SHOOTS
from kube.objects import Object, mapping, metadata, spec, text, texts
from kube.paths import at, mapping_at, mappings_at
from webhooks.garden.common import domains, gardenlet_config
from webhooks.garden.write import Garden, Write

CONFIG = "spec.gardenlet.config"
SEED = f"{CONFIG}.seedConfig.spec"


def config_of(managed_seed: Object) -> Object:
    return mapping_at(managed_seed, "spec", "gardenlet", "config")


def seed_of(managed_seed: Object) -> Object:
    """The spec of the Seed; empty if the configuration is not what it should be."""
    config = gardenlet_config.readable(config_of(managed_seed))
    return mapping_at(config or {}, *gardenlet_config.SEED_SPEC)


def zones_of(seed_spec: Object) -> set[str]:
    return set(texts(at(seed_spec, "provider", "zones")))


def shoot_of(write: Write) -> Object | None:
    return write.garden.need(SHOOTS, shoot_name(write), write.namespace)


def shoot_name(write: Write) -> str:
    return text(at(write.spec, "shoot", "name"))


# --- what follows from the Shoot


@dataclass(frozen=True, slots=True)
class Fact:
    """What a field of the Seed is, and how messages call it and its source in the Shoot."""

    path: tuple[str, ...]
    value: str
    name: str
    source: str


def facts(shoot: Object) -> Iterator[Fact]:
    """All that the Seed may not say otherwise, as far as it is known yet."""
    networking = mapping_at(shoot, "spec", "networking")
    for name in ("nodes", "pods", "services"):
        cidr = f"{name} CIDR"
        yield from _fact(("networks", name), text(networking.get(name)), cidr, cidr)
    provider = text(at(shoot, "spec", "provider", "type"))
    yield from _fact(("provider", "type"), provider, "provider type", "provider type")
    yield from _fact(("provider", "region"), text(spec(shoot).get("region")), "provider region", "region")
    if domain := domain_of(shoot):
        yield from _fact(("ingress", "domain"), f"ingress.{domain}", "ingress domain", "DNS domain")


def _fact(path: tuple[str, ...], value: str, name: str, source: str) -> Iterator[Fact]:
    if value:
        yield Fact(path, value, name, source)


def domain_of(shoot: Object) -> str:
    return text(at(shoot, "spec", "dns", "domain"))


def zones_of_workers(shoot: Object) -> list[str]:
    workers = mappings_at(shoot, "spec", "provider", "workers")
    return sorted({zone for worker in workers for zone in texts(worker.get("zones"))})


def dns_provider(shoot: Object, garden: Garden) -> Object | None:
    """Who makes the records of the Seed's ingress: who makes those of the Shoot. None: nobody."""
    providers = mappings_at(shoot, "spec", "dns", "providers")
    primary = next((each for each in providers if each.get("primary") is True), None)
    if primary is None:
        return _default_provider(domain_of(shoot), garden)
    secret = _secret_of(primary, shoot, garden)
    if not primary.get("type") or primary["type"] == UNMANAGED or secret is None:
        return None
    return {"type": primary["type"], "secretRef": secret}


def _default_provider(domain: str, garden: Garden) -> Object | None:
    for each in domains.default_domains(garden):
        if is_below(domain, each.domain):
            return {"type": each.provider, "secretRef": {"name": each.secret, "namespace": NAMESPACE}}
    return None


def _secret_of(provider: Object, shoot: Object, garden: Garden) -> Object | None:
    """Its own, or that with the credentials of the Shoot."""
    namespace = text(metadata(shoot).get("namespace"))
    if name := text(provider.get("secretName")):
        return {"name": name, "namespace": namespace}
    reference: Object = {}
    if binding := text(spec(shoot).get("secretBindingName")):
        reference = mapping((garden.get(SECRET_BINDINGS, binding, namespace) or {}).get("secretRef"))
    elif binding := text(spec(shoot).get("credentialsBindingName")):
        reference = mapping((garden.get(CREDENTIALS_BINDINGS, binding, namespace) or {}).get("credentialsRef"))
    name = text(reference.get("name"))
    return {"name": name, "namespace": text(reference.get("namespace")) or namespace} if name else None
