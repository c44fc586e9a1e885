"""Files that Shoots supply for their API servers: checked when a Shoot names them, and when they change."""

import base64
import json
from typing import Any

import pytest

from kit.objects import obj
from kit.webhooks.garden import Asked
from kit.webhooks.shoots import NAMESPACE, create, stored, submitted, update
from kube.objects import Object
from kube.resources import CONFIG_MAPS, SECRETS
from webhooks.garden.kinds.tenant_file import FILES_IN_CONFIG_MAPS, FILES_IN_SECRETS

SERVER = "spec.kubernetes.kubeAPIServer"
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n"
USERS = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\n"


def kubeconfig(**user: Any) -> str:
    users = [{"name": "*", "user": user}]
    return base64.b64encode(json.dumps({"apiVersion": "v1", "kind": "Config", "users": users}).encode()).decode()


def secret(content: str) -> Object:
    return obj(SECRETS, f"{NAMESPACE}/policy", data={"kubeconfig": content})


def config_map(**data: str) -> Object:
    return obj(CONFIG_MAPS, f"{NAMESPACE}/file", data={name.replace("_", "."): text for name, text in data.items()})


GOOD, BAD = secret(kubeconfig(token="t")), secret(kubeconfig(exec={"command": "/bin/sh"}))


def plugin(name: str = "ImagePolicyWebhook", **more: Any) -> Object:
    given = {"name": name, "kubeconfigSecretName": "policy", **more}
    return {"admissionPlugins": [{field: value for field, value in given.items() if value is not None}]}


AUDIT = {"auditConfig": {"auditPolicy": {"configMapRef": {"name": "file"}}}}
AUTHENTICATION = {"structuredAuthentication": {"configMapName": "file"}}


@pytest.mark.parametrize(
    ("server", "others", "fields"),
    [
        (plugin(), [GOOD], set()),
        (plugin(), [BAD], {"admissionPlugins[0].kubeconfigSecretName"}),
        (plugin(disabled=True), [BAD], {"admissionPlugins[0].kubeconfigSecretName"}),
        (plugin(), [secret("")], {"admissionPlugins[0].kubeconfigSecretName"}),
        (plugin(), [], {"admissionPlugins[0].kubeconfigSecretName"}),
        (plugin("PodNodeSelector"), [GOOD], {"admissionPlugins[0].config"}),
        (plugin(kubeconfigSecretName=None, config={"imagePolicy": {"kubeConfigFile": "/a"}}), [],
         {"admissionPlugins[0].config"}),
        (plugin("ValidatingAdmissionWebhook", config={"staticManifestsDir": "/a"}), [GOOD],
         {"admissionPlugins[0].config"}),
        (plugin("AlwaysPullImages", kubeconfigSecretName=None, config={"a": "b"}), [], {"admissionPlugins[0].config"}),
        (AUDIT, [config_map(policy=POLICY)], set()),
        (AUDIT, [config_map(other=POLICY)], {"auditConfig.auditPolicy.configMapRef.name"}),
        (AUDIT, [config_map(policy="kind: Policy")], {"auditConfig.auditPolicy.configMapRef.name"}),
        (AUDIT, [], {"auditConfig.auditPolicy.configMapRef.name"}),
        (AUTHENTICATION, [config_map(config_yaml=USERS)], set()),
        (AUTHENTICATION, [config_map(config_yaml=f"{USERS}jwt: [{{issuer: {{url: http://a}}}}]")],
         {"structuredAuthentication.configMapName"}),
    ],
)  # fmt: skip
def test_a_shoot_names_usable_files_only(server: Object, others: list[Object], fields: set[str]) -> None:
    expected = {f"{SERVER}.{field}" for field in fields}
    assert create(submitted(kubernetes__kubeAPIServer=server), *others).fields == expected
    assert update(stored(), *others, kubernetes__kubeAPIServer=server).fields == expected


def test_a_shoot_that_names_an_unusable_file_already_can_change_otherwise() -> None:
    old = stored(submitted(kubernetes__kubeAPIServer=plugin()), GOOD)
    assert update(old, BAD, purpose="testing").code == 200
    assert update(old, purpose="testing").code == 200


@pytest.mark.parametrize(
    ("server", "kind", "good", "bad"),
    [
        (plugin(), FILES_IN_SECRETS, GOOD, BAD),
        (AUDIT, FILES_IN_CONFIG_MAPS, config_map(policy=POLICY), config_map(policy=f"{POLICY}path: /a")),
        (AUTHENTICATION, FILES_IN_CONFIG_MAPS, config_map(config_yaml=USERS), config_map(config_yaml="a: &a [*a]")),
    ],
)
def test_a_file_in_use_stays_usable(server: Object, kind: Any, good: Object, bad: Object) -> None:
    """Also one that is recreated."""
    shoot = stored(submitted(kubernetes__kubeAPIServer=server), good)
    used, unused = Asked(kind, garden=[shoot]), Asked(kind, garden=[stored()])
    (key,) = good["data"]
    for outcome in (used.update(good, bad), used.create(bad)):
        assert outcome.fields == {f"data[{key}]"}
        assert "[garden-dev/a]" in outcome.message
        assert "/bin/sh" not in outcome.message
    assert used.update(bad, good).code == 200
    assert used.update(bad, {**bad, "metadata": {**bad["metadata"], "finalizers": ["a/b"]}}).code == 200
    assert used.update(good, {**good, "data": {}}).fields == {f"data[{key}]"}
    assert unused.update(good, bad).code == 200
