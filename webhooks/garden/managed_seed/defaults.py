"""What a ManagedSeed gets that its author has not written."""

from gardener.garden.managed_seeds import facts, zones_of_workers
from kube.objects import Object, mapping
from kube.paths import at
from webhooks.garden.common import gardenlet_config
from webhooks.garden.managed_seed.parts import config_of, dns_provider, shoot_of
from webhooks.garden.write import Write
from webhooks.shapes import child


def complete_gardenlet(write: Write) -> None:
    gardenlet = mapping(write.spec.get("gardenlet"))
    if gardenlet:
        gardenlet_config.set_pull_policy(child(gardenlet, "deployment"))
        gardenlet["config"] = gardenlet_config.completed(mapping(gardenlet.get("config")))


def fill_in_from_shoot(write: Write) -> None:
    """Into the configuration that `complete_gardenlet` has left; nothing that is said already changes."""
    config = config_of(write.new)
    if write.is_deleting or gardenlet_config.readable(config) is None:
        return
    if (shoot := shoot_of(write)) is not None:
        _fill_in(child(child(config, "seedConfig"), "spec"), shoot, write)
        gardenlet_config.set_ingress_kind(config)
    gardenlet_config.set_backup_secret(config, write.name, write.namespace)


def _fill_in(seed: Object, shoot: Object, write: Write) -> None:
    for fact in facts(shoot):
        _set(seed, fact.path, fact.value)
    if zones := zones_of_workers(shoot):
        _set(seed, ("provider", "zones"), zones)
    if seed.get("backup") is not None:
        _set(seed, ("backup", "provider"), at(shoot, "spec", "provider", "type"))
    if at(seed, "dns", "provider") is None and (provider := dns_provider(shoot, write.garden)) is not None:
        _set(seed, ("dns", "provider"), provider)
    _set(seed, ("settings", "verticalPodAutoscaler", "enabled"), False)


def _set(seed: Object, path: tuple[str, ...], value: object) -> None:
    """If there is nothing yet, also nothing empty."""
    *parents, last = path
    for name in parents:
        seed = child(seed, name)
    if seed.get(last) in (None, "", []):
        seed[last] = value
