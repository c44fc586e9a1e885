"""The controller `controllerregistration-seed`: Seeds get the ControllerInstallations that they need.

Seeds                     if spec, labels or annotations change, or they are being deleted
ControllerRegistrations   all Seeds
ControllerDeployments     all Seeds, if a ControllerRegistration names them
ControllerInstallations   the Seed, if they come, go, are required or not any more, or have been changed by hand
BackupBuckets             the Seed, and those whose BackupEntries are in them
BackupEntries, Shoots     the Seeds of which something else is needed than before
Secrets of the garden     all Seeds; copies of them: the Seed
Namespaces                the Seed
"""

from collections.abc import Iterable
from functools import partial

from agent.controller_manager.common.api import (
    BACKUP_BUCKETS_VIEW,
    BY_DEPLOYMENT,
    CONTROLLER_INSTALLATIONS_VIEW,
    CONTROLLER_REGISTRATIONS_VIEW,
    GARDEN_SECRETS_VIEW,
    NAMESPACES_VIEW,
    SEEDS_VIEW,
    SHOOTS_VIEW,
)
from agent.controller_manager.common.rules.garden_secrets import GardenSecret
from agent.controller_manager.context import Context
from agent.controller_manager.controller_registration.installations import changes
from agent.controller_manager.controller_registration.installations.demand import Demand, Entry
from agent.controller_manager.controller_registration.installations.desired import (
    Deployment,
    seed_of,
)
from agent.controller_manager.controller_registration.installations.reconcile import Reconciler, Stores
from gardener.api.garden import BACKUP_ENTRIES, CONTROLLER_DEPLOYMENTS, SEEDS
from gardener.garden import seeds as garden_seeds
from kube.objects import Key, Object, spec, text
from kube.runtime.cache import Change, View
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped

_DEPLOYMENTS_VIEW = View(CONTROLLER_DEPLOYMENTS, Deployment.of)
_ENTRIES_VIEW = View(BACKUP_ENTRIES, Entry.of)


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.controller_registration, context.garden.caches
    loop = ControlLoop("controllerregistration-seed", kind=SEEDS, workers=settings.concurrent_syncs)
    known = Stores(
        seeds=loop.watch(caches, SEEDS_VIEW, enqueue(when=changes.seed_matters)),
        namespaces=loop.watch(caches, NAMESPACES_VIEW, enqueue_mapped(_of_namespace, when=changes.came_or_went)),
        secrets=loop.watch(caches, GARDEN_SECRETS_VIEW),
        registrations=loop.watch(caches, CONTROLLER_REGISTRATIONS_VIEW),
        deployments=loop.watch(caches, _DEPLOYMENTS_VIEW),
        installations=loop.watch(
            caches, CONTROLLER_INSTALLATIONS_VIEW, enqueue_mapped(_of_installation, when=changes.installation_matters)
        ),
        buckets=loop.watch(caches, BACKUP_BUCKETS_VIEW),
    )
    demand = Demand(secrets=known.secrets, shoots=loop.watch(caches, SHOOTS_VIEW))
    # These ask other stores, so they follow once all are there.
    loop.watch(
        caches, GARDEN_SECRETS_VIEW, enqueue_mapped(partial(_of_secret, known, demand), when=changes.secret_matters)
    )
    loop.watch(caches, SHOOTS_VIEW, enqueue_mapped(lambda change: _keys(demand.shoot_changed(change))))
    loop.watch(caches, _ENTRIES_VIEW, enqueue_mapped(lambda change: _keys(demand.entry_changed(change))))
    loop.watch(
        caches, CONTROLLER_REGISTRATIONS_VIEW, enqueue_mapped(partial(_all, known), when=changes.registration_matters)
    )
    loop.watch(
        caches, _DEPLOYMENTS_VIEW, enqueue_mapped(partial(_of_deployment, known), when=changes.deployment_matters)
    )
    loop.watch(caches, BACKUP_BUCKETS_VIEW, enqueue_mapped(partial(_of_bucket, demand), when=changes.bucket_matters))
    return loop.reconciled_by(Reconciler(client=context.garden.client, known=known, demand=demand))


def _keys(seeds: Iterable[str]) -> list[Key]:
    return [Key("", seed) for seed in sorted(seeds) if seed]


def _all(known: Stores, _: Change[Object]) -> list[Key]:
    return list(known.seeds.all_keys())


def _of_namespace(change: Change[Object]) -> list[Key]:
    return _keys([garden_seeds.seed_of(change.key.name)])


def _of_installation(change: Change[Object]) -> list[Key]:
    return _keys({seed_of(installation) for installation in (change.old, change.new) if installation is not None})


def _of_secret(known: Stores, demand: Demand, change: Change[GardenSecret | None]) -> list[Key]:
    if seed := garden_seeds.seed_of(change.key.namespace):
        return _keys([seed])
    demand.domains_changed()
    return list(known.seeds.all_keys())


def _of_deployment(known: Stores, change: Change[Deployment]) -> list[Key]:
    is_named = known.registrations.count(BY_DEPLOYMENT, change.key)
    return list(known.seeds.all_keys()) if is_named else []


def _of_bucket(demand: Demand, change: Change[Object]) -> list[Key]:
    seeds = {text(spec(bucket).get("seedName")) for bucket in (change.old, change.new) if bucket is not None}
    return _keys(seeds | demand.seeds_with_entries_in(change.key.name))
