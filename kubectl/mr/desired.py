"""Desired objects: read out of the Secrets of a ManagedResource, by the rules of the agent."""

import base64
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from gardener import keys
from gardener.managed_resource.autoscaling import Scaled, is_scaled, scaled_by_hpa, scaled_by_hvpa, together
from gardener.managed_resource.decode import DecodeResult, decode_secrets
from gardener.managed_resource.equivalences import Equivalences
from gardener.managed_resource.ignored_fields import IgnoredFields
from gardener.managed_resource.inventory import Inventory
from gardener.managed_resource.merge import Overwrite, merge
from gardener.managed_resource.messages import refusal_message
from gardener.managed_resource.plan import LIMITS, Basis, Plan, PlannedObject, defined_groups, kinds_of, plan
from gardener.managed_resource.references import key_of, listed_in, secret_names
from gardener.managed_resource.remedies import unserved_error
from gardener.managed_resource.stamps import injected_labels
from gardener.responsibility import parse_origin
from kube.errors import KindNotServed, NotFound
from kube.objects import Key, Object, annotations, key, resource_version, uid
from kube.resources import SECRETS
from kube.runtime.client import Client
from kube.runtime.discovery import Discovery, find_all
from kubectl.errors import UserError
from kubectl.session import Cluster

DEFAULT_MANAGED_BY = "gardener"


@dataclass(frozen=True, slots=True)
class Contents:
    """Secrets that a ManagedResource names."""

    secrets: tuple[Object, ...]
    missing: tuple[str, ...]

    def decoded(self) -> DecodeResult:
        return decode_secrets([(key(secret), values_of(secret)) for secret in self.secrets])

    def manifests(self) -> dict[str, Object]:
        """Manifests by object key."""
        return {key_of(item.object): item.object for item in self.decoded().objects}


async def read_contents(client: Client, managed_resource: Object) -> Contents:
    """Read the Secrets of a ManagedResource. Raises KubeError if a Secret may not be read."""
    namespace = key(managed_resource).namespace
    secrets: list[Object] = []
    missing: list[str] = []
    for name in secret_names(managed_resource):
        try:
            secrets.append(await client.get(SECRETS, Key(namespace, name)))
        except NotFound:
            missing.append(name)
    return Contents(tuple(secrets), tuple(missing))


async def plan_of(
    managed_resource: Object, secrets: Sequence[Object], discovery: Discovery, *, managed_by: str = ""
) -> Plan:
    """Plan that the agent would make for these Secrets."""
    injected = (managed_resource.get("spec") or {}).get("injectLabels") or {}
    versions = tuple((key(secret).name, uid(secret), resource_version(secret)) for secret in secrets)
    data = [(key(secret), values_of(secret)) for secret in secrets]
    decoded = decode_secrets(data, limits=LIMITS)
    return plan(
        Basis(tuple(sorted(injected.items())), versions),
        data,
        decoded,
        await find_all(discovery, kinds_of(decoded), explain=unserved_error, awaited=defined_groups(decoded)),
        labels=injected_labels(injected, managed_by=managed_by or managed_by_of(managed_resource)),
    )


def values_of(secret: Object) -> dict[str, bytes]:
    """Data of a Secret as the API server stores it, where `stringData` becomes part of `data`.

    Raises: UserError: an API server would not accept the Secret.
    """
    texts, data = secret.get("stringData") or {}, secret.get("data") or {}
    try:
        values = {name: base64.b64decode(value, validate=True) for name, value in data.items()}
        return values | {name: text.encode() for name, text in texts.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise UserError(f"the data of Secret {key(secret)} is not base64") from error


def managed_by_of(managed_resource: Object) -> str:
    """Value of the label that the agent in charge gives to objects, according to the status."""
    for reference in listed_in(managed_resource):
        value = (reference.get("labels") or {}).get(keys.MANAGED_BY)
        if value:
            return str(value)
    return DEFAULT_MANAGED_BY


class Merging:
    """Merge the objects of one ManagedResource like the agent.

    Raises: UserError: its annotation for ignored fields is wrong.
    """

    def __init__(self, managed_resource: Object, scaled: Scaled) -> None:
        spec = managed_resource.get("spec") or {}
        self._key = key(managed_resource)
        self._overwrite = Overwrite(
            labels=spec.get("forceOverwriteLabels") is True, annotations=spec.get("forceOverwriteAnnotations") is True
        )
        self._equivalences = Equivalences(spec.get("equivalences") or ())
        self.inventory = Inventory((managed_resource.get("status") or {}).get("resources") or (), self._equivalences)
        self._scaled = scaled
        self._ignored = IgnoredFields.of(managed_resource)
        if problems := self._ignored.problems:
            raise UserError(f"ManagedResource {self._key}: {refusal_message(problems)}")

    def merged(self, wanted: PlannedObject, live: Object | None) -> Object:
        """Object that the agent would write. Raises MergeError."""
        manifest = wanted.object()
        return merge(
            manifest,
            live,
            origin=self._origin(live),
            previous=self.inventory.find(wanted.reference),
            overwrite=self._overwrite,
            horizontally_scaled=is_scaled(manifest, self._scaled.horizontally, self._equivalences),
            vertically_scaled=is_scaled(manifest, self._scaled.vertically, self._equivalences),
            ignored=self._ignored.pointers(wanted.reference),
        )

    def _origin(self, live: Object | None) -> str:
        """Origin, with the id of the source cluster if the object has one: only the agent knows it."""
        own = f"{self._key.namespace}/{self._key.name}"
        present = annotations(live or {}).get(keys.ORIGIN) or ""
        try:
            return present if parse_origin(present).key == self._key else own
        except ValueError:
            return own


async def autoscaled(cluster: Cluster) -> Scaled:
    """Targets of autoscalers in the target cluster."""
    found: list[Scaled] = []
    for api_version, kind, scaled_by in (
        ("autoscaling/v1", "HorizontalPodAutoscaler", scaled_by_hpa),
        ("autoscaling.k8s.io/v1alpha1", "Hvpa", scaled_by_hvpa),
    ):
        with contextlib.suppress(KindNotServed):
            found += map(scaled_by, await cluster.client.list(await cluster.discovery.find(api_version, kind)))
    return together(found)
