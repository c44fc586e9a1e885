"""Inputs from the garden for an operation on a Shoot, read before it begins.

Missing inputs are an error of the Shoot, reported before anything is changed. An overloaded garden never makes an
operation fail for good.
"""

from dataclasses import dataclass

from agent.gardenlet.shoot.main.rules import domains
from agent.gardenlet.shoot.main.rules.domains import DomainError, Served
from gardener.api.garden import EXPOSURE_CLASSES, PROJECTS
from gardener.garden.profiles import offered, profile_of
from gardener.garden.seeds import namespace_of
from gardener.keys import PROJECT_NAME, ROLE
from kube.errors import NotFound
from kube.objects import Key, Object, key, labels, metadata, spec, text
from kube.resources import NAMESPACES, SECRETS
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import ReconcileError


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


async def read(garden: Client, shoot: Object, *, project: str, seed: str) -> Surroundings:
    """Args: project: its name. seed: name of the own Seed. Raises DomainError, KubeError."""
    profile = await _profile(garden, shoot)
    secrets = await garden.list(SECRETS, Selection(namespace=namespace_of(seed), label_selector=ROLE))
    return Surroundings(
        profile=profile,
        internal=domains.internal(secrets, shoot=key(shoot).name, project=project),
        external=await _external(garden, shoot, secrets),
        exposure_class=await _exposure_class(garden, shoot),
    )


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
