"""One reconciliation of a ControllerInstallation: its extension is installed in the seed, or removed.

    namespace     with everything that the extension needs to access the garden
    chart         rendered with values of garden and seed, unless all inputs are unchanged
    manifests     with access to the garden injected into workloads, in a Secret, and a ManagedResource for it

The condition `Valid` reports problems of the chart, `Installed` those of the installation; its success is reported by
the care controller, from the ManagedResource.

Deletion is the reverse. The finalizer stays until the namespace is gone: otherwise the next installation of this name
would lose objects that it creates in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.gardenlet.bootstrap.rules.kubeconfig import configured_authority
from agent.gardenlet.common.charts.helm import Release
from agent.gardenlet.common.identity import is_garden
from agent.gardenlet.context import Context
from agent.gardenlet.extensions.controller_installation.install import namespaces, writes
from agent.gardenlet.extensions.controller_installation.install.charts import ChartProblem, Charts, Source, source_of
from agent.gardenlet.extensions.controller_installation.install.deployments import Deployments, is_injected, name_of
from agent.gardenlet.extensions.controller_installation.install.removal import DeletionPending, remove
from agent.gardenlet.extensions.controller_installation.install.rules import access, manifests
from agent.gardenlet.extensions.controller_installation.install.rules.access import Server
from agent.gardenlet.extensions.controller_installation.install.rules.injection import Injection
from agent.gardenlet.extensions.controller_installation.install.rules.values import Surroundings, values
from config.gardenlet.schema import FEATURES
from gardener import conditions, keys
from gardener.api.garden import CONTROLLER_DEPLOYMENTS, CONTROLLER_INSTALLATIONS, CONTROLLER_REGISTRATIONS, SEEDS
from gardener.garden.extensions import namespace_of_installation
from kube.conditions import Condition, conditions_of, with_conditions
from kube.errors import KubeError
from kube.objects import Key, Object, condition, finalizers, is_deleting, key, text, texts
from kube.packing import digest
from kube.paths import at
from kube.resources import SECRETS, Resource
from kube.runtime.cache import Store
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result, is_conflict
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer
from kube.runtime.presence import present
from kube.runtime.status import StatusWriter

_AGAIN_SECONDS = 5.0
_VALID = Condition(conditions.VALID, "True", "RegistrationValid", "chart could be rendered successfully.")
_MOST_NAMED = 10


class _Invalid(ReconcileError):
    """The installation can't proceed, for the reason in the condition."""

    def __init__(self, reported: Condition) -> None:
        super().__init__(reported.message)
        self.reported = reported


@dataclass(frozen=True, slots=True)
class _Last:
    """The last installation.

    Attributes:
        made_of: digest of all its inputs.
    """

    made_of: bytes
    secret: Key


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    context: Context
    installations: Store[Object]
    deployments: Deployments
    registrations: Store[Object]
    seeds: Store[Object]
    statuses: StatusWriter
    charts: Charts
    _last: dict[Key, _Last] = field(default_factory=dict)
    _left: dict[Key, set[Key]] = field(default_factory=dict)
    """Secrets of the installations that are being removed."""

    async def reconcile(self, name: Key) -> Result:
        installation = self.installations.get(name)
        if installation is None:
            self._last.pop(name, None)
            self._left.pop(name, None)
            self.deployments.forget_unused()
            return Done()
        deployment = await self._deployment(installation)
        has_chart = deployment is not None and isinstance(deployment.get("helm"), dict)
        if is_deleting(installation):
            is_ours = keys.INSTALLATION_FINALIZER in finalizers(installation)
            return await self._remove(installation) if has_chart or is_ours else Done()
        if deployment is None or not has_chart:
            return Done()
        try:
            return await self._install(installation, deployment)
        except _Invalid as error:
            await self._write(installation, error.reported)
            raise

    async def _deployment(self, installation: Object) -> Object | None:
        """Return the live ControllerDeployment; None if there is none.

        Raises:
            KubeError: it can't be read.
        """
        if not (name := name_of(installation)):
            return None
        found = await self.context.garden.client.find(CONTROLLER_DEPLOYMENTS, name)
        self.deployments.follow(name, found)
        return found

    # --- installation

    async def _install(self, installation: Object, deployment: Object) -> Result:
        client = self.context.garden.client
        installation = await ensure_finalizer(
            client, CONTROLLER_INSTALLATIONS, installation, keys.INSTALLATION_FINALIZER
        )
        self.installations.observe(installation)
        registration = await self._referred(installation, "registrationRef", CONTROLLER_REGISTRATIONS, "Registration")
        seed = await self._referred(installation, "seedRef", SEEDS, "Seed")
        namespace = await self._namespace(installation, registration, seed)
        if is_deleting(namespace):
            message = f'Namespace "{key(namespace).name}" of a former installation is still being deleted.'
            await self._write(installation, Condition(conditions.INSTALLED, "False", "InstallationPending", message))
            return RequeueAfter(_AGAIN_SECONDS)
        if not text(at(seed, "status", "clusterIdentity")):
            raise ReconcileError(f"cluster-identity of seed '{key(seed).name}' not set")
        kubeconfig = await self._access(installation, registration, is_given=is_injected(deployment))
        try:
            await self._apply_chart(installation, deployment, seed, kubeconfig)
        except ChartProblem as problem:
            self._last.pop(key(installation), None)
            invalid = Condition(conditions.VALID, "False", problem.reason, str(problem))
            if not problem.is_final:
                raise _Invalid(invalid) from problem
            await self._write(installation, invalid)
        return Done()

    async def _referred(self, installation: Object, field: str, resource: Resource, what: str) -> Object:
        """Return a referenced object.

        Raises:
            _Invalid: it is missing or can't be read.
        """
        store = self.registrations if resource == CONTROLLER_REGISTRATIONS else self.seeds
        name = text(at(installation, "spec", field, "name"))
        try:
            found = await present(self.context.garden.client, store, Key("", name))
        except KubeError as error:
            message = f"Referenced {resource.kind} cannot be read: {error}"
            raise _Invalid(Condition(conditions.VALID, "Unknown", f"{what}ReadError", message)) from error
        if found is None:
            problem = f'{resource.kind}.{resource.group} "{name}" not found'
            message = f"Referenced {resource.kind} does not exist: {problem}"
            raise _Invalid(Condition(conditions.VALID, "False", f"{what}NotFound", message))
        return found

    async def _namespace(self, installation: Object, registration: Object, seed: Object) -> Object:
        wanted = namespaces.desired(
            installation,
            registration=key(registration).name,
            zones=texts(at(seed, "spec", "provider", "zones")),
            is_garden=await is_garden(self.context.seed),
        )
        return await writes.write_namespace(self.context.seed.client, wanted)

    async def _access(self, installation: Object, registration: Object, *, is_given: bool) -> str:
        """Name of the Secret with the kubeconfig for the garden; empty if the extension gets none."""
        client, name = self.context.seed.client, key(installation).name
        secret = access.access_secret(name, registration=key(registration).name, seed=self.context.seed_name)
        if not is_given:
            await client.delete_if_exists(SECRETS, key(secret))
            return ""
        await writes.write_access(client, secret)
        kubeconfig = access.kubeconfig_secret(self._server(), namespace=namespace_of_installation(name))
        await writes.write_immutable(client, kubeconfig)
        return key(kubeconfig).name

    def _server(self) -> Server:
        settings, garden = self.context.config.garden_client_connection, self.context.garden
        configured = configured_authority(settings.garden_cluster_ca_cert)
        authority = garden.authority if configured is None else configured
        return Server(settings.garden_cluster_address or garden.transport.connection.server, authority)

    async def _apply_chart(self, installation: Object, deployment: Object, seed: Object, kubeconfig: str) -> None:
        """Render the chart if its inputs changed, and write its ManagedResource.

        Raises:
            ChartProblem: the chart can't be rendered.
            _Invalid: the ManagedResource can't be written.
            KubeError: a conflict, or an unreadable version of the seed.
        """
        name = key(installation).name
        source = await self.charts.fixed(source_of(deployment))
        release = Release(
            name=name,
            namespace=namespace_of_installation(name),
            values=self._values(source, seed, kubeconfig),
            kubernetes=await self._kubernetes(seed),
        )
        made_of = digest([source.raw, str(source.reference), release.namespace, release.values, release.kubernetes])
        last = self._last.get(key(installation))
        try:
            if last is None or last.made_of != made_of or not await self._is_there(last.secret):
                last = _Last(made_of, await self._render(installation, source, release, kubeconfig))
            written = await writes.write_managed_resource(
                self.context.seed.client, manifests.managed_resource(name, last.secret.name)
            )
        except KubeError as error:
            if is_conflict(error):
                raise
            message = f'Creation of ManagedResource "{name}" failed: {error}'
            raise _Invalid(Condition(conditions.INSTALLED, "False", "InstallationFailed", message)) from error
        if written is not None:
            self.context.writes.note(written)
        self._last[key(installation)] = last
        await self._write(installation, _VALID, is_pending=True)

    async def _render(self, installation: Object, source: Source, release: Release, kubeconfig: str) -> Key:
        """Render the chart, and return the Secret with the manifests."""
        found = await self.charts.render(name_of(installation), source, release)
        injection = Injection(release.namespace, kubeconfig, self.context.seed_name)
        rendered = manifests.rendered(release.name, found, injection)
        await writes.write_immutable(self.context.seed.client, rendered.secret)
        if rendered.elsewhere:
            self._warn(installation, rendered.elsewhere)
        return key(rendered.secret)

    def _warn(self, installation: Object, workloads: Sequence[str]) -> None:
        more = f" and {len(workloads) - _MOST_NAMED} more" if len(workloads) > _MOST_NAMED else ""
        message = (
            f"Without access to the garden, since their manifests do not name the namespace "
            f"{namespace_of_installation(key(installation).name)}: {', '.join(workloads[:_MOST_NAMED])}{more}"
        )
        self.context.garden_recorder.event(installation, "Warning", "WorkloadsWithoutGardenAccess", message)

    def _values(self, source: Source, seed: Object, kubeconfig: str) -> dict[str, Any]:
        around = Surroundings(
            version=text(self.context.gardener.get("version")),
            garden_identity=self.context.garden_identity,
            kubeconfig=kubeconfig,
            features={name: self.context.config.has_feature(name) for name in FEATURES},
        )
        return values(source.values, seed=seed, around=around)

    async def _kubernetes(self, seed: Object) -> str:
        if version := text(at(seed, "status", "kubernetesVersion")):
            return version
        return text((await self.context.seed.client.read("/version")).get("gitVersion"))

    async def _is_there(self, secret: Key) -> bool:
        return await self.context.seed.client.find(SECRETS, secret) is not None

    # --- deletion

    async def _remove(self, installation: Object) -> Result:
        self._last.pop(key(installation), None)
        try:
            left = self._left.setdefault(key(installation), set())
            await remove(key(installation).name, context=self.context, secrets=left)
        except DeletionPending as pending:
            await self._write(installation, Condition(conditions.INSTALLED, "False", "DeletionPending", str(pending)))
            return RequeueAfter(_AGAIN_SECONDS)
        except KubeError as error:
            failed = Condition(conditions.INSTALLED, "False", "DeletionFailed", str(error))
            await self._write(installation, failed)
            raise
        done = Condition(conditions.INSTALLED, "False", "DeletionSuccessful", "Deletion of old resources succeeded.")
        await self._write(installation, done)
        live = self.installations.get(key(installation)) or installation
        await remove_finalizer(self.context.garden.client, CONTROLLER_INSTALLATIONS, live, keys.INSTALLATION_FINALIZER)
        return Done()

    # --- status

    async def _write(self, installation: Object, reported: Condition, *, is_pending: bool = False) -> None:
        """Write conditions; `is_pending` sets an unknown `Installed` to pending."""
        now, name = self.context.clock(), key(installation).name

        def compute(status: Object) -> Object:
            found, present = [reported], condition({"status": status}, conditions.INSTALLED) or {}
            if is_pending and present.get("status", "Unknown") == "Unknown":
                message = f'Installation of ManagedResource "{name}" is still pending.'
                found.append(Condition(conditions.INSTALLED, "False", "InstallationPending", message))
            return {**status, "conditions": with_conditions(conditions_of({"status": status}), found, now=now)}

        await self.statuses.update_if_exists(installation, compute)
