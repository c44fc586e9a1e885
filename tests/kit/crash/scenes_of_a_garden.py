"""What the controller manager does with what many share: profiles, credentials, extensions, Seeds."""

import contextlib
from datetime import timedelta
from typing import Any

from agent.controller_manager.controller_registration.installations.controller import declare as declare_installations
from agent.controller_manager.credentials import declare_secrets, declare_workload_identities
from agent.controller_manager.credentials_binding import declare as declare_credentials_binding
from agent.controller_manager.namespaced_cloud_profile import declare as declare_child
from agent.controller_manager.objects_in_use import declare_cloud_profiles as declare_profile
from agent.controller_manager.objects_in_use import declare_controller_deployments as declare_deployment
from agent.controller_manager.objects_in_use import declare_controller_registrations, declare_seeds
from agent.controller_manager.objects_in_use import declare_exposure_classes as declare_exposure_class
from agent.controller_manager.objects_in_use import declare_secret_bindings as declare_secret_binding
from agent.controller_manager.quota import declare as declare_quota
from agent.controller_manager.seed.lifecycle import declare as declare_lifecycle
from agent.controller_manager.seed.secrets import declare as declare_seed_secrets
from agent.controller_manager.shoot.conditions import declare as declare_conditions
from config.controller_manager.controllers import Controllers, Seed
from gardener.api.garden import (
    CLOUD_PROFILES,
    CONTROLLER_DEPLOYMENTS,
    CONTROLLER_INSTALLATIONS,
    CONTROLLER_REGISTRATIONS,
    CREDENTIALS_BINDINGS,
    EXPOSURE_CLASSES,
    MANAGED_SEEDS,
    NAMESPACED_CLOUD_PROFILES,
    QUOTAS,
    SECRET_BINDINGS,
    SEEDS,
    SHOOTS,
    WORKLOAD_IDENTITIES,
)
from gardener.garden.seeds import LEASE_NAMESPACE, namespace_of
from kit.crash.garden_scene import PlaceScene
from kit.crash.sweep import comparable, crossing, scenes_of
from kit.garden_objects import garden_object
from kube.clock import format_micro_time, format_time
from kube.errors import AlreadyExists
from kube.objects import Object, condition, finalizers, labels, metadata, spec
from kube.paths import at
from kube.resources import LEASES, NAMESPACES, SECRETS, Resource
from kube.runtime.client import Selection

_CORE, _SECURITY = "core.gardener.cloud", "security.gardener.cloud"


class SharedScene(PlaceScene):
    everywhere = True

    def content(self, resource: Resource) -> Object:
        """The fields of a new object, beside its metadata."""
        meta = {"apiVersion", "kind", "metadata"}
        return {field: value for field, value in garden_object(resource).items() if field not in meta}


# --- in use


class UseScene(SharedScene):
    """One object of each kind that is protected, all called as the place; a Shoot uses none of them."""

    declare = (
        declare_profile,
        declare_child,
        declare_exposure_class,
        declare_quota,
        declare_secret_binding,
        declare_credentials_binding,
        declare_secrets,
        declare_workload_identities,
    )
    kinds = (
        NAMESPACED_CLOUD_PROFILES,
        CLOUD_PROFILES,
        EXPOSURE_CLASSES,
        QUOTAS,
        SECRET_BINDINGS,
        CREDENTIALS_BINDINGS,
        SECRETS,
        WORKLOAD_IDENTITIES,
    )

    async def prepare(self) -> None:
        place = self.place
        place.delete(SECRET_BINDINGS, self.mark)
        parent = {"kind": "CloudProfile", "name": self.mark}
        place.create(NAMESPACED_CLOUD_PROFILES, self.mark, spec={"parent": parent})
        place.create(EXPOSURE_CLASSES, self.mark, handler="h")
        place.create(QUOTAS, self.mark, **self.content(QUOTAS))
        place.create(WORKLOAD_IDENTITIES, self.mark, **self.content(WORKLOAD_IDENTITIES))
        named: Object = {"name": self.mark, "namespace": self.namespace}
        provider = {"provider": {"type": self.mark}, "quotas": [named]}
        place.create(SECRET_BINDINGS, self.mark, secretRef=named, **provider)
        identity = {**WORKLOAD_IDENTITIES.type_meta, **named}
        place.create(CREDENTIALS_BINDINGS, self.mark, credentialsRef=identity, **provider)

    async def problem(self) -> str:
        lacking = [kind.kind for kind in self.kinds if not finalizers(self.place.get(kind, self.mark))]
        if not self.place.get(NAMESPACED_CLOUD_PROFILES, self.mark).get("status"):
            return "the profile is not rendered"
        return f"{lacking} are not protected" if lacking else ""

    async def state(self) -> Any:
        return [comparable(found, self.mark) for kind in self.kinds if (found := self.place.find(kind, self.mark))]


class NewObjectsAreProtected(UseScene):
    crosses = crossing(
        f"patch quotas.{_CORE} secretbindings.{_CORE} credentialsbindings.{_SECURITY}",
        f"update namespacedcloudprofiles/status.{_CORE}",
    )


class ObjectsGoWithTheirUsers(UseScene):
    """All are deleted at once, each before what uses it."""

    crosses = crossing(
        f"patch cloudprofiles.{_CORE} exposureclasses.{_CORE} namespacedcloudprofiles.{_CORE} quotas.{_CORE}",
        f"patch workloadidentities.{_SECURITY} secrets",
    )
    warm = True
    spare = 1
    """A Quota loses the labels of the bindings one by one, or not at all if both are gone."""
    is_deleted = False

    async def change(self) -> None:
        self.is_deleted = True
        for kind in (SECRETS, WORKLOAD_IDENTITIES, QUOTAS, CLOUD_PROFILES, EXPOSURE_CLASSES):
            self.place.delete(kind, self.mark)
        for kind in (SECRET_BINDINGS, CREDENTIALS_BINDINGS, NAMESPACED_CLOUD_PROFILES):
            self.place.delete(kind, self.mark)

    async def problem(self) -> str:
        if not self.is_deleted:
            return await super().problem()
        left = [kind.kind for kind in self.kinds if self.place.find(kind, self.mark)]
        return f"{left} are still there" if left else ""


# --- extensions


class ExtensionScene(SharedScene):
    """A Seed needs the extension of the place, and another one that reports so itself."""

    spare = 2
    """Each installation once more: who has not seen the registration without its finalizer takes it for another one."""
    declare = (
        declare_seed_secrets,
        declare_installations,
        declare_controller_registrations,
        declare_seeds,
        declare_deployment,
    )

    @property
    def other(self) -> str:
        return f"{self.mark}-always"

    async def prepare(self) -> None:
        place = self.place
        place.create(CONTROLLER_DEPLOYMENTS, self.mark, **self.content(CONTROLLER_DEPLOYMENTS))
        deployment: Object = {"deploymentRefs": [{"name": self.mark}]}
        place.patch(CONTROLLER_REGISTRATIONS, self.mark, {"spec": {"deployment": deployment}})
        always = {"policy": "Always", "seedSelector": {"matchLabels": {"test": self.mark}}}
        place.create(CONTROLLER_REGISTRATIONS, self.other, spec={"resources": [], "deployment": always})
        place.seed()
        place.patch(SEEDS, self.mark, {"metadata": {"labels": {"test": self.mark}}})

    async def installations(self) -> dict[str, Object]:
        """By registration."""
        selection = Selection(field_selector=f"spec.seedRef.name={self.mark}")
        found = await self.client.list(CONTROLLER_INSTALLATIONS, selection)
        return {at(each, "spec", "registrationRef", "name"): each for each in found}

    async def problem(self) -> str:
        found = await self.installations()
        kept = (SEEDS, CONTROLLER_REGISTRATIONS, CONTROLLER_DEPLOYMENTS)
        lacking = [kind.kind for kind in kept if not finalizers(self.place.get(kind, self.mark))]
        if lacking or set(found) != {self.mark, self.other}:
            return f"{lacking} are not protected, there are {set(found)}"
        return ""

    async def state(self) -> Any:
        found = await self.installations()
        assert len({metadata(each)["name"] for each in found.values()}) == len(found)
        return sorted(
            (name.replace(self.mark, ""), sorted(labels(each)), sorted(spec(each))) for name, each in found.items()
        )

    async def clean_up(self) -> None:
        for installation in (await self.installations()).values():
            await self.remove(CONTROLLER_INSTALLATIONS, metadata(installation)["name"])
        await super().clean_up()
        await self.remove("Namespace", namespace_of(self.mark))


class ExtensionsAreInstalled(ExtensionScene):
    crosses = crossing(
        f"create controllerinstallations.{_CORE}",
        *(f"patch {kind}.{_CORE}" for kind in ("seeds", "controllerregistrations", "controllerdeployments")),
    )


class ExtensionsChange(ExtensionScene):
    """One gets another chart, the other one is removed."""

    crosses = crossing(
        f"patch controllerinstallations.{_CORE} controllerregistrations.{_CORE}",
        f"delete controllerinstallations.{_CORE}",
    )
    warm = True
    deployed = ""

    async def change(self) -> None:
        (installation,) = (each for name, each in (await self.installations()).items() if name == self.mark)
        self.deployed = labels(installation)["deployment-hash"]
        self.place.patch(CONTROLLER_DEPLOYMENTS, self.mark, {"helm": {"values": {"b": "two"}}})
        self.place.delete(CONTROLLER_REGISTRATIONS, self.other)

    async def problem(self) -> str:
        if not self.deployed:
            return await super().problem()
        found = await self.installations()
        if set(found) != {self.mark} or self.place.find(CONTROLLER_REGISTRATIONS, self.other):
            return f"there are {set(found)}"
        return "" if labels(found[self.mark])["deployment-hash"] != self.deployed else "it has the former chart"


# --- Seeds


class SeedIsLost(SharedScene):
    """It runs on a Shoot, and its certificate has expired meanwhile; another Shoot is on it."""

    is_in_garden = True
    crosses = crossing(
        f"patch seeds/status.{_CORE} shoots/status.{_CORE}", "patch managedseeds.seedmanagement.gardener.cloud"
    )
    declare = (declare_lifecycle, declare_conditions)
    settings = Controllers(seed=Seed(monitor_period=60.0, shoot_monitor_period=0.001))

    async def prepare(self) -> None:
        place, long_ago = self.place, self.now() - timedelta(hours=1)
        with contextlib.suppress(AlreadyExists):
            place.garden.create(NAMESPACES, LEASE_NAMESPACE)
        provider = {"type": self.mark, "secretName": self.mark, "primary": True}
        place.shoot(
            self.mark,
            dns={"domain": f"{self.mark}.example.org", "providers": [provider]},
            kubernetes={"version": "1.30.1", "verticalPodAutoscaler": {"enabled": True}},
        )
        fields = garden_object(MANAGED_SEEDS)["spec"]
        fields["shoot"]["name"] = self.mark
        place.create(MANAGED_SEEDS, self.mark, spec=fields)
        place.seed()
        place.shoot(f"{self.mark}-on", seedName=self.mark)
        ready = {"type": "GardenletReady", "status": "True", "reason": "R", "message": "m"}
        ready |= dict.fromkeys(("lastTransitionTime", "lastUpdateTime"), format_time(long_ago))
        said = {"conditions": [ready], "clientCertificateExpirationTimestamp": format_time(long_ago)}
        place.patch(SEEDS, self.mark, {"status": said}, status=True)
        renewed = {"renewTime": format_micro_time(long_ago)}
        place.garden.create(LEASES, self.mark, namespace=LEASE_NAMESPACE, spec=renewed)

    def is_unknown(self, resource: Resource, name: str, kind: str) -> bool:
        return (condition(self.place.get(resource, name), kind) or {}).get("status") == "Unknown"

    async def problem(self) -> str:
        if not at(self.place.get(MANAGED_SEEDS, self.mark), "operation", "sequence"):
            return "no certificate is requested"
        reported = (
            self.is_unknown(SEEDS, self.mark, "GardenletReady"),
            self.is_unknown(SHOOTS, self.mark, "GardenletReady"),
            self.is_unknown(SHOOTS, f"{self.mark}-on", "EveryNodeReady"),
        )
        return "" if all(reported) else f"{reported}"

    async def state(self) -> Any:
        reported = ((SEEDS, self.mark), (SHOOTS, self.mark), (SHOOTS, f"{self.mark}-on"))
        return [comparable(self.place.get(*each), self.mark).get("status") for each in reported]


SCENES = scenes_of(__name__)
