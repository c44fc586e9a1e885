"""One pass over a Seed: it gets the ControllerInstallations that it needs, and loses the others.

Needs are computed from caches. Before a deletion, though, they are computed again from the API server: a Shoot that has
just come to the Seed may not be cached yet, and the removal of an extension that it needs would harm it.

A ControllerRegistration may go while a pass creates an installation of it: its finalizer is removed as soon as there is
none. So an installation created by the pass is removed, too, if its ControllerRegistration does not exist.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import structlog

from agent.controller_manager.common.api import BY_NAMESPACE, BY_SEED
from agent.controller_manager.common.rules.garden_secrets import GardenSecret
from agent.controller_manager.controller_registration.installations.desired import (
    Deployment,
    Desired,
    Digests,
    chosen,
    deployment_of,
    is_made_here,
    names_for,
    registration_of,
    registration_source,
    seed_of,
)
from agent.controller_manager.controller_registration.installations.requirements import (
    ChosenRegistrations,
    ShootRequirements,
    is_required,
    needed_extensions,
    wanted_registrations,
)
from agent.controller_manager.controller_registration.installations.seed_requirements import SeedRequirements
from gardener.api.garden import BACKUP_ENTRIES, CONTROLLER_INSTALLATIONS, CONTROLLER_REGISTRATIONS, SHOOTS
from gardener.garden import seeds as garden_seeds
from gardener.garden.domains import NAMESPACE
from gardener.garden.shoots import seeds_of
from kube.errors import AlreadyExists, KubeError
from kube.objects import Key, Object, is_deleting, key, metadata, spec, text, uid
from kube.paths import at
from kube.runtime.cache import Store, listed
from kube.runtime.client import Client, Selection
from kube.runtime.controller import Done, ReconcileError, Result
from kube.runtime.presence import present

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationStores:
    """Caches of the garden."""

    seeds: Store[Object]
    namespaces: Store[Object]
    secrets: Store[GardenSecret | None]
    registrations: Store[Object]
    deployments: Store[Deployment]
    installations: Store[Object]
    buckets: Store[Object]


class Reconciler:
    def __init__(self, *, client: Client, known: InstallationStores, requirements: SeedRequirements) -> None:
        self._client = client
        self._known = known
        self._requirements = requirements
        self._seen: dict[str, dict[str, Digests]] = {}
        """Digests by Seed and installation."""

    async def reconcile(self, key: Key) -> Result:
        seed = self._known.seeds.get(key)
        if seed is None:
            self._seen.pop(key.name, None)
            return Done()
        if not is_prepared(key.name, namespaces=self._known.namespaces, secrets=self._known.secrets):
            log.debug("The namespace of the Seed is not prepared yet")
            return Done()  # missing objects lead to a pass when they come
        registrations = {found.name: registration for found, registration in self._known.registrations.items()}
        installations = self._known.installations.values_by_index(BY_SEED, key)
        self._forget_all_but(key.name, installations)
        wanted_with = partial(
            self._wanted,
            seed,
            installations=installations,
            shoots=self._requirements.of_shoots(key.name),
            buckets=self._known.buckets,
            entries=self._requirements.buckets_of_entries(key.name),
        )
        wanted = wanted_with(registrations)
        if not wanted.is_complete or not {registration_of(each) for each in installations} <= registrations.keys():
            registrations = await self._registrations_now()
            wanted = wanted_with(registrations)
        errors: list[Exception] = [ReconcileError(problem) for problem in wanted.problems]
        errors += await self._deploy(seed, registrations, installations, wanted)
        errors += await self._remove(seed, registrations, installations, wanted)
        if errors:
            raise ExceptionGroup("one or more ControllerInstallations could not be reconciled", errors)
        return Done()

    # --- desired state

    def _wanted(
        self,
        seed: Object,
        registrations: Mapping[str, Object],
        installations: Iterable[Object],
        *,
        shoots: Collection[ShootRequirements],
        buckets: Store[Object],
        entries: Collection[str],
    ) -> ChosenRegistrations:
        """Choose the ControllerRegistrations; `entries` are the BackupBuckets of the BackupEntries."""
        needed = needed_extensions(
            seed,
            shoots=shoots,
            buckets=[_provider(bucket) for bucket in buckets.values_by_index(BY_SEED, key(seed).name)],
            entries=_providers(buckets, entries),
            registrations=registrations.values(),
            internal_domain=self._requirements.internal_domain,
        )
        return wanted_registrations(
            seed,
            needed=needed,
            registrations=registrations,
            required={registration_of(each) for each in installations if is_required(each)},
            has_shoots=bool(shoots),
        )

    async def _registrations_now(self) -> dict[str, Object]:
        """List the ControllerRegistrations from the API server: a missing one may only be missing in the cache."""
        found = await listed(self._client, self._known.registrations.view)
        return {name.name: registration for name, registration in found.items()}

    # --- creating and changing

    async def _deploy(
        self,
        seed: Object,
        registrations: Mapping[str, Object],
        installations: Iterable[Object],
        wanted: ChosenRegistrations,
    ) -> list[Exception]:
        """Return the errors: a failed installation does not stop the others."""
        errors: list[Exception] = []
        present = chosen(installations)
        errors += [
            ReconcileError(f'ControllerRegistration "{name}" does not exist')
            for name, installation in sorted(present.items())
            if name not in registrations and not is_required(installation) and not is_made_here(installation)
        ]
        for name in sorted(wanted.registrations):
            if is_deleting(registrations[name]):
                continue
            try:
                await self._deploy_one(seed, registrations[name], present.get(name))
            except (KubeError, ReconcileError) as error:
                errors.append(error)
        return errors

    async def _deploy_one(self, seed: Object, registration: Object, installation: Object | None) -> None:
        seen = self._seen[key(seed).name]
        name = key(installation).name if installation is not None else ""
        desired = Desired(seed, registration, await self._deployment(registration), seen.get(name, {}))
        if installation is None:
            await self._create(desired)
            return
        if is_deleting(installation):
            raise ReconcileError(
                f'cannot deploy new ControllerInstallation for "{key(registration).name}" because the deletion of the'
                " old ControllerInstallation is still pending"
            )
        patch = desired.patch(installation)
        if patch is not None:
            self._known.installations.observe(await self._client.patch(CONTROLLER_INSTALLATIONS, name, patch))
        seen[name] = desired.digests()

    def _forget_all_but(self, seed: str, installations: Iterable[Object]) -> None:
        seen, present = self._seen.get(seed, {}), {key(installation).name for installation in installations}
        self._seen[seed] = {name: digests for name, digests in seen.items() if name in present}

    async def _deployment(self, registration: Object) -> tuple[str, Deployment] | None:
        name = deployment_of(registration)
        if not name:
            return None
        deployment = await present(self._client, self._known.deployments, Key("", name))
        if deployment is None:
            raise ReconcileError(
                "cannot deploy ControllerInstallation because the referenced ControllerDeployment cannot be retrieved:"
                f' controllerdeployments.core.gardener.cloud "{name}" not found'
            )
        return name, deployment

    async def _create(self, desired: Desired) -> None:
        """Create the installation; its name follows from ControllerRegistration and Seed, which prevents duplicates."""
        registration, seed = key(desired.registration).name, key(desired.seed).name
        for name in names_for(registration, seed):
            known = self._known.installations.get(Key("", name))
            if known is not None:
                continue
            try:
                self._known.installations.observe(
                    await self._client.create(CONTROLLER_INSTALLATIONS, desired.new(name))
                )
                self._seen[seed][name] = desired.digests()
                return
            except AlreadyExists:
                present = await self._client.find(CONTROLLER_INSTALLATIONS, name)
                if present is None or (registration_of(present), seed_of(present)) == (registration, seed):
                    return  # the change, once observed, leads to a pass
        raise ReconcileError(f"no free name for a ControllerInstallation of {registration}; delete an unused one")

    # --- removing

    async def _remove(
        self,
        seed: Object,
        registrations: Mapping[str, Object],
        installations: Iterable[Object],
        wanted: ChosenRegistrations,
    ) -> list[Exception]:
        """Return the errors."""
        unwanted = [
            installation
            for installation in installations
            if not is_deleting(installation)
            and registration_of(installation) not in wanted.registrations
            and (registration_of(installation) in registrations or _may_be_orphan(installation))
        ]
        if not unwanted:
            return []
        errors: list[Exception] = []
        try:
            wanted = await self._wanted_now(seed, registrations)
        except KubeError as error:
            return [error]
        for installation in unwanted:
            name = registration_of(installation)
            if name in wanted.registrations:
                continue
            if not wanted.is_complete and self._may_have_provided(registrations.get(name), seed, installation):
                continue
            meta = metadata(installation)
            try:
                if name not in registrations and await self._client.find(CONTROLLER_REGISTRATIONS, name) is not None:
                    continue
                await self._client.delete_if_exists(
                    CONTROLLER_INSTALLATIONS,
                    meta["name"],
                    uid=uid(installation),
                    resource_version=meta["resourceVersion"],
                )
            except KubeError as error:
                errors.append(error)
        return errors

    def _may_have_provided(self, registration: Object | None, seed: Object, installation: Object) -> bool:
        """Whether this one may have provided, before a change, a needed extension that none provides any more."""
        if registration is None:
            return True
        seen = self._seen[key(seed).name].get(key(installation).name, {})
        return registration_source(registration).has_changed(installation, seen)

    async def _wanted_now(self, seed: Object, registrations: Mapping[str, Object]) -> ChosenRegistrations:
        """Choose the ControllerRegistrations from the state in the API server."""
        name = key(seed).name
        shoots: dict[Key, Object] = {}
        for field in ("spec.seedName", "status.seedName"):
            found = await self._client.list(SHOOTS, Selection(field_selector=f"{field}={name}"))
            shoots |= {key(shoot): shoot for shoot in found if name in seeds_of(shoot)}
        entries = await self._client.list(BACKUP_ENTRIES, Selection(field_selector=f"spec.seedName={name}"))
        selection = Selection(field_selector=f"spec.seedRef.name={name}")
        installations = await self._client.list(CONTROLLER_INSTALLATIONS, selection)
        return self._wanted(
            seed,
            registrations,
            installations,
            shoots={self._requirements.of_shoot(shoot) for shoot in shoots.values()},
            buckets=await listed(self._client, self._known.buckets.view),
            entries={text(spec(entry).get("bucketName")) for entry in entries},
        )


def _may_be_orphan(installation: Object) -> bool:
    """Whether the installation is removed if its ControllerRegistration does not exist."""
    return is_made_here(installation) and not is_required(installation)


def is_prepared(seed: str, *, namespaces: Store[Object], secrets: Store[GardenSecret | None]) -> bool:
    """Whether the Seed has its namespace, with a copy of each garden Secret."""
    namespace = garden_seeds.namespace_of(seed)
    if namespaces.get(Key("", namespace)) is None:
        return False
    copies = {copy.name for copy in secrets.keys_by_index(BY_NAMESPACE, namespace)}
    return all(source.name in copies for source in secrets.keys_by_index(BY_NAMESPACE, NAMESPACE))


def _providers(buckets: Store[Object], names: Iterable[str]) -> Iterable[str]:
    for name in sorted(names):
        bucket = buckets.get(Key("", name))
        if bucket is None:
            log.info("A BackupEntry refers to an unknown BackupBucket", bucket=name)
        else:
            yield _provider(bucket)


def _provider(bucket: Object) -> str:
    return text(at(bucket, "spec", "provider", "type"))
