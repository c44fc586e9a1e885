"""What a ManagedSeed gets that its author has not written."""

from gardener.garden.managed_seeds import properties_of_host
from gardener.garden.shoots import zones_of_workers
from kube.objects import Object, mapping, spec
from kube.paths import at
from webhooks.garden.common import gardenlet_config, seed_spec
from webhooks.garden.common.write import Write
from webhooks.garden.managed_seed.parts import config_of, dns_provider, shoot_of, template_of
from webhooks.rules.shapes import child


def complete_gardenlet(write: Write) -> None:
    gardenlet = mapping(write.spec.get("gardenlet"))
    if gardenlet:
        gardenlet_config.set_pull_policy(child(gardenlet, "deployment"))
        gardenlet["config"] = gardenlet_config.completed(mapping(gardenlet.get("config")))


def fill_in_from_shoot(write: Write) -> None:
    """Into the template, or the configuration that `complete_gardenlet` has left; what is said already stays."""
    template = _described(write.new)
    if write.is_deleting or template is None:
        return
    seed = child(template, "spec")
    if (shoot := shoot_of(write)) is not None:
        _fill_in(seed, shoot, write)
        seed_spec.set_ingress_kind(seed)
    seed_spec.set_backup_secret(seed, write.name, write.namespace)


def _described(managed_seed: Object) -> Object | None:
    """Metadata and spec of the Seed; None: the configuration is not what it should be."""
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
    """If there is nothing yet, also nothing empty."""
    *parents, last = path
    for name in parents:
        seed = child(seed, name)
    if seed.get(last) in (None, "", []):
        seed[last] = value
