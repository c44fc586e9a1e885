"""Files in the garden that a Shoot names for its API server: what the gardenlet makes of them."""

import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from agent.gardenlet.shoot.main.tasks import tenant_files
from components import kube_apiserver
from gardener.error_codes import RETRYABLE_CONFIGURATION_PROBLEM
from kit.objects import obj
from kit.shoot_components import api_server, bare_operation, named
from kube.errors import NotFound
from kube.objects import Key, Object, key
from kube.resources import CONFIG_MAPS, SECRETS, Resource

POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n"
PLUGIN = "ImagePolicyWebhook"
PATH = "spec.kubernetes.kubeAPIServer.admissionPlugins[0].kubeconfigSecretName"


class Garden:
    def __init__(self, *objects: Object) -> None:
        self.objects = {(each["kind"], key(each)): each for each in objects}

    async def get(self, resource: Resource, name: Key) -> Object:
        found = self.objects.get((resource.kind, name))
        if found is None:
            raise NotFound(status=404, reason="NotFound", message=f'"{name.name}" not found')
        return found


def secret(**user: Any) -> Object:
    config = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]}
    return obj(SECRETS, "garden-a/s", data={"kubeconfig": base64.b64encode(json.dumps(config).encode()).decode()})


def policy(**data: str) -> Object:
    return obj(CONFIG_MAPS, "garden-a/c", data=data)


SERVER: Object = {
    "admissionPlugins": [{"name": PLUGIN, "kubeconfigSecretName": "s"}, {"name": "PodSecurity", "disabled": True}],
    "auditConfig": {"auditPolicy": {"configMapRef": {"name": "c"}}},
}


async def read(*objects: Object, **meta: Any) -> tenant_files.TenantFiles:
    shoot = {
        "metadata": {"name": "a", "namespace": "garden-a", **meta},
        "spec": {"kubernetes": {"kubeAPIServer": SERVER}},
    }
    garden: Any = SimpleNamespace(client=Garden(*objects))
    return await tenant_files.read(bare_operation(shoot=shoot, garden=garden))


async def test_files_are_rewritten_from_one_key() -> None:
    found = await read(secret(token="t"), policy(policy=f"# by hand\n{POLICY}", z="path: /a"))
    assert found.audit_policy == POLICY
    assert yaml.safe_load(found.kubeconfigs[PLUGIN])["users"] == [{"name": "*", "user": {"token": "t"}}]
    assert found.settings == SERVER


@pytest.mark.parametrize(
    ("objects", "reported"),
    [
        (
            [secret(exec={"command": "PASSWORD"}), policy(policy=POLICY)],
            f"{PATH}: Secret s: key kubeconfig: users[0].user",
        ),
        ([policy(policy=POLICY)], f"{PATH}: Secret s does not exist"),
        ([secret(token="t"), policy(policy=f"{POLICY}a: PASSWORD")], "ConfigMap c: key policy: unknown field"),
        ([secret(token="t"), policy(other=POLICY)], "ConfigMap c: key policy is missing or empty"),
    ],
)
async def test_a_file_that_became_unusable_fails_the_flow_and_keeps_the_api_server(
    objects: list[Object], reported: str
) -> None:
    with pytest.raises(tenant_files.TenantFileError) as caught:
        await read(*objects)
    assert reported in str(caught.value)
    assert "PASSWORD" not in str(caught.value)
    assert caught.value.codes == (RETRYABLE_CONFIGURATION_PROBLEM,)


async def test_a_shoot_is_deleted_without_files_that_are_unusable() -> None:
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    found = await read(secret(exec={}), policy(), **leaving)
    assert found.kubeconfigs == {}
    assert found.audit_policy == ""
    assert found.settings["admissionPlugins"] == SERVER["admissionPlugins"][1:]
    assert (await read(secret(token="t"), policy(policy=POLICY), **leaving)).settings == SERVER


def test_a_configuration_of_a_plugin_is_checked_where_it_is_written() -> None:
    plugin = {"name": PLUGIN, "config": {"imagePolicy": {"kubeConfigFile": "/home/u/.kube/config"}}}
    with pytest.raises(ValueError, match="kubeConfigFile must not be set"):
        kube_apiserver.objects(api_server(settings={"admissionPlugins": [plugin]}))
    written = kube_apiserver.objects(
        api_server(settings={"admissionPlugins": [plugin]}, admission_kubeconfigs={PLUGIN: "k"})
    )
    config = named(written, "ConfigMap", "kube-apiserver-admission-config")["data"]["imagepolicywebhook.yaml"]
    path = "/etc/kubernetes/admission-kubeconfigs/imagepolicywebhook-kubeconfig.yaml"
    assert yaml.safe_load(config) == {"imagePolicy": {"kubeConfigFile": path}}
