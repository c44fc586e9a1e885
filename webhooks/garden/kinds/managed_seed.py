"""ManagedSeeds: Shoots that become Seeds, with missing settings derived from the Shoot."""

from collections.abc import Iterator

from gardener import keys
from gardener.api.garden import CREDENTIALS_BINDINGS, GARDENLETS, MANAGED_SEEDS, SECRET_BINDINGS, SHOOTS
from gardener.api.garden.managed_seed import MANAGED_SEED as DEFINITION
from gardener.garden import users
from gardener.garden.domains import NAMESPACE, UNMANAGED, is_below
from gardener.garden.managed_seeds import (
    ROUTING_COMPONENTS,
    ROUTING_FEATURE_GATE,
    disabled_routing,
    domain_of,
    properties_of_host,
    seed_template_path,
)
from gardener.garden.seed_graph import of_managed_seed
from gardener.garden.shoots import workers, zones_of_workers
from kube.objects import Key, Object, key, mapping, metadata, spec, text, texts
from kube.paths import at, mapping_at, mappings_at
from kube.resources import SECRETS
from kube.validation import FieldError, forbidden, invalid
from webhooks.garden.common import domains, gardenlet_config, operations, seed_spec
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.metadata import GARDEN, allowed_operations, in_garden, operation_not_overwritten
from webhooks.garden.common.references import shoots_on
from webhooks.garden.common.seed_references import reading_rights
from webhooks.garden.common.write import GardenLister, Write
from webhooks.rules.shapes import child

GARDENLET, TEMPLATE = "spec.gardenlet", "spec.seedTemplate"
CONFIG = f"{GARDENLET}.config"
_BINDINGS = (
    ("secretBindingName", SECRET_BINDINGS, "secret binding", "secretRef"),
    ("credentialsBindingName", CREDENTIALS_BINDINGS, "credentials binding", "credentialsRef"),
)
"""Sources of a Shoot's credentials: field of the Shoot, kind, name in messages, and field of the binding."""


def config_of(managed_seed: Object) -> Object:
    return mapping_at(managed_seed, "spec", "gardenlet", "config")


def template_of(managed_seed: Object) -> Object | None:
    """Metadata and spec of a Seed without its own gardenlet; None if it has one."""
    template: Object | None = spec(managed_seed).get("seedTemplate")
    return template


def seed_path(managed_seed: Object) -> str:
    """Path of `seed_of`."""
    return ".".join(("spec", *seed_template_path(spec(managed_seed)), "spec"))


def seed_of(managed_seed: Object) -> Object:
    """Spec of the Seed; empty if the configuration is invalid."""
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


def dns_provider(shoot: Object, garden: GardenLister) -> Object | str:
    """DNS provider for the Seed's ingress, that of the Shoot, or the reason why there is none."""
    providers = mappings_at(shoot, "spec", "dns", "providers")
    primary = next((each for each in providers if each.get("primary") is True), None)
    if primary is None or primary.get("type") == UNMANAGED:
        return _default_provider(shoot, garden)
    if not primary.get("type"):
        return f"primary DNS provider of shoot {key(shoot)} does not have a type"
    secret = _secret_of(primary, shoot, garden)
    return secret if isinstance(secret, str) else {"type": primary["type"], "secretRef": secret}


def _default_provider(shoot: Object, garden: GardenLister) -> Object | str:
    for each in domains.default_domains(garden):
        if is_below(domain_of(shoot), each.domain):
            return {"type": each.provider, "secretRef": {"name": each.secret, "namespace": NAMESPACE}}
    return f"domain of shoot {key(shoot)} is neither a custom domain nor a default domain"


def _secret_of(provider: Object, shoot: Object, garden: GardenLister) -> Object | str:
    """Secret of the provider, or that with the credentials of the Shoot, or the reason why there is none."""
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


# --- what becomes of it before it is stored


def complete_gardenlet(write: Write) -> None:
    gardenlet = mapping(write.spec.get("gardenlet"))
    if gardenlet:
        gardenlet_config.set_pull_policy(child(gardenlet, "deployment"))
        gardenlet["config"] = gardenlet_config.completed(mapping(gardenlet.get("config")))


def fill_in_from_shoot(write: Write) -> None:
    """Complete the template, or the configuration from `complete_gardenlet`; existing values stay."""
    template = _described(write.new)
    if write.is_deleting or template is None:
        return
    seed = child(template, "spec")
    if (shoot := shoot_of(write)) is not None:
        _fill_in(seed, shoot, write)
        seed_spec.set_ingress_kind(seed)
    seed_spec.set_backup_secret(seed, write.name, write.namespace)


def _described(managed_seed: Object) -> Object | None:
    """Metadata and spec of the Seed; None if the configuration is invalid."""
    if (template := template_of(managed_seed)) is not None:
        return template
    config = config_of(managed_seed)
    return None if gardenlet_config.readable(config) is None else child(config, "seedConfig")


def _fill_in(seed: Object, shoot: Object, write: Write) -> None:
    for each in properties_of_host(shoot):
        _set(seed, each.path, each.value)
    if zones := zones_of_workers(spec(shoot)):
        _set(seed, ("provider", "zones"), zones)
    if seed.get("backup") is not None:
        _set(seed, ("backup", "provider"), at(shoot, "spec", "provider", "type"))
    if at(seed, "dns", "provider") is None and not isinstance(provider := dns_provider(shoot, write.garden), str):
        _set(seed, ("dns", "provider"), provider)
    _set(seed, ("settings", "verticalPodAutoscaler", "enabled"), False)


def _set(seed: Object, path: tuple[str, ...], value: object) -> None:
    """Set a value if it is missing or empty."""
    *parents, last = path
    for name in parents:
        seed = child(seed, name)
    if seed.get(last) in (None, "", []):
        seed[last] = value


# --- what it must be


_SHOOT = "spec.shoot.name"


def seed_errors(write: Write) -> Iterator[Finding]:
    if (template := template_of(write.new)) is not None:
        yield from seed_spec.template_errors(template, TEMPLATE)
    yield from gardenlet_config.deployment_errors(
        mapping_at(write.spec, "gardenlet", "deployment"), f"{GARDENLET}.deployment"
    )
    config = config_of(write.new)
    if config:
        yield from gardenlet_config.errors(config, CONFIG)
    yield from gardenlet_config.connection_errors(
        config,
        CONFIG,
        bootstrap=text(at(write.spec, "gardenlet", "bootstrap")),
        merged=at(write.spec, "gardenlet", "mergeWithParent") is not False,
    )


def way_in(write: Write) -> Iterator[str]:
    """Warn if the gardenlet will have no access to the garden."""
    kubeconfig = at(config_of(write.new), "gardenClientConnection", "kubeconfig")
    if at(write.spec, "gardenlet", "bootstrap") == "None" and not kubeconfig:
        yield (
            f"{GARDENLET}.bootstrap: with None, the gardenlet needs a kubeconfig of its own, since it does not inherit "
            f"that of its parent - set {CONFIG}.gardenClientConnection.kubeconfig, or choose another bootstrap"
        )


# --- the Shoot


def shoot_errors(write: Write) -> Iterator[Finding]:
    """The Shoot exists, can run a Seed, and agrees with the settings of the Seed."""
    if write.namespace != GARDEN:
        return
    name = shoot_name(write)
    if (shoot := shoot_of(write)) is None:
        yield invalid(_SHOOT, name, f"shoot {write.namespace}/{name} not found")
        return
    problems = [*_unfit(shoot), *_taken(write, shoot)]
    yield from (invalid(_SHOOT, name, problem) for problem in problems)
    if not problems:
        seed, path = seed_of(write.new), seed_path(write.new)
        yield from _differences(seed, shoot, path)
        yield from _routing_errors(seed, shoot, path)
        provider = at(seed, "dns", "provider") or dns_provider(shoot, write.garden)
        if isinstance(provider, str):
            yield invalid(f"{path}.ingress", mapping_at(seed, "ingress"), provider)
        else:
            yield from seed_spec.completeness_errors(seed, path)


def _unfit(shoot: Object) -> Iterator[str]:
    if not domain_of(shoot):
        yield f"shoot {key(shoot)} does not specify a domain"
    if at(shoot, "spec", "addons", "nginxIngress", "enabled"):
        yield "shoot ingress addon is not supported for managed seeds - use the managed seed ingress controller"
    if not at(shoot, "spec", "kubernetes", "verticalPodAutoscaler", "enabled"):
        yield "shoot VPA has to be enabled for managed seeds"
    if not workers(spec(shoot)):
        yield "workerless shoot cannot be used to create managed seed"


def _taken(write: Write, shoot: Object) -> Iterator[str]:
    for other in write.garden.by(MANAGED_SEEDS, users.shoots, Key(write.namespace, shoot_name(write))):
        if key(other).name != write.name:
            yield f"shoot {key(shoot)} already registered as seed by managed seed {key(other)}"


def _differences(seed: Object, shoot: Object, path: str) -> Iterator[FieldError]:
    for each in properties_of_host(shoot):
        reported = at(seed, *each.path)
        if reported and reported != each.value:
            must = f"seed {each.name} must be equal to shoot {each.source} {each.value}"
            yield invalid(".".join((path, *each.path)), reported, must)
    if at(seed, "settings", "verticalPodAutoscaler", "enabled"):
        where = f"{path}.settings.verticalPodAutoscaler.enabled"
        yield invalid(where, True, "seed VPA is not supported for managed seeds - use the shoot VPA")


def _routing_errors(seed: Object, shoot: Object, path: str) -> Iterator[FieldError]:
    """Require topology-aware routing in the cluster of the Shoot, which implements it."""
    if not at(seed, "settings", "topologyAwareRouting", "enabled"):
        return
    for field in disabled_routing(spec(shoot)):
        message = (
            f"the topology-aware routing seed setting cannot be enabled when the {ROUTING_FEATURE_GATE} feature gate is"
            f" disabled for {ROUTING_COMPONENTS[field]}"
        )
        yield forbidden(f"{path}.settings.topologyAwareRouting.enabled", message)


def zone_errors(write: Write) -> Iterator[Finding]:
    """New zones are zones of the Shoot."""
    shoot, seed = shoot_of(write), seed_of(write.new)
    added = zones_of(seed) - zones_of(seed_of(write.old))
    if shoot is not None and not added.issubset(zones_of_workers(spec(shoot))):
        if write.is_create:
            reason = "cannot use zone in seed provider that is not available in referenced shoot"
            yield invalid(_zones(write), at(seed, "provider", "zones"), reason)
        else:
            reason = "added zones must match zone names configured for workers in the referenced shoot cluster"
            yield invalid(_zones(write), sorted(added), reason)


def _zones(write: Write) -> str:
    return f"{seed_path(write.new)}.provider.zones"


def no_gardenlet(write: Write) -> Iterator[Finding]:
    """There is no Gardenlet of this name."""
    if write.is_create and write.garden.get(GARDENLETS, write.name, write.namespace) is not None:
        yield Denial(
            f"cannot create ManagedSeed {write.namespace}/{write.name} since there is already a Gardenlet object "
            "with the same name"
        )


# --- changes and deletion


def seed_changes(write: Write) -> Iterator[Finding]:
    yield from seed_spec.change_errors(seed_of(write.new), seed_of(write.old), seed_path(write.new))


def zones_in_use(write: Write) -> Iterator[Finding]:
    removed = zones_of(seed_of(write.old)) - zones_of(seed_of(write.new))
    if removed and not write.is_deleting and shoots_on(write.garden, write.name):
        yield forbidden(_zones(write), "zones must not be removed while shoots are still scheduled onto seed")


def in_use(write: Write) -> Iterator[Finding]:
    if shoots_on(write.garden, write.name):
        managed_seed = f"{write.namespace}/{write.name}"
        yield Denial(f"cannot delete managed seed {managed_seed} since its seed {write.name} is still used by shoot(s)")


# --- the kind


CONSUMED, KEPT = (keys.OPERATION_RECONCILE,), (keys.OPERATION_RENEW_KUBECONFIG,)

MANAGED_SEED = Kind(
    definition=DEFINITION,
    defaults=(complete_gardenlet,),
    mutations=(fill_in_from_shoot,),
    asks=operations.on(consumed=CONSUMED, kept=KEPT),
    checks=(in_garden, seed_errors, allowed_operations(*CONSUMED, *KEPT)),
    references=(shoot_errors, zone_errors, no_gardenlet),
    changes=(seed_changes, zones_in_use, operation_not_overwritten),
    rights=(reading_rights(of_managed_seed, "spec"),),
    deletions=(in_use,),
    warnings=(way_in,),
    reads=(SHOOTS, MANAGED_SEEDS, GARDENLETS, SECRET_BINDINGS, CREDENTIALS_BINDINGS, SECRETS),
)
