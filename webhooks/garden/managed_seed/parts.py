"""Where things are in a ManagedSeed, and who makes the records of its Seed."""

from gardener.garden.domains import NAMESPACE, UNMANAGED, is_below
from gardener.garden.managed_seeds import domain_of, seed_template_path
from gardener.garden.resources import CREDENTIALS_BINDINGS, SECRET_BINDINGS, SHOOTS
from kube.objects import Object, mapping, metadata, spec, text, texts
from kube.paths import at, mapping_at, mappings_at
from webhooks.garden.common import domains, gardenlet_config
from webhooks.garden.write import Garden, Write

CONFIG, TEMPLATE = "spec.gardenlet.config", "spec.seedTemplate"


def config_of(managed_seed: Object) -> Object:
    return mapping_at(managed_seed, "spec", "gardenlet", "config")


def template_of(managed_seed: Object) -> Object | None:
    """Metadata and spec of a Seed without a gardenlet of its own; None: it has one."""
    template: Object | None = spec(managed_seed).get("seedTemplate")
    return template


def seed_path(managed_seed: Object) -> str:
    """Where `seed_of` stands."""
    return ".".join(("spec", *seed_template_path(spec(managed_seed)), "spec"))


def seed_of(managed_seed: Object) -> Object:
    """The spec of the Seed; empty if the configuration is not what it should be."""
    if (template := template_of(managed_seed)) is not None:
        return mapping(template.get("spec"))
    config = gardenlet_config.readable(config_of(managed_seed))
    return mapping_at(config or {}, *gardenlet_config.SEED_SPEC)


def zones_of(seed_spec: Object) -> set[str]:
    return set(texts(at(seed_spec, "provider", "zones")))


def shoot_of(write: Write) -> Object | None:
    return write.garden.need(SHOOTS, shoot_name(write), write.namespace)


def shoot_name(write: Write) -> str:
    return text(at(write.spec, "shoot", "name"))


# --- who makes its records


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
