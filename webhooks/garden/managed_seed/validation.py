"""What a ManagedSeed and its Shoot must be."""

from collections.abc import Iterator

from gardener.api.garden import GARDENLETS, MANAGED_SEEDS
from gardener.garden import users
from gardener.garden.managed_seeds import (
    ROUTING_COMPONENTS,
    ROUTING_FEATURE_GATE,
    disabled_routing,
    domain_of,
    properties_of_host,
)
from gardener.garden.shoots import workers, zones_of_workers
from kube.objects import Key, Object, key, spec, text
from kube.paths import at, mapping_at
from kube.validation import FieldError, forbidden, invalid
from webhooks.garden.common import gardenlet_config, seed_spec
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.namespaces import GARDEN
from webhooks.garden.common.references import shoots_on
from webhooks.garden.common.write import Write
from webhooks.garden.managed_seed.parts import (
    CONFIG,
    GARDENLET,
    TEMPLATE,
    config_of,
    dns_provider,
    seed_of,
    seed_path,
    shoot_name,
    shoot_of,
    template_of,
    zones_of,
)

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


def credentials_of_parent(write: Write) -> Iterator[str]:
    """For `warnings`."""
    kubeconfig = at(config_of(write.new), "gardenClientConnection", "kubeconfig")
    if at(write.spec, "gardenlet", "bootstrap") == "None" and not kubeconfig:
        yield (
            f"{GARDENLET}.bootstrap: with None the gardenlet gets the kubeconfig of the one that installs it, and may"
            f" do what that one may - give {CONFIG}.gardenClientConnection.kubeconfig, or choose another bootstrap"
        )


# --- the Shoot


def shoot_errors(write: Write) -> Iterator[Finding]:
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
        said = at(seed, *each.path)
        if said and said != each.value:
            must = f"seed {each.name} must be equal to shoot {each.source} {each.value}"
            yield invalid(".".join((path, *each.path)), said, must)
    if at(seed, "settings", "verticalPodAutoscaler", "enabled"):
        where = f"{path}.settings.verticalPodAutoscaler.enabled"
        yield invalid(where, True, "seed VPA is not supported for managed seeds - use the shoot VPA")


def _routing_errors(seed: Object, shoot: Object, path: str) -> Iterator[FieldError]:
    """Topology-aware routing is done by the cluster of the Shoot."""
    if not at(seed, "settings", "topologyAwareRouting", "enabled"):
        return
    for field in disabled_routing(spec(shoot)):
        told = (
            f"the topology-aware routing seed setting cannot be enabled when the {ROUTING_FEATURE_GATE} feature gate is"
            f" disabled for {ROUTING_COMPONENTS[field]}"
        )
        yield forbidden(f"{path}.settings.topologyAwareRouting.enabled", told)


def zone_errors(write: Write) -> Iterator[Finding]:
    """Zones that are new must be zones of the Shoot."""
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
