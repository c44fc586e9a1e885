"""The controller `backupbucket`, and its watches.

BackupBuckets      of the own Seed: new ones, spec changes and deletions
extension objects  of the same name: responses of the extension
"""

from agent.gardenlet.common.extension_objects.mirroring import MirroredObjects, answers
from agent.gardenlet.common.views import backup_buckets_view, backup_entries_view
from agent.gardenlet.context import Context
from agent.gardenlet.extensions.backup_bucket.reconcile import Reconciler
from agent.gardenlet.extensions.backups import Credentials, OperationStatus
from gardener.api.extensions import BACKUP_BUCKETS as EXTENSION_BUCKETS
from gardener.api.garden import BACKUP_BUCKETS
from kube.objects import Object, is_deleting
from kube.runtime.cache import Change, View, without_managed_fields
from kube.runtime.loop import ControlLoop, always, enqueue, enqueue_own
from kube.runtime.predicates import any_of, changed, listed

_EXTENSION_BUCKETS_VIEW = View(EXTENSION_BUCKETS, without_managed_fields)


def declare(context: Context) -> ControlLoop:
    settings, garden, seed = context.config.controllers.backup_bucket, context.garden, context.seed
    loop = ControlLoop("backupbucket", kind=BACKUP_BUCKETS, workers=settings.concurrent_syncs)
    extensions = MirroredObjects(seed, clock=context.clock)
    is_asked = any_of(listed, changed("metadata.generation", is_deleting))
    given = enqueue_own(always, when=is_asked, forget=extensions.forget)
    buckets = loop.watch(garden.caches, backup_buckets_view(context.seed_name), given)
    entries = loop.watch(garden.caches, backup_entries_view(context.seed_name))

    def leaves(change: Change[Object]) -> bool:
        """Whether an extension object that a deletion waits for is gone."""
        bucket = buckets.get(change.key)
        return change.new is None and bucket is not None and is_deleting(bucket)

    def follow() -> None:
        loop.watch(seed.caches, _EXTENSION_BUCKETS_VIEW, enqueue(when=any_of(answers, leaves)))

    loop.when_served(seed.discovery, [EXTENSION_BUCKETS], follow)
    return loop.reconciled_by(
        Reconciler(
            garden=garden.client,
            seed=seed.client,
            extensions=extensions,
            credentials=Credentials(
                garden=garden.client, seed=seed.client, recorder=context.garden_recorder, clock=context.clock
            ),
            buckets=buckets,
            entries=entries,
            status=OperationStatus(garden.client, buckets, clock=context.clock),
            recorder=context.garden_recorder,
            clock=context.clock,
        )
    )
