"""Users of objects in a garden, and their names in messages.

Each function gives the keys of an object's references. As an index of a cache it finds the users of an object; called
for the old and the new version of an object, it shows whose users have changed. References are taken from stored
objects, with all defaults.

    Shoot                    cloud profile, binding, exposure class (Seeds: `shoots.seeds_of`; domains: `domains`)
    NamespacedCloudProfile   its parent
    bindings                 credentials, quotas
    ControllerRegistration   ControllerDeployments
    ControllerInstallation   ControllerRegistration, Seed
    BackupEntry              BackupBucket
    ManagedSeed              its Shoot
    SeedAutoscaler           ManagedSeedSet
    Project                  its namespace
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from gardener.api.garden import NAMESPACED_CLOUD_PROFILES, WORKLOAD_IDENTITIES
from kube.objects import Key, Object, key, mapping, mappings, spec, text
from kube.paths import mapping_at, mappings_at
from kube.resources import SECRETS

MOST_NAMED = 20
"""Users in one message."""

References: TypeAlias = Callable[[Object], Iterable[Key]]


# --- Shoots


def cloud_profiles(shoot: Object) -> Iterator[Key]:
    """CloudProfiles of a Shoot, also from the deprecated field."""
    reference = mapping(spec(shoot).get("cloudProfile"))
    if reference.get("kind") != NAMESPACED_CLOUD_PROFILES.kind:
        yield from _named(reference.get("name"))
    yield from _named(spec(shoot).get("cloudProfileName"))


def namespaced_cloud_profiles(shoot: Object) -> Iterator[Key]:
    reference = mapping(spec(shoot).get("cloudProfile"))
    if reference.get("kind") == NAMESPACED_CLOUD_PROFILES.kind:
        yield from _named(reference.get("name"), key(shoot).namespace)


def secret_bindings(shoot: Object) -> Iterator[Key]:
    yield from _named(spec(shoot).get("secretBindingName"), key(shoot).namespace)


def credentials_bindings(shoot: Object) -> Iterator[Key]:
    yield from _named(spec(shoot).get("credentialsBindingName"), key(shoot).namespace)


def exposure_classes(shoot: Object) -> Iterator[Key]:
    yield from _named(spec(shoot).get("exposureClassName"))


# --- cloud profiles


def parents(profile: Object) -> Iterator[Key]:
    """Parent of a NamespacedCloudProfile."""
    yield from _named(mapping_at(profile, "spec", "parent").get("name"))


# --- bindings of both kinds


def secrets(binding: Object) -> Iterator[Key]:
    yield from _credentials(binding, SECRETS.api_version, SECRETS.kind)


def workload_identities(binding: Object) -> Iterator[Key]:
    yield from _credentials(binding, WORKLOAD_IDENTITIES.api_version, WORKLOAD_IDENTITIES.kind)


def _credentials(binding: Object, api_version: str, kind: str) -> Iterator[Key]:
    reference = credentials_reference(binding)
    if (reference.get("apiVersion"), reference.get("kind")) == (api_version, kind):
        yield from _named(reference.get("name"), text(reference.get("namespace")) or key(binding).namespace)


def credentials_reference(binding: Object) -> Object:
    """Reference with apiVersion and kind, which a SecretBinding may omit."""
    if "secretRef" in binding:
        return {**mapping(binding["secretRef"]), **SECRETS.type_meta}
    return mapping(binding.get("credentialsRef"))


def provider_types(binding: Object) -> list[str]:
    """Provider types of a binding; a SecretBinding may have several, separated by commas."""
    types = text(mapping(binding.get("provider")).get("type")).split(",")
    return [each.strip() for each in types if each.strip()]


def quotas(binding: Object) -> Iterator[Key]:
    for quota in mappings(binding.get("quotas")):
        yield from _named(quota.get("name"), text(quota.get("namespace")) or key(binding).namespace)


def of_binding(binding: Object) -> Iterator[Key]:
    """All references of a binding."""
    yield from secrets(binding)
    yield from workload_identities(binding)
    yield from quotas(binding)


# --- extensions


def controller_deployments(registration: Object) -> Iterator[Key]:
    for reference in mappings_at(registration, "spec", "deployment", "deploymentRefs"):
        yield from _named(reference.get("name"))


def controller_registrations(installation: Object) -> Iterator[Key]:
    yield from _named(mapping_at(installation, "spec", "registrationRef").get("name"))


def seeds(installation: Object) -> Iterator[Key]:
    yield from _named(mapping_at(installation, "spec", "seedRef").get("name"))


# --- Seeds


def backup_buckets(entry: Object) -> Iterator[Key]:
    yield from _named(spec(entry).get("bucketName"))


def shoots(managed_seed: Object) -> Iterator[Key]:
    yield from _named(mapping_at(managed_seed, "spec", "shoot").get("name"), key(managed_seed).namespace)


def managed_seed_sets(autoscaler: Object) -> Iterator[Key]:
    yield from _named(mapping_at(autoscaler, "spec", "scaleTargetRef").get("name"), key(autoscaler).namespace)


# --- Projects


def namespaces(project: Object) -> Iterator[Key]:
    yield from _named(spec(project).get("namespace"))


# --- messages


def reason(text: str, found: Sequence[Key]) -> str:
    """The text, followed by the users; empty if there are none."""
    return f"{text}: {listed(found)}" if found else ""


def listed(users: Iterable[Key]) -> str:
    """Users as `[garden-a/x garden-b/y]`, in the given order; of many the first ones and the number of others."""
    names = [str(user) for user in users]
    shown = names[:MOST_NAMED]
    if more := len(names) - len(shown):
        shown.append(f"... and {more} more")
    return f"[{' '.join(shown)}]"


def _named(name: object, namespace: str = "") -> Iterator[Key]:
    """Key of the name; nothing if it is empty."""
    if found := text(name):
        yield Key(namespace, found)
