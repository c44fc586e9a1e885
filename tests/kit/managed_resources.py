"""ManagedResources in a namespace of their own: what they ask for, who works on them, and whether it came true.

A `ManagedWorld` knows the objects that each ManagedResource is to have. It writes Secrets and ManagedResources, and
compares what follows with the API server, which it talks to directly whatever stands between agent and API server:

    wanted objects are there, as in their manifests, with our label and origin
    what is not wanted any more is gone, and so are ManagedResources that were deleted
    decoys, which are another client's, are untouched
    objects that must not be recreated still have their uid

`control_loop` runs the ManagedResource controller in this process, with any client.
"""

import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from agent.resource_manager.context import Context
from agent.resource_manager.managed_resource.controller import ManagedResourceLoop
from agent.resource_manager.managed_resource.source import Source
from config.resource_manager.controllers import Controllers, ManagedResource
from devcluster.cluster import Cluster
from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.references import key_of, key_of_reference
from kit import objects
from kit.controllers import run_controller
from kit.eventually import no_problem
from kit.kinds import wait_until_served
from kit.world import World
from kube.apply.kinds import ManagedKinds
from kube.errors import NotFound
from kube.objects import Object, annotations, condition, is_deleting, key, labels, metadata, uid
from kube.resources import CONFIG_MAPS, SECRETS
from kube.runtime.client import Client
from kube.runtime.loop import ControlLoop
from kube.runtime.status import StatusWriter
from kube.runtime.watch import Timings

USER_AGENT = "gardener-resource-manager/test"
"""Begins with the name of the field manager that the agent looks for in what it has written."""
LOOKED_AT = ("ConfigMap", "Service", "Role", "Deployment", "StatefulSet")
"""Kinds that ManagedResources of these tests hold."""
CRD = Path(__file__).parents[2] / "manifests/crds/managedresources.resources.gardener.cloud.yaml"


def config_map(name: str, version: str = "1", **annotated: str) -> Object:
    return objects.config_map(name, {"version": version}, annotations=annotated)


def service(name: str, version: str = "1") -> Object:
    """Full of the API server's defaults."""
    return objects.service(name, selector={"version": version})


def role(name: str, version: str = "1") -> Object:
    return objects.role(name, objects.rule("", "pods", "get", resourceNames=[version]))


def deployment(name: str, version: str = "1") -> Object:
    """Its deletion takes a while, as its dependents go first."""
    container = {"name": "c", "image": "i", "env": [{"name": "VERSION", "value": version}]}
    return objects.deployment(name, pod={"containers": [container]})


def with_unknown_field(name: str) -> Object:
    """A Deployment with `spec.replica`."""
    found = objects.deployment(name)
    return {**found, "spec": {**found["spec"], "replica": 2}}


GATED_FIELD = "spec.updateStrategy.rollingUpdate.maxUnavailable"


def with_gated_field(name: str) -> Object:
    """A StatefulSet with a field whose feature gate is off: the API server leaves it out, and does not warn."""
    found = objects.stateful_set(name)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    return {**found, "spec": {**found["spec"], "updateStrategy": strategy}}


def install_crd(cluster: Cluster) -> None:
    """Make the API server serve ManagedResources."""
    crd = yaml.safe_load(CRD.read_text())
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    cluster.api.apply(f"{path}/{crd['metadata']['name']}", crd)
    wait_until_served(cluster, MANAGED_RESOURCES.path())


def release(cluster: Cluster, namespace: str, *, living: str = "") -> None:
    """Delete ManagedResources, and take the finalizers of agents that have ended from them: no other process would.

    What is about to be deleted gets no finalizer any more from an agent that is about to end.

    Args:
        cluster: the source.
        namespace: also those whose names begin with it.
        living: the class of an agent that has not ended.
    """
    try:
        found = cluster.api.get(MANAGED_RESOURCES.path())["items"]
    except NotFound:
        return
    for obj in found:
        name = key(obj)
        if name.namespace.startswith(namespace):
            path = MANAGED_RESOURCES.path_of(name)
            with suppress(NotFound):
                cluster.api.delete(path)
                if not living or obj["spec"].get("class") != living:
                    cluster.api.patch(path, {"metadata": {"finalizers": None}})


class ManagedWorld(World):
    """See the module; `client` goes to the API server without a detour."""

    def __init__(self, client: Client, namespace: str) -> None:
        super().__init__(client, namespace)
        self.managed_by = "gardener"
        self.spec: dict[str, Any] = {}
        """Of all ManagedResources, beside their Secrets."""
        self.classes: dict[str, str] = {}
        """Of those that are not of the usual one."""
        self.annotations: dict[str, dict[str, str]] = {}
        self.wanted: dict[str, list[Object]] = {}
        """The manifests of each ManagedResource."""
        self.kept: dict[tuple[str, str], str] = {}
        """Kind and name of objects that must not be recreated, with their uids."""
        self._decoys: dict[str, Object] = {}

    # --- changing

    async def want(self, changes: Mapping[str, Sequence[Object] | None]) -> None:
        """What ManagedResources hold from now on, one after the other; None deletes one."""
        for name, manifests in changes.items():
            if manifests is None:
                del self.wanted[name]
                await self.delete("ManagedResource", name)
                continue
            is_new = name not in self.wanted
            self.wanted[name] = [objects.placed(obj, self.namespace) for obj in manifests]
            secret = objects.bundle(name, *self.wanted[name], namespace=self.namespace)
            if is_new:
                await self.create(secret)
                spec = {**self.spec, "class": self.classes[name]} if name in self.classes else self.spec
                await self.create(objects.managed_resource(name, spec=spec, annotations=self.annotations.get(name)))
            else:
                await self.client.replace(SECRETS, secret)

    async def want_nothing(self) -> None:
        await self.want(dict.fromkeys(list(self.wanted)))

    async def add_decoys(self) -> None:
        """Objects that look more and more like ours and are another client's."""
        stamps: dict[str, tuple[bool, str]] = {
            "plain": (False, ""),
            "labelled": (True, ""),
            "of-another-namespace": (True, "elsewhere/a"),
            "of-another-cluster": (True, f"other:{self.namespace}/a"),
            "of-a-stranger": (True, f"{self.namespace}/stranger"),
        }
        for name, (labelled, origin) in stamps.items():
            marks = {keys.MANAGED_BY: self.managed_by} if labelled else {}
            origins = {keys.ORIGIN: origin} if origin else {}
            decoy = objects.obj(CONFIG_MAPS, f"decoy-{name}", labels=marks, annotations=origins)
            self._decoys[f"decoy-{name}"] = await self.create(decoy)

    async def keep(self, *names: tuple[str, str]) -> None:
        """These objects, by kind and name, must not be recreated from now on."""
        for kind, name in names:
            self.kept[kind, name] = uid(await self.get(kind, name))

    # --- comparing

    async def settle(self, *, within: float = 300.0) -> float:
        """Wait until all is as it should be; how many seconds that took."""
        began = time.monotonic()

        async def problem() -> str:
            return "; ".join((await self.problems())[:10])

        await no_problem(problem, seconds=within)
        return time.monotonic() - began

    async def problems(self) -> list[str]:
        """All that is not as it should be, in words."""
        live = {(kind, metadata(obj)["name"]): obj for kind in LOOKED_AT for obj in await self.list(kind)}
        found = [*self._wrong_objects(live), *self._leftovers(live), *self._wrong_decoys(live), *self._made_anew(live)]
        by_name = {metadata(obj)["name"]: obj for obj in await self.list("ManagedResource")}
        found += [f"ManagedResource {name} still exists" for name in by_name.keys() - self.wanted.keys()]
        for name, manifests in self.wanted.items():
            found += self._wrong_status(name, by_name.get(name), manifests)
        return found

    def _wrong_objects(self, live: dict[tuple[str, str], Object]) -> Iterable[str]:
        for owner, manifests in self.wanted.items():
            for obj in manifests:
                name = obj["kind"], obj["metadata"]["name"]
                present = live.get(name)
                if present is None or is_deleting(present):
                    yield f"{name} is missing"
                    continue
                if annotations(obj).get(keys.MODE) == keys.MODE_IGNORE:
                    if keys.ORIGIN in annotations(present):
                        yield f"{name} was not released"
                    continue
                if not holds(present, obj):
                    yield f"{name} is not as in its manifest"
                if annotations(present).get(keys.ORIGIN) != f"{self.namespace}/{owner}":
                    yield f"{name} has origin {annotations(present).get(keys.ORIGIN)}"
                if labels(present).get(keys.MANAGED_BY) != self.managed_by:
                    yield f"{name} lacks our label"

    def _leftovers(self, live: dict[tuple[str, str], Object]) -> Iterable[str]:
        wanted = {(obj["kind"], obj["metadata"]["name"]) for each in self.wanted.values() for obj in each}
        for name, obj in live.items():
            ours = annotations(obj).get(keys.ORIGIN, "").startswith(f"{self.namespace}/")
            if ours and name not in wanted and name[1] not in self._decoys:
                yield f"{name} is left over"

    def _wrong_decoys(self, live: dict[tuple[str, str], Object]) -> Iterable[str]:
        for name, decoy in self._decoys.items():
            present = live.get(("ConfigMap", name))
            if present is None or metadata(present)["resourceVersion"] != metadata(decoy)["resourceVersion"]:
                yield f"the foreign object {name} was touched"

    def _made_anew(self, live: dict[tuple[str, str], Object]) -> Iterable[str]:
        for name, expected in self.kept.items():
            if name not in live or uid(live[name]) != expected:
                yield f"{name} was deleted or recreated"

    def _wrong_status(self, name: str, managed_resource: Object | None, manifests: Sequence[Object]) -> Iterable[str]:
        if managed_resource is None:
            yield f"ManagedResource {name} is missing"
            return
        applied = condition(managed_resource, "ResourcesApplied") or {}
        if applied.get("status") != "True":
            yield f"ManagedResource {name}: {applied.get('reason')}: {applied.get('message')}"
        status = managed_resource.get("status") or {}
        listed = sorted(key_of_reference(entry) for entry in status.get("resources") or [])
        managed = [obj for obj in manifests if annotations(obj).get(keys.MODE) != keys.MODE_IGNORE]
        if listed != sorted(key_of(obj) for obj in managed):
            yield f"ManagedResource {name} lists {listed}"


def holds(live: Any, wanted: Any) -> bool:
    """Whether all that the manifest states is so; the API server may have added to it."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(name in live and holds(live[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list):
        return isinstance(live, list) and len(live) == len(wanted) and all(map(holds, live, wanted))
    return bool(live == wanted)


@asynccontextmanager
async def control_loop(
    client: Client, namespace: str, *, sync_period: float = 60.0, timings: Timings | None = None
) -> AsyncIterator[ControlLoop]:
    """The ManagedResource controller at work in a namespace; all its memory ends with the block."""

    def declare(context: Context) -> ControlLoop:
        caches = context.target.caches
        source = Source(client=client, caches=caches, memory=1 << 20)
        return ManagedResourceLoop(
            context,
            source=source,
            kinds=ManagedKinds(caches, label_selector=f"{keys.MANAGED_BY}=gardener"),
            status=StatusWriter(client, source.managed_resources),
        ).loop

    controllers = Controllers(managed_resource=ManagedResource(sync_period=sync_period))
    async with run_controller(declare, client, namespace, controllers=controllers, timings=timings) as loop:
        yield loop
