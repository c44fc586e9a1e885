"""Rights of the gardenlet of a Seed."""

from collections.abc import Iterator
from dataclasses import replace

from gardener import keys
from gardener.api import garden
from gardener.rights import object_sets as sets
from gardener.rights.metadata import Limits
from gardener.rights.model import ALL, CHANGE, READ, ObjectSet, Right, Table, never
from kube import resources as kubernetes
from kube.resources import Resource

_CREATE = frozenset({"create"})
_DELETE = frozenset({"delete"})
_WRITE = _CREATE | CHANGE
_OWN = READ | _WRITE | _DELETE
_STATUS = frozenset({"get"}) | CHANGE

FOR_GARDENLETS = "seedclient"
"""The subresource that stands for approval as the certificate of a gardenlet; it has no object name."""

_EVENTS = (kubernetes.EVENTS, kubernetes.NEW_EVENTS)


_GARDENER = frozenset({keys.GARDENER_FINALIZER})
_HANDLES = Limits(adds=_GARDENER, removes=_GARDENER, annotations=frozenset({keys.OPERATION}), content=True)
"""Limits for updates of objects that others have created for a gardenlet."""
_SHOOTS = replace(
    _HANDLES,
    annotations=frozenset({keys.OPERATION, keys.TASKS, keys.NEEDS_RETRY, keys.SHOOT_SKIP_READINESS}),
    derives_labels=True,
)
_BASTIONS = replace(_HANDLES, annotations=frozenset({keys.CONFIRM_FORCE_DELETION, keys.OPERATION}))
_INSTALLED = frozenset({keys.INSTALLATION_FINALIZER})
_INSTALLATIONS = Limits(adds=_INSTALLED, removes=_INSTALLED)
_PROTECTS = Limits(adds=frozenset({keys.CREDENTIALS_FINALIZER}))
_RELEASES = Limits(removes=_PROTECTS.adds)


def _with_status(
    resource: Resource, verbs: frozenset[str], objects: ObjectSet, limits: Limits | None = None
) -> Iterator[Right]:
    yield Right(resource, verbs, objects, limits=limits)
    yield Right(resource, _STATUS, objects, subresource="status")


def _rights() -> Iterator[Right]:
    yield from _own()
    yield from _credentials()
    yield from _used()


def _own() -> Iterator[Right]:
    yield Right(garden.SEEDS, READ, ALL)
    yield from _with_status(garden.SEEDS, _WRITE, sets.OWN_SEED)
    yield Right(garden.SEEDS, _DELETE, sets.CHILDREN)
    yield Right(garden.SEEDS, _WRITE, sets.TEMPLATED_CHILDREN)
    yield from _with_status(garden.BACKUP_BUCKETS, _OWN, sets.OWN_BUCKETS)
    yield from _with_status(garden.BACKUP_ENTRIES, READ | _WRITE, sets.OWN_ENTRIES)
    yield Right(garden.BACKUP_ENTRIES, _DELETE, sets.SOURCE_ENTRIES)
    bastions = sets.owned(garden.BASTIONS, lists=sets.lists_bastions)
    yield from _with_status(garden.BASTIONS, READ | CHANGE | _DELETE, bastions, _BASTIONS)
    shoots = sets.owned(garden.SHOOTS, lists=sets.labeled_or_selected_by("spec.seedName", "status.seedName"))
    yield from _with_status(garden.SHOOTS, READ | CHANGE, shoots, _SHOOTS)
    installations = sets.owned(garden.CONTROLLER_INSTALLATIONS, lists=sets.selected_by("spec.seedRef.name"))
    yield from _with_status(garden.CONTROLLER_INSTALLATIONS, READ | CHANGE, installations, _INSTALLATIONS)
    yield Right(garden.MANAGED_SEEDS, READ, ALL)
    children = sets.owned(garden.MANAGED_SEEDS, lists=never)
    yield from _with_status(garden.MANAGED_SEEDS, CHANGE, children, _HANDLES)
    yield from _with_status(garden.GARDENLETS, READ | _WRITE, sets.OWN_GARDENLET, _HANDLES)
    yield Right(kubernetes.LEASES, READ | _WRITE, sets.OWN_LEASE)
    yield from (Right(events, frozenset({"create", "patch"}), ALL) for events in _EVENTS)


def _credentials() -> Iterator[Right]:
    for resource in (garden.SHOOT_STATES, garden.INTERNAL_SECRETS, kubernetes.SECRETS, kubernetes.CONFIG_MAPS):
        yield Right(resource, _OWN, sets.of_shoots(resource))
    for objects in (
        sets.OWN_NAMESPACE,
        sets.SIGNING_KEYS,
        sets.GENERATED,
        sets.BOOTSTRAP_TOKENS,
        sets.CHILD_SECRETS,
    ):
        yield Right(kubernetes.SECRETS, _OWN, objects)
    for objects in (sets.OWN_NAMESPACE, sets.BOOTSTRAP_ACCOUNTS):
        yield Right(kubernetes.SERVICE_ACCOUNTS, _OWN, objects)
        yield Right(kubernetes.SERVICE_ACCOUNTS, _CREATE, objects, subresource="token")
    yield Right(kubernetes.CLUSTER_ROLE_BINDINGS, _OWN, sets.BOOTSTRAP_BINDINGS)
    requests = sets.owned(kubernetes.CERTIFICATE_SIGNING_REQUESTS, lists=never)
    yield Right(kubernetes.CERTIFICATE_SIGNING_REQUESTS, READ, requests)
    yield Right(kubernetes.CERTIFICATE_SIGNING_REQUESTS, _CREATE, ALL)
    yield Right(kubernetes.CERTIFICATE_SIGNING_REQUESTS, _CREATE, ALL, subresource=FOR_GARDENLETS)


def _used() -> Iterator[Right]:
    yield Right(kubernetes.CONFIG_MAPS, READ, sets.PUBLIC_CONFIG_MAPS)
    for resource in (kubernetes.SECRETS, garden.WORKLOAD_IDENTITIES):
        yield Right(resource, CHANGE, sets.bucket_credentials(resource), limits=_PROTECTS)
        yield Right(resource, CHANGE, sets.leaving_bucket_credentials(resource), limits=_RELEASES)
    yield Right(garden.BACKUP_BUCKETS, READ, sets.used(garden.BACKUP_BUCKETS))
    for resource in (
        kubernetes.SECRETS,
        kubernetes.CONFIG_MAPS,
        garden.CLOUD_PROFILES,
        garden.EXPOSURE_CLASSES,
        garden.NAMESPACED_CLOUD_PROFILES,
        garden.SECRET_BINDINGS,
        garden.CREDENTIALS_BINDINGS,
        garden.CONTROLLER_DEPLOYMENTS,
        garden.WORKLOAD_IDENTITIES,
    ):
        yield Right(resource, READ, sets.used(resource))
    identities = sets.used(garden.WORKLOAD_IDENTITIES)
    yield Right(garden.WORKLOAD_IDENTITIES, _CREATE, identities, subresource="token")
    yield Right(garden.PROJECTS, READ, sets.USED_PROJECTS)
    yield Right(kubernetes.NAMESPACES, READ, sets.USED_NAMESPACES)
    yield Right(garden.CONTROLLER_REGISTRATIONS, READ, ALL)


TABLE = Table(_rights())
