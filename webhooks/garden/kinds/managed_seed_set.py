"""ManagedSeedSets: equal ManagedSeeds, each with its Shoot, made from templates."""

from collections.abc import Iterator

from gardener import keys
from gardener.api.garden import MANAGED_SEEDS, PROJECTS, SHOOTS
from gardener.api.garden.managed_seed_set import MANAGED_SEED_SET as DEFINITION
from gardener.garden.managed_seeds import seed_template_path
from gardener.garden.seed_graph import Node, of_managed_seed
from kube.objects import (
    Object,
    annotations,
    controller_of,
    integer,
    key,
    matches_label_selector,
    string_map,
    text,
    uid,
)
from kube.paths import at, mapping_at
from kube.validation import invalid, label_selector_errors, required
from webhooks.garden.common import deletion, gardenlet_config, operations, seed_spec
from webhooks.garden.common.amounts import share_problem
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.metadata import in_garden
from webhooks.garden.common.metadata import metadata_errors as template_metadata_errors
from webhooks.garden.common.references import shoots_on
from webhooks.garden.common.seed_references import reading_rights
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec import templates

_NUMBERS = len("-999")
"""Length of a suffix for which names should have room, in case replicas are replaced one after the other."""
_MANAGED_SEED = ("template", "spec")
_GARDENLET = (*_MANAGED_SEED, "gardenlet")
_CONFIG = (*_GARDENLET, "config")
_CONFIG_PATH, _TEMPLATE_PATH = (f"spec.template.spec.{field}" for field in ("gardenlet.config", "seedTemplate"))


def set_ingress_kind(write: Write) -> None:
    """Set the default in a template; all other missing values are set when the replicas are created."""
    if _has_template(write) or gardenlet_config.readable(mapping_at(write.spec, *_CONFIG)) is not None:
        seed_spec.set_ingress_kind(mapping_at(write.spec, *_seed_template(write), "spec"))


def _has_template(write: Write) -> bool:
    return at(write.spec, *_MANAGED_SEED, "seedTemplate") is not None


def _seed_template(write: Write) -> tuple[str, ...]:
    return (*_MANAGED_SEED, *seed_template_path(mapping_at(write.spec, *_MANAGED_SEED)))


def name_errors(write: Write) -> Iterator[Finding]:
    """There is a name for the first Shoot at least."""
    room = templates.room_in_names(write)
    if room is not None and room < len("-0"):
        message = (
            "the names of its Shoots, which add a number to it, would be too long - shorten it by"
            f" {_NUMBERS - room} characters"
        )
        yield invalid("metadata.name", write.name, message)


def numbers_that_fit(write: Write) -> Iterator[str]:
    """A warning of names with no room for more numbers: those of replicas only grow. Reads `PROJECTS`."""
    room = templates.room_in_names(write)
    if room is not None and len("-0") <= room < _NUMBERS:
        yield f"metadata.name: too long for Shoots with a number of {room} digits"


def selector_errors(write: Write) -> Iterator[Finding]:
    """The selector of the set matches all labels of its templates."""
    selector = mapping_at(write.spec, "selector")
    wrong = list(label_selector_errors("spec.selector", selector))
    yield from wrong
    if wrong:
        return
    for path in (("template",), _seed_template(write), ("shootTemplate",)):
        template = at(write.spec, *path)
        # Another rule reports that no Seed is described.
        labels = string_map(at(template, "metadata", "labels")) if isinstance(template, dict) else None
        if labels is not None and not matches_label_selector(selector, labels):
            where = ".".join(("spec", *path, "metadata", "labels"))
            yield invalid(where, labels, "selector does not match template labels")


def metadata_errors(write: Write) -> Iterator[Finding]:
    for template in ("template", "shootTemplate"):
        yield from template_metadata_errors(mapping_at(write.spec, template, "metadata"), f"spec.{template}.metadata")


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
    """Rule for `changes`."""
    path = ".".join(("spec", *_seed_template(write), "spec"))
    yield from seed_spec.change_errors(_seed(write), _seed(write.of_old()), path)


def _seed(write: Write) -> Object:
    """Spec of the Seed; empty if the configuration is invalid."""
    if _has_template(write):
        return mapping_at(write.spec, *_seed_template(write), "spec")
    readable = gardenlet_config.readable(mapping_at(write.spec, *_CONFIG)) or {}
    return mapping_at(readable, *gardenlet_config.SEED_SPEC)


# --- fewer replicas: such as are in use stay, others go one by one


_MOST_NAMED = 10


def replicas_that_stay(write: Write) -> Iterator[str]:
    """Rule for `warnings`, since the lower number may be intended. Reads `SHOOTS`, `MANAGED_SEEDS`."""
    wanted, before = integer(write.spec.get("replicas")), integer(write.old_spec.get("replicas"))
    if not write.is_update or wanted >= before:
        return
    staying = sorted(name for name, managed_seed in _replicas(write) if _stays(write, name, managed_seed))
    if len(staying) > wanted:
        more = f" and {len(staying) - _MOST_NAMED} more" if len(staying) > _MOST_NAMED else ""
        yield (
            f"{len(staying)} replicas stay while Shoots are on their Seeds, or while they are protected:"
            f" {', '.join(staying[:_MOST_NAMED])}{more}"
        )


def _replicas(write: Write) -> Iterator[tuple[str, Object]]:
    for managed_seed in write.garden.list(MANAGED_SEEDS, write.namespace):
        if (controller_of(managed_seed) or {}).get("uid") == uid(write.new):
            yield key(managed_seed).name, managed_seed


def _stays(write: Write, name: str, managed_seed: Object) -> bool:
    own = (managed_seed, write.garden.get(SHOOTS, name, write.namespace) or {})
    is_protected = any(annotations(each).get(keys.PROTECT_FROM_DELETION) == "true" for each in own)
    return is_protected or bool(shoots_on(write.garden, name))


def _of_template(managed_seed_set: Object) -> Node:
    return of_managed_seed(mapping_at(managed_seed_set, "spec", "template"))


# --- the kind


MANAGED_SEED_SET = Kind(
    definition=DEFINITION,
    defaults=(set_ingress_kind,),
    asks=operations.on(consumed=(keys.OPERATION_RECONCILE,)),
    checks=(
        in_garden,
        selector_errors,
        metadata_errors,
        update_errors,
        seed_errors,
        templates.shoot_errors,
    ),
    changes=(seed_changes, templates.shoot_changes),
    rights=(reading_rights(_of_template, "spec.template.spec"),),
    references=(name_errors,),
    deletions=(deletion.in_order("its replicas"),),
    warnings=(replicas_that_stay, numbers_that_fit),
    reads=(MANAGED_SEEDS, PROJECTS, SHOOTS),
)
