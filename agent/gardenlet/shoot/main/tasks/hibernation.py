"""Hibernation of a Shoot: everything is scaled down, its data and keys stay.

Deployments that others scale up meanwhile are scaled down again, up to a limit.
"""

from dataclasses import dataclass

from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.tasks import control_plane, etcd, exposure
from gardener.health.checks.rule import outdated
from kube.errors import NotFound
from kube.objects import Object, integer, is_deleting, key, resource_version, spec, uid
from kube.paths import at
from kube.resources import DEPLOYMENTS
from kube.runtime.client import Selection
from kube.runtime.controller import ReconcileError

_GONE_SECONDS = 300.0
_MOST_CORRECTIONS = 5


async def sleep(operation: ShootOperation) -> None:
    """Scale down the control plane, wait until its pods are gone, and scale down etcd.

    Raises:
        ReconcileError: others scale Deployments up repeatedly, or the pods did not end in time.
        ExtensionError: the extension failed, or did not finish in time.
    """
    await operation.shoots.drop(operation.technical_id)
    names = await control_plane.scale_down(operation)
    await _until_down(operation, _Descent({name: operation.written(DEPLOYMENTS, name) for name in names}))
    if operation.config.has_gateways:
        await exposure.remove_names_at_gateway(operation)
    await etcd.scale(operation, 0)


class _ScaledUpError(ReconcileError):
    """Another writer has scaled a Deployment up."""

    def __init__(self, live: Object) -> None:
        super().__init__(f"Deployment {key(live)} was scaled to {spec(live).get('replicas')} by others")
        self.live = live


@dataclass(slots=True)
class _Descent:
    """Attributes:
    written: resourceVersion of each Deployment after scaling it down; older versions are ignored.
    corrections: how often Deployments were scaled down again.
    """

    written: dict[str, int]
    corrections: int = 0

    def missing(self, live: Object) -> str:
        """Reason for waiting; empty if there is none.

        Raises:
            _ScaledUpError: another writer has scaled the Deployment up.
        """
        name = key(live).name
        if name not in self.written:
            return ""
        if resource_version(live) < self.written[name]:
            return "it was just scaled down"
        if spec(live).get("replicas") and not is_deleting(live):
            raise _ScaledUpError(live)
        left = integer(at(live, "status", "replicas"))
        return outdated(live) or (f"{left} of its pods still exist" if left else "")


async def _until_down(operation: ShootOperation, descent: _Descent) -> None:
    """Return when all pods are gone, correcting Deployments meanwhile. Raises ReconcileError, KubeError."""
    place = Selection(namespace=operation.technical_id)
    while True:
        try:
            await operation.waiting.until_none(
                DEPLOYMENTS, place, seconds=_GONE_SECONDS, missing=descent.missing, report=waits_for
            )
        except _ScaledUpError as error:
            await _correct(operation, descent, error)
        else:
            return


async def _correct(operation: ShootOperation, descent: _Descent, found: _ScaledUpError) -> None:
    descent.corrections += 1
    if descent.corrections > _MOST_CORRECTIONS:
        raise ReconcileError(
            f"{found}, and Deployments of the control plane were scaled down {_MOST_CORRECTIONS} times before; find "
            "the client that scales them up, and stop it"
        )
    waits_for(f"{found}, and is scaled down again")
    name, body = key(found.live), {"metadata": {"uid": uid(found.live)}, "spec": {"replicas": 0}}
    try:
        written = await operation.seed.client.patch(DEPLOYMENTS, name, body)
    except NotFound:
        return
    descent.written[name.name] = resource_version(written)
