"""What a Shoot's status reports about rotations of its Secrets, and what its users find in the garden."""

from datetime import UTC, datetime
from typing import Any

import pytest

from components import registry
from components.secrets.configs import Config, SignedCertificate, Signer
from components.secrets.persisted import entries, secrets
from components.secrets.published import (
    certificate_authority,
    client_authority,
    observer,
    ssh_keypairs,
)
from components.secrets.rotation import Old
from components.secrets.shoot_rotation import rotations
from components.secrets.stored import Stored
from components.secrets.tables import (
    CA,
    CA_CLIENT,
    ENCRYPTION_KEY,
    OBSERVER,
    SERVICE_ACCOUNT_KEY,
    SSH_KEY,
    ControlPlane,
    generic_token_kubeconfig,
    static_tokens,
)
from kube.objects import Object

TOKENS = static_tokens(has_cluster_admin=False)
KUBECONFIG = generic_token_kubeconfig("shoot--a--b", b"")
OWNER = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "Shoot",
    "name": "a",
    "uid": "1",
    "controller": True,
    "blockOwnerDeletion": True,
}


def shoot(**rotation: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "garden-local", "uid": "1"}
    return {"metadata": metadata, "status": {"credentials": {"rotation": rotation}}}


def at(day: int) -> dict[str, str]:
    return {"lastInitiationTime": f"2026-01-{day:02}T00:00:00Z"}


@pytest.mark.parametrize(("has_static_kubeconfig", "tokens"), [(True, 4), (False, 1)])
def test_each_config_is_rotated_when_the_status_reports(has_static_kubeconfig: bool, tokens: int) -> None:
    status = shoot(
        certificateAuthorities=at(1),
        serviceAccountKey=at(2),
        etcdEncryptionKey=at(3),
        kubeconfig=at(4),
        sshKeypair=at(5),
        observability=at(6),
    )
    found = rotations(status, has_static_kubeconfig=has_static_kubeconfig)
    configs = (CA, CA_CLIENT, SERVICE_ACCOUNT_KEY, ENCRYPTION_KEY, SSH_KEY, OBSERVER, TOKENS, KUBECONFIG)
    days = {CA: 1, CA_CLIENT: 1, SERVICE_ACCOUNT_KEY: 2, ENCRYPTION_KEY: 3, SSH_KEY: 5, OBSERVER: 6, TOKENS: tokens}
    assert found.requested(configs) == {config.name: datetime(2026, 1, day, tzinfo=UTC) for config, day in days.items()}


def test_without_a_rotation_nothing_is_queried() -> None:
    for status in ({}, shoot(), shoot(certificateAuthorities={"lastInitiationTime": "nonsense"})):
        assert rotations(status, has_static_kubeconfig=True).requested((CA, TOKENS)) == {}


@pytest.mark.parametrize(
    ("config", "phase", "expected"),
    [
        (CA, "", Old.IGNORED),
        (CA, "Completed", Old.IGNORED),
        (CA, "Preparing", Old.IN_USE),
        (CA, "PreparingWithoutWorkersRollout", Old.IN_USE),
        (CA, "WaitingForWorkersRollout", Old.IN_USE),
        (CA, "Prepared", Old.IN_USE),
        (CA, "SomethingNew", Old.IN_USE),
        (CA, "Completing", Old.VERIFIES),
        (CA_CLIENT, "Completing", Old.IGNORED),  # seen
        (SERVICE_ACCOUNT_KEY, "Prepared", Old.IN_USE),
        (SERVICE_ACCOUNT_KEY, "Completing", Old.IGNORED),
        (ENCRYPTION_KEY, "Preparing", Old.IN_USE),
        (ENCRYPTION_KEY, "Completing", Old.IGNORED),
        (ENCRYPTION_KEY, "", Old.IGNORED),
        (SSH_KEY, "", Old.IN_USE),
        (KUBECONFIG, "Completed", Old.IN_USE),
    ],
    ids=lambda one: one if isinstance(one, str) else getattr(one, "name", ""),
)
def test_trust_in_the_old_goes_in_steps(config: Config, phase: str, expected: Old) -> None:
    names = ("certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey", "sshKeypair")
    found = rotations(shoot(**{name: {"phase": phase} for name in names}), has_static_kubeconfig=False)
    assert found.old(config, servers_by_current={CA_CLIENT.name}) is expected


def test_clients_have_certificates_of_a_new_authority_as_soon_as_it_is_made() -> None:
    """So none has one of the old authority when that is not trusted any more, but for those that servers are given.

    These, and what kubelets verify, are seen to be replaced before.
    """
    plane = ControlPlane(namespace="shoot--a--b", has_workers=True, has_several_etcds=True)
    certificates = [each for each in registry.secrets(plane) if isinstance(each, SignedCertificate)]
    clients = [each for each in certificates if each.profile.is_client]
    assert len(clients) > 5
    assert {each.name for each in clients if each.signer is not Signer.CURRENT} == {
        "etcd-server-main",
        "etcd-server-events",
        "kube-apiserver-kubelet",
    }


def one(data: dict[str, bytes]) -> Stored:
    return Stored(name="any", labels={}, data=data)


def test_users_find_authorities_and_keys_in_the_garden() -> None:
    config_map, secret = certificate_authority(shoot(), one({"bundle.crt": b"ca"}))
    internal = client_authority(shoot(), one({"ca.crt": b"ca", "ca.key": b"key"}))
    keypairs = ssh_keypairs(shoot(), one({"id_rsa": b"new"}), one({"id_rsa": b"old"}))
    published = [config_map, secret, internal, *keypairs, observer(shoot(), one({"password": b"x"}))]
    assert [(each["kind"], each["metadata"]["name"]) for each in published] == [
        ("ConfigMap", "a.ca-cluster"),
        ("Secret", "a.ca-cluster"),
        ("InternalSecret", "a.ca-client"),
        ("Secret", "a.ssh-keypair"),
        ("Secret", "a.ssh-keypair.old"),
        ("Secret", "a.monitoring"),
    ]
    roles = ["ca-cluster", "ca-cluster", "ca-client", "ssh-keypair", "ssh-keypair", "monitoring"]
    assert [each["metadata"]["labels"] for each in published] == [{"gardener.cloud/role": role} for role in roles]
    assert all(each["metadata"]["ownerReferences"] == [OWNER] for each in published)
    assert all(each["metadata"]["namespace"] == "garden-local" for each in published)
    assert config_map["data"] == {"ca.crt": "ca"}
    assert [each["data"] for each in published[1:]] == [
        {"ca.crt": "Y2E="},
        {"ca.crt": "Y2E=", "ca.key": "a2V5"},
        {"id_rsa": "bmV3"},
        {"id_rsa": "b2xk"},
        {"password": "eA=="},
    ]
    assert [each["type"] for each in published[1:]] == ["Opaque"] * 5
    assert len(ssh_keypairs(shoot(), one({"id_rsa": b"new"}), None)) == 1


def test_only_what_persists_moves_and_comes_back_as_it_was() -> None:
    labels = {"name": "ca", "persist": "true"}
    moving = {
        "metadata": {"name": "ca", "namespace": "old", "labels": labels},
        "data": {"tls.crt": "YQ==", "tls.key": ""},
    }
    staying = {"metadata": {"name": "b", "namespace": "old", "labels": {"name": "b"}}, "data": {}}
    found = entries([staying, moving])
    assert found == [{"name": "ca", "type": "secret", "labels": labels, "data": {"tls.crt": "YQ==", "tls.key": ""}}]
    (restored,) = secrets({"gardener": [{"type": "other", "name": "x"}, {"type": "secret"}, *found]}, "new")
    assert restored == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "ca", "namespace": "new", "labels": labels},
        "immutable": True,
        "type": "kubernetes.io/tls",
        "data": {"tls.crt": "YQ==", "tls.key": ""},
    }


@pytest.mark.parametrize("secret_type", ["Opaque", "kubernetes.io/tls", "example.com/mine"])
@pytest.mark.parametrize("immutable", [True, False])
@pytest.mark.parametrize("data", [{"tls.crt": "YQ==", "tls.key": ""}, {"a": "YQ=="}])
def test_a_secret_comes_back_with_its_type_and_immutability(
    secret_type: str, immutable: bool, data: dict[str, str]
) -> None:
    labels = {"persist": "true", "manager-identity": "extension"}
    secret = {"metadata": {"name": "s", "labels": labels}, "type": secret_type, "data": data}
    found = entries([{**secret, **({"immutable": True} if immutable else {})}])
    assert found[0] == {"name": "s", "type": "secret", "labels": labels, "data": data}
    (restored,) = secrets({"gardener": found}, "new")
    assert (restored["type"], restored["immutable"], restored["data"]) == (secret_type, immutable, data)


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({"type": "example.com/mine", "metadata": {"namespace": "garden", "name": "evil"}}, "example.com/mine"),
        ({"type": "example.com/mine", "kind": "ConfigMap", "apiVersion": "v2"}, "example.com/mine"),
        ({"type": "kubernetes.io/service-account-token"}, "Opaque"),
        ({"type": "bootstrap.kubernetes.io/token"}, "Opaque"),
        ({"type": ["x"]}, "Opaque"),
    ],
)
def test_a_saved_state_chooses_no_other_object_and_no_type_on_which_programs_act(properties: Object, kind: str) -> None:
    saved = [
        {"name": "s", "type": "secret", "data": {}},
        {"name": "s", "type": "secret-properties", "data": properties},
    ]
    (restored,) = secrets({"gardener": saved}, "new")
    assert restored["metadata"] == {"name": "s", "namespace": "new", "labels": {}}
    assert (restored["apiVersion"], restored["kind"], restored["type"]) == ("v1", "Secret", kind)


@pytest.mark.parametrize("state", [{}, {"gardener": None}, {"gardener": [None, {}, {"type": "secret"}]}])
def test_a_state_without_secrets_restores_none(state: dict[str, Any]) -> None:
    assert secrets(state, "new") == []
