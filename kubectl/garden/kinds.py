"""Names of the kinds that commands accept, as in kubectl."""

from gardener.api import garden
from gardener.api.garden import PROJECTS, SEEDS, SHOOTS
from kube.resources import Resource
from kubectl.errors import UserError, suggested

_FIRST = (SHOOTS, SEEDS, PROJECTS)
_ALL = [each for each in vars(garden).values() if isinstance(each, Resource)]
KINDS = (*_FIRST, *(each for each in _ALL if each not in _FIRST))
"""All kinds of the garden API, the most common ones first."""


def singulars() -> list[str]:
    return [resource.kind.lower() for resource in KINDS]


def find(name: str) -> Resource | None:
    """Find a kind by its singular, plural or short name, with or without the group."""
    wanted, _, group = name.lower().partition(".")
    for resource in KINDS:
        is_called_so = wanted in {resource.kind.lower(), resource.plural, *resource.short_names}
        if is_called_so and (not group or f"{resource.group}.".startswith(f"{group}.")):
            return resource
    return None


def demand(name: str) -> Resource:
    """Find a kind by its name. Raises UserError, which names all kinds."""
    found = find(name)
    if found is None:
        hint = suggested(name, singulars()) or f"choose one of: {', '.join(singulars())}"
        raise UserError(f"nothing is known of the kind {name!r}", hint=hint)
    return found
