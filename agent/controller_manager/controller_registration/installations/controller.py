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
from operator import attrgetter

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
from agent.controller_manager.controller_registration.installations.desired import (
    LABELS,
    POD_SECURITY,
    Deployment,
)
from agent.controller_manager.controller_registration.installations.reconcile import InstallationStores, Reconciler
from agent.controller_manager.controller_registration.installations.requirements import is_required
from agent.controller_manager.controller_registration.installations.seed_requirements import Entry, SeedRequirements
from gardener.api.garden import BACKUP_ENTRIES, CONTROLLER_DEPLOYMENTS, SEEDS
from gardener.garden import seeds as garden_seeds
from gardener.garden import users
from gardener.garden.domains import Domain
from kube.objects import Key, Object, is_deleting, labels, spec, text
from kube.runtime.cache import Change, View
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped, enqueue_users
from kube.runtime.predicates import Predicate, all_of, annotation, any_of, came, changed, exists, listed, now, went

_DEPLOYMENTS_VIEW = View(CONTROLLER_DEPLOYMENTS, Deployment.of)
_ENTRIES_VIEW = View(BACKUP_ENTRIES, Entry.of)


_seed_triggers: Predicate[Object] = all_of(
    exists, any_of(listed, now(is_deleting), changed("spec", "metadata.labels", "metadata.annotations"))
)
"""Changes of Seeds that lead to a pass; not their end: all they had is gone before."""
_registration_triggers: Predicate[Object] = changed("spec", "metadata.deletionTimestamp", annotation(POD_SECURITY))


def _own_labels(installation: Object) -> list[str | None]:
    return [labels(installation).get(name) for name in LABELS]


installation_triggers: Predicate[Object] = changed(
    "spec", "metadata.deletionTimestamp", annotation(POD_SECURITY), is_required, _own_labels
)
"""Changes that lead to a pass, including manual changes of fields written by this controller."""


def _role_and_domain(secret: GardenSecret | None) -> tuple[str, Domain | None] | None:
    return None if secret is None else (secret.role, secret.domain)


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.controller_registration, context.garden.caches
    loop = ControlLoop("controllerregistration-seed", kind=SEEDS, workers=settings.concurrent_syncs)
    known = InstallationStores(
        seeds=loop.watch(caches, SEEDS_VIEW, enqueue(when=_seed_triggers)),
        namespaces=loop.watch(caches, NAMESPACES_VIEW, enqueue_mapped(_of_namespace, when=any_of(came, went))),
        secrets=loop.watch(caches, GARDEN_SECRETS_VIEW),
        registrations=loop.watch(caches, CONTROLLER_REGISTRATIONS_VIEW),
        deployments=loop.watch(caches, _DEPLOYMENTS_VIEW),
        installations=loop.watch(
            caches, CONTROLLER_INSTALLATIONS_VIEW, enqueue_mapped(_of_installation, when=installation_triggers)
        ),
        buckets=loop.watch(caches, BACKUP_BUCKETS_VIEW),
    )
    requirements = SeedRequirements(secrets=known.secrets, shoots=loop.watch(caches, SHOOTS_VIEW))
    # These read other stores, so they follow once all exist.
    loop.watch(
        caches,
        GARDEN_SECRETS_VIEW,
        enqueue_users(partial(_of_secret, known, requirements), when=changed(_role_and_domain)),
    )
    loop.watch(caches, SHOOTS_VIEW, enqueue_mapped(lambda change: _keys(requirements.shoot_changed(change))))
    loop.watch(caches, _ENTRIES_VIEW, enqueue_mapped(lambda change: _keys(requirements.entry_changed(change))))
    loop.watch(caches, CONTROLLER_REGISTRATIONS_VIEW, enqueue_users(partial(_all, known), when=_registration_triggers))
    loop.watch(
        caches, _DEPLOYMENTS_VIEW, enqueue_users(partial(_of_deployment, known), when=changed(attrgetter("digest")))
    )
    loop.watch(caches, BACKUP_BUCKETS_VIEW, enqueue_mapped(partial(_of_bucket, requirements), when=changed("spec")))
    return loop.reconciled_by(Reconciler(client=context.garden.client, known=known, requirements=requirements))


def _keys(seeds: Iterable[str]) -> list[Key]:
    return [Key("", seed) for seed in sorted(seeds) if seed]


def _all(known: InstallationStores, _: Key) -> list[Key]:
    return list(known.seeds.all_keys())


def _of_namespace(change: Change[Object]) -> list[Key]:
    return _keys([garden_seeds.seed_of(change.key.name)])


def _of_installation(change: Change[Object]) -> list[Key]:
    return sorted({seed for each in (change.old, change.new) if each is not None for seed in users.seeds(each)})


def _of_secret(known: InstallationStores, requirements: SeedRequirements, secret: Key) -> list[Key]:
    if seed := garden_seeds.seed_of(secret.namespace):
        return _keys([seed])
    requirements.domains_changed()
    return list(known.seeds.all_keys())


def _of_deployment(known: InstallationStores, deployment: Key) -> list[Key]:
    is_named = known.registrations.count(BY_DEPLOYMENT, deployment)
    return list(known.seeds.all_keys()) if is_named else []


def _of_bucket(requirements: SeedRequirements, change: Change[Object]) -> list[Key]:
    seeds = {text(spec(bucket).get("seedName")) for bucket in (change.old, change.new) if bucket is not None}
    return _keys(seeds | requirements.seeds_with_entries_in(change.key.name))
