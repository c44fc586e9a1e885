"""One reconciliation of the Gardenlet of this process: its chart is rendered, and applied in the own cluster.

The applied objects depend on the Gardenlet and the chart only. Configuration and values are passed on unchanged, since
a later release may know more fields than this one. So the new pods check the configuration before they replace the
old ones; a failed check is reported, and this process keeps running.
"""

import base64
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from agent.gardenlet.common.charts.registry import Registry
from agent.gardenlet.common.charts.rules.registries import Reference, RegistryError, reference
from agent.gardenlet.context import Context
from agent.gardenlet.managed_seeds.installation.credentials import Owner
from agent.gardenlet.managed_seeds.installation.installation import Installer, Wanted
from agent.gardenlet.managed_seeds.installation.rules import bootstrap, values
from agent.gardenlet.managed_seeds.installation.rules.rollout import check_failure, image_of_container
from agent.gardenlet.managed_seeds.installation.target import NAME, NAMESPACE, Target, is_rolled_out
from gardener import conditions, keys, operations
from gardener.api.garden import GARDENLETS, SEEDS
from kube.conditions import Condition, conditions_of, with_conditions
from kube.errors import KubeError
from kube.objects import Key, Object, annotations, is_deleting, key, mapping, spec, text, uid
from kube.paths import mapping_at
from kube.resources import PODS
from kube.runtime.cache import Store
from kube.runtime.client import Selection
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result, is_conflict
from kube.runtime.status import StatusWriter

_RECONCILED, _RECONCILING, _FAILED = "Reconciled", "Reconciling", "ReconcileError"
_LOOK_SECONDS = 10.0
"""Seconds between two checks of new pods."""
_FOLLOWED = timedelta(minutes=10)
"""Time for which new pods are checked after a deployment."""
_PODS = "app=gardener,role=gardenlet"
_RAW = "spec.deployment.helm.rawChart"


@dataclass(frozen=True, slots=True)
class _Followed:
    """The last deployment.

    Attributes:
        message: for the condition, if it starts.
    """

    requested: tuple[str, int]
    until: datetime
    message: str

    def is_for(self, gardenlet: Object, now: datetime) -> bool:
        return self.requested == _requested(gardenlet) and now < self.until and not _is_renewing(gardenlet)


@dataclass(eq=False, slots=True, kw_only=True)
class Reconciler:
    context: Context
    gardenlets: Store[Object]
    statuses: StatusWriter
    registry: Registry
    installer: Installer
    target: Target
    _followed: "_Followed | None" = None

    async def reconcile(self, name: Key) -> Result:
        gardenlet = self.gardenlets.get(name)
        if gardenlet is None or is_deleting(gardenlet):
            return Done()
        if self._followed is not None and self._followed.is_for(gardenlet, self.context.clock()):
            return await self._follow(gardenlet)
        self._event(gardenlet, _RECONCILING, "Deploying gardenlet")
        try:
            where, chart = await self._chart(gardenlet)
            await self._deploy(gardenlet, chart)
        except (ReconcileError, KubeError) as error:
            if not is_conflict(error):
                await self._fail(gardenlet, str(error))
            raise
        if _is_renewing(gardenlet):
            await self._forget_operation(gardenlet)
        self._event(gardenlet, _RECONCILED, "Gardenlet has been deployed")
        message = f"Gardenlet with chart from {where} has been deployed"
        self._followed = _Followed(_requested(gardenlet), self.context.clock() + _FOLLOWED, message)
        return await self._follow(gardenlet)

    async def _follow(self, gardenlet: Object) -> Result:
        """Check whether new pods start; while none fails, the deployment counts as successful."""
        followed, period = self._followed, self.context.config.controllers.gardenlet.sync_period
        assert followed is not None
        deployment = await self.target.deployment()
        if deployment is None or is_rolled_out(deployment):
            self._followed = None
            await self._write(gardenlet, "True", _RECONCILED, followed.message)
            return RequeueAfter(period)
        selection = Selection(namespace=NAMESPACE, label_selector=_PODS)
        if failure := check_failure(await self.target.client.list(PODS, selection)):
            await self._fail(gardenlet, failure)
        else:
            await self._write(gardenlet, "True", _RECONCILED, followed.message)
        return RequeueAfter(min(_LOOK_SECONDS, period))

    async def _chart(self, gardenlet: Object) -> tuple[str, bytes]:
        """Origin of the chart, and its archive.

        Raises:
            ReconcileError: the chart can't be read or pulled.
        """
        helm = mapping_at(gardenlet, "spec", "deployment", "helm")
        if raw := text(helm.get("rawChart")):
            try:
                return _RAW, base64.b64decode(raw, validate=True)
            except ValueError as error:
                raise ReconcileError(f"{_RAW} is not valid base64: {error}; correct it") from error
        where = self._reference(mapping(helm.get("ociRepository")))
        try:
            return str(where), (await self.registry.chart(where)).archive
        except RegistryError as error:
            raise ReconcileError(f"failed pulling Helm chart from OCI repository: {error}") from error

    def _reference(self, repository: Object) -> Reference:
        if not any(repository.get(each) for each in ("ref", "tag", "digest")):
            repository = {**repository, "tag": text(self.context.gardener.get("version"))}
        try:
            return reference(repository)
        except RegistryError as error:
            raise ReconcileError(f"spec.deployment.helm.ociRepository is invalid: {error}; correct it") from error

    async def _deploy(self, gardenlet: Object, chart: bytes) -> None:
        config = mapping(spec(gardenlet).get("config"))
        wanted = Wanted(
            archive=chart,
            deployment=mapping(spec(gardenlet).get("deployment")),
            config=values.named(config, key(gardenlet).name),
            owner=Owner(kind=GARDENLETS, key=key(gardenlet), way=bootstrap.TOKEN),
            seed=await self.context.garden.client.find(SEEDS, key(gardenlet).name),
            renews=_is_renewing(gardenlet),
            renewing=lambda: self._event(
                gardenlet, _RECONCILING, "Renewing gardenlet kubeconfig secret due to operation annotation"
            ),
            image=await self._image(),
        )
        await self.target.apply(await self.installer.objects(wanted, self.target))

    async def _image(self) -> str:
        """Image of this gardenlet; empty if there is no Deployment."""
        own = await self.target.deployment()
        return image_of_container(own, NAME) if own is not None else ""

    async def _forget_operation(self, gardenlet: Object) -> None:
        client, done = self.context.garden.client, {keys.OPERATION: None}
        self.gardenlets.observe(await client.annotate(GARDENLETS, key(gardenlet), done, uid=uid(gardenlet)))

    # --- Events and status

    def _event(
        self, gardenlet: Object, reason: str, message: str, *, kind: Literal["Normal", "Warning"] = "Normal"
    ) -> None:
        self.context.garden_recorder.event(gardenlet, kind, reason, message)

    async def _fail(self, gardenlet: Object, message: str) -> None:
        self._event(gardenlet, _FAILED, message, kind="Warning")
        await self._write(gardenlet, "False", _FAILED, message)

    async def _write(self, gardenlet: Object, status: str, reason: str, message: str) -> None:
        now, generation = self.context.clock(), operations.generation(gardenlet)
        reported = Condition(conditions.GARDENLET_RECONCILED, status, reason, message)

        def compute(present: Object) -> Object:
            written = with_conditions(conditions_of({"status": present}), [reported], now=now)
            return {**present, "observedGeneration": generation, "conditions": written}

        await self.statuses.update_if_exists(gardenlet, compute)


def _is_renewing(gardenlet: Object) -> bool:
    return annotations(gardenlet).get(keys.OPERATION) == keys.OPERATION_RENEW_KUBECONFIG


def _requested(gardenlet: Object) -> tuple[str, int]:
    return uid(gardenlet), operations.generation(gardenlet)
