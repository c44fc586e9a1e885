"""Projects get namespaces, quotas and rights, keep them, and give them up in the end."""

import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from agent.controller_manager.project.lifecycle.controller import declare
from agent.controller_manager.project.lifecycle.rbac import controlling_project
from config.controller_manager.controllers import Controllers, Project, QuotaConfiguration
from config.shared import LabelSelector
from gardener.api.garden import PROJECTS, SHOOTS
from kit.eventually import soon
from kit.garden import CONFIRMED, Garden
from kit.garden_controllers import run_garden_controller, until_idle
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.errors import Forbidden, NotFound
from kube.objects import Key, Object, annotations, finalizers, is_deleting, labels, mappings, metadata, uid
from kube.paths import at
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    EVENTS,
    NAMESPACES,
    RESOURCE_QUOTAS,
    ROLE_BINDINGS,
)
from kube.runtime.client import Client, Selection
from kube.runtime.loop import ControlLoop

pytestmark = pytest.mark.timeout(600)

RBAC = "rbac.authorization.k8s.io"
QUOTA = QuotaConfiguration(
    config={
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"labels": {"from": "config"}},
        "spec": {"hard": {"count/configmaps": "50", "count/secrets": "60"}},
    },
    project_selector=LabelSelector(match_labels={"quota": "conf"}),
)
CONTROLLERS = Controllers(project=Project(quotas=(QUOTA,)))


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    async with connected(garden.cluster) as client:
        yield client


@pytest.fixture
def name() -> str:
    return f"p{uuid.uuid4().hex[:6]}"


def running(client: Client) -> AbstractAsyncContextManager[ControlLoop]:
    return run_garden_controller(declare, client, controllers=CONTROLLERS)


def user(name: str, *roles: str) -> Object:
    return {"kind": "User", "apiGroup": RBAC, "name": name, "roles": list(roles)}


class Watched:
    """A Project, and what is made for it."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name
        self.namespace = f"garden-{name}"

    async def get(self) -> Object:
        return await self.client.get(PROJECTS, self.name)

    async def patch(self, body: Object) -> None:
        await self.client.patch(PROJECTS, self.name, body)

    async def delete(self) -> None:
        await self.patch(CONFIRMED)
        await self.client.delete(PROJECTS, self.name)

    async def is_gone(self) -> bool:
        return await self.client.find(PROJECTS, self.name) is None

    async def becomes(self, phase: str) -> Object:
        """When it is so of the present spec."""

        async def found() -> Object | None:
            project = await self.get()
            is_current = at(project, "status", "observedGeneration") == metadata(project)["generation"]
            return project if is_current and at(project, "status", "phase") == phase else None

        project: Object = await soon(found, f"the phase {phase}", passing=(NotFound,))
        return project

    async def events(self) -> set[str]:
        selection = Selection("default", field_selector=f"involvedObject.name={self.name}")
        return {
            f"{each['type']} {each['reason']}: {each['message']}" for each in await self.client.list(EVENTS, selection)
        }

    async def until_reported(self, text: str) -> None:
        async def is_reported() -> bool:
            return any(text in each for each in await self.events())

        await soon(is_reported, f"an Event: {text}")

    async def subjects(self, binding: str) -> list[str]:
        found = await self.client.get(ROLE_BINDINGS, Key(self.namespace, binding))
        return [each["name"] for each in mappings(found.get("subjects"))]

    async def all(self) -> dict[str, str]:
        """Versions of all that is there."""
        found = [await self.get(), await self.client.get(NAMESPACES, self.namespace)]
        for resource in (RESOURCE_QUOTAS, ROLE_BINDINGS):
            found += await self.client.list(resource, Selection(self.namespace))
        for resource in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS):
            found += [each for each in await self.client.list(resource) if f":{self.name}" in metadata(each)["name"]]
        return {f"{uid(each)} {metadata(each)['name']}": metadata(each)["resourceVersion"] for each in found}


async def made(client: Client, name: str, **spec: Any) -> Watched:
    project = {
        **PROJECTS.type_meta,
        "metadata": {"name": name, "labels": {"quota": "conf"}},
        "spec": spec,
    }
    await client.create(PROJECTS, project)
    return Watched(client, name)


async def test_a_project_gets_a_namespace_a_quota_and_rights(client: Client, name: str) -> None:
    async with running(client):
        project = await made(client, name, members=[user("vic", "viewer"), user("ext", "extension:foo")])
        ready = await project.becomes("Ready")
        assert finalizers(ready) == ["gardener"]
        project.namespace = ready["spec"]["namespace"]
        assert project.namespace.startswith(f"garden-{name}-")
        namespace = await client.get(NAMESPACES, project.namespace)
        assert annotations(namespace)["namespace.gardener.cloud/project"] == uid(ready)
        quota = await client.get(RESOURCE_QUOTAS, Key(project.namespace, "gardener"))
        assert quota["spec"]["hard"] == {"count/configmaps": "50", "count/secrets": "60"}
        assert await project.subjects("gardener.cloud:system:project-viewer") == ["vic"]
        assert await project.subjects(f"gardener.cloud:extension:project:{name}:foo") == ["ext"]
        await project.until_reported(
            f'Normal NamespaceReconcileSuccessful: Successfully reconciled namespace "{project.namespace}"'
        )
    before = await project.all()
    async with running(client) as loop:
        await until_idle(loop)
    assert await project.all() == before


async def test_what_a_user_changes_is_corrected(client: Client, name: str) -> None:
    viewer, member = "gardener.cloud:system:project-viewer", f"gardener.cloud:system:project-member:{name}"
    async with running(client):
        project = await made(client, name, namespace=f"garden-{name}", members=[user("vic", "viewer")])
        await project.becomes("Ready")
        there = project.namespace
        await client.delete(ROLE_BINDINGS, Key(there, viewer))
        await client.patch(CLUSTER_ROLES, member, {"rules": [], "metadata": {"labels": {"mine": "1"}}})
        await client.patch(CLUSTER_ROLE_BINDINGS, member, {"metadata": {"ownerReferences": None}, "subjects": None})
        await client.patch(NAMESPACES, project.namespace, {"metadata": {"ownerReferences": None}})
        await client.delete(RESOURCE_QUOTAS, Key(there, "gardener"))

        async def is_right() -> bool:
            role = await client.get(CLUSTER_ROLES, member)
            binding = await client.get(CLUSTER_ROLE_BINDINGS, member)
            await client.get(RESOURCE_QUOTAS, Key(there, "gardener"))
            owned = [role, binding, await client.get(NAMESPACES, project.namespace)]
            assert await project.subjects(viewer) == ["vic"]
            return all(controlling_project(each) == name for each in owned) and (
                len(role["rules"]) == 2 and labels(role) == {} and bool(binding.get("subjects"))
            )

        await soon(is_right, "all to be corrected", passing=(NotFound,))


async def test_a_binding_to_another_role_is_recreated(client: Client, name: str) -> None:
    member = f"gardener.cloud:system:project-member:{name}"
    project = await made(client, name, namespace=f"garden-{name}")
    other = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": member},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
    }
    await client.create(CLUSTER_ROLE_BINDINGS, other)
    async with running(client):
        await project.becomes("Ready")
        binding = await client.get(CLUSTER_ROLE_BINDINGS, member)
        assert binding["roleRef"]["name"] == member
        assert binding["subjects"]


async def test_members_and_extension_roles_come_and_go(client: Client, name: str) -> None:
    async with running(client):
        project = await made(client, name, namespace=f"garden-{name}", members=[user("ext", "extension:foo")])
        await project.becomes("Ready")
        role = f"gardener.cloud:extension:project:{name}:foo"
        await client.get(CLUSTER_ROLES, role)
        members = (await project.get())["spec"]["members"]
        await project.patch({"spec": {"members": [user("ann", "admin"), *members[1:]]}})
        await project.becomes("Ready")
        assert await client.find(CLUSTER_ROLES, role) is None
        assert await client.find(ROLE_BINDINGS, Key(project.namespace, role)) is None
        assert "ann" in await project.subjects("gardener.cloud:system:project-member")


async def test_a_quota_follows_the_labels_of_the_project_and_keeps_limits(client: Client, name: str) -> None:
    async with running(client):
        project = await made(client, name, namespace=f"garden-{name}")
        await project.patch({"metadata": {"labels": {"quota": None}}})
        await project.becomes("Ready")
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "gardener", "namespace": project.namespace, "labels": {"own": "1"}},
            "spec": {"hard": {"count/configmaps": "7", "count/pods": "3"}},
        }
        if await client.find(RESOURCE_QUOTAS, Key(project.namespace, "gardener")) is not None:
            await client.delete(RESOURCE_QUOTAS, Key(project.namespace, "gardener"))
        await client.create(RESOURCE_QUOTAS, quota)
        await project.patch({"metadata": {"labels": {"quota": "conf"}}})

        async def is_merged() -> bool:
            found = await client.get(RESOURCE_QUOTAS, Key(project.namespace, "gardener"))
            return bool(
                found["spec"]["hard"] == {"count/configmaps": "7", "count/secrets": "60"}
                and labels(found) == {"own": "1", "from": "config"}
            )

        await soon(is_merged, "the quota to be as configured")


async def test_a_namespace_is_used_as_soon_as_its_labels_name_the_project(client: Client, name: str) -> None:
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"garden-{name}"}})
    async with running(client):
        project = await made(client, name, namespace=f"garden-{name}")
        await project.becomes("Failed")
        await project.until_reported(
            "Warning NamespaceReconcileFailed: namespace cannot be used as it needs the project labels"
        )
        marks = {"gardener.cloud/role": "project", "project.gardener.cloud/name": name}
        await client.patch(NAMESPACES, project.namespace, {"metadata": {"labels": marks}})
        await project.becomes("Ready")
        await project.until_reported("Normal NamespaceReconcileSuccessful")


async def test_a_project_goes_with_its_last_shoot_and_leaves_a_namespace_that_was_there_before(
    garden: Garden, client: Client
) -> None:
    place = ShootPlace(garden)
    project = Watched(client, place.name)
    place.shoot("a")
    place.shoot("b")
    async with running(client):
        await project.becomes("Ready")
        await project.delete()
        await project.becomes("Terminating")
        await project.until_reported(f"still contains Shoots: [{place.namespace}/a {place.namespace}/b]")
        place.delete(SHOOTS, "a")
        assert not await project.is_gone()
        place.delete(SHOOTS, "b")
        await soon(project.is_gone, "the Project to go")
    namespace = await client.get(NAMESPACES, place.namespace)
    assert labels(namespace) == {"kubernetes.io/metadata.name": place.namespace}
    assert not annotations(namespace)
    assert not metadata(namespace).get("ownerReferences")


async def test_the_garbage_collector_has_no_hand_in_a_namespace_that_was_there_before(
    garden: Garden, client: Client, name: str
) -> None:
    marks = {"gardener.cloud/role": "project", "project.gardener.cloud/name": name}
    garden.create(NAMESPACES, f"garden-{name}", metadata={"labels": marks})
    project = await made(client, name, namespace=f"garden-{name}")
    owner = PROJECTS.reference(name=name, uid=uid(await project.get()))  # as releases before wrote it
    await client.patch(NAMESPACES, project.namespace, {"metadata": {"ownerReferences": [owner]}})
    async with running(client):
        await project.becomes("Ready")
    assert not metadata(await client.get(NAMESPACES, project.namespace)).get("ownerReferences")
    await project.patch(CONFIRMED)
    foreground = {"propagationPolicy": "Foreground"}
    with pytest.raises(Forbidden, match="propagationPolicy Foreground"):
        garden.cluster.api.request("DELETE", PROJECTS.path(name=name), foreground)
    assert not is_deleting(await project.get())


async def test_a_namespace_that_was_made_for_a_project_goes_with_it(client: Client, name: str) -> None:
    async with running(client):
        project = await made(client, name, namespace=f"garden-{name}")
        await project.becomes("Ready")
        await project.delete()
        await soon(project.is_gone, "the Project to go")
        assert await client.find(NAMESPACES, project.namespace) is None
        await project.until_reported(
            f'Normal NamespaceMarkedForDeletion: Successfully marked project namespace "{project.namespace}"'
        )


async def test_a_namespace_that_has_lost_its_labels_stays(client: Client, name: str) -> None:
    async with running(client):
        project = await made(client, name, namespace=f"garden-{name}")
        await project.becomes("Ready")
        await client.patch(
            NAMESPACES, project.namespace, {"metadata": {"labels": {"project.gardener.cloud/name": None}}}
        )
        await project.becomes("Failed")
        await project.delete()
        await soon(project.is_gone, "the Project to go")
        namespace = await client.get(NAMESPACES, project.namespace)
        assert not metadata(namespace).get("ownerReferences")
        assert not metadata(namespace).get("deletionTimestamp")
