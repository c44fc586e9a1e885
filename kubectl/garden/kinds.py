"""What people call the kinds that can be asked about: as kubectl takes them."""

from gardener.api.garden import (
    CLOUD_PROFILES,
    CONTROLLER_DEPLOYMENTS,
    CONTROLLER_REGISTRATIONS,
    CREDENTIALS_BINDINGS,
    EXPOSURE_CLASSES,
    NAMESPACED_CLOUD_PROFILES,
    PROJECTS,
    QUOTAS,
    SECRET_BINDINGS,
    SEEDS,
    SHOOTS,
)
from kube.resources import Resource
from kubectl.errors import UserError

KINDS = (
    SHOOTS,
    SEEDS,
    PROJECTS,
    CLOUD_PROFILES,
    NAMESPACED_CLOUD_PROFILES,
    EXPOSURE_CLASSES,
    QUOTAS,
    SECRET_BINDINGS,
    CREDENTIALS_BINDINGS,
    CONTROLLER_DEPLOYMENTS,
    CONTROLLER_REGISTRATIONS,
)


def singulars() -> list[str]:
    return [resource.kind.lower() for resource in KINDS]


def find(name: str) -> Resource | None:
    """By its singular, plural or short name, with or without the group."""
    wanted, _, group = name.lower().partition(".")
    for resource in KINDS:
        is_called_so = wanted in {resource.kind.lower(), resource.plural, *resource.short_names}
        if is_called_so and (not group or f"{resource.group}.".startswith(f"{group}.")):
            return resource
    return None


def demand(name: str) -> Resource:
    """Raises UserError, which names all kinds."""
    found = find(name)
    if found is None:
        raise UserError(f"nothing is known of the kind {name!r}", hint=f"ask about: {', '.join(singulars())}")
    return found
