"""Kinds that are kept while others refer to them, and the objects that refer.

The rules are those of the controller that keeps the object: its finalizer, and the references of
`gardener.garden.users`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gardener import keys
from gardener.api.garden import (
    BACKUP_BUCKETS,
    BACKUP_ENTRIES,
    CLOUD_PROFILES,
    CONTROLLER_DEPLOYMENTS,
    CONTROLLER_INSTALLATIONS,
    CONTROLLER_REGISTRATIONS,
    CREDENTIALS_BINDINGS,
    EXPOSURE_CLASSES,
    NAMESPACED_CLOUD_PROFILES,
    QUOTAS,
    SECRET_BINDINGS,
    SEEDS,
    SHOOTS,
    WORKLOAD_IDENTITIES,
)
from gardener.garden import users
from gardener.garden.shoots import seeds_of
from kube.objects import Key, Object, finalizers, is_deleting, spec, text
from kube.resources import Resource
from kubectl.garden.why.finding import (
    Finding,
    Level,
    Users,
    about_it,
    command,
    deletion_begun,
    other_finalizers,
    together,
    when,
)


@dataclass(frozen=True, slots=True)
class Referring:
    """Kind that may refer to another one."""

    resource: Resource
    references: users.References
    is_near: bool = False
    """Whether only objects in the same namespace refer to it."""


def seeds_of_shoot(shoot: Object) -> Iterator[Key]:
    yield from (Key("", name) for name in seeds_of(shoot))


def seeds_of_backup(obj: Object) -> Iterator[Key]:
    """Seed of a BackupBucket, or a BackupEntry."""
    if name := text(spec(obj).get("seedName")):
        yield Key("", name)


USERS: Mapping[Resource, Sequence[Referring]] = {
    CLOUD_PROFILES: (
        Referring(NAMESPACED_CLOUD_PROFILES, users.parents),
        Referring(SHOOTS, users.cloud_profiles),
    ),
    NAMESPACED_CLOUD_PROFILES: (Referring(SHOOTS, users.namespaced_cloud_profiles, is_near=True),),
    EXPOSURE_CLASSES: (Referring(SHOOTS, users.exposure_classes),),
    SECRET_BINDINGS: (Referring(SHOOTS, users.secret_bindings, is_near=True),),
    CREDENTIALS_BINDINGS: (Referring(SHOOTS, users.credentials_bindings, is_near=True),),
    QUOTAS: (Referring(SECRET_BINDINGS, users.quotas), Referring(CREDENTIALS_BINDINGS, users.quotas)),
    WORKLOAD_IDENTITIES: (Referring(CREDENTIALS_BINDINGS, users.workload_identities),),
    CONTROLLER_DEPLOYMENTS: (Referring(CONTROLLER_REGISTRATIONS, users.controller_deployments),),
    CONTROLLER_REGISTRATIONS: (Referring(CONTROLLER_INSTALLATIONS, users.controller_registrations),),
    SEEDS: (
        Referring(SHOOTS, seeds_of_shoot),
        Referring(CONTROLLER_INSTALLATIONS, users.seeds),
        Referring(BACKUP_BUCKETS, seeds_of_backup),
        Referring(BACKUP_ENTRIES, seeds_of_backup),
    ),
}
"""Kinds that may refer to a kind."""

_FINALIZERS = {
    CONTROLLER_DEPLOYMENTS: keys.DEPLOYMENT_FINALIZER,
    CONTROLLER_REGISTRATIONS: keys.REGISTRATION_FINALIZER,
}
"""Finalizers by kind; GARDENER_FINALIZER for kinds without an entry."""


def finalizer_of(resource: Resource) -> str:
    return _FINALIZERS.get(resource, keys.GARDENER_FINALIZER)


def findings(
    resource: Resource, obj: Object, found: Sequence[Users], *, is_complete: bool = True, now: datetime
) -> Iterator[Finding]:
    """Args: found: objects that refer to it. is_complete: whether all candidates could be read."""
    using = [each for each in found if each.keys]
    if is_deleting(obj):
        yield from _deletion(resource, obj, using, is_complete=is_complete, now=now)
    elif using:
        message = f"in use, so a deletion would wait: {together(using)}"
        yield Finding(level=Level.INFO, about="users", text=message, users=using)
    else:
        message = f"{_nothing(is_complete=is_complete)} refers to it{'; it can be deleted' if is_complete else ''}"
        yield Finding(level=Level.INFO, about="users", text=message)


def _nothing(*, is_complete: bool) -> str:
    return "nothing" if is_complete else "nothing that you may read"


def _deletion(
    resource: Resource, obj: Object, using: Sequence[Users], *, is_complete: bool, now: datetime
) -> Iterator[Finding]:
    begun, held = deletion_begun(obj), finalizer_of(resource)
    requested = "" if begun is None else f", requested at {when(begun, now)},"
    present = finalizers(obj)
    if using:
        first = using[0]
        remedy = f"delete them, or have them refer to another one; begin with: {_first(first)}"
        message = f"the deletion{requested} waits for {together(using)}"
        yield Finding(level=Level.BLOCKED, about="deletion", text=message, remedy=remedy, at=begun, users=using)
    elif held in present:
        state = "is about to end" if is_complete else "may wait for other objects"
        message = f"the deletion{requested} {state}: {_nothing(is_complete=is_complete)} refers to it any more"
        remedy = "if it stays, see whether the controller manager runs"
        yield Finding(level=Level.BLOCKED, about="deletion", text=message, remedy=remedy, at=begun)
    yield from other_finalizers(resource, obj, (name for name in present if name != held))


def _first(users: Users) -> str:
    own = users.keys[0]
    has_findings = users.resource in USERS or users.resource == SHOOTS
    return about_it(users.resource, own) if has_findings else command("describe", users.resource, own)
