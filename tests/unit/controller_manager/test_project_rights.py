"""Roles and bindings of Projects."""

import asyncio
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.project.lifecycle.rbac import DesiredRight, PresentRight, wanted_bindings, wanted_roles
from agent.controller_manager.project.lifecycle.rights import KINDS, Rights
from kube.objects import Object
from kube.resources import Resource
from kube.runtime.cache import Store, View

RBAC = "rbac.authorization.k8s.io"
OWNER = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "Project",
    "name": "dev",
    "uid": "u1",
    "controller": True,
    "blockOwnerDeletion": False,
}
EXTENSION = {"gardener.cloud/role": "extension-project-role", "project.gardener.cloud/name": "dev"}


def user(name: str, *roles: str) -> Object:
    member = {"kind": "User", "apiGroup": RBAC, "name": name}
    return {**member, "role": roles[0], "roles": list(roles[1:])} if roles else member


def project(*members: Object, owner: Object | None = None) -> Object:
    spec = {"namespace": "garden-dev", "members": list(members), **({"owner": owner} if owner else {})}
    return {"metadata": {"name": "dev", "uid": "u1"}, "spec": spec}


def roles(found: Object) -> dict[str, DesiredRight]:
    return {each.key.name: each for each in wanted_roles(found, "garden-dev")}


def subjects(found: Object) -> dict[str, list[Object]]:
    return {str(each.key): each.content["subjects"] for each in wanted_bindings(found, "garden-dev")}


BOT = {"kind": "ServiceAccount", "name": "bot", "namespace": "garden-dev", "role": "admin"}
TEAM = project(
    user("ann", "admin"),
    user("vic", "viewer"),
    user("uma", "uam", "viewer"),
    user("sam", "serviceaccountmanager"),
    user("ext", "viewer", "extension:foo", "extension:bar"),
    BOT,
    {"kind": "Group", "apiGroup": RBAC, "name": "grp", "role": "viewer", "roles": ["admin"]},
    user("own", "admin", "owner"),
    owner=user("own"),
)


def test_rights_to_the_project_itself_come_from_roles_of_its_own() -> None:
    see = {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["garden-dev"], "verbs": ["get"]}

    def to_project(*verbs: str) -> Object:
        group = "core.gardener.cloud"
        return {"apiGroups": [group], "resources": ["projects"], "resourceNames": ["dev"], "verbs": list(verbs)}

    rules = {name: each.content.get("rules") for name, each in roles(project()).items()}
    assert rules == {
        "gardener.cloud:system:project:dev": [see, to_project("get", "patch", "manage-members", "update", "delete")],
        "gardener.cloud:system:project-uam:dev": [to_project("get", "manage-members", "patch", "update")],
        "gardener.cloud:system:project-member:dev": [see, to_project("get", "patch", "update", "delete")],
        "gardener.cloud:system:project-viewer:dev": [see, to_project("get")],
    }


def test_members_are_bound_by_their_roles() -> None:
    ann, own = user("ann"), user("own")
    group = {"apiGroup": RBAC, "kind": "Group", "name": "grp"}
    bot = {"kind": "ServiceAccount", "name": "bot", "namespace": "garden-dev"}
    admins, viewers = [ann, bot, group, own], [user("vic"), user("uma"), user("ext"), group]
    assert subjects(TEAM) == {
        "gardener.cloud:system:project:dev": [own],
        "gardener.cloud:system:project-uam:dev": [user("uma")],
        "gardener.cloud:system:project-member:dev": admins,
        "gardener.cloud:system:project-viewer:dev": viewers,
        "garden-dev/gardener.cloud:system:project-member": admins,
        "garden-dev/gardener.cloud:system:project-viewer": viewers,
        "garden-dev/gardener.cloud:system:project-serviceaccountmanager": [own, user("sam")],
        "garden-dev/gardener.cloud:extension:project:dev:foo": [user("ext")],
        "garden-dev/gardener.cloud:extension:project:dev:bar": [user("ext")],
    }


def test_bindings_refer_to_the_roles_of_their_names() -> None:
    for each in wanted_bindings(TEAM, "garden-dev"):
        assert each.content["roleRef"] == {"apiGroup": RBAC, "kind": "ClusterRole", "name": each.key.name}


def test_the_roles_of_extensions_are_put_together_by_kubernetes() -> None:
    role = roles(TEAM)["gardener.cloud:extension:project:dev:foo"]
    selector = {"matchLabels": {"rbac.gardener.cloud/aggregate-to-extension-role": "foo"}}
    assert role.body() == {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": role.key.name, "labels": EXTENSION, "ownerReferences": [OWNER]},
        "aggregationRule": {"clusterRoleSelectors": [selector]},
    }


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([user("a", "admin"), user("a", "owner")], [user("a")]),
        ([user("b", "admin"), user("a", "owner"), user("b", "owner")], [user("b"), user("a")]),
        ([{"kind": "User", "name": "a", "role": "admin"}], [user("a")]),
        ([{**BOT, "apiGroup": ""}], [{"kind": "ServiceAccount", "name": "bot", "namespace": "garden-dev"}]),
        ([user("a", "uam")], []),
        ([{**user("a"), "roles": ["owner"]}], [user("a")]),
    ],
)
def test_a_subject_stands_in_a_binding_once(members: list[Object], expected: list[Object]) -> None:
    assert subjects(project(*members))["gardener.cloud:system:project-member:dev"] == expected


# --- what is there already


def stored(wanted: DesiredRight, **metadata: Any) -> Object:
    body = wanted.body()
    return {**body, "metadata": {**body["metadata"], "uid": "x", "resourceVersion": "1", **metadata}}


EVERYTHING = [*wanted_roles(TEAM, "garden-dev"), *wanted_bindings(TEAM, "garden-dev")]


@pytest.mark.parametrize("wanted", EVERYTHING, ids=lambda each: f"{each.resource.kind} {each.key}")
def test_what_is_as_wanted_needs_no_change(wanted: DesiredRight) -> None:
    present = PresentRight.of(stored(wanted, annotations={"mine": "x"}, creationTimestamp="2026-01-01T00:00:00Z"))
    assert wanted.change_of(present) == {}
    assert present.project == "dev"
    assert not wanted.is_rebound(present)


@pytest.mark.parametrize("wanted", EVERYTHING, ids=lambda each: f"{each.resource.kind} {each.key}")
def test_owner_and_labels_are_replaced(wanted: DesiredRight) -> None:
    other = {**OWNER, "uid": "u0"}
    change = wanted.change_of(PresentRight.of(stored(wanted, labels={"old": "1"}, ownerReferences=[other])))
    assert change == {"metadata": {"labels": {"old": None, **wanted.labels}, "ownerReferences": [OWNER]}}


def test_rules_that_kubernetes_has_put_together_are_its_alone() -> None:
    role = roles(TEAM)["gardener.cloud:extension:project:dev:foo"]
    present = PresentRight.of({**stored(role), "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
    assert role.change_of(present) == {}


def test_a_role_that_a_user_has_made_an_aggregated_one_gets_its_rules_back() -> None:
    role = roles(TEAM)["gardener.cloud:system:project:dev"]
    present = PresentRight.of({**stored(role), "aggregationRule": {"clusterRoleSelectors": [{}]}})
    assert role.change_of(present) == {**role.content, "aggregationRule": None}


def test_another_role_in_a_binding_is_noticed() -> None:
    (binding, *_) = wanted_bindings(TEAM, "garden-dev")
    other = {**stored(binding), "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}}
    assert binding.is_rebound(PresentRight.of(other))


@pytest.mark.parametrize(
    "owner",
    [
        None,
        {**OWNER, "controller": False},
        {**OWNER, "kind": "Seed"},
        {**OWNER, "apiVersion": "example.com/v1"},
        {**OWNER, "apiVersion": "core.gardener.cloud.example.com/v1"},
    ],
)
def test_nothing_is_kept_of_what_no_project_controls(owner: Object | None) -> None:
    owners = [owner] if owner else []
    assert PresentRight.of_project({"metadata": {"name": "r", "ownerReferences": owners}, "rules": []}) is None


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, True),
        ({"labels": {**EXTENSION, "more": "1"}}, True),
        ({"labels": {}}, False),
        ({"labels": {**EXTENSION, "project.gardener.cloud/name": "other"}}, False),
        ({"ownerReferences": [{**OWNER, "uid": "u0"}]}, False),
    ],
)
def test_only_what_was_made_for_an_extension_role_of_this_project_is_removed(metadata: Object, expected: bool) -> None:
    role = roles(TEAM)["gardener.cloud:extension:project:dev:foo"]
    assert PresentRight.of(stored(role, **metadata)).is_extension_of(TEAM) is expected


_ROLES = st.sampled_from(["admin", "owner", "viewer", "uam", "serviceaccountmanager", "extension:a", "extension:b"])


@given(st.lists(st.builds(lambda name, held: user(name, *held), st.sampled_from("abc"), st.lists(_ROLES)), max_size=5))
def test_no_member_gets_rights_without_a_role(members: list[Object]) -> None:
    held: dict[str, set[str]] = {}
    for member in members:
        held.setdefault(member["name"], set()).update([member.get("role", ""), *member.get("roles", [])])
    for name, bound in subjects(project(*members)).items():
        assert len({each["name"] for each in bound}) == len(bound)
        for subject in bound:
            role = name.rsplit(":", 1)[-1] if "extension" in name else name
            assert held[subject["name"]] - {""}, role
    extensions = {role for each in held.values() for role in each if role.startswith("extension:")}
    assert len(roles(project(*members))) == 4 + len(extensions)


class Counting:
    """An API server that creates what it is requested to, and counts the requests that are under way."""

    def __init__(self) -> None:
        self.most = self.now = self.created = 0

    async def create_if_missing(self, _resource: Resource, body: Object) -> Object:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now, self.created = self.now - 1, self.created + 1
        return {**body, "metadata": {**body["metadata"], "uid": str(self.created), "resourceVersion": "1"}}


async def test_a_project_with_many_roles_leaves_the_connection_to_others() -> None:
    counting = Counting()
    stores = {kind: Store(View(kind, PresentRight.of_project)) for kind in KINDS}
    many = project(*(user("ann", f"extension:r{number}") for number in range(1000)))
    await Rights(client=cast("Any", counting), stores=stores).ensure(many, "garden-dev")
    assert counting.created > 2000
    assert counting.most < 10
