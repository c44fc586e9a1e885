"""Where things are in a ManagedSeed, and who makes the records of its Seed."""

from gardener.api.garden import CREDENTIALS_BINDINGS, SECRET_BINDINGS, SHOOTS
from gardener.garden.domains import NAMESPACE, UNMANAGED, is_below
from gardener.garden.managed_seeds import domain_of, seed_template_path
from kube.objects import Object, key, mapping, metadata, spec, text, texts
from kube.paths import at, mapping_at, mappings_at
from webhooks.garden.common import domains, gardenlet_config
from webhooks.garden.common.write import Garden, Write

GARDENLET, TEMPLATE = "spec.gardenlet", "spec.seedTemplate"
CONFIG = f"{GARDENLET}.config"
_BINDINGS = (
    ("secretBindingName", SECRET_BINDINGS, "secret binding", "secretRef"),
    ("credentialsBindingName", CREDENTIALS_BINDINGS, "credentials binding", "credentialsRef"),
)
"""Where a Shoot has its credentials from: its field, the kind, what messages call it, and its field."""


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


def dns_provider(shoot: Object, garden: Garden) -> Object | str:
    """Who makes the records of the Seed's ingress: who makes those of the Shoot. Or why nobody does."""
    providers = mappings_at(shoot, "spec", "dns", "providers")
    primary = next((each for each in providers if each.get("primary") is True), None)
    if primary is None or primary.get("type") == UNMANAGED:
        return _default_provider(shoot, garden)
    if not primary.get("type"):
        return f"primary DNS provider of shoot {key(shoot)} does not have a type"
    secret = _secret_of(primary, shoot, garden)
    return secret if isinstance(secret, str) else {"type": primary["type"], "secretRef": secret}


def _default_provider(shoot: Object, garden: Garden) -> Object | str:
    for each in domains.default_domains(garden):
        if is_below(domain_of(shoot), each.domain):
            return {"type": each.provider, "secretRef": {"name": each.secret, "namespace": NAMESPACE}}
    return f"domain of shoot {key(shoot)} is neither a custom domain nor a default domain"


def _secret_of(provider: Object, shoot: Object, garden: Garden) -> Object | str:
    """Its own, or that with the credentials of the Shoot. Or why there is none."""
    namespace = text(metadata(shoot).get("namespace"))
    if name := text(provider.get("secretName")):
        return {"name": name, "namespace": namespace}
    for field, resource, what, named in _BINDINGS:
        if binding := text(spec(shoot).get(field)):
            found = garden.get(resource, binding, namespace)
            if found is None:
                return f"{what} {namespace}/{binding} not found"
            reference = mapping(found.get(named))
            if name := text(reference.get("name")):
                return {"name": name, "namespace": text(reference.get("namespace")) or namespace}
    return f"cannot initialize a reference to the primary DNS provider secret of shoot {key(shoot)}"
