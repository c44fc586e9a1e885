"""The controller `backupentry`, and its watches.

BackupEntries      of the own Seed: new or departing ones, spec changes and deletions
BackupBuckets      of the own Seed: changes of the operation or of fields that entries use enqueue all their entries;
                   another change of its usability enqueues the failed ones
extension objects  of the same name: responses of the extension, while the Shoot has a Cluster object
Cluster objects    that are observed only after the extension responded
"""

from functools import partial

from agent.gardenlet.common.extension_objects.mirroring import MirroredObjects, answers, has_ended
from agent.gardenlet.common.views import BY_BUCKET, BY_NAME, backup_buckets_view, backup_entries_view
from agent.gardenlet.context import Context
from agent.gardenlet.extensions.backup_entry.reconcile import Reconciler
from agent.gardenlet.extensions.backup_entry.rules import bucket_trouble, technical_id
from agent.gardenlet.extensions.backups import Credentials, OperationStatus
from gardener.api.extensions import BACKUP_ENTRIES as EXTENSION_ENTRIES
from gardener.api.extensions import CLUSTERS
from gardener.api.garden import BACKUP_ENTRIES
from gardener.extension_contract import last_operation
from gardener.garden.shoots import is_on
from gardener.operations import ERROR
from kube.objects import Key, Object, is_deleting, key, resource_version
from kube.runtime.cache import Change, Store, View, without_managed_fields
from kube.runtime.client import Form
from kube.runtime.loop import ControlLoop, enqueue_mapped, enqueue_own
from kube.runtime.predicates import Predicate, all_of, any_of, changed, exists, listed

_BY_CLUSTER = "cluster"


def _cluster_of(entry: Object) -> tuple[str]:
    return (technical_id(key(entry).name),)


_EXTENSION_ENTRIES_VIEW = View(EXTENSION_ENTRIES, without_managed_fields, indexes=((_BY_CLUSTER, _cluster_of),))
_CLUSTERS_VIEW = View(CLUSTERS, resource_version, form=Form.METADATA)


def declare(context: Context) -> ControlLoop:
    settings, garden, seed = context.config.controllers.backup_entry, context.garden, context.seed
    loop = ControlLoop("backupentry", kind=BACKUP_ENTRIES, workers=settings.concurrent_syncs)
    extensions = MirroredObjects(seed, clock=context.clock)
    is_asked = any_of(listed, changed("metadata.generation", is_deleting))
    given = enqueue_own(is_on(context.seed_name), when=is_asked, forget=extensions.forget)
    entries = loop.watch(garden.caches, backup_entries_view(context.seed_name), given)

    def of_bucket(change: Change[Object]) -> list[Key]:
        found = entries.keys_by_index(BY_BUCKET, change.key.name)
        return found if _is_other(change) else [name for name in found if _has_failed(entries.get(name))]

    buckets = loop.watch(
        garden.caches,
        backup_buckets_view(context.seed_name),
        enqueue_mapped(of_bucket, when=all_of(exists, any_of(_is_other, changed(bucket_trouble)))),
    )

    def follow() -> None:
        clusters = loop.watch(seed.caches, _CLUSTERS_VIEW)
        answered = enqueue_mapped(partial(_answered, entries, clusters))
        mirrored = loop.watch(seed.caches, _EXTENSION_ENTRIES_VIEW, answered)
        loop.watch(seed.caches, _CLUSTERS_VIEW, enqueue_mapped(partial(_seen_late, entries, mirrored, clusters)))

    loop.when_served(seed.discovery, [EXTENSION_ENTRIES, CLUSTERS], follow)
    return loop.reconciled_by(
        Reconciler(
            garden=garden.client,
            seed=seed.client,
            extensions=extensions,
            credentials=Credentials(
                garden=garden.client, seed=seed.client, recorder=context.garden_recorder, clock=context.clock
            ),
            seed_name=context.seed_name,
            settings=settings,
            entries=entries,
            buckets=buckets,
            status=OperationStatus(garden.client, entries, clock=context.clock),
            recorder=context.garden_recorder,
            clock=context.deletion_clock,
        )
    )


_is_other: Predicate[Object] = changed("status.lastOperation", "status.providerStatus", "status.generatedSecretRef")


def _has_failed(entry: Object | None) -> bool:
    return last_operation(entry or {}).get("state") == ERROR


def _answered(entries: Store[Object], clusters: Store[int], change: Change[Object]) -> list[Key]:
    """Entries whose extension has responded, or whose deletion waited for the extension object that is gone."""
    found = entries.keys_by_index(BY_NAME, change.key.name)
    if change.new is None:
        return [name for name in found if is_deleting(entries.get(name) or {})]
    is_without_cluster = clusters.synced.is_set() and clusters.get(Key("", technical_id(change.key.name))) is None
    return found if answers(change) and not is_without_cluster else []


def _seen_late(
    entries: Store[Object], extensions: Store[Object], clusters: Store[int], change: Change[int]
) -> list[Key]:
    """Entries whose extension object is newer than a Cluster object observed only now: that watch was behind."""
    if change.old is not None or change.new is None or not clusters.synced.is_set():
        return []
    found = extensions.values_by_index(_BY_CLUSTER, change.key.name)
    answered = [key(each).name for each in found if has_ended(each) and resource_version(each) > change.new]
    return [name for each in answered for name in entries.keys_by_index(BY_NAME, each)]
