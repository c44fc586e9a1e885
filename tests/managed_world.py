"""ManagedResources in a namespace of their own: what they ask for, who works on them, and whether it came true.

A `World` knows the objects that each ManagedResource is to have. It writes Secrets and ManagedResources, and compares
all that matters with the API server, which it talks to directly whatever stands between agent and API server:

    wanted objects are there, as in their manifests, with our label and origin
    what is not wanted any more is gone, and so are ManagedResources that were deleted
    decoys, which are somebody else's, are untouched
    objects that must not be made anew still have their uid

`control_loop` runs the ManagedResource controller in this process, with any client.
"""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import yaml
from agent_clusters import at_work, cluster_of, context_of
from served_kinds import wait_until_served

from agent.api import MANAGED_RESOURCES
from agent.managed_kinds import ManagedKinds
from agent.managed_resource import keys
from agent.managed_resource.controller import ManagedResourceLoop
from agent.managed_resource.references import key_of, key_of_reference
from agent.managed_resource.source import Source
from agent.status import StatusWriter
from config.schema_controllers import Controllers, ManagedResource
from devcluster.cluster import Cluster
from kube.client import Client, Selection
from kube.objects import Object, annotations, condition, is_deleting, labels, metadata, uid
from kube.resources import CONFIG_MAPS, SECRETS, Resource
from kube.watch import Timings

USER_AGENT = "gardener-resource-manager/test"
"""Begins with the name of the field manager that the agent looks for in what it has written."""
KINDS = {
    "ConfigMap": CONFIG_MAPS,
    "Service": Resource("", "v1", "Service", "services", namespaced=True),
    "Role": Resource("rbac.authorization.k8s.io", "v1", "Role", "roles", namespaced=True),
    "Deployment": Resource("apps", "v1", "Deployment", "deployments", namespaced=True),
    "StatefulSet": Resource("apps", "v1", "StatefulSet", "statefulsets", namespaced=True),
}
CRD = Path(__file__).parents[1] / "manifests/crds/managedresources.resources.gardener.cloud.yaml"


def config_map(name: str, version: str = "1", **annotated: str) -> Object:
    return _object("v1", "ConfigMap", name, annotated, data={"version": version})


def service(name: str, version: str = "1") -> Object:
    """Full of the API server's defaults."""
    return _object("v1", "Service", name, {}, spec={"selector": {"version": version}, "ports": [{"port": 80}]})


def role(name: str, version: str = "1") -> Object:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": [version]}]
    return _object("rbac.authorization.k8s.io/v1", "Role", name, {}, rules=rules)


def deployment(name: str, version: str = "1") -> Object:
    """Its deletion takes a while, as its dependents go first."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "VERSION", "value": version}]}]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    return _object("apps/v1", "Deployment", name, {}, spec=spec)


def _object(api_version: str, kind: str, name: str, annotated: dict[str, str], **fields: Any) -> Object:
    meta = {"name": name, **({"annotations": annotated} if annotated else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}


def install_crd(cluster: Cluster) -> None:
    """Make the API server serve ManagedResources."""
    crd = yaml.safe_load(CRD.read_text())
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    cluster.api.apply(f"{path}/{crd['metadata']['name']}", crd)
    wait_until_served(cluster, MANAGED_RESOURCES.path())


class World:
    """See the module; `client` goes to the API server without a detour."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.managed_by = "gardener"
        self.spec: dict[str, Any] = {}
        """Of all ManagedResources, beside their Secrets."""
        self.wanted: dict[str, list[Object]] = {}
        """The manifests of each ManagedResource."""
        self.kept: dict[tuple[str, str], str] = {}
        """Kind and name of objects that must not be made anew, with their uids."""
        self._decoys: dict[str, Object] = {}

    # --- changing

    async def want(self, changes: dict[str, Sequence[Object] | None]) -> None:
        """What ManagedResources hold from now on, one after the other; None deletes one."""
        for name, objects in changes.items():
            if objects is None:
                del self.wanted[name]
                await self.client.delete(MANAGED_RESOURCES, name, namespace=self.namespace)
                continue
            is_new = name not in self.wanted
            self.wanted[name] = [self._placed(obj) for obj in objects]
            await (self._create(name) if is_new else self._change(name))

    async def want_nothing(self) -> None:
        await self.want(dict.fromkeys(list(self.wanted)))

    async def add_decoys(self) -> None:
        """Objects that look more and more like ours and are somebody else's."""
        stamps: dict[str, tuple[bool, str]] = {
            "plain": (False, ""),
            "labelled": (True, ""),
            "of-another-namespace": (True, "elsewhere/a"),
            "of-another-cluster": (True, f"other:{self.namespace}/a"),
            "of-a-stranger": (True, f"{self.namespace}/stranger"),
        }
        for name, (labelled, origin) in stamps.items():
            decoy = config_map(f"decoy-{name}", **({keys.ORIGIN: origin} if origin else {}))
            decoy["metadata"]["namespace"] = self.namespace
            if labelled:
                decoy["metadata"]["labels"] = {keys.MANAGED_BY: self.managed_by}
            self._decoys[decoy["metadata"]["name"]] = await self.client.create(CONFIG_MAPS, decoy)

    async def keep(self, *names: tuple[str, str]) -> None:
        """These objects, by kind and name, must not be made anew from now on."""
        for kind, name in names:
            live = await self.client.get(KINDS[kind], name, namespace=self.namespace)
            self.kept[kind, name] = uid(live)

    def _placed(self, obj: Object) -> Object:
        return {**obj, "metadata": {**obj["metadata"], "namespace": self.namespace}}

    def _secret(self, name: str) -> Object:
        documents = b"".join(b"---\n" + orjson.dumps(obj) + b"\n" for obj in self.wanted[name])
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self.namespace},
            "data": {"objects.yaml": base64.b64encode(documents).decode()},
        }

    async def _create(self, name: str) -> None:
        managed_resource = {
            "apiVersion": MANAGED_RESOURCES.api_version,
            "kind": "ManagedResource",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"secretRefs": [{"name": name}], **self.spec},
        }
        await self.client.create(SECRETS, self._secret(name))
        await self.client.create(MANAGED_RESOURCES, managed_resource)

    async def _change(self, name: str) -> None:
        await self.client.replace(SECRETS, self._secret(name))

    # --- comparing

    async def settle(self, *, within: float = 120.0) -> float:
        """Wait until all is as it should be; how many seconds that took."""
        began = time.monotonic()
        while problems := await self.problems():
            passed = time.monotonic() - began
            assert passed < within, f"still after {passed:.0f} s: " + "; ".join(problems[:10])
            await asyncio.sleep(0.05 + len(self.wanted) / 100)
        return time.monotonic() - began

    async def problems(self) -> list[str]:
        """All that is not as it should be, in words."""
        live = {
            (kind, metadata(obj)["name"]): obj
            for kind, resource in KINDS.items()
            for obj in await self.client.list(resource, Selection(namespace=self.namespace))
        }
        found = [*self._wrong_objects(live), *self._leftovers(live), *self._wrong_decoys(live), *self._made_anew(live)]
        managed = await self.client.list(MANAGED_RESOURCES, Selection(namespace=self.namespace))
        by_name = {metadata(obj)["name"]: obj for obj in managed}
        found += [f"ManagedResource {name} still exists" for name in by_name.keys() - self.wanted.keys()]
        for name, objects in self.wanted.items():
            found += self._wrong_status(name, by_name.get(name), objects)
        return found

    def _wrong_objects(self, live: dict[tuple[str, str], Object]) -> Iterable[str]:
        for owner, objects in self.wanted.items():
            for obj in objects:
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
        wanted = {(obj["kind"], obj["metadata"]["name"]) for objects in self.wanted.values() for obj in objects}
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
                yield f"{name} was deleted or made anew"

    def _wrong_status(self, name: str, managed_resource: Object | None, objects: Sequence[Object]) -> Iterable[str]:
        if managed_resource is None:
            yield f"ManagedResource {name} is missing"
            return
        applied = condition(managed_resource, "ResourcesApplied") or {}
        if applied.get("status") != "True":
            yield f"ManagedResource {name}: {applied.get('reason')}: {applied.get('message')}"
        status = managed_resource.get("status") or {}
        listed = sorted(key_of_reference(entry) for entry in status.get("resources") or [])
        managed = [obj for obj in objects if annotations(obj).get(keys.MODE) != keys.MODE_IGNORE]
        if listed != sorted(key_of(obj) for obj in managed):
            yield f"ManagedResource {name} lists {listed}"


def holds(live: Any, wanted: Any) -> bool:
    """Whether all that the manifest says is so; the API server may have added to it."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(name in live and holds(live[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list):
        return isinstance(live, list) and len(live) == len(wanted) and all(map(holds, live, wanted))
    return bool(live == wanted)


@asynccontextmanager
async def control_loop(
    client: Client, namespace: str, *, sync_period: float = 60.0, timings: Timings | None = None
) -> AsyncIterator[ManagedResourceLoop]:
    """The ManagedResource controller at work in a namespace; all its memory ends with the block."""
    cluster = cluster_of(client, namespace, timings=timings)
    context = context_of(cluster, Controllers(managed_resource=ManagedResource(sync_period=sync_period)))
    source = Source(client=client, caches=cluster.caches, memory=1 << 20)
    kinds = ManagedKinds(cluster.caches, label_selector=f"{keys.MANAGED_BY}=gardener")
    loop = ManagedResourceLoop(
        context,
        source=source,
        kinds=kinds,
        status=StatusWriter(context.source.client, source.managed_resources, MANAGED_RESOURCES),
    )
    async with at_work(context, loop):
        yield loop


async def create_namespace(client: Client, name: str) -> None:
    namespaces = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
    await client.create(namespaces, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
