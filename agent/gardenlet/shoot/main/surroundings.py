"""Inputs from the garden for an operation on a Shoot, read before it begins.

Missing inputs are an error of the Shoot, reported before anything is changed. A Shoot that leaves the seed does without
them, see `remains`. An overloaded garden never makes an operation fail for good.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from agent.gardenlet.shoot.main.remains import Remains
from agent.gardenlet.shoot.main.rules import domains
from agent.gardenlet.shoot.main.rules.domains import DomainError, Served
from gardener.api.garden import EXPOSURE_CLASSES, PROJECTS
from gardener.garden.profiles import offered, profile_of
from gardener.garden.seeds import namespace_of
from gardener.keys import PROJECT_NAME, ROLE
from kube.errors import Forbidden, NotFound
from kube.objects import Key, Object, key, labels, metadata, spec, text
from kube.resources import NAMESPACES, SECRETS
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import ReconcileError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Attributes:
    profile: the CloudProfile, or the NamespacedCloudProfile of the Shoot's project.
    external: None if the gardenlet creates no records in the Shoot's own domain.
    exposure_class: of the Shoot; None if it names none.
    """

    profile: Object
    internal: Served
    external: Served | None
    exposure_class: Object | None


async def read(
    garden: Client, shoot: Object, *, project: str, seed: str, remains: Remains | None = None
) -> Surroundings:
    """Read the inputs, from `remains` if they are gone. Raises DomainError, KubeError.

    Args: project: its name. seed: name of the own Seed. remains: None: all inputs are needed.
    """
    secrets = await garden.list(SECRETS, Selection(namespace=namespace_of(seed), label_selector=ROLE))
    name = key(shoot).name

    async def internal() -> Served:
        return domains.internal(secrets, shoot=name, project=project)

    if remains is None:
        return Surroundings(
            profile=await _profile(garden, shoot),
            internal=await internal(),
            external=await _external(garden, shoot, secrets),
            exposure_class=await _exposure_class(garden, shoot),
        )
    return Surroundings(
        profile=await _or_remains(_profile(garden, shoot), remains.profile),
        internal=await _or_remains(internal(), partial(remains.internal, project)),
        external=await _or_remains(_external(garden, shoot, secrets), remains.external),
        exposure_class=await _or_remains(_exposure_class(garden, shoot), remains.exposure_class),
    )


async def _or_remains(reading: Awaitable[T], remains: Callable[[], Awaitable[T]]) -> T:
    """Result of reading from the garden, or of the second function if the garden lacks it."""
    try:
        return await reading
    except (DomainError, Forbidden, NotFound):
        return await remains()


async def project_of(garden: Client, shoot: Object) -> str:
    """Name of the Project. Raises ReconcileError, KubeError."""
    namespace = key(shoot).namespace
    missing = ReconcileError(f"cannot find Project for namespace {namespace!r}")
    try:
        name = labels(await garden.get(NAMESPACES, namespace, form=Form.METADATA)).get(PROJECT_NAME, "")
        if name:
            await garden.get(PROJECTS, name, form=Form.METADATA)
            return name
    except NotFound as error:
        raise missing from error
    raise missing


async def _profile(garden: Client, shoot: Object) -> Object:
    resource, name = profile_of(spec(shoot))
    namespace = key(shoot).namespace if resource.namespaced else ""
    profile = await garden.get(resource, Key(namespace, name))
    return {**profile, "metadata": metadata(profile), "spec": offered(resource, profile)}


async def _exposure_class(garden: Client, shoot: Object) -> Object | None:
    name = text(spec(shoot).get("exposureClassName"))
    return await garden.get(EXPOSURE_CLASSES, name) if name else None


async def _external(garden: Client, shoot: Object, secrets: list[Object]) -> Served | None:
    if not domains.own_domain(shoot):
        return None
    if found := domains.external(shoot, secrets):
        return found
    name = domains.credentials_of(shoot)
    try:
        return domains.own(shoot, await garden.get(SECRETS, Key(key(shoot).namespace, name)))
    except NotFound as error:
        raise DomainError(f"Secret {name} with the credentials for DNS does not exist: {error}") from error
