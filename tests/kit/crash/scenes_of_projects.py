"""What the controller manager does with Projects."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from agent.controller_manager.project.lifecycle.controller import declare as declare_lifecycle
from agent.controller_manager.project.stale import declare as declare_stale
from config.controller_manager.controllers import Controllers, Project, QuotaConfiguration
from config.shared import LabelSelector
from devcluster.cluster import Cluster
from gardener import keys
from gardener.api.garden import PROJECTS
from kit.crash.garden_scene import GardenScene
from kit.crash.sweep import comparable, crossing, scenes_of
from kit.garden import CONFIRMED
from kit.objects import obj
from kube.clock import format_time
from kube.errors import Conflict, NotFound
from kube.objects import Object, annotations, finalizers, is_deleting, metadata, spec
from kube.paths import at
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, RESOURCE_QUOTAS, ROLE_BINDINGS
from kube.runtime.client import Client, Selection


def _quota(most: str) -> Object:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {most: "50"}}}


def _settings(project: Project) -> Controllers:
    return Controllers(project=project)


_QUOTAS = Project(
    quotas=(
        QuotaConfiguration(
            config=_quota("count/secrets"), project_selector=LabelSelector(match_labels={"example.com/large": "yes"})
        ),
        QuotaConfiguration(config=_quota("count/configmaps")),
    )
)
_PROJECTS, _GROUP = "projects.core.gardener.cloud", "rbac.authorization.k8s.io"
_HOLD = "test.example.com/hold"


class ProjectScene(GardenScene):
    declare = (declare_lifecycle,)
    settings = _settings(_QUOTAS)

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.mark = f"p{self.mark[-8:]}"  # names of Projects are short

    async def make(self, **fields: Any) -> None:
        meta = {"name": self.mark, **fields.pop("metadata", {})}
        project = {**PROJECTS.type_meta, "metadata": meta, **fields}
        await self.client.create(PROJECTS, project)

    async def project(self) -> Object | None:
        return await self.client.find(PROJECTS, self.mark)

    async def clean_up(self) -> None:
        if await self.project() is not None:
            await self.client.patch(PROJECTS, self.mark, {"metadata": {**CONFIRMED["metadata"], "finalizers": None}})
            await self.client.delete_if_exists(PROJECTS, self.mark)


class ReadyProjectScene(ProjectScene):
    """With all that it has in the end."""

    async def problem(self) -> str:
        found = await self.project() or {}
        is_current = at(found, "status", "observedGeneration") == metadata(found).get("generation")
        return "" if is_current and at(found, "status", "phase") == "Ready" else "it is not ready"

    async def state(self) -> Any:
        project = await self.project() or {}
        name = spec(project)["namespace"]
        found = [project, await self.client.get(NAMESPACES, name)]
        for resource in (RESOURCE_QUOTAS, ROLE_BINDINGS):
            found += await self.client.list(resource, Selection(name))
        for resource in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS):
            found += [each for each in await self.client.list(resource) if self.mark in metadata(each)["name"]]
        uid = metadata(project)["uid"]
        text = orjson.dumps([{**comparable(each, self.mark), "status": None} for each in found]).decode()
        return orjson.loads(text.replace(name.replace(self.mark, "$MARK"), "$NAMESPACE").replace(uid, "$UID"))


class ProjectIsSetUp(ReadyProjectScene):
    """In a namespace of a generated name, so that it is known by the uid alone at first."""

    is_real = True
    crosses = crossing(
        f"create namespaces resourcequotas clusterroles.{_GROUP} clusterrolebindings.{_GROUP} rolebindings.{_GROUP}",
        f"patch {_PROJECTS} projects/status.core.gardener.cloud",
    )

    async def prepare(self) -> None:
        pass

    async def change(self) -> None:
        members = [{"kind": "User", "name": "ext", "roles": ["viewer", "extension:foo"]}]
        await self.make(spec={"members": members})


class ProjectFindsWhatWasThere(ReadyProjectScene):
    """A namespace, a role with other rules, and a binding to another role."""

    crosses = crossing(f"patch namespaces clusterroles.{_GROUP}", f"delete clusterrolebindings.{_GROUP}")

    async def prepare(self) -> None:
        labels = {keys.ROLE: keys.ROLE_PROJECT, keys.PROJECT_NAME: self.mark}
        await self.create(obj(NAMESPACES, f"garden-{self.mark}", labels=labels))
        role = f"gardener.cloud:system:project:{self.mark}"
        await self.create(obj(CLUSTER_ROLES, role, rules=[]))
        other = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": "view"}
        await self.create(obj(CLUSTER_ROLE_BINDINGS, role, roleRef=other, subjects=[]))

    async def change(self) -> None:
        await self.make(spec={"namespace": f"garden-{self.mark}"})


class ProjectChanges(ReadyProjectScene):
    """Other members, one extension role less, and another quota."""

    crosses = crossing(
        f"patch resourcequotas clusterrolebindings.{_GROUP} rolebindings.{_GROUP}",
        f"delete clusterroles.{_GROUP} rolebindings.{_GROUP}",
    )
    warm = True

    async def prepare(self) -> None:
        members = [{"kind": "User", "name": name, "roles": ["viewer", f"extension:{name}"]} for name in ("a", "b")]
        await self.make(spec={"namespace": f"garden-{self.mark}", "members": members})

    async def change(self) -> None:
        members = [{"kind": "User", "name": name, "roles": ["admin", "extension:b"]} for name in ("b", "c")]
        large = {"labels": {"example.com/large": "yes"}}
        await self.client.patch(PROJECTS, self.mark, {"metadata": large, "spec": {"members": members}})


class ProjectEnds(ProjectScene):
    crosses = crossing("delete namespaces", f"patch {_PROJECTS} projects/status.core.gardener.cloud")
    warm = True

    async def prepare(self) -> None:
        await self.make(spec={"namespace": f"garden-{self.mark}"})
        self.is_deleted = False

    async def change(self) -> None:
        self.is_deleted = True
        await self.client.patch(PROJECTS, self.mark, CONFIRMED)
        await self.client.delete(PROJECTS, self.mark)

    async def problem(self) -> str:
        found = await self.project()
        if not self.is_deleted:
            return "" if at(found or {}, "status", "phase") == "Ready" else "it is not ready"
        await self._empty_namespace()
        return "it is still there" if found is not None else ""

    async def _empty_namespace(self) -> None:
        """The other program takes its time."""
        namespace = await self.client.find(NAMESPACES, f"garden-{self.mark}")
        if namespace is not None and is_deleting(namespace):
            with suppress(NotFound, Conflict):
                await self.client.replace(NAMESPACES, {**namespace, "spec": {}}, subresource="finalize")

    async def state(self) -> Any:
        return await self.client.find(NAMESPACES, f"garden-{self.mark}") is None


class StaleProjectIsDeleted(ProjectScene):
    crosses = crossing(f"patch {_PROJECTS}", f"delete {_PROJECTS}", "patch projects/status.core.gardener.cloud")
    declare = (declare_stale,)
    settings = _settings(Project(minimum_lifetime_days=0, stale_grace_period_days=1, stale_expiration_time_days=2))

    async def prepare(self) -> None:
        namespace = f"garden-{self.mark}"
        await self.create(obj(NAMESPACES, namespace))
        await self.make(spec={"namespace": namespace}, metadata={"finalizers": [_HOLD]})
        long_ago = format_time(datetime.now(UTC) - timedelta(days=5))
        stale = {"status": {"staleSinceTimestamp": long_ago}}
        await self.client.patch(PROJECTS, self.mark, stale, subresource="status")

    async def problem(self) -> str:
        return "" if metadata(await self.project() or {}).get("deletionTimestamp") else "it is not deleted"

    async def state(self) -> Any:
        found = await self.project() or {}
        return finalizers(found), sorted(annotations(found)), sorted(found["status"])


SCENES = scenes_of(__name__)
