"""What the templates of a ManagedSeedSet must be, so that what is made from them will be accepted."""

from collections.abc import Iterator

from kube.objects import Object, matches_label_selector, string_map, text
from kube.paths import at, mapping_at
from kube.validation import invalid, label_selector_errors, required
from webhooks.garden.common import gardenlet_config, seed_spec
from webhooks.garden.common.shares import share_errors
from webhooks.garden.findings import Finding
from webhooks.garden.write import Write

_GARDENLET = ("template", "spec", "gardenlet")
_CONFIG = (*_GARDENLET, "config")
_CONFIG_PATH = "spec.template.spec.gardenlet.config"
_SEED_METADATA = (*_CONFIG, "seedConfig", "metadata")


def set_ingress_kind(write: Write) -> None:
    """For `mutations`. All else that templates leave open is filled in when the replicas are made."""
    config = mapping_at(write.spec, *_CONFIG)
    if gardenlet_config.readable(config) is not None:
        gardenlet_config.set_ingress_kind(config)


def selector_errors(write: Write) -> Iterator[Finding]:
    """The set finds all that it makes by labels."""
    selector = mapping_at(write.spec, "selector")
    wrong = list(label_selector_errors("spec.selector", selector))
    yield from wrong
    if wrong:
        return
    for path in (("template", "metadata"), _SEED_METADATA, ("shootTemplate", "metadata")):
        labels = string_map(at(write.spec, *path, "labels"))
        if _is_there(write.spec, path) and not matches_label_selector(selector, labels):
            yield invalid(".".join(("spec", *path, "labels")), labels, "selector does not match template labels")


def _is_there(spec: Object, path: tuple[str, ...]) -> bool:
    """That no Seed is described is said once."""
    return path != _SEED_METADATA or isinstance(at(spec, *_CONFIG, "seedConfig"), dict)


def update_errors(write: Write) -> Iterator[Finding]:
    path = ("updateStrategy", "rollingUpdate", "maxUnhealthyShoots")
    yield from share_errors(".".join(("spec", *path)), at(write.spec, *path))


def config_errors(write: Write) -> Iterator[Finding]:
    config = mapping_at(write.spec, *_CONFIG)
    if config.get("seedConfig") is None:
        yield required(f"{_CONFIG_PATH}.seedConfig", "seedConfig is required")
        return
    yield from gardenlet_config.errors(config, _CONFIG_PATH)
    yield from gardenlet_config.connection_errors(
        config,
        _CONFIG_PATH,
        bootstrap=text(at(write.spec, *_GARDENLET, "bootstrap")) or "BootstrapToken",
        merged=at(write.spec, *_GARDENLET, "mergeWithParent") is not False,
    )
    readable = gardenlet_config.readable(config) or {}
    yield from seed_spec.completeness_errors(
        mapping_at(readable, *gardenlet_config.SEED_SPEC), f"{_CONFIG_PATH}.seedConfig.spec"
    )
