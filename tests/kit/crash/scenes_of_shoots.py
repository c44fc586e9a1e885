"""What the controller manager does with Shoots and what belongs to them, each in a Project of its own."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from agent.controller_manager.bastion import declare as declare_bastion
from agent.controller_manager.event import declare as declare_event
from agent.controller_manager.shoot.hibernation import declare as declare_hibernation
from agent.controller_manager.shoot.maintenance import declare as declare_maintenance
from agent.controller_manager.shoot.quota import declare as declare_quota
from agent.controller_manager.shoot.reference import declare as declare_reference
from agent.controller_manager.shoot.retry import declare as declare_retry
from agent.controller_manager.shoot.status_label import declare as declare_status_label
from config.controller_manager.controllers import Controllers, Event, ShootRetry
from gardener import keys
from gardener.api.garden import BASTIONS, CLOUD_PROFILES, CREDENTIALS_BINDINGS, QUOTAS, SECRET_BINDINGS, SHOOTS
from kit.crash.garden_scene import PlaceScene
from kit.crash.sweep import comparable, crossing, scenes_of
from kit.garden_objects import garden_object
from kube.clock import format_time
from kube.objects import Object, annotations, finalizers, labels, text
from kube.paths import at
from kube.resources import EVENTS, SECRETS

_SHOOTS, _STATUS = "shoots.core.gardener.cloud", "shoots/status.core.gardener.cloud"
_BASTIONS, _BASTIONS_STATUS = "bastions.operations.gardener.cloud", "bastions/status.operations.gardener.cloud"
_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJhfVDK4MRHP5IvrUhJP2SdT3qJVZcMMgxmqjVyHbmsN a"
_LONG_AGO = "2024-01-01T00:00:00Z"


class ShootScene(PlaceScene):
    """The Shoot `s`."""

    @property
    def shoot(self) -> Object:
        return self.place.get(SHOOTS, "s")


class ShootIsMaintained(ShootScene):
    """There is a newer version for it."""

    crosses = crossing(f"update {_SHOOTS}", f"patch {_STATUS}")
    declare = (partial(declare_maintenance, uniform=min),)

    def now(self) -> datetime:
        return datetime(2100, 1, 5, 12, tzinfo=UTC)

    async def prepare(self) -> None:
        offered = [{"version": "1.30.1"}, {"version": "1.30.4"}]
        self.place.patch(CLOUD_PROFILES, self.mark, {"spec": {"kubernetes": {"versions": offered}}})
        window = {"begin": "110000+0000", "end": "140000+0000"}
        wanted = {"kubernetesVersion": True, "machineImageVersion": False}
        self.place.shoot(maintenance={"autoUpdate": wanted, "timeWindow": window})

    async def problem(self) -> str:
        state = at(self.shoot, "status", "lastMaintenance", "state")
        return "" if state == "Succeeded" else f"the maintenance is {state}"

    async def state(self) -> Any:
        return comparable(self.shoot, self.mark)


class ShootGetsCredentialsBinding(ShootIsMaintained):
    """Its version has expired, and the next one has no SecretBindings."""

    crosses = ShootIsMaintained.crosses | crossing("create credentialsbindings.security.gardener.cloud")

    async def prepare(self) -> None:
        offered = [{"version": "1.33.1", "expirationDate": "2099-01-01T00:00:00Z"}, {"version": "1.34.0"}]
        self.place.patch(CLOUD_PROFILES, self.mark, {"spec": {"kubernetes": {"versions": offered}}})
        window = {"begin": "110000+0000", "end": "140000+0000"}
        wanted = {"kubernetesVersion": False, "machineImageVersion": False}
        maintenance = {"autoUpdate": wanted, "timeWindow": window}
        self.place.shoot(kubernetes={"version": "1.33.1"}, maintenance=maintenance)

    async def problem(self) -> str:
        name = text(self.shoot["spec"].get("credentialsBindingName"))
        found = self.place.find(CREDENTIALS_BINDINGS, name) if name else None
        return await super().problem() if found is not None else "it has no CredentialsBinding"


class ShootGoesToSleep(ShootScene):
    crosses = crossing(f"patch {_SHOOTS} {_STATUS}")
    declare = (declare_hibernation,)

    def now(self) -> datetime:
        return datetime(2100, 1, 5, 20, 30, tzinfo=UTC)

    async def prepare(self) -> None:
        self.place.shoot(hibernation={"schedules": [{"start": "0 20 * * *", "end": "0 6 * * *"}]})

    async def problem(self) -> str:
        return "" if at(self.shoot, "status", "lastHibernationTriggerTime") else "nothing is done"

    async def state(self) -> Any:
        shoot = self.shoot
        return at(shoot, "spec", "hibernation"), at(shoot, "status", "lastHibernationTriggerTime")


class ShootExpires(ShootScene):
    """And another one gets its time."""

    crosses = crossing(f"patch {_SHOOTS}", f"delete {_SHOOTS}")
    declare = (declare_quota,)

    async def prepare(self) -> None:
        scope = {"apiVersion": "v1", "kind": "Secret"}
        self.place.create(QUOTAS, "q", spec={"scope": scope, "clusterLifetimeDays": 7, "metrics": {"cpu": "100"}})
        secret, quotas = ({"name": name, "namespace": self.namespace} for name in (self.mark, "q"))
        self.place.create(SECRET_BINDINGS, "q", provider={"type": self.mark}, secretRef=secret, quotas=[quotas])
        old = {"annotations": {keys.SHOOT_EXPIRATION: _LONG_AGO}}
        self.place.shoot("old", secretBindingName="q", metadata=old)
        self.place.shoot(secretBindingName="q")

    async def problem(self) -> str:
        if keys.SHOOT_EXPIRATION not in annotations(self.shoot):
            return "the new one may live for ever"
        return "the old one is still there" if self.place.find(SHOOTS, "old") else ""

    async def state(self) -> Any:
        return sorted(annotations(self.shoot))


class ShootIsManaged(ShootScene):
    """It met a rate limit, has no label that shows how it is, and what it refers to is not protected."""

    crosses = crossing(f"patch {_SHOOTS}", "patch secrets")
    spare = 1
    """As long as no program has begun with the retry, it is requested once more after a restart."""
    declare = (declare_retry, declare_status_label, declare_reference)
    settings = Controllers(shoot_retry=ShootRetry(retry_period=1.0, retry_jitter_period=0.001))

    async def prepare(self) -> None:
        self.place.create(SECRETS, "secret", stringData={"key": "value"})
        reference = {"apiVersion": "v1", "kind": "Secret", "name": "secret"}
        self.place.shoot(resources=[{"name": "r", "resourceRef": reference}])
        reported = {"type": "Reconcile", "state": "Failed", "progress": 50, "description": "d"}
        status: Object = {
            "lastOperation": {**reported, "lastUpdateTime": _LONG_AGO},
            "lastErrors": [{"description": "slow down", "codes": ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]}],
        }
        self.generation = self.place.meta(SHOOTS, "s")["generation"]
        status["observedGeneration"] = self.generation
        self.place.patch(SHOOTS, "s", {"status": status}, status=True)

    async def problem(self) -> str:
        shoot = self.shoot
        if shoot["metadata"]["generation"] == self.generation:
            return "it is not retried"
        return "" if labels(shoot).get(keys.SHOOT_STATUS) and finalizers(shoot) else "it is not protected or labelled"

    async def state(self) -> Any:
        return comparable(self.shoot, self.mark)["metadata"], finalizers(self.place.get(SECRETS, "secret"))


class BastionsLiveAndEnd(PlaceScene):
    """One is kept alive, one has expired."""

    crosses = crossing(f"patch {_BASTIONS} {_BASTIONS_STATUS}", f"delete {_BASTIONS}")
    spare = 1
    """A heartbeat whose annotation is still there is recorded once more."""
    declare = (declare_bastion,)

    async def prepare(self) -> None:
        self.place.shoot("s", seedName=self.place.seed())
        for name in ("kept", "expired"):
            fields = garden_object(BASTIONS)["spec"] | {"shootRef": {"name": "s"}, "sshPublicKey": _KEY}
            self.place.create(BASTIONS, name, spec=fields)
            times = dict.fromkeys(("lastHeartbeatTimestamp", "expirationTimestamp"), _LONG_AGO)
            self.place.patch(BASTIONS, name, {"status": times}, status=True)
        self.place.patch(BASTIONS, "kept", {"metadata": {"annotations": {keys.OPERATION: keys.OPERATION_KEEPALIVE}}})

    async def problem(self) -> str:
        if keys.OPERATION in annotations(self.place.get(BASTIONS, "kept")):
            return "no heartbeat is recorded"
        return "the expired one is still there" if self.place.find(BASTIONS, "expired") else ""

    async def state(self) -> Any:
        status = self.place.get(BASTIONS, "kept")["status"]
        return {field: moment > format_time(self.now() - timedelta(hours=2)) for field, moment in status.items()}


class OldEventsAreDeleted(PlaceScene):
    crosses = crossing("delete events")
    declare = (declare_event,)
    settings = Controllers(event=Event())

    async def prepare(self) -> None:
        for name, kind, moment in (
            ("a", "Seed", _LONG_AGO),
            ("b", "Seed", _LONG_AGO),
            ("of-shoot", "Shoot", _LONG_AGO),
            ("new", "Seed", format_time(self.now())),
        ):
            about = {"kind": kind, "apiVersion": SHOOTS.api_version, "name": "x", "namespace": self.namespace}
            said = {"reason": "R", "message": "m", "type": "Normal", "lastTimestamp": moment}
            self.place.create(EVENTS, name, involvedObject=about, **said)

    async def problem(self) -> str:
        left = await self.names("Event")
        return f"there are {left}" if left & {"a", "b"} else ""

    async def state(self) -> Any:
        return sorted(await self.names("Event"))


SCENES = scenes_of(__name__)
