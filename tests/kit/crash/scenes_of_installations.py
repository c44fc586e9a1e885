"""Extensions of a Seed, as scenes of `kit.crash.sweep`; the seed is the garden as well.

What removes ManagedResources and ServiceAccounts elsewhere is simulated: it lets go of them only in their turn.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar
from unittest.mock import patch

import orjson

from agent.gardenlet.extensions.controller_installation.care import declare as care
from agent.gardenlet.extensions.controller_installation.install import reconcile
from agent.gardenlet.extensions.controller_installation.install.controller import declare as install
from agent.gardenlet.extensions.controller_installation.required import declare as required
from config.gardenlet.schema import GardenClientConnection
from devcluster.cluster import Cluster
from gardener.api.extensions import EXTENSIONS
from gardener.api.garden import CONTROLLER_DEPLOYMENTS, CONTROLLER_INSTALLATIONS, CONTROLLER_REGISTRATIONS, SEEDS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import INSTALLED
from gardener.garden.seeds import namespace_of
from kit.chart_archives import raw_chart
from kit.crash.sweep import Scene, comparable, crossing, scenes_of
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.gardenlet_controllers import Declare, gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.objects import decoded, obj
from kit.seed_kinds import install_seed_kinds
from kube.clock import format_time, utc_now
from kube.errors import AlreadyExists, NotFound
from kube.objects import Object, condition, finalizers, is_deleting
from kube.paths import at
from kube.resources import NAMESPACES, SECRETS, SERVICE_ACCOUNTS, Resource
from kube.runtime.client import Client
from localprocesses.helm_program import find_or_build

_GARDEN = "garden"
_HOLD = "example.com/hold"
_LOOK_SECONDS = 0.05
_UNIQUE = re.compile(r"-[0-9a-f]{8}\b")
"""Ends of names that are made from what is in the objects, which holds the names of the scene."""


class InstallationScene(Scene):
    declare: ClassVar[Declare]
    is_installed_elsewhere: ClassVar[bool] = False
    everywhere = True
    longest_back_off = 0.2
    spare = 2
    """What is reported on the way depends on when a user looks."""

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        install_seed_kinds(cluster)
        self.place = ShootPlace(Garden(cluster))
        self.mark = self.namespace = self.place.name
        self.own = f"extension-{self.mark}"

    async def prepare(self) -> None:
        self.place.seed()
        self.place.patch(SEEDS, self.mark, {"status": {"clusterIdentity": "s"}}, status=True)
        for name in (_GARDEN, namespace_of(self.mark)):
            with suppress(AlreadyExists):
                await self.create(obj(NAMESPACES, name))
        self.place.create(CONTROLLER_DEPLOYMENTS, self.mark, helm={"rawChart": raw_chart()})
        names = {"registrationRef": {"name": self.mark}, "deploymentRef": {"name": self.mark}}
        self.place.create(CONTROLLER_INSTALLATIONS, self.mark, spec={"seedRef": {"name": self.mark}, **names})

    @asynccontextmanager
    async def at_work(self, client: Client) -> AsyncIterator[Callable[[], bool]]:
        # Each life of it comes through a proxy of its own.
        address = GardenClientConnection(garden_cluster_address="https://garden", garden_cluster_ca_cert="Y2E=")
        config = gardenlet_config(self.mark, garden_client_connection=address)
        context = await gardenlet_context(garden=client, seed=client, config=config)
        with patch.object(reconcile, "_AGAIN_SECONDS", self.longest_back_off):
            async with gardenlet_at_work(context, type(self).declare) as loops:
                for loop in loops:
                    loop.queue._max_backoff = min(loop.queue._max_backoff, self.longest_back_off)
                yield lambda: all(loop.queue.is_idle for loop in loops)

    async def clean_up(self) -> None:
        await self.remove(MANAGED_RESOURCES, self.mark, namespace=_GARDEN)
        self.place.remove()

    def reported(self, kind: str) -> tuple[Any, ...]:
        found = condition(self.place.find(CONTROLLER_INSTALLATIONS, self.mark) or {}, kind) or {}
        return found.get("status"), found.get("reason")

    async def found(self, *wanted: tuple[Resource, str, Sequence[str]]) -> list[Object]:
        """All of these kinds, in a namespace if one is given, whose names begin so."""
        live = [
            {**each, "data": decoded(each)} if resource == SECRETS and each.get("data") else each
            for resource, namespace, names in wanted
            for each in await self.list(resource, namespace=namespace)
            if each["metadata"]["name"].startswith(tuple(names))
        ]
        for each in live:  # who looks at the ManagedResource reports whether it is installed
            if self.is_installed_elsewhere and isinstance(conditions := at(each, "status", "conditions"), list):
                each["status"]["conditions"] = [one for one in conditions if one["type"] != INSTALLED]
        texts = [orjson.dumps(comparable(each, self.mark), option=orjson.OPT_SORT_KEYS).decode() for each in live]
        return [orjson.loads(text) for text in sorted(_UNIQUE.sub("-<hash>", text) for text in texts)]

    async def state(self) -> Any:
        return await self.found(
            (CONTROLLER_INSTALLATIONS, "", [self.mark]),
            (NAMESPACES, "", [self.own]),
            (SECRETS, self.own, [""]),
            (SECRETS, _GARDEN, [f"{self.mark}-"]),
            (MANAGED_RESOURCES, _GARDEN, [self.mark]),
            (SERVICE_ACCOUNTS, namespace_of(self.mark), [self.own]),
        )


class ExtensionComes(InstallationScene):
    declare = install
    is_installed_elsewhere = True
    crosses = crossing(
        "patch controllerinstallations.core.gardener.cloud controllerinstallations/status.core.gardener.cloud",
        "create namespaces secrets managedresources.resources.gardener.cloud",
    )

    async def prepare(self) -> None:
        find_or_build()
        await super().prepare()

    async def problem(self) -> str:
        reported = self.reported("Valid")
        return "" if reported == ("True", "RegistrationValid") else f"it is valid: {reported}"


class ExtensionChanges(ExtensionComes):
    """Its values do; what it was made of before stays for who collects garbage."""

    warm = True
    crosses = crossing("create secrets", "patch managedresources.resources.gardener.cloud")
    is_changed = False

    async def change(self) -> None:
        self.is_changed = True
        self.place.patch(CONTROLLER_DEPLOYMENTS, self.mark, {"helm": {"values": {"word": "new"}}})

    async def problem(self) -> str:
        if not self.is_changed:
            return await super().problem()
        managed = await self.get(MANAGED_RESOURCES, self.mark, namespace=_GARDEN)
        (reference,) = managed["spec"]["secretRefs"]
        secret = await self.get(SECRETS, reference["name"], namespace=_GARDEN)
        return "" if any("new" in each for each in decoded(secret).values()) else "it is as before"


class ExtensionGoes(ExtensionComes):
    """What was installed goes first, then the namespace, then the account, and only then the installation."""

    warm = True
    crosses = crossing(
        "patch controllerinstallations.core.gardener.cloud controllerinstallations/status.core.gardener.cloud",
        "delete managedresources.resources.gardener.cloud namespaces serviceaccounts",
    )
    is_leaving = False

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.letting_go: asyncio.Task[None] | None = None

    async def change(self) -> None:
        held = {"metadata": {"finalizers": [_HOLD]}}
        await self.patch(MANAGED_RESOURCES, self.mark, held, namespace=_GARDEN)
        account = obj(SERVICE_ACCOUNTS, self.own, namespace=namespace_of(self.mark), finalizers=[_HOLD])
        await self.create(account)
        self.letting_go = asyncio.create_task(self._let_go())
        self.is_leaving = True
        self.place.delete(CONTROLLER_INSTALLATIONS, self.mark)

    async def _let_go(self) -> None:
        accounts = namespace_of(self.mark)
        await self._held(MANAGED_RESOURCES, self.mark, _GARDEN)
        namespace = await self.get(NAMESPACES, self.own, namespace="")
        assert not is_deleting(namespace), "the namespace goes while something is installed"
        assert not is_deleting(await self.get(SERVICE_ACCOUNTS, self.own, namespace=accounts))
        await self._release(MANAGED_RESOURCES, self.mark, _GARDEN)
        await self._held(SERVICE_ACCOUNTS, self.own, accounts)
        assert await self.find(NAMESPACES, self.own, namespace="") is None, "the account goes while its token is used"
        assert finalizers(self.place.get(CONTROLLER_INSTALLATIONS, self.mark)), "the installation goes before the rest"
        await self._release(SERVICE_ACCOUNTS, self.own, accounts)

    async def _held(self, kind: Resource, name: str, namespace: str) -> None:
        """Until only the hold keeps it."""
        while not is_deleting(await self.get(kind, name, namespace=namespace)):
            await asyncio.sleep(_LOOK_SECONDS)

    async def _release(self, kind: Resource, name: str, namespace: str) -> None:
        await self.patch(kind, name, {"metadata": {"finalizers": None}}, namespace=namespace)

    async def problem(self) -> str:
        if not self.is_leaving or self.letting_go is None:
            return await super().problem()
        if self.place.find(CONTROLLER_INSTALLATIONS, self.mark) is not None:
            if self.letting_go.done():
                self.letting_go.result()
            return "it is there"
        await self.letting_go
        return ""

    async def clean_up(self) -> None:
        if self.letting_go is not None:
            self.letting_go.cancel()
        for kind, name, namespace in (
            (MANAGED_RESOURCES, self.mark, _GARDEN),
            (SERVICE_ACCOUNTS, self.own, namespace_of(self.mark)),
        ):
            with suppress(NotFound):
                await self._release(kind, name, namespace)
        await super().clean_up()


class ExtensionIsInstalled(InstallationScene):
    """As its ManagedResource reports."""

    declare = care
    crosses = crossing("patch controllerinstallations/status.core.gardener.cloud")

    async def prepare(self) -> None:
        await super().prepare()
        labels = {"controllerinstallation-name": self.mark}
        spec = {"class": "seed", "secretRefs": []}
        managed = obj(MANAGED_RESOURCES, self.mark, namespace=_GARDEN, labels=labels, spec=spec)
        await self.create(managed, MANAGED_RESOURCES)
        now = format_time(utc_now())
        times = {"lastTransitionTime": now, "lastUpdateTime": now, "reason": "r", "message": "m"}
        found = {"ResourcesApplied": "True", "ResourcesHealthy": "True", "ResourcesProgressing": "False"}
        conditions = [{"type": kind, "status": status, **times} for kind, status in found.items()]
        status = {"observedGeneration": 1, "conditions": conditions}
        await self.patch(MANAGED_RESOURCES, self.mark, {"status": status}, namespace=_GARDEN, subresource="status")

    async def problem(self) -> str:
        reported = self.reported("Installed")
        return "" if reported == ("True", "InstallationSuccessful") else f"it is installed: {reported}"


class ExtensionIsRequired(InstallationScene):
    """By an object of its type, which came; and then not any more."""

    declare = required
    warm = True
    crosses = crossing("patch controllerinstallations/status.core.gardener.cloud")
    is_changed = False

    async def prepare(self) -> None:
        await super().prepare()
        resources = {"spec": {"resources": [{"kind": "Extension", "type": self.mark}]}}
        self.place.patch(CONTROLLER_REGISTRATIONS, self.mark, resources)
        await self.make_namespace()
        needed = obj(EXTENSIONS, "e", namespace=self.mark, spec={"type": self.mark})
        await self.create(needed, EXTENSIONS)

    async def change(self) -> None:
        self.is_changed = True
        await self.remove(EXTENSIONS, "e")

    async def problem(self) -> str:
        wanted = ("False", "NoExtensionObjects") if self.is_changed else ("True", "ExtensionObjectsExist")
        reported = self.reported("Required")
        return "" if reported == wanted else f"it is required: {reported}"


SCENES = scenes_of(__name__)
