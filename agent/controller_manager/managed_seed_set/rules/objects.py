"""The Shoot and the ManagedSeed of a replica, as the templates of its set say."""

from gardener.api.garden import MANAGED_SEED_SETS, MANAGED_SEEDS, SHOOTS
from gardener.garden.managed_seed_sets import REVISION_LABEL
from gardener.garden.managed_seeds import seed_template_path
from kube.objects import Object, key, mapping, text, uid
from kube.paths import at, with_value
from kube.resources import Resource

PLACEHOLDER = "replica-name"
"""In the domains of the templates, for the name of the replica."""
_SHOOT_DOMAIN = ("dns", "domain")
_SEED_DOMAIN = ("spec", "ingress", "domain")


def owner_reference(seed_set: Object) -> Object:
    reference = MANAGED_SEED_SETS.reference(name=key(seed_set).name, uid=uid(seed_set))
    return {**reference, "controller": True, "blockOwnerDeletion": True}


def shoot_of(seed_set: Object, name: str, templates: Object, revision: str = "") -> Object:
    """Args:
    templates: the fields `template` and `shootTemplate` of a set.
    revision: the name of these templates; empty: updates are not kept track of.
    """
    template = mapping(templates.get("shootTemplate"))
    spec = _with_name(mapping(template.get("spec")), _SHOOT_DOMAIN, name)
    return _made(SHOOTS, _metadata(seed_set, name, mapping(template.get("metadata")), revision), spec)


def managed_seed_of(seed_set: Object, name: str, templates: Object, revision: str = "") -> Object:
    """See `shoot_of`."""
    template = mapping(templates.get("template"))
    said = mapping(template.get("spec"))
    spec = {**_with_name(said, (*seed_template_path(said), *_SEED_DOMAIN), name), "shoot": {"name": name}}
    return _made(MANAGED_SEEDS, _metadata(seed_set, name, mapping(template.get("metadata")), revision), spec)


def _with_name(spec: Object, path: tuple[str, ...], name: str) -> Object:
    domain = text(at(spec, *path))
    return with_value(spec, path, domain.replace(PLACEHOLDER, name)) if PLACEHOLDER in domain else spec


def _metadata(seed_set: Object, name: str, template: Object, revision: str) -> Object:
    annotations = mapping(template.get("annotations"))
    return {
        "name": name,
        "namespace": key(seed_set).namespace,
        "labels": {**mapping(template.get("labels")), **({REVISION_LABEL: revision} if revision else {})},
        **({"annotations": annotations} if annotations else {}),
        "ownerReferences": [owner_reference(seed_set)],
    }


def _made(resource: Resource, meta: Object, spec: Object) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}
