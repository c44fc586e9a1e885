"""Bastions: what they take from their Shoot, who may come, and how long they live."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from kit.garden_objects import shoot
from kit.webhooks.garden import Asked
from kube.objects import Object
from webhooks.admission import User
from webhooks.garden.common.write import Write
from webhooks.garden.kinds.bastion import BASTION, heartbeat_errors

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJhfVDK4MRHP5IvrUhJP2SdT3qJVZcMMgxmqjVyHbmsN conf"
DELETION = "2026-01-01T00:00:00Z"


def host(*, seed: str = "s", deleting: bool = False, ssh: bool = True, workerless: bool = False) -> Object:
    workers = {} if workerless else {"workers": [{"name": "w"}]}
    settings = {} if ssh else {"workersSettings": {"sshAccess": {"enabled": False}}}
    spec: Object = {"provider": {"type": "local", **workers, **settings}, **({"seedName": seed} if seed else {})}
    return shoot("garden-dev/sh", uid="u-1", deletionTimestamp=DELETION if deleting else None, **spec)


def bastion(**spec: Any) -> Object:
    ingress = [{"ipBlock": {"cidr": "1.2.3.4/32"}}]
    given = {"shootRef": {"name": "sh"}, "sshPublicKey": KEY, "ingress": ingress, **spec}
    return {"metadata": {"name": "b"}, "spec": given}


def test_a_bastion_belongs_to_its_shoot() -> None:
    created = Asked(BASTION, user="joe", garden=[host()]).create(bastion(seedName="other", providerType="x"))
    assert created.status is None, created.message
    assert (created.spec["seedName"], created.spec["providerType"]) == ("s", "local")
    meta = created.object["metadata"]
    assert meta["annotations"] == {"gardener.cloud/created-by": "joe"}
    assert meta["ownerReferences"] == [
        {
            "apiVersion": "core.gardener.cloud/v1beta1",
            "kind": "Shoot",
            "name": "sh",
            "uid": "u-1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_it_follows_its_shoot_and_its_creator_stays() -> None:
    old = Asked(BASTION, user="joe", garden=[host()]).create(bastion()).object
    later = Asked(BASTION, user="ann", garden=[host(seed="t")])
    changed = later.update(old, {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}})
    assert changed.spec["seedName"] == "t"
    assert changed.object["metadata"]["annotations"] == {"gardener.cloud/created-by": "joe"}
    for annotations in ({"gardener.cloud/created-by": "me"}, {}):
        forged = {**old, "metadata": {**old["metadata"], "annotations": annotations}}
        assert later.update(old, forged).fields == {"metadata.annotations"}


@pytest.mark.parametrize(
    ("garden", "message"),
    [
        ([], "shoot garden-dev/sh not found"),
        ([host(deleting=True)], "shoot is in deletion"),
        ([host(seed="")], "shoot is not yet assigned to a seed"),
        ([host(ssh=False)], "ssh access is disabled for worker nodes"),
        ([host(workerless=True)], "ssh access is disabled for worker nodes"),
    ],
)
def test_what_its_shoot_has_to_be(garden: list[Object], message: str) -> None:
    refused = Asked(BASTION, garden=garden).create(bastion())
    assert refused.fields == {"spec.shootRef.name"}
    assert message in refused.message


def test_the_finalizer_of_a_bastion_goes_whatever_its_shoot_is() -> None:
    meta = {"name": "b", "deletionTimestamp": DELETION, "finalizers": ["gardener"]}
    old = {**bastion(), "metadata": meta}
    assert Asked(BASTION).update(old, {**old, "metadata": {**meta, "finalizers": []}}).status is None


@pytest.mark.parametrize("text", ['"' + 8191 * '\\"', '"' + 8191 * '\\"' + "\\", 8192 * '\\"'])
def test_a_key_of_quotes_that_are_not_closed_is_refused_at_once(
    text: str,
) -> None:
    begin = time.thread_time()
    assert Asked(BASTION, garden=[host()]).create(bastion(sshPublicKey=text)).fields == {"spec.sshPublicKey"}
    assert time.thread_time() - begin < 0.2


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"ingress": [{"ipBlock": {"cidr": "1.2.3.4"}}]}, {"spec.ingress[0].ipBlock.cidr"}),
        (
            {"ingress": [{"ipBlock": {"cidr": "1.2.0.0/16", "except": ["1.2.3.0/24", "x"]}}]},
            {"spec.ingress[0].ipBlock.except[1]"},
        ),
        ({"sshPublicKey": "nonsense"}, {"spec.sshPublicKey"}),
        ({"sshPublicKey": "ssh-rsa AAAA x"}, {"spec.sshPublicKey"}),
        ({"sshPublicKey": "ssh-rsa " + KEY.split()[1]}, {"spec.sshPublicKey"}),
        ({"sshPublicKey": f'from="1.2.3.4, 5",no-pty {KEY}'}, set()),
        ({"sshPublicKey": f"# mine\n{KEY}\n"}, set()),
        ({"ingress": [{"ipBlock": {"cidr": "2001:db8::/32"}}]}, set()),
    ],
)
def test_keys_and_addresses(spec: Object, fields: set[str]) -> None:
    assert Asked(BASTION, garden=[host()]).create(bastion(**spec)).fields == fields


# --- heartbeats


def with_status(**status: str) -> Object:
    return {**bastion(), "status": status}


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (
            {"lastHeartbeatTimestamp": "2025-01-01T10:00:00Z", "expirationTimestamp": "2099-01-01T00:00:00Z"},
            {"lastHeartbeatTimestamp": "2025-01-01T10:00:00Z", "expirationTimestamp": "2025-01-01T11:00:00Z"},
        ),
        ({"expirationTimestamp": "2099-01-01T00:00:00Z"}, {}),
    ],
)
def test_it_lives_an_hour_after_the_last_sign_of_life(sent: Object, stored: Object) -> None:
    outcome = Asked(BASTION).update_status(bastion(), with_status(**sent))
    assert outcome.status is None
    assert outcome.object["status"] == stored


def test_a_sign_of_life_is_not_in_the_future() -> None:
    new = with_status(lastHeartbeatTimestamp="2026-01-01T10:00:00Z")
    write = Write(operation="UPDATE", user=User(), new=new, old=bastion(), subresource="status")
    now = datetime(2026, 1, 1, 9, 59, 45, tzinfo=UTC)
    assert list(heartbeat_errors(write, now=lambda: now)) == []
    assert [str(each.path) for each in heartbeat_errors(write, now=lambda: now.replace(minute=58))] == [
        "status.lastHeartbeatTimestamp"
    ]


@pytest.mark.parametrize(
    ("beat", "fields"),
    [
        ("0001-01-01T00:00:00+14:00", set()),
        ("9999-12-31T23:30:00Z", {"status.lastHeartbeatTimestamp"}),
        ("9999-12-31T23:30:00-14:00", {"status.lastHeartbeatTimestamp"}),
    ],
)
def test_a_sign_of_life_at_the_end_of_all_times_gets_an_answer(beat: str, fields: set[str]) -> None:
    outcome = Asked(BASTION).update_status(bastion(), with_status(lastHeartbeatTimestamp=beat))
    assert outcome.fields == fields
