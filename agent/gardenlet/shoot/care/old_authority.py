"""Clients that trust only the old certificate authority during a rotation; see `rules.old_authority`.

Lists are read only during this phase, together with the other lists of an inspection.
"""

from collections.abc import Sequence

from agent.gardenlet.shoot.care.rules.old_authority import Authorities, authorities, is_user, users_in_seed
from components.secrets import labels as names
from components.secrets.stored import stored
from kube.objects import Object, key, labels
from kube.resources import (
    API_SERVICES,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    MUTATING_WEBHOOKS,
    SECRETS,
    STATEFUL_SETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from kube.runtime.client import Client, Selection

_PAGE = 100
_LISTED: Sequence[tuple[Resource, str]] = (
    (CONFIG_MAPS, "metadata.name=kube-root-ca.crt"),
    (VALIDATING_WEBHOOKS, ""),
    (MUTATING_WEBHOOKS, ""),
    (API_SERVICES, ""),
    (CUSTOM_RESOURCE_DEFINITIONS, ""),
)
"""Kinds with CA bundles, and their field selectors."""


async def in_seed(seed: Client, namespace: str) -> tuple[Authorities | None, list[str]]:
    """Return the authorities, None if there is no old one, and its users.

    Raises:
        KubeError: the seed failed.
    """
    secrets = await seed.list(SECRETS, Selection(namespace=namespace))
    found = authorities([stored(each) for each in secrets if _is_of_manager(each)])
    if found is None:
        return None, []
    workloads = [
        {**kind.type_meta, **each}
        for kind in (DEPLOYMENTS, STATEFUL_SETS)
        for each in await seed.list(kind, Selection(namespace=namespace))
    ]
    return found, [*users_in_seed(found, secrets, workloads)]


def _is_of_manager(secret: Object) -> bool:
    return labels(secret).get(names.MANAGED_BY) == names.SECRETS_MANAGER


async def in_shoot(shoot: Client, found: Authorities) -> list[str]:
    """Return the objects in the Shoot that trust only the old authority.

    Raises:
        KubeError: the Shoot's API server failed.
    """
    users = []
    for kind, fields in _LISTED:
        async for page in shoot.pages(kind, Selection(field_selector=fields), limit=_PAGE):
            users += [f"{kind.kind} {key(each)} in the Shoot" for each in page if is_user(found, each)]
    return users
