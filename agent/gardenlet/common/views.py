"""Views that several controllers share, so that each kind is watched once."""

from functools import cache

from gardener.api.garden import (
    BACKUP_BUCKETS,
    BACKUP_ENTRIES,
    CONTROLLER_INSTALLATIONS,
    CONTROLLER_REGISTRATIONS,
    GARDENLETS,
    MANAGED_SEEDS,
    SEEDS,
    SHOOTS,
)
from gardener.garden import users
from gardener.keys import SEED_LABEL_PREFIX
from kube.objects import Object, key, spec, text
from kube.runtime.cache import View, without_managed_fields

BY_BUCKET = "bucket"
"""Index of BackupEntries by the name of their bucket."""
BY_NAME = "name"
"""Index of BackupEntries by name, which is unique across namespaces."""

BY_SHOOT = "shoot"
"""Index of ManagedSeeds by the Shoot that becomes the Seed."""

SEEDS_VIEW = View(SEEDS, without_managed_fields)
MANAGED_SEEDS_VIEW = View(MANAGED_SEEDS, without_managed_fields, indexes=((BY_SHOOT, users.shoots),))
CONTROLLER_REGISTRATIONS_VIEW = View(CONTROLLER_REGISTRATIONS, without_managed_fields)


@cache
def controller_installations_view(seed: str) -> View[Object]:
    """ControllerInstallations on the Seed."""
    return View(CONTROLLER_INSTALLATIONS, without_managed_fields, field_selector=f"spec.seedRef.name={seed}")


@cache
def shoots_view(seed: str) -> View[Object]:
    """Shoots that are on the Seed, or have not left it yet."""
    return View(SHOOTS, without_managed_fields, label_selector=f"{SEED_LABEL_PREFIX}{seed}=true")


@cache
def backup_buckets_view(seed: str) -> View[Object]:
    """BackupBuckets of the Seed."""
    return View(BACKUP_BUCKETS, without_managed_fields, field_selector=f"spec.seedName={seed}")


@cache
def backup_entries_view(seed: str) -> View[Object]:
    """BackupEntries that are on the Seed, or have not left it yet."""
    return View(
        BACKUP_ENTRIES,
        without_managed_fields,
        label_selector=f"{SEED_LABEL_PREFIX}{seed}=true",
        indexes=((BY_BUCKET, _bucket_of), (BY_NAME, _name_of)),
    )


@cache
def own_gardenlet_view(seed: str) -> View[Object]:
    """Gardenlet with the name of the Seed."""
    return View(GARDENLETS, without_managed_fields, namespace="garden", field_selector=f"metadata.name={seed}")


def _bucket_of(entry: Object) -> tuple[str]:
    return (text(spec(entry).get("bucketName")),)


def _name_of(obj: Object) -> tuple[str]:
    return (key(obj).name,)
