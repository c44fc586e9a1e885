"""What a Shoot refers to in its namespace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.common.rules.credentials import Credentials
from agent.controller_manager.shoot.reference import triggers
from gardener.garden.shoots import is_abandoned, references
from kit.garden_objects import shoot
from kube.objects import Key, Object, finalizers
from kube.resources import CONFIG_MAPS, SECRETS, Resource
from kube.runtime.cache import Change

F = "gardener.cloud/reference-protection"


def server(**fields: object) -> Object:
    return {"kubernetes": {"kubeAPIServer": fields}}


def resource(kind: str, name: str, api_version: str = "v1") -> Object:
    return {"name": "r", "resourceRef": {"apiVersion": api_version, "kind": kind, "name": name}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"dns": {"providers": [{"secretName": "a"}, {"type": "x"}]}}, [(SECRETS, "a")]),
        (server(auditConfig={"auditPolicy": {"configMapRef": {"name": "a"}}}), [(CONFIG_MAPS, "a")]),
        (server(structuredAuthentication={"configMapName": "a"}), [(CONFIG_MAPS, "a")]),
        (server(admissionPlugins=[{"name": "p", "kubeconfigSecretName": "a"}]), [(SECRETS, "a")]),
        (
            {"resources": [resource("Secret", "a"), resource("ConfigMap", "a"), resource("Secret", "a")]},
            [(SECRETS, "a"), (CONFIG_MAPS, "a")],
        ),
        ({"resources": [resource("Secret", "a", "v2"), resource("Pod", "a")]}, []),
    ],
)
def test_secrets_and_config_maps_are_found_once(spec: Object, expected: list[tuple[Resource, str]]) -> None:
    assert references(shoot(**spec)) == expected


@pytest.mark.parametrize(
    ("metadata", "abandoned"),
    [
        ({}, False),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["gardener", F]}, False),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [F]}, True),
    ],
)
def test_a_shoot_counts_until_its_cluster_is_gone(metadata: Object, abandoned: bool) -> None:
    assert is_abandoned(shoot(**metadata)) is abandoned


def test_the_order_of_resources_does_not_matter() -> None:
    one, other = resource("Secret", "a"), resource("Secret", "b")
    assert not triggers(
        Change(Key("ns", "s"), shoot(resources=[one, other]), shoot(resources=[other, one]), initial=False)
    )
    assert triggers(Change(Key("ns", "s"), shoot(resources=[one]), shoot(resources=[other]), initial=False))


@given(names=st.lists(st.sampled_from([F, "other/one", "gardener.cloud/gardener"]), unique=True), role=st.text())
def test_what_is_kept_is_enough_to_write_finalizers(names: list[str], role: str) -> None:
    meta = {"name": "a", "namespace": "n", "finalizers": names, "labels": {"gardener.cloud/role": role}}
    found = Credentials.of({"metadata": {**meta, "annotations": {"large": "x"}}})
    assert found.is_protected is (F in names)
    assert finalizers(found.as_object(Key("n", "a"), 7)) == names
    assert found.role == role
