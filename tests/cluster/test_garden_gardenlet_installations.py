"""Extensions are installed in the seed by their charts, once a change, and removed in an order that loses nothing."""

import base64
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from agent.gardenlet.common.charts.helm import Helm, Release
from agent.gardenlet.common.charts.rules.output import Manifest
from agent.gardenlet.context import Context
from agent.gardenlet.extensions.controller_installation.install.controller import declare_with
from gardener import conditions, keys
from gardener.api.garden import CONTROLLER_DEPLOYMENTS, CONTROLLER_INSTALLATIONS, CONTROLLER_REGISTRATIONS, SEEDS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.garden.seeds import namespace_of
from gardener.managed_resource.decode import decode_secrets
from kit.chart_archives import CONFIG_MAP, packed, raw_chart
from kit.chart_registry import FakeRegistry
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.gardenlet_controllers import gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.objects import obj
from kit.seed_kinds import install_seed_kinds
from kit.world import CountingClient, World, connected
from kube.errors import AlreadyExists, NotFound
from kube.objects import Key, Object, condition, finalizers, labels, metadata
from kube.resources import NAMESPACES, SECRETS, SERVICE_ACCOUNTS
from kube.runtime.client import Selection
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport
from localprocesses.helm_program import find_or_build

pytestmark = pytest.mark.timeout(600)

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: dep, namespace: {{ .Release.Namespace }}}
spec: {template: {spec: {containers: [{name: a, image: i}]}}}
"""
LOST = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: lost}\nspec: {template: {spec: {containers: [{name: a}]}}}\n"


class CountingHelm(Helm):
    renderings = 0

    async def render(self, archive: bytes, release: Release, *, chart: str = "") -> list[Manifest]:
        self.renderings += 1
        return await super().render(archive, release, chart=chart)


class Extensions(World):
    """Installations of one Seed, in a cluster that is garden and seed."""

    def __init__(self, place: ShootPlace, client: CountingClient, program: Path) -> None:
        super().__init__(client, "garden")
        self.place = place
        self.helm = CountingHelm(program=program)
        self.counting = client

    def install(self, name: str, helm: Object | None = None) -> str:
        """What the installation is called."""
        resources = [{"kind": "Extension", "type": f"{self.place.name}-{name}"}]
        self.place.create(CONTROLLER_REGISTRATIONS, self.called(name), spec={"resources": resources})
        if helm is not None:
            self.place.create(CONTROLLER_DEPLOYMENTS, self.called(name), helm=helm)
        spec = {
            "registrationRef": {"name": self.called(name)},
            "seedRef": {"name": self.place.name},
            "deploymentRef": {"name": self.called(name)},
        }
        self.place.create(CONTROLLER_INSTALLATIONS, self.called(name), spec=spec)
        return self.called(name)

    def called(self, name: str) -> str:
        return f"{self.place.name}-{name}"

    def reported(self, name: str, of_type: str) -> tuple[str, str, str]:
        found = condition(self.place.get(CONTROLLER_INSTALLATIONS, self.called(name)), of_type) or {}
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    async def until_said(self, name: str, of_type: str, status: str, reason: str, message: str = "") -> None:
        def is_said() -> bool:
            found = self.reported(name, of_type)
            assert found[:2] == (status, reason), found
            assert message in found[2]
            return True

        await soon(is_said, f"the condition {of_type} of {name}")

    async def clean_up(self) -> None:
        """ManagedResources here are those of every Seed of this cluster."""
        for each in await self.client.list(MANAGED_RESOURCES, Selection(namespace="garden")):
            if metadata(each)["name"].startswith(f"{self.place.name}-"):
                await self.client.delete(MANAGED_RESOURCES, Key("garden", metadata(each)["name"]))

    async def objects(self, name: str) -> list[Object]:
        """What its ManagedResource has."""
        managed = await self.client.get(MANAGED_RESOURCES, Key("garden", self.called(name)))
        (reference,) = managed["spec"]["secretRefs"]
        secret = await self.client.get(SECRETS, Key("garden", reference["name"]))
        assert secret["immutable"]
        assert reference["name"] in metadata(managed)["annotations"].values()
        data = {key: base64.b64decode(value) for key, value in secret["data"].items()}
        return [each.object for each in decode_secrets([(Key("garden", "s"), data)]).objects]


@pytest.fixture(scope="module")
def program() -> Path:
    return find_or_build()


@pytest.fixture
async def world(garden: Garden, program: Path) -> AsyncIterator[Extensions]:
    install_seed_kinds(garden.cluster)
    place = ShootPlace(garden)
    place.seed()
    place.patch(SEEDS, place.name, {"status": {"clusterIdentity": place.name}}, status=True)
    for name in ("garden", namespace_of(place.name)):
        with contextlib.suppress(AlreadyExists):
            garden.create(NAMESPACES, name)
    async with Transport(load_kubeconfig(garden.cluster.kubeconfig)) as transport:
        world = Extensions(place, CountingClient(transport, user_agent="installations"), program)
        yield world
        await world.clean_up()


@contextlib.asynccontextmanager
async def at_work(world: Extensions) -> AsyncIterator[Context]:
    """In the garden, with the rights of a gardenlet."""
    config, garden = gardenlet_config(world.place.name), world.place.garden
    async with (
        connected(garden.gardenlet_kubeconfig(world.place.name), f"installs-{world.place.name}") as own,
        connected(garden.cluster, f"installs-in-{world.place.name}") as seed,
    ):
        context = await gardenlet_context(garden=own, seed=seed, config=config)
        async with gardenlet_at_work(context, partial(declare_with, helm=world.helm)):
            yield context


async def test_an_extension_is_installed_changed_and_removed(world: Extensions) -> None:
    name = world.install("e", {"rawChart": raw_chart({"templates/d.yaml": DEPLOYMENT, "templates/l.yaml": LOST})})
    namespace = f"extension-{name}"
    async with at_work(world):
        await world.until_said("e", conditions.VALID, "True", "RegistrationValid")
        found = {each["metadata"]["name"]: each for each in await world.objects("e")}
        env = found["dep"]["spec"]["template"]["spec"]["containers"][0]["env"]
        assert env[-1] == {"name": "SEED_NAME", "value": world.place.name}
        assert "env" not in found["lost"]["spec"]["template"]["spec"]["containers"][0]
        access = await world.client.get(SECRETS, Key(namespace, "garden-access-extension"))
        assert labels(access)[keys.CLASS] == "garden"
        world.place.patch(CONTROLLER_DEPLOYMENTS, world.called("e"), {"injectGardenKubeconfig": False})

        async def is_without() -> bool:
            dep = next(each for each in await world.objects("e") if each["metadata"]["name"] == "dep")
            env = dep["spec"]["template"]["spec"]["containers"][0]["env"]
            return [each["name"] for each in env] == ["SEED_NAME"]

        await soon(is_without, "the chart without access to the garden")
        assert await world.client.find(SECRETS, Key(namespace, "garden-access-extension")) is None
        world.place.patch(
            CONTROLLER_DEPLOYMENTS, world.called("e"), {"helm": {"rawChart": raw_chart(), "values": {"word": "new"}}}
        )

        async def is_new() -> bool:
            return [each.get("data") for each in await world.objects("e")] == [{"word": "new"}]

        await soon(is_new, "the changed chart")
        managed = await world.client.get(MANAGED_RESOURCES, Key("garden", name))
        account = f"extension-{name}"
        in_garden = namespace_of(world.place.name)
        await world.client.create(SERVICE_ACCOUNTS, obj(SERVICE_ACCOUNTS, account, namespace=in_garden))
        world.place.delete(CONTROLLER_DEPLOYMENTS, world.called("e"))
        world.place.delete(CONTROLLER_INSTALLATIONS, world.called("e"))
        await soon(
            lambda: world.place.find(CONTROLLER_INSTALLATIONS, world.called("e")) is None, "the installation to go"
        )
        for resource, each, of in (
            (MANAGED_RESOURCES, name, "garden"),
            (NAMESPACES, namespace, ""),
            (SERVICE_ACCOUNTS, account, in_garden),
            (SECRETS, managed["spec"]["secretRefs"][0]["name"], "garden"),
        ):
            assert await world.client.find(resource, Key(of, each)) is None


async def test_the_finalizer_stays_until_the_namespace_has_gone(world: Extensions) -> None:
    name = world.install("e", {"rawChart": raw_chart()})
    namespace = f"extension-{name}"
    async with at_work(world):
        await world.until_said("e", conditions.VALID, "True", "RegistrationValid")
        held = await world.client.create(
            SECRETS,
            {
                **SECRETS.type_meta,
                "metadata": {"name": "held", "namespace": namespace, "finalizers": ["example.com/hold"]},
            },
        )
        world.place.delete(CONTROLLER_INSTALLATIONS, world.called("e"))
        message = f'Deletion of Namespace "{namespace}" is still pending.'
        await world.until_said("e", conditions.INSTALLED, "False", "DeletionPending", message)
        assert keys.INSTALLATION_FINALIZER in finalizers(world.place.get(CONTROLLER_INSTALLATIONS, world.called("e")))
        # As if a user had removed it by force, and installed the extension again.
        world.place.patch(CONTROLLER_INSTALLATIONS, world.called("e"), {"metadata": {"finalizers": None}})
        with contextlib.suppress(NotFound):
            await soon(
                lambda: world.place.find(CONTROLLER_INSTALLATIONS, world.called("e")) is None, "the installation to go"
            )
        spec = {
            "registrationRef": {"name": name},
            "seedRef": {"name": world.place.name},
            "deploymentRef": {"name": name},
        }
        world.place.create(CONTROLLER_INSTALLATIONS, world.called("e"), spec=spec)
        message = f'Namespace "{namespace}" of a former installation is still being deleted.'
        await world.until_said("e", conditions.INSTALLED, "False", "InstallationPending", message)
        await world.client.patch(SECRETS, Key(namespace, metadata(held)["name"]), {"metadata": {"finalizers": None}})
        await world.until_said("e", conditions.VALID, "True", "RegistrationValid")


async def test_a_broken_chart_is_tried_once_and_repaired_by_a_change(world: Extensions) -> None:
    world.install("e", {"rawChart": raw_chart({"templates/a.yaml": "a: {{ .Values.x.y }}\n"})})
    async with at_work(world):
        await world.until_said("e", conditions.VALID, "False", "ChartCannotBeRendered", "nil pointer evaluating")
        assert world.helm.renderings == 1
        world.place.patch(CONTROLLER_DEPLOYMENTS, world.called("e"), {"helm": {"rawChart": raw_chart()}})
        await world.until_said("e", conditions.VALID, "True", "RegistrationValid")
        assert world.helm.renderings == 2


async def test_a_tag_of_a_registry_is_pulled_again_at_a_change(world: Extensions) -> None:
    fake = FakeRegistry()
    async with fake.serving(), at_work(world):
        where = CONTROLLER_DEPLOYMENTS, world.called("e")
        world.install("e", {"ociRepository": {"ref": f"{fake.host}/charts/c:latest"}})
        await world.until_said(
            "e", conditions.VALID, "False", "OCIChartCannotBePulled", "helm does not support the tag 'latest'"
        )
        world.place.patch(*where, {"helm": {"ociRepository": {"ref": f"{fake.host}/charts/c:1.0.0"}}})
        await world.until_said("e", conditions.VALID, "False", "OCIChartCannotBePulled", "correct repository, tag or")
        fake.tag("1.0.0", fake.archive)
        world.place.patch(*where, {"helm": {"values": {"word": "old"}}})
        await world.until_said("e", conditions.VALID, "True", "RegistrationValid")
        assert [each["metadata"]["name"] for each in await world.objects("e")] == ["conf"]
        fake.tag("1.0.0", packed({"templates/other.yaml": CONFIG_MAP.replace("conf", "other")}))
        world.place.patch(*where, {"helm": {"values": {"word": "new"}}})

        async def is_new() -> bool:
            return [each["metadata"]["name"] for each in await world.objects("e")] == ["other"]

        await soon(is_new, "the chart that the tag means now")
        assert world.helm.renderings == 2


async def test_what_an_installation_refers_to_may_come_late(world: Extensions) -> None:
    name = world.install("e")
    async with at_work(world):
        world.place.delete(CONTROLLER_REGISTRATIONS, world.called("e"))
        world.place.create(CONTROLLER_DEPLOYMENTS, world.called("e"), helm={"rawChart": raw_chart()})
        await world.until_said("e", conditions.VALID, "False", "RegistrationNotFound", f'"{name}" not found')
        resources = [{"kind": "Extension", "type": name}]
        world.place.create(CONTROLLER_REGISTRATIONS, world.called("e"), spec={"resources": resources})
        await world.until_said("e", conditions.VALID, "True", "RegistrationValid")


async def test_without_a_change_nothing_is_rendered_or_written(world: Extensions) -> None:
    names = [f"e{number}" for number in range(5)]
    for name in names:
        world.install(name, {"rawChart": raw_chart()})
    async with at_work(world):
        for name in names:
            await world.until_said(name, conditions.VALID, "True", "RegistrationValid")
        assert world.helm.renderings == len(names)
        before = world.place.get(CONTROLLER_INSTALLATIONS, world.called(names[0]))
        world.place.patch(
            CONTROLLER_INSTALLATIONS, world.called(names[0]), {"spec": {"registrationRef": {"resourceVersion": "7"}}}
        )
        world.install("last", {"rawChart": raw_chart()})
        await world.until_said("last", conditions.VALID, "True", "RegistrationValid")
        assert world.helm.renderings == len(names) + 1
        assert world.place.get(CONTROLLER_INSTALLATIONS, world.called(names[0]))["status"] == before["status"]


async def test_versions_from_the_controller_manager_stand_in_for_watches(world: Extensions) -> None:
    world.install("e", {"rawChart": raw_chart()})
    where = CONTROLLER_INSTALLATIONS, world.called("e")
    world.place.patch(*where, {"spec": {"deploymentRef": {"resourceVersion": "1"}}})
    async with at_work(world):
        await world.until_said("e", conditions.VALID, "True", "RegistrationValid")
        world.place.patch(CONTROLLER_DEPLOYMENTS, world.called("e"), {"helm": {"values": {"word": "new"}}})
        world.install("other", {"rawChart": raw_chart()})
        await world.until_said("other", conditions.VALID, "True", "RegistrationValid")
        assert world.helm.renderings == 2
        world.place.patch(*where, {"spec": {"deploymentRef": {"resourceVersion": "2"}}})

        async def is_new() -> bool:
            return [each.get("data") for each in await world.objects("e")] == [{"word": "new"}]

        await soon(is_new, "the changed value")
