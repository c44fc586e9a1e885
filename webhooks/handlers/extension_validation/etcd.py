"""Etcds of etcd-druid: only the destination of backups is checked, the rest is left to etcd-druid."""

from collections.abc import Iterator
from typing import Any

from gardener.api.druid import ETCDS
from kube.validation import FieldError, invalid
from webhooks.handlers.extension_validation.kind import Kind, immutable
from webhooks.handlers.extension_validation.rules.difference import differences
from webhooks.handlers.extension_validation.rules.metadata import IMMUTABLE, Resource
from webhooks.handlers.extension_validation.rules.typed import Typed, as_json, decode

_PROVIDERS = frozenset(
    {
        *("aws", "S3", "stackit"),
        *("azure", "ABS"),
        *("alicloud", "OSS"),
        *("openstack", "Swift"),
        *("gcp", "GCS"),
        *("dell", "ECS"),
        *("openshift", "OCS"),
        *("Local", "local"),
    }
)


class Store(Typed):
    prefix: str = ""
    provider: str | None = None


class Backup(Typed):
    store: Store | None = None


class EtcdSpec(Typed):
    """Fields that the rules read; changes of the spec are found in all fields."""

    backup: Backup = Backup()
    member_name_prefix: str | None = None


class Etcd(Resource):
    spec: dict[str, Any] | None = None


def _spec(etcd: Etcd) -> EtcdSpec:
    return decode(EtcdSpec, etcd.spec or {}, kind="Etcd")


def _errors(etcd: Etcd) -> Iterator[FieldError]:
    store = _spec(etcd).backup.store
    if store is None:
        return
    if etcd.metadata.namespace not in store.prefix or etcd.metadata.name not in store.prefix:
        yield invalid("spec.backup.store.prefix", store.prefix, "must contain object name and namespace")
    if store.provider and store.provider not in _PROVIDERS:
        detail = f"unsupported storage provider: '{store.provider}'"
        yield invalid("spec.backup.store.provider", store.provider, detail)


def _changes(new: Etcd, old: Etcd) -> Iterator[FieldError]:
    spec, before = _spec(new), _spec(old)
    if spec.backup.store is not None and before.backup.store is not None:
        yield from immutable("spec.backup.store.prefix", spec.backup.store.prefix, before.backup.store.prefix)
    yield from immutable("spec.memberNamePrefix", spec.member_name_prefix, before.member_name_prefix)


def _frozen(_kind: Kind, new: Etcd, old: Etcd) -> FieldError | None:
    changed = differences(new.spec or {}, old.spec or {})
    return invalid("spec", as_json(new.spec), IMMUTABLE) if changed else None


ETCD = Kind(typed=Etcd, resource=ETCDS, noun="etcd", errors=_errors, changes=_changes, frozen=_frozen)
