"""Which resources of a Shoot are encrypted in etcd, and which are to be rewritten."""

import pytest

from agent.gardenlet.shoot.main.rules.encryption import encrypted
from kube.objects import Object


def shoot(wanted: list[str] | None, present: list[str] | None) -> Object:
    server = {} if wanted is None else {"encryptionConfig": {"resources": wanted}}
    status = {} if present is None else {"encryptedResources": present}
    return {"spec": {"kubernetes": {"kubeAPIServer": server}}, "status": status}


@pytest.mark.parametrize(
    ("wanted", "present", "resources", "added", "removed"),
    [
        (None, None, ["secrets"], [], []),
        (["configmaps"], ["configmaps"], ["secrets", "configmaps"], [], []),
        (["configmaps."], ["configmaps"], ["secrets", "configmaps"], [], []),
        (["configmaps", "roses.example.com"], None, ["secrets", "configmaps", "roses.example.com"],
         ["configmaps", "roses.example.com"], []),
        (None, ["configmaps"], ["secrets"], [], ["configmaps"]),
        (["roses.example.com"], ["configmaps"], ["secrets", "roses.example.com"], ["roses.example.com"], ["configmaps"]),
    ],
    ids=["only Secrets", "no change", "a dot is no change", "some are new", "one is removed", "both"],
)  # fmt: skip
def test_what_changes_follows_from_spec_and_status(
    wanted: list[str] | None, present: list[str] | None, resources: list[str], added: list[str], removed: list[str]
) -> None:
    found = encrypted(shoot(wanted, present))
    assert (found.resources, found.added, found.removed) == (resources, added, removed)
    assert found.changed == [*added, *removed]
