"""Clean-up of a Shoot's cluster before its deletion: kinds, time limits, and exceptions.

Objects with effects outside the cluster have to be deleted while controllers run that undo these. Overdue objects lose
their finalizers. Namespaces are never touched: they disappear with the cluster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gardener import keys
from kube.clock import time_or_none
from kube.objects import Object, annotations, is_truthy, key, labels, metadata
from kube.resources import (
    API_SERVICES,
    CRON_JOBS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    INGRESSES,
    JOBS,
    MUTATING_WEBHOOKS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
    VALIDATING_WEBHOOKS,
    VOLUME_CLAIMS,
    Resource,
)

_SNAPSHOTS = "snapshot.storage.k8s.io"
VOLUME_SNAPSHOTS = Resource(_SNAPSHOTS, "v1", "VolumeSnapshot", "volumesnapshots", namespaced=True)
VOLUME_SNAPSHOT_CONTENTS = Resource(
    _SNAPSHOTS, "v1", "VolumeSnapshotContent", "volumesnapshotcontents", namespaced=False
)
_MINUTE, _HOUR = 60.0, 3600.0
_AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"
_SECONDS = "shoot.gardener.cloud/cleanup-{}-finalize-grace-period-seconds"
_STILL_CLEANED = frozenset({SERVICES, VOLUME_CLAIMS, VOLUME_SNAPSHOTS, VOLUME_SNAPSHOT_CONTENTS})
"""Kinds that are cleaned even if the rest is kept: they cost money outside."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Attributes:
    resource: kind to remove.
    seconds: time after which an object that is being deleted loses its finalizers.
    annotation: of the Shoot, which overrides `seconds`; `share` is the fraction that applies to this kind.
    """

    resource: Resource
    seconds: float
    annotation: str
    share: float = 1.0

    def patience(self, shoot: Object) -> timedelta:
        written = annotations(shoot).get(_SECONDS.format(self.annotation), "")
        is_number = written.isascii() and written.isdecimal() and len(written) < 10
        return timedelta(seconds=int(written) * self.share if is_number else self.seconds)


WEBHOOKS = (
    Kind(VALIDATING_WEBHOOKS, 5 * _MINUTE, "webhooks"),
    Kind(MUTATING_WEBHOOKS, 5 * _MINUTE, "webhooks"),
)
EXTENDED_APIS = (
    Kind(API_SERVICES, _HOUR, "extended-apis", 0.1),
    Kind(CUSTOM_RESOURCE_DEFINITIONS, _HOUR, "extended-apis", 0.1),
)
WORKLOADS = (
    *(
        Kind(each, 5 * _MINUTE, "kubernetes-resources")
        for each in (
            CRON_JOBS,
            DAEMON_SETS,
            DEPLOYMENTS,
            INGRESSES,
            JOBS,
            PODS,
            REPLICA_SETS,
            REPLICATION_CONTROLLERS,
            SERVICES,
            STATEFUL_SETS,
            VOLUME_CLAIMS,
        )
    ),
    *(Kind(each, _HOUR, "kubernetes-resources", 0.5) for each in (VOLUME_SNAPSHOTS, VOLUME_SNAPSHOT_CONTENTS)),
)


def kinds(wanted: Sequence[Kind], shoot: Object) -> list[Kind]:
    """Kinds to remove from the cluster of this Shoot."""
    if not is_truthy(annotations(shoot).get(keys.SHOOT_SKIP_CLEANUP)):
        return list(wanted)
    return [each for each in wanted if each.resource in _STILL_CLEANED or each in WEBHOOKS]


def is_spared(resource: Resource, obj: Mapping[str, object]) -> bool:
    """Whether an object stays: it belongs to the cluster, or is labelled to be kept."""
    having = labels(obj)
    if resource == API_SERVICES:
        return _AUTOMANAGED in having or _is_of_cluster(having)
    if resource == SERVICES and key(obj) == ("default", "kubernetes"):
        return True
    return _is_of_cluster(having) or having.get(keys.SHOOT_NO_CLEANUP) == "true"


def _is_of_cluster(having: Mapping[str, str]) -> bool:
    return having.get(keys.ROLE) == keys.ROLE_SYSTEM_COMPONENT


def is_overdue(obj: Object, patience: timedelta, *, now: datetime) -> bool:
    """Whether a deletion has exceeded its time limit. Args: now: of the Shoot's API server."""
    since = time_or_none(metadata(obj).get("deletionTimestamp"))
    return since is not None and now - since > patience
