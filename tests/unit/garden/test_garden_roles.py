"""The roles of the garden: what is aggregated into what, and that no user gets more than is meant."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import yaml

from agent.controller_manager.project.lifecycle.rbac import wanted_roles
from gardener.api import garden
from gardener.rights import bootstrapper, everybody, gardenlet, project
from gardener.rights.model import Table
from kube.objects import Object, labels, metadata
from kube.resources import API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS, Resource
from webhooks.authorizers.seed.graph import VIEWS as GRAPH
from webhooks.garden.lookups import VIEWS

MANIFESTS = Path(__file__).parents[3] / "manifests"
ROLES = {
    metadata(obj)["name"]: obj
    for path in sorted((MANIFESTS / "base/garden").glob("*.yaml"))
    for obj in yaml.safe_load_all(path.read_text())
    if obj["kind"] == "ClusterRole"
}
READ = {"get", "list", "watch"}
WRITE = {"create", "delete", "deletecollection", "patch", "update"}

Right = tuple[str, str, str]
"""Group, resource, verb."""


def rules(role: Object) -> list[Object]:
    """With those that are aggregated, also of what is aggregated itself."""
    found = list(role.get("rules") or ())
    for selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors", ()):
        for other in ROLES.values():
            if selector["matchLabels"].items() <= labels(other).items():
                found += rules(other)
    return found


def rights(name: str) -> set[Right]:
    return {right for rule in rules(ROLES[name]) for right in _rights(rule)}


def _rights(rule: Object) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            yield from ((group, resource, verb) for verb in rule["verbs"])


def verbs(name: str, resource: str, group: str = "core.gardener.cloud") -> set[str]:
    return {verb for of, what, verb in rights(name) if (of, what) == (group, resource)}


MEMBER, VIEWER, MANAGER = (
    f"gardener.cloud:system:project-{role}" for role in ("member", "viewer", "serviceaccountmanager")
)


def of_table(table: Table) -> set[Right]:
    found = set()
    for right in table.rights:
        resource = f"{right.resource.plural}/{right.subresource}" if right.subresource else right.resource.plural
        found |= {(right.resource.group, resource, verb) for verb in right.verbs}
    return found


@pytest.mark.parametrize("name", project.INSIDE_NAMESPACE)
def test_roles_of_members_grant_what_the_table_states(name: str) -> None:
    assert rights(f"gardener.cloud:system:{name}") == of_table(project.INSIDE_NAMESPACE[name])


def test_roles_of_each_project_grant_what_the_table_states() -> None:
    wanted = wanted_roles({"metadata": {"name": "dev", "uid": "u"}, "spec": {}}, "garden-dev")
    granted = {each.key.name: set(chain(*map(_rights, each.content["rules"]))) for each in wanted}
    assert granted == {f"gardener.cloud:system:{name}:dev": of_table(each) for name, each in project.OF_PROJECT.items()}


def test_roles_of_gardenlets_grant_no_more_than_the_table_states() -> None:
    assert rights("gardener.cloud:system:seeds") <= of_table(gardenlet.TABLE)
    assert rights("gardener.cloud:system:seed-bootstrapper") == of_table(bootstrapper.TABLE)


def test_all_users_have_what_the_table_states() -> None:
    names = ("read-global-resources", "user-auth", "request-tokens")
    granted = set(chain(*(rights(f"gardener.cloud:system:{name}") for name in names)))
    of_kubernetes = {
        ("authorization.k8s.io", "selfsubjectrulesreviews", "create"),
        ("authentication.k8s.io", "selfsubjectreviews", "create"),
    }
    assert granted | of_kubernetes == of_table(everybody.TABLE)


@pytest.mark.parametrize(
    ("resource", "group"),
    [
        ("configmaps", ""),
        ("secrets", ""),
        ("shoots", "core.gardener.cloud"),
        ("secretbindings", "core.gardener.cloud"),
        ("quotas", "core.gardener.cloud"),
        ("credentialsbindings", "security.gardener.cloud"),
        ("openidconnectpresets", "settings.gardener.cloud"),
        ("bastions", "operations.gardener.cloud"),
        ("roles", "rbac.authorization.k8s.io"),
        ("rolebindings", "rbac.authorization.k8s.io"),
    ],
)
def test_a_member_does_everything_with_what_is_the_projects_own(resource: str, group: str) -> None:
    assert verbs(MEMBER, resource, group) == READ | WRITE
    assert verbs(VIEWER, resource, group) == (set() if resource == "secrets" else READ)


def test_what_a_member_may_do_in_part() -> None:
    assert verbs(MEMBER, "namespacedcloudprofiles") == (READ | WRITE) - {"deletecollection"}
    for resource in ("events", "resourcequotas", "serviceaccounts"):
        assert verbs(MEMBER, resource, "") == verbs(VIEWER, resource, "") == READ
    assert verbs(MANAGER, "serviceaccounts", "") == READ | WRITE
    assert verbs(MANAGER, "serviceaccounts/token", "") == {"create"}


def test_a_viewer_of_a_project_gets_no_admins_kubeconfig() -> None:
    for resource in ("shoots/adminkubeconfig", "shoots/viewerkubeconfig"):
        assert verbs(MEMBER, resource) == {"create"}
    assert verbs(VIEWER, "shoots/viewerkubeconfig") == {"create"}
    assert {verb for *_, verb in rights(VIEWER)} - READ == {"create"}


def test_members_neither_bind_shoots_nor_write_what_controllers_write() -> None:
    for subresource in ("binding", "status"):
        assert verbs(MEMBER, f"shoots/{subresource}") == set()
    assert not any("*" in right for right in rights(MEMBER))


def test_administrators_may_what_members_and_managers_may() -> None:
    administrators = rights("gardener.cloud:system:administrators")
    assert rights(MEMBER) | rights(MANAGER) | rights("gardener.cloud:admin") == administrators


def test_viewers_of_the_garden_write_nothing_and_read_no_credentials() -> None:
    found = rights("gardener.cloud:system:viewers")
    assert rights(VIEWER) <= found
    assert {verb for *_, verb in found} == READ | {"create"}
    assert {resource for _, resource, verb in found if verb == "create"} == {"shoots/viewerkubeconfig"}
    assert {"secrets", "internalsecrets", "shootstates"} & {resource for _, resource, _ in found} == set()


def test_every_kind_with_no_credentials_can_be_viewed() -> None:
    viewed = {(group, resource) for group, resource, _ in rights("gardener.cloud:system:viewers")}
    named = [value for value in vars(garden).values() if isinstance(value, Resource)]
    hidden = {garden.INTERNAL_SECRETS, garden.SHOOT_STATES}
    missing = {each for each in named if not {(each.group, each.plural), (each.group, "*")} & viewed}
    assert missing == hidden


def test_the_admission_server_may_read_what_rules_ask_about() -> None:
    """What is entered in VIEWS belongs into manifests/instances/garden/webhooks-role.yaml, too."""
    role, _ = yaml.safe_load_all((MANIFESTS / "instances/garden/webhooks-role.yaml").read_text())
    read = {(each.group, each.plural, verb) for each in VIEWS | GRAPH for verb in ("list", "watch")}
    gone_kinds = {(each.group, each.plural, "list") for each in (API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS)}
    core, security = "core.gardener.cloud", "security.gardener.cloud"
    of_tokens = {(core, each) for each in ("internalsecrets", "projects", "seeds", "shoots")}
    of_tokens |= {(security, "workloadidentities")}
    of_tokens |= {("", each) for each in ("configmaps", "namespaces", "secrets")}
    read |= {(*each, "get") for each in of_tokens}
    requested = ("authorization.k8s.io", "subjectaccessreviews", "create")
    assert {right for rule in role["rules"] for right in _rights(rule)} == read | gone_kinds | {requested}
