"""What the templates of a ManagedSeedSet must be, so that what is made from them will be accepted."""

from collections.abc import Iterator

from gardener.garden.managed_seeds import seed_template_path
from kube.objects import Object, matches_label_selector, string_map, text
from kube.paths import at, mapping_at
from kube.validation import invalid, label_selector_errors, required
from webhooks.garden.common import gardenlet_config, metadata, seed_spec
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.shares import share_problem
from webhooks.garden.common.write import Write
from webhooks.garden.shoot.parts import project_name
from webhooks.garden.shoot.settings import LONGEST_NAMES

_NUMBERS = len("-999")
"""Room for so many replicas, one after the other, is a matter of course."""
_MANAGED_SEED = ("template", "spec")
_GARDENLET = (*_MANAGED_SEED, "gardenlet")
_CONFIG = (*_GARDENLET, "config")
_CONFIG_PATH, _TEMPLATE_PATH = (f"spec.template.spec.{field}" for field in ("gardenlet.config", "seedTemplate"))


def set_ingress_kind(write: Write) -> None:
    """For `mutations`. All else that templates leave open is filled in when the replicas are made."""
    if _has_template(write) or gardenlet_config.readable(mapping_at(write.spec, *_CONFIG)) is not None:
        seed_spec.set_ingress_kind(mapping_at(write.spec, *_seed_template(write), "spec"))


def _has_template(write: Write) -> bool:
    return at(write.spec, *_MANAGED_SEED, "seedTemplate") is not None


def _seed_template(write: Write) -> tuple[str, ...]:
    return (*_MANAGED_SEED, *seed_template_path(mapping_at(write.spec, *_MANAGED_SEED)))


def name_errors(write: Write) -> Iterator[Finding]:
    """For `references`: there is a name for the first Shoot at least."""
    room = _room_for_numbers(write)
    if room is not None and room < len("-0"):
        told = (
            "the names of its Shoots, which are that of the set and a number, would be too long - shorten it by"
            f" {_NUMBERS - room} characters"
        )
        yield invalid("metadata.name", write.name, told)


def numbers_that_fit(write: Write) -> Iterator[str]:
    """For `warnings`; reads `PROJECTS`. Numbers of replicas only grow."""
    room = _room_for_numbers(write)
    if room is not None and len("-0") <= room < _NUMBERS:
        yield f"metadata.name: there is no room for Shoots with a number of {room} digits, and numbers only grow"


def _room_for_numbers(write: Write) -> int | None:
    """Characters beside the name of the set in that of a Shoot; None: the set has its name already."""
    project = project_name(write) if write.is_create else ""
    return LONGEST_NAMES - len(project) - len(write.name) if project else None


def selector_errors(write: Write) -> Iterator[Finding]:
    """The set finds all that it makes by labels."""
    selector = mapping_at(write.spec, "selector")
    wrong = list(label_selector_errors("spec.selector", selector))
    yield from wrong
    if wrong:
        return
    for path in (("template",), _seed_template(write), ("shootTemplate",)):
        template = at(write.spec, *path)
        # That no Seed is described is said once.
        labels = string_map(at(template, "metadata", "labels")) if isinstance(template, dict) else None
        if labels is not None and not matches_label_selector(selector, labels):
            where = ".".join(("spec", *path, "metadata", "labels"))
            yield invalid(where, labels, "selector does not match template labels")


def metadata_errors(write: Write) -> Iterator[Finding]:
    for template in ("template", "shootTemplate"):
        yield from metadata.metadata_errors(mapping_at(write.spec, template, "metadata"), f"spec.{template}.metadata")


def update_errors(write: Write) -> Iterator[Finding]:
    path = ("updateStrategy", "rollingUpdate", "maxUnhealthyShoots")
    value = at(write.spec, *path)
    if problem := share_problem(value):
        yield invalid(".".join(("spec", *path)), value, problem)


def seed_errors(write: Write) -> Iterator[Finding]:
    if _has_template(write):
        yield from seed_spec.template_errors(mapping_at(write.spec, *_seed_template(write)), _TEMPLATE_PATH)
        return
    deployment = mapping_at(write.spec, *_GARDENLET, "deployment")
    yield from gardenlet_config.deployment_errors(deployment, ".".join(("spec", *_GARDENLET, "deployment")))
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
    yield from seed_spec.completeness_errors(_seed(write), f"{_CONFIG_PATH}.seedConfig.spec")


def seed_changes(write: Write) -> Iterator[Finding]:
    """For `changes`."""
    path = ".".join(("spec", *_seed_template(write), "spec"))
    yield from seed_spec.change_errors(_seed(write), _seed(write.of_old()), path)


def _seed(write: Write) -> Object:
    """The spec of the Seed; empty if the configuration is not what it should be."""
    if _has_template(write):
        return mapping_at(write.spec, *_seed_template(write), "spec")
    readable = gardenlet_config.readable(mapping_at(write.spec, *_CONFIG)) or {}
    return mapping_at(readable, *gardenlet_config.SEED_SPEC)
