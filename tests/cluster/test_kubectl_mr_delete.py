"""`kubectl mr delete`: ManagedResources with their Secrets, and what is reported meanwhile."""

import json

import pytest

from gardener.api.kinds import MANAGED_RESOURCES
from kit.managed_resources import install_crd
from kit.objects import config_map, managed_resource, secret
from kit.plugins import Mr, runner
from kit.rig import Rig
from kube.objects import is_deleting
from kube.resources import SECRETS


@pytest.fixture
def mr(rig: Rig) -> Mr:
    install_crd(rig.cluster)
    return runner(rig.cluster, rig.namespace)


def secrets(rig: Rig) -> set[str]:
    listed = rig.cluster.api.get(SECRETS.path(namespace=rig.namespace))
    return {item["metadata"]["name"] for item in listed["items"]}


def test_secrets_and_objects_go_with_it(rig: Rig, mr: Mr) -> None:
    rig.apply("shop", config_map("one"))
    done = mr("delete", "shop")
    assert f"ManagedResource {rig.namespace}/shop is being deleted, 1 object with it" in done.stderr
    assert f"Secret {rig.namespace}/shop is deleted" in done.stderr
    assert "✔ shop is deleted" in done.stderr
    assert rig.find("ConfigMap", "one") is None
    assert secrets(rig) == set()
    assert "ManagedResource" in mr("delete", "shop", code=1).stderr


def test_objects_can_be_kept(rig: Rig, mr: Mr) -> None:
    rig.apply("shop", config_map("one"))
    assert "1 object stay" in mr("delete", "shop", "--keep-objects").stderr
    assert rig.find("ConfigMap", "one") is not None
    assert secrets(rig) == set()


def test_a_secret_that_another_one_names_stays(rig: Rig, mr: Mr) -> None:
    rig.apply("shop", config_map("one"))
    other = managed_resource("other", spec={"class": "unused", "secretRefs": [{"name": "shop"}]})
    rig.cluster.api.create(MANAGED_RESOURCES.path(namespace=rig.namespace), other)
    done = mr("delete", "shop")
    assert f"Secret {rig.namespace}/shop is kept: ManagedResource {rig.namespace}/other names it, too" in done.stderr
    assert secrets(rig) == {"shop"}


def test_what_holds_a_deletion_is_named_and_it_goes_on_when_it_is_called_again(rig: Rig, mr: Mr) -> None:
    rig.apply("shop", config_map("one", finalizers=["example.com/hold"]))
    done = mr("delete", "shop", "--timeout", "3s", code=1)
    assert "✗ shop: not deleted after 3 s; Deleting, 1 object left" in done.stderr
    assert f"ConfigMap/{rig.namespace}/one Deleting: waits for example.com/hold" in done.stderr
    assert is_deleting(json.loads(mr("get", "shop", "-o", "json").stdout))
    assert secrets(rig) == set()
    rig.patch("ConfigMap", "one", {"metadata": {"finalizers": None}})
    assert "✔ shop is deleted" in mr("delete", "shop").stderr


def test_several_are_deleted_and_none_is_waited_for(rig: Rig, mr: Mr) -> None:
    path = MANAGED_RESOURCES.path(namespace=rig.namespace)
    for name in ("one", "two"):
        rig.cluster.api.create(SECRETS.path(namespace=rig.namespace), secret(name, {}))
        unused = {"class": "unused", "secretRefs": [{"name": name}]}
        rig.cluster.api.create(path, managed_resource(name, spec=unused, finalizers=["example.com/hold"]))
    mr("delete", "one", "two", "--no-wait")
    assert secrets(rig) == set()
    for name in ("one", "two"):
        assert is_deleting(rig.cluster.api.get(f"{path}/{name}"))
        rig.cluster.api.patch(f"{path}/{name}", {"metadata": {"finalizers": None}})


def test_a_secret_that_may_not_be_deleted_is_named(rig: Rig, mr: Mr) -> None:
    rig.apply("shop", config_map("one"))
    rules = [
        {"apiGroups": [MANAGED_RESOURCES.group], "resources": ["managedresources"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]
    base = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{rig.namespace}"
    rig.cluster.api.create(f"{base}/roles", {"metadata": {"name": "jane"}, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "jane"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"jane-{rig.namespace}"}]
    binding = {"metadata": {"name": "jane"}, "roleRef": reference, "subjects": subjects}
    rig.cluster.api.create(f"{base}/rolebindings", binding)
    jane = rig.cluster.kubeconfig_for(f"jane-{rig.namespace}")
    done = mr("delete", "shop", code=1, kubeconfig=jane)
    assert f"Secret {rig.namespace}/shop is kept: " in done.stderr
    assert 'cannot delete resource "secrets"' in done.stderr
    assert "✔ shop is deleted" in done.stderr
    assert secrets(rig) == {"shop"}
