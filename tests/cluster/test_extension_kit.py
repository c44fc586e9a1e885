"""The library for extensions: the program of docs/extension-kit.md by its wheels alone, and errors of actuators."""

import base64
import os
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from agent.gardenlet.common.extension_objects.kinds import EXTENSION
from agent.gardenlet.common.extension_objects.objects import ExtensionError, ExtensionObjects
from agent.gardenlet.common.shoot_states.rules.contents import Left
from devcluster.cluster import Cluster
from extension import heartbeat
from extension.actuators import Extension
from extension.controller import declare, declare_health
from extension.errors import Pending
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_GOOD
from kit.controllers import cluster_of, loops_at_work
from kit.eventually import soon
from kit.library_wheels import environment, program_of
from kit.seed_kinds import install_seed_kinds
from kit.world import connected
from kube.clock import utc_now
from kube.conditions import Condition, conditions_of, with_conditions
from kube.objects import Key, Object, finalizers, key, mapping
from kube.paths import at
from kube.resources import LEASES, SECRETS
from kube.runtime.cache import Caches
from kube.runtime.client import Client
from kube.runtime.discovery import Discovery
from kube.runtime.events import EventRecorder
from kube.runtime.waiting import Waiting
from localprocesses.ports import free_port
from release.__main__ import LIBRARIES

CONFIG = """
apiVersion: extension.config.gardener.cloud/v1alpha1
kind: ExtensionConfiguration
leaderElection: {{resourceNamespace: {namespace}}}
controllers: {{healthCheckPeriod: 500ms}}
"""


@pytest.fixture(scope="module", autouse=True)
def seed_kinds(cluster: Cluster) -> None:
    install_seed_kinds(cluster)


@pytest.fixture
async def objects(client: Client) -> AsyncIterator[ExtensionObjects]:
    caches = Caches(client)
    waiting = Waiting(client=client, caches=caches, discovery=Discovery(client))
    yield ExtensionObjects(client=client, waiting=waiting, clock=utc_now)
    await caches.close()


def manifest(namespace: str, type_: str, *, name: str = "a", **spec: object) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"type": type_, **spec}}


# --- the program of the page


@contextmanager
def greeter(cluster: Cluster, directory: Path, namespace: str) -> Iterator[None]:
    (directory / "greeter.py").write_text(program_of("extension-kit.md", most_lines=50))
    (directory / "config.yaml").write_text(CONFIG.format(namespace=namespace))
    ports = [f"--{name}-bind-address=127.0.0.1:{free_port()}" for name in ("health-probe", "metrics")]
    command = [str(environment(directory, *LIBRARIES)), "greeter.py", "--config=config.yaml", *ports]
    variables = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    with subprocess.Popen(command, cwd=directory, env=variables) as process:
        try:
            yield
        finally:
            process.terminate()
    assert process.returncode == 0


async def test_the_extension_of_the_page_lives_through_all_operations(
    objects: ExtensionObjects, client: Client, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    deployment = Key(namespace, "extension-greeter")
    wanted = manifest(namespace, "greeter", providerConfig={"greeting": "hello"})

    async def deployed() -> Object:
        secret = await client.get(SECRETS, deployment)
        (config_map,) = yaml.safe_load_all(base64.b64decode(secret["data"]["objects.yaml"]))
        return mapping(config_map["data"])

    async def condition() -> object:
        live = await client.get(EXTENSION.resource, Key(namespace, "a"))
        return [(each["type"], each["status"]) for each in conditions_of(live)]

    async def is_healthy() -> bool:
        return await condition() == [("SystemComponentsHealthy", "True")]

    async def is_unhealthy() -> bool:
        return await condition() == [("SystemComponentsHealthy", "False")]

    with greeter(cluster, tmp_path, namespace):
        impatient = replace(EXTENSION, severe=0.2)
        incomplete = await objects.deploy(impatient, manifest(namespace, "greeter"))
        with pytest.raises(ExtensionError, match="providerConfig has no greeting") as raised:
            await objects.wait(incomplete)
        assert raised.value.codes == ("ERR_CONFIGURATION_PROBLEM",)

        live = await objects.wait(await objects.deploy(EXTENSION, wanted))
        state = at(live, "status", "state")
        assert finalizers(live) == ["extensions.gardener.cloud/extension"]
        assert await deployed() == {"greeting": "hello", **state}
        lease = await client.get(LEASES, Key(namespace, heartbeat.NAME))
        assert (
            lease["spec"].items()
            >= {"holderIdentity": "gardener-extension-greeter", "leaseDurationSeconds": 30}.items()
        )

        await soon(is_unhealthy, "the condition")
        good = [Condition(type_, status, "", "") for type_, status in RESOURCES_GOOD.items()]
        status = {"observedGeneration": 1, "conditions": with_conditions([], good, now=utc_now())}
        await client.patch(MANAGED_RESOURCES, deployment, {"status": status}, subresource="status")
        await soon(is_healthy, "the condition to become true")

        leaving = await objects.migrate(EXTENSION, key(live))
        assert leaving is not None
        await objects.wait_until_migrated(leaving)
        assert await client.find(MANAGED_RESOURCES, deployment) is None
        await objects.delete(EXTENSION, key(live))
        await objects.wait_until_gone(EXTENSION, key(live))

        restored = await objects.wait(await objects.restore(EXTENSION, wanted, Left({"state": state})))
        assert at(restored, "status", "state") == state
        await objects.delete(EXTENSION, key(live))
        await objects.wait_until_gone(EXTENSION, key(live))
        assert await client.find(SECRETS, deployment) is None


# --- errors


class Obstinate(Extension):
    """Raises the error of a test, until there is none."""

    error: Exception | None = None

    async def reconcile(self, _obj: Object, /) -> Object:
        if self.error is not None:
            raise self.error
        return {}

    async def health(self, _obj: Object, /) -> Sequence[Condition]:
        if self.error is not None:
            raise self.error
        return [Condition("SystemComponentsHealthy", "True", "Fine", "Fine.")]


@asynccontextmanager
async def at_work(cluster: Cluster) -> AsyncIterator[Obstinate]:
    """An actuator of a type of its own: other tests have objects in the same cluster."""
    async with connected(cluster, "extension") as client:
        seed, actuator = cluster_of(client), type("Own", (Obstinate,), {"type": f"t-{uuid.uuid4().hex[:8]}"})(client)
        loops = declare(seed, actuator, workers=1), declare_health(seed, actuator, workers=1, seconds=0.1)
        async with loops_at_work(EventRecorder(client, component="test"), {seed.caches}, *loops):
            yield actuator


async def test_any_error_is_reported_and_tried_again(
    objects: ExtensionObjects, client: Client, cluster: Cluster, namespace: str
) -> None:
    async def last() -> Object:
        return mapping(at(await client.get(EXTENSION.resource, Key(namespace, "a")), "status"))

    async def is_reported() -> bool:
        return bool(at(await last(), "lastError", "description") == "KeyError('a bug')")

    async def is_waiting() -> bool:
        operation = (await last())["lastOperation"]
        return (operation["state"], operation["description"]) == ("Processing", "the volume is not there yet")

    async with at_work(cluster) as actuator:
        actuator.error = RuntimeError("KeyError('a bug')")
        requested = await objects.deploy(EXTENSION, manifest(namespace, actuator.type))
        await soon(is_reported, "the error")
        actuator.error = Pending("the volume is not there yet", seconds=0.1)
        await soon(is_waiting, "the reason")
        actuator.error = None
        await objects.wait(requested)


async def test_a_failed_check_makes_conditions_unknown(
    objects: ExtensionObjects, client: Client, cluster: Cluster, namespace: str
) -> None:
    async def statuses() -> list[object]:
        live = await client.get(EXTENSION.resource, Key(namespace, "a"))
        return [(each["status"], each["message"]) for each in conditions_of(live)]

    async def is_true() -> bool:
        return await statuses() == [("True", "Fine.")]

    async def is_unknown() -> bool:
        return await statuses() == [("Unknown", "no answer")]

    async with at_work(cluster) as actuator:
        await objects.wait(await objects.deploy(EXTENSION, manifest(namespace, actuator.type)))
        await soon(is_true, "the condition")
        actuator.error = Pending("no answer", seconds=None)
        await soon(is_unknown, "the condition to be unknown")
        actuator.error = None
        await soon(is_true, "the condition to be true again")


async def test_objects_of_another_class_are_ignored(
    objects: ExtensionObjects, client: Client, cluster: Cluster, namespace: str
) -> None:
    async with at_work(cluster) as actuator:
        await objects.deploy(EXTENSION, manifest(namespace, actuator.type, name="other", **{"class": "seed"}))
        await objects.wait(await objects.deploy(EXTENSION, manifest(namespace, actuator.type)))
        other = await client.get(EXTENSION.resource, Key(namespace, "other"))
        assert "status" not in other
        assert not finalizers(other)
