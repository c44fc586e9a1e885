"""The kinds of the garden API, as the controllers that work on them see them.

A kind that several controllers need has one view here, so that they share one watch. Indexes find the users of an
object, by its key unless noted otherwise (see `gardener.garden.users`).
"""

from agent.controller_manager.common.rules.credentials import Credentials
from agent.controller_manager.common.rules.garden_secrets import SELECTOR, GardenSecret
from gardener.api.garden import (
    BACKUP_BUCKETS,
    BACKUP_ENTRIES,
    CLOUD_PROFILES,
    CONTROLLER_DEPLOYMENTS,
    CONTROLLER_INSTALLATIONS,
    CONTROLLER_REGISTRATIONS,
    CREDENTIALS_BINDINGS,
    EXPOSURE_CLASSES,
    MANAGED_SEED_SETS,
    MANAGED_SEEDS,
    NAMESPACED_CLOUD_PROFILES,
    PROJECTS,
    QUOTAS,
    SECRET_BINDINGS,
    SEED_AUTOSCALERS,
    SEEDS,
    SHOOTS,
    WORKLOAD_IDENTITIES,
)
from gardener.conditions import GARDENLET_READY
from gardener.garden import users
from gardener.garden.domains import NAMESPACE
from gardener.garden.scheduling import waits
from gardener.garden.seeds import bootstrap_token_id
from gardener.garden.shoots import references, seeds_of
from gardener.keys import DEPLOYMENT_FINALIZER, GARDENER_FINALIZER, REGISTRATION_FINALIZER
from kube.objects import Key, Object, condition, finalizers, is_deleting, key, mapping, spec, text
from kube.packing import digest
from kube.paths import at
from kube.resources import NAMESPACES, SECRETS, Resource
from kube.runtime.cache import Indexer, View, without_managed_fields
from kube.runtime.client import Form

BY_PROTECTED = "protected"
"""Index of Secrets and ConfigMaps that are protected for Shoots, by their namespace."""
BY_SEED = "seed"
"""Index of ControllerInstallations; of BackupBuckets and Shoots, by the names of the Seeds they are on or leave."""
BY_REGISTRATION = "registration"
"""Index of ControllerInstallations."""
BY_NAMESPACE = "namespace"
"""Index by the namespace; of Projects, by their own."""
BY_DEPLOYMENT = "deployment"
"""Index of ControllerRegistrations."""
BY_PARENT = "parent"
"""Index of NamespacedCloudProfiles."""
BY_CLOUD_PROFILE = "cloudProfile"
"""Index of Shoots, as the next ones are."""
BY_NAMESPACED_CLOUD_PROFILE = "namespacedCloudProfile"
BY_SECRET_BINDING = "secretBinding"
BY_CREDENTIALS_BINDING = "credentialsBinding"
BY_EXPOSURE_CLASS = "exposureClass"
BY_REFERENCE = "reference"
"""Index by kind and key of the referenced Secrets and ConfigMaps."""
BY_SHOOT = "shoot"
"""Index of ManagedSeeds, by the Shoot that they run on."""
BY_TOKEN = "token"
"""Index of Seeds and ManagedSeeds, by the id of their bootstrap token."""
BY_SECRET = "secret"
"""Index of bindings of both kinds, as the next ones are."""
BY_WORKLOAD_IDENTITY = "workloadIdentity"
BY_QUOTA = "quota"
BY_SCHEDULING = "scheduling"
"""Index of Shoots that wait for a Seed, under `WAITING`."""
WAITING = "waiting"
BY_TARGET = "target"
"""Index of SeedAutoscalers, by the set that they scale."""
BY_STATE = "state"
"""Index of Projects by phase, Seeds by the status of GardenletReady, Shoots by the state of their last maintenance."""
HELD = "held"
"""Index of objects in deletion that others still use, under True."""
STALE = "stale"
"""Index of unused Projects, under True."""


def _installation(installation: Object) -> Object:
    """Drop the status of the extension, which may be large."""
    mapping(installation.get("status")).pop("providerStatus", None)
    return without_managed_fields(installation)


def _references(shoot: Object) -> list[tuple[Resource, Key]]:
    namespace = key(shoot).namespace
    return [(resource, Key(namespace, name)) for resource, name in references(shoot)]


def _scheduling(shoot: Object) -> list[str]:
    return [WAITING] if waits(shoot) else []


def target_of(autoscaler: Object) -> Key:
    """ManagedSeedSet that the SeedAutoscaler scales."""
    return Key(key(autoscaler).namespace, text(at(autoscaler, "spec", "scaleTargetRef", "name")))


def _namespace(secret: GardenSecret | None) -> list[str]:
    return [] if secret is None else [secret.namespace]


def _namespace_of_credentials(found: Credentials) -> list[str]:
    """Index credentials that bindings refer to, or have referred to."""
    return [found.namespace] if found.were_referred_to else []


def protected_in(found: Credentials) -> list[str]:
    return [found.namespace] if found.is_protected else []


def _gardenlet_ready(seed: Object) -> list[str]:
    return [text((condition(seed, GARDENLET_READY) or {}).get("status"))]


def _phase(project: Object) -> list[str]:
    return [text(at(project, "status", "phase"))]


def _last_maintenance(shoot: Object) -> list[str]:
    return [text(at(shoot, "status", "lastMaintenance", "state"))]


def _stale(project: Object) -> list[bool]:
    return [True] if at(project, "status", "staleSinceTimestamp") and not is_deleting(project) else []


def _held(finalizer: str) -> tuple[str, Indexer]:
    return HELD, lambda obj: [True] if is_deleting(obj) and finalizer in finalizers(obj) else []


def own_profile(profile: Object) -> Object:
    """NamespacedCloudProfile without the content of its parent; only whether that is up to date is kept."""
    status = mapping(profile.get("status"))
    content = status.pop("cloudProfileSpec", None)
    profile["rendered"] = "" if content is None else digest(content).hex()
    return without_managed_fields(profile)


def namespace_of(obj: Object) -> list[str]:
    return [key(obj).namespace]


def namespace_of_project(project: Object) -> list[str]:
    return [name] if (name := text(spec(project).get("namespace"))) else []


_OF_BINDINGS = (
    (BY_SECRET, users.secrets),
    (BY_WORKLOAD_IDENTITY, users.workload_identities),
    (BY_QUOTA, users.quotas),
    _held(GARDENER_FINALIZER),
)


def _token(obj: Object) -> tuple[str]:
    return (bootstrap_token_id(Key(NAMESPACE, key(obj).name)),)


_OF_CREDENTIALS = ((BY_NAMESPACE, _namespace_of_credentials),)

BACKUP_BUCKETS_VIEW = View(BACKUP_BUCKETS, without_managed_fields, indexes=((BY_SEED, seeds_of),))
BACKUP_ENTRIES_VIEW = View(
    BACKUP_ENTRIES, without_managed_fields, form=Form.METADATA, indexes=((BY_NAMESPACE, namespace_of),)
)
CLOUD_PROFILES_VIEW = View(CLOUD_PROFILES, without_managed_fields, indexes=(_held(GARDENER_FINALIZER),), packs=False)
CONTROLLER_DEPLOYMENTS_VIEW = View(
    CONTROLLER_DEPLOYMENTS, without_managed_fields, form=Form.METADATA, indexes=(_held(DEPLOYMENT_FINALIZER),)
)
"""The objects may contain whole charts."""
CONTROLLER_INSTALLATIONS_VIEW = View(
    CONTROLLER_INSTALLATIONS,
    _installation,
    indexes=((BY_SEED, users.seeds), (BY_REGISTRATION, users.controller_registrations)),
)
CONTROLLER_REGISTRATIONS_VIEW = View(
    CONTROLLER_REGISTRATIONS,
    without_managed_fields,
    indexes=((BY_DEPLOYMENT, users.controller_deployments), _held(REGISTRATION_FINALIZER)),
)
CREDENTIALS_BINDINGS_VIEW = View(CREDENTIALS_BINDINGS, without_managed_fields, indexes=_OF_BINDINGS)
EXPOSURE_CLASSES_VIEW = View(EXPOSURE_CLASSES, without_managed_fields, indexes=(_held(GARDENER_FINALIZER),))
GARDEN_SECRETS_VIEW = View(
    SECRETS, GardenSecret.of, label_selector=SELECTOR, indexes=((BY_NAMESPACE, _namespace),), most=2 << 20
)
MANAGED_SEED_SETS_VIEW = View(MANAGED_SEED_SETS, without_managed_fields, indexes=((BY_NAMESPACE, namespace_of),))
MANAGED_SEEDS_VIEW = View(MANAGED_SEEDS, without_managed_fields, indexes=((BY_SHOOT, users.shoots), (BY_TOKEN, _token)))
NAMESPACED_CLOUD_PROFILES_VIEW = View(
    NAMESPACED_CLOUD_PROFILES, own_profile, indexes=((BY_PARENT, users.parents), _held(GARDENER_FINALIZER))
)
NAMESPACES_VIEW = View(NAMESPACES, without_managed_fields)
PROJECTS_VIEW = View(
    PROJECTS,
    without_managed_fields,
    indexes=(
        (BY_NAMESPACE, namespace_of_project),
        (BY_STATE, _phase),
        (STALE, _stale),
        _held(GARDENER_FINALIZER),
    ),
)
QUOTAS_VIEW = View(QUOTAS, without_managed_fields, indexes=((BY_NAMESPACE, namespace_of), _held(GARDENER_FINALIZER)))
SECRET_BINDINGS_VIEW = View(SECRET_BINDINGS, without_managed_fields, indexes=_OF_BINDINGS)
SECRETS_VIEW = View(
    SECRETS,
    Credentials.of,
    form=Form.METADATA,
    indexes=(*_OF_CREDENTIALS, (BY_PROTECTED, protected_in)),
    streams=True,
)
SEED_AUTOSCALERS_VIEW = View(SEED_AUTOSCALERS, without_managed_fields, indexes=((BY_TARGET, users.managed_seed_sets),))
SEEDS_VIEW = View(
    SEEDS,
    without_managed_fields,
    indexes=((BY_STATE, _gardenlet_ready), (BY_TOKEN, _token), _held(REGISTRATION_FINALIZER)),
)
SHOOTS_VIEW = View(
    SHOOTS,
    without_managed_fields,
    indexes=(
        (BY_NAMESPACE, namespace_of),
        (BY_SEED, seeds_of),
        (BY_CLOUD_PROFILE, users.cloud_profiles),
        (BY_NAMESPACED_CLOUD_PROFILE, users.namespaced_cloud_profiles),
        (BY_SECRET_BINDING, users.secret_bindings),
        (BY_CREDENTIALS_BINDING, users.credentials_bindings),
        (BY_EXPOSURE_CLASS, users.exposure_classes),
        (BY_REFERENCE, _references),
        (BY_SCHEDULING, _scheduling),
        (BY_STATE, _last_maintenance),
    ),
)
WORKLOAD_IDENTITIES_VIEW = View(WORKLOAD_IDENTITIES, Credentials.of, form=Form.METADATA, indexes=_OF_CREDENTIALS)
