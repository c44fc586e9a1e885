"""The webhooks of the garden API at work: an API server with its definitions, and the server behind TLS."""

import uuid
from dataclasses import replace

import pytest

from gardenapi.api import PlainApi, recognized
from gardener.api import garden as resources
from kit.eventually import eventually
from kit.garden import CONFIRMED, Garden
from kit.world import connected
from kube.errors import Forbidden, Invalid
from kube.objects import Key, Object
from kube.resources import NAMESPACES, SECRETS

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def project(garden: Garden) -> str:
    return garden.place()


@pytest.fixture
def user() -> str:
    return f"user-{uuid.uuid4().hex[:6]}"


def test_a_project_belongs_to_its_creator(garden: Garden, user: str) -> None:
    garden.allow(user, "create", resources.PROJECTS)
    name = f"p{uuid.uuid4().hex[:6]}"
    created = garden.as_user(user).create(resources.PROJECTS, name, spec={})
    assert created["spec"]["owner"]["name"] == created["spec"]["createdBy"]["name"] == user
    assert created["metadata"]["generation"] == 1


def test_all_mistakes_are_in_one_answer(garden: Garden) -> None:
    members = [{"kind": "User", "name": "a", "role": "king"}, {"kind": "User", "name": "a", "role": "uam"}]
    with pytest.raises(Invalid) as refused:
        garden.create(resources.PROJECTS, "p", spec={"members": members}, dry_run=True)
    causes = refused.value.details["causes"]
    assert {cause["field"] for cause in causes} == {"spec.members[0].roles[0]", "spec.members[1]"}


def test_an_object_of_another_shape_is_refused_by_the_schema(garden: Garden) -> None:
    with pytest.raises(Invalid, match="spec.members"):
        garden.create(resources.PROJECTS, "p", spec={"members": "all"}, dry_run=True)


def test_members_are_managed_by_those_who_may(garden: Garden, project: str, user: str) -> None:
    garden.allow(user, "patch", resources.PROJECTS)
    member = {"kind": "User", "name": "carl", "role": "admin"}
    as_user = garden.as_user(user)
    with pytest.raises(Forbidden, match="is not allowed to manage human users or groups in .spec.members"):
        as_user.patch(resources.PROJECTS, project, {"spec": {"members": [member]}})
    garden.allow(user, "manage-members", resources.PROJECTS)
    # A refusal is believed for five seconds.
    eventually(lambda: _patched(as_user, project, {"spec": {"members": [member]}}))


def _patched(garden: Garden, project: str, body: Object) -> bool:
    try:
        garden.patch(resources.PROJECTS, project, body)
    except Forbidden:
        return False
    return True


def test_a_binding_and_what_it_names_may_be_created_at_once(garden: Garden, project: str) -> None:
    namespace = f"garden-{project}"
    with pytest.raises(Forbidden, match="not found"):
        garden.create(resources.SECRET_BINDINGS, "sb", namespace=namespace, **BINDING)
    garden.create(SECRETS, "cred", namespace=namespace)
    created = garden.create(resources.SECRET_BINDINGS, "sb", namespace=namespace, **BINDING)
    assert created["secretRef"] == {"name": "cred", "namespace": namespace}
    assert created["metadata"]["labels"] == {"provider.extensions.gardener.cloud/local": "true"}
    # The Secret goes, and the binding can still be labelled.
    garden.delete(SECRETS, "cred", namespace=namespace)
    patch: Object = {"metadata": {"labels": {"a": "b"}}}
    assert garden.patch(resources.SECRET_BINDINGS, "sb", patch, namespace=namespace)["metadata"]["labels"]["a"] == "b"


BINDING: Object = {"provider": {"type": "local"}, "secretRef": {"name": "cred"}}


def test_a_deletion_is_confirmed_also_in_a_collection(garden: Garden, project: str) -> None:
    namespace = f"garden-{project}"
    for name in ("a", "b"):
        garden.create(resources.SHOOT_STATES, name, namespace=namespace, spec={})
    garden.patch(resources.SHOOT_STATES, "a", CONFIRMED, namespace=namespace)
    with pytest.raises(Forbidden, match="must have a"):
        garden.cluster.api.request("DELETE", resources.SHOOT_STATES.path(namespace=namespace))
    garden.patch(resources.SHOOT_STATES, "b", CONFIRMED, namespace=namespace)
    garden.cluster.api.request("DELETE", resources.SHOOT_STATES.path(namespace=namespace))
    assert garden.cluster.api.get(resources.SHOOT_STATES.path(namespace=namespace))["items"] == []


def test_an_operation_raises_the_generation_and_users_cannot_set_the_sequence(garden: Garden, project: str) -> None:
    namespace = f"garden-{project}"
    types = [{"kind": kind, "type": project} for kind in ("BackupBucket", "ControlPlane", "DNSRecord")]
    garden.create(resources.CONTROLLER_REGISTRATIONS, project, spec={"resources": types})
    garden.create(SECRETS, "backup", namespace=namespace)
    garden.create(resources.SEEDS, project, spec=seed_spec(project, namespace))
    bucket = {
        "provider": {"type": project, "region": "r"},
        "secretRef": {"name": "backup", "namespace": namespace},
        "seedName": project,
    }
    created = garden.create(resources.BACKUP_BUCKETS, project, spec=bucket, operation={"sequence": 7})
    assert "operation" not in created
    patch: Object = {
        "metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}},
        "operation": {"sequence": 9},
    }
    changed = garden.patch(resources.BACKUP_BUCKETS, project, patch)
    assert changed["operation"] == {"sequence": 1}
    assert (created["metadata"]["generation"], changed["metadata"]["generation"]) == (1, 2)
    assert "annotations" not in changed["metadata"]


def seed_spec(provider: str, namespace: str) -> Object:
    return {
        "provider": {"type": provider, "region": "r"},
        "networks": {"nodes": "10.0.0.0/16", "pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
        "dns": {"provider": {"type": provider, "secretRef": {"name": "backup", "namespace": namespace}}},
        "ingress": {"domain": "ingress.example.com", "controller": {"kind": "nginx"}},
    }


def test_the_namespace_of_a_project_goes_with_it_only(garden: Garden, project: str) -> None:
    with pytest.raises(Forbidden, match=f'you must delete the corresponding project "{project}"'):
        garden.delete(NAMESPACES, f"garden-{project}")


def test_texts_of_an_internal_secret_are_stored_as_data(garden: Garden, project: str) -> None:
    namespace = f"garden-{project}"
    created = garden.create(resources.INTERNAL_SECRETS, "i", namespace=namespace, stringData={"a": "b"})
    assert created["data"] == {"a": "Yg=="}
    assert "stringData" not in created


def test_the_defaults_of_an_extension_are_stored(garden: Garden, project: str) -> None:
    given = {"resources": [{"kind": "Extension", "type": project}]}
    created = garden.create(resources.CONTROLLER_REGISTRATIONS, project, spec=given)
    assert created["spec"]["resources"][0]["lifecycle"]["reconcile"] == "AfterKubeAPIServer"


def test_a_controller_deployment_has_two_versions(garden: Garden, project: str) -> None:
    garden.create(resources.CONTROLLER_DEPLOYMENTS, project, helm={"ociRepository": {"ref": "a/b:c"}})
    before = replace(resources.CONTROLLER_DEPLOYMENTS, version="v1beta1")
    read = garden.cluster.api.get(before.path(name=project))
    assert (read["type"], read["providerConfig"]) == ("helm", {"ociRepository": {"ref": "a/b:c"}})
    garden.create(before, f"{project}-own", type="own", providerConfig={"a": 1})
    stored = garden.cluster.api.get(resources.CONTROLLER_DEPLOYMENTS.path(name=f"{project}-own"))
    assert stored["metadata"]["annotations"]["migration.controllerdeployment.gardener.cloud/type"] == "own"
    with pytest.raises(Invalid, match="must use either helm or a custom deployment configuration"):
        garden.create(before, f"{project}-none", type="")


async def test_programs_recognize_which_garden_it_is_and_work_with_it(garden: Garden, project: str) -> None:
    namespace = f"garden-{project}"
    async with connected(garden.cluster) as client:
        api = await recognized(client)
        assert isinstance(api, PlainApi)
        garden.create(resources.BACKUP_ENTRIES, "e", namespace=namespace, spec=_entry_of(garden, project))
        requested = await api.operate(resources.BACKUP_ENTRIES, Key(namespace, "e"), "reconcile")
    assert requested["operation"] == {"sequence": 1}
    assert api.needs_work(requested)


def _entry_of(garden: Garden, project: str) -> Object:
    """In a bucket of its own."""
    types = [{"kind": kind, "type": project} for kind in ("BackupBucket", "BackupEntry", "ControlPlane", "DNSRecord")]
    garden.create(resources.CONTROLLER_REGISTRATIONS, project, spec={"resources": types})
    namespace = f"garden-{project}"
    garden.create(SECRETS, "backup", namespace=namespace)
    garden.create(resources.SEEDS, project, spec=seed_spec(project, namespace))
    secret = {"name": "backup", "namespace": namespace}
    bucket = {"provider": {"type": project, "region": "r"}, "secretRef": secret, "seedName": project}
    garden.create(resources.BACKUP_BUCKETS, project, spec=bucket)
    return {"bucketName": project, "seedName": project}
