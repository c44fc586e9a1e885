"""The controller `backupentry`.

BackupEntries      that the own Seed is responsible for, that come, are to be worked on, or are to be deleted
BackupBuckets      of the own Seed, whose operation has changed, or that can be used from now on: all their entries
extension objects  of the same name, when an extension has answered, as long as their Shoot has a Cluster object
Clusters           that come, since an answer may have been seen before
"""

from functools import partial

from agent.gardenlet.backup_entry.reconcile import Reconciler
from agent.gardenlet.backup_entry.rules import bucket_problem, technical_id
from agent.gardenlet.context import Context
from agent.gardenlet.extension_mirror import ExtensionMirror, OperationStatus, answers
from agent.gardenlet.views import BY_BUCKET, BY_NAME, backup_buckets_view, backup_entries_view
from gardener.api.extensions import BACKUP_ENTRIES as EXTENSION_ENTRIES
from gardener.api.extensions import CLUSTERS
from gardener.api.garden import BACKUP_ENTRIES
from kube.objects import Key, Object, is_deleting, key, resource_version
from kube.runtime.cache import Change, Store, View, without_managed_fields
from kube.runtime.client import Form
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import all_of, any_of, came, changed, exists, happened, listed

_EXTENSION_ENTRIES_VIEW = View(EXTENSION_ENTRIES, without_managed_fields)
_CLUSTERS_VIEW = View(CLUSTERS, resource_version, form=Form.METADATA)


def declare(context: Context) -> ControlLoop:
    settings, garden, seed = context.config.controllers.backup_entry, context.garden, context.seed
    loop = ControlLoop("backupentry", kind=BACKUP_ENTRIES, workers=settings.concurrent_syncs)
    is_asked = all_of(exists, any_of(listed, changed("metadata.generation", is_deleting)))
    entries = loop.watch(garden.caches, backup_entries_view(context.seed_name), enqueue(when=is_asked))

    def of_bucket(change: Change[Object]) -> list[Key]:
        return entries.keys_by_index(BY_BUCKET, change.key.name)

    buckets = loop.watch(
        garden.caches,
        backup_buckets_view(context.seed_name),
        enqueue_mapped(of_bucket, when=all_of(exists, changed("status.lastOperation", bucket_problem))),
    )

    def of_cluster(change: Change[int]) -> list[Key]:
        return [key(each) for each in entries.values() if technical_id(key(each).name) == change.key.name]

    def follow() -> None:
        came_later = all_of(came, happened)
        clusters = loop.watch(seed.caches, _CLUSTERS_VIEW, enqueue_mapped(of_cluster, when=came_later))
        loop.watch(seed.caches, _EXTENSION_ENTRIES_VIEW, enqueue_mapped(partial(_answered, entries, clusters)))

    loop.when_served(seed.discovery, [EXTENSION_ENTRIES, CLUSTERS], follow)
    return loop.reconciled_by(
        Reconciler(
            garden=garden.client,
            mirror=ExtensionMirror(client=seed.client, resource=EXTENSION_ENTRIES, clock=context.clock),
            seed_name=context.seed_name,
            settings=settings,
            entries=entries,
            buckets=buckets,
            status=OperationStatus(garden.client, entries, clock=context.clock),
            recorder=context.garden_recorder,
            clock=context.clock,
        )
    )


def _answered(entries: Store[Object], clusters: Store[int], change: Change[Object]) -> list[Key]:
    """The entries that an extension has answered, or whose extension object has gone that is waited for."""
    found = entries.keys_by_index(BY_NAME, change.key.name)
    if change.new is None:
        return [name for name in found if is_deleting(entries.get(name) or {})]
    if not answers(change) or clusters.get(Key("", technical_id(change.key.name))) is None:
        return []
    return found
