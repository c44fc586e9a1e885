"""Rules that several kinds share: confirmed deletions, four eyes, domains, labels, names of operations."""

import pytest

from gardener.api.garden import PROJECTS
from gardener.garden.domains import Domain
from kit.garden_objects import shoot
from kit.webhooks.mutating import state_of
from kube.objects import Object
from kube.resources import SECRETS
from webhooks.admission import User
from webhooks.garden.common import deletion, domains, metadata
from webhooks.garden.common.write import Write
from webhooks.garden.kinds.shoot.seed import binding_right
from webhooks.garden.lookups import Lookups

CONFIRM, CONFIRMED_BY = "confirmation.gardener.cloud/deletion", "deletion.gardener.cloud/confirmed-by"


def write(new: Object, old: Object | None = None, *, by: str = "ann", garden: tuple[Object, ...] = ()) -> Write:
    lookups = Lookups(state_of(*garden), (PROJECTS, SECRETS))
    return Write(
        operation="UPDATE" if old else "CREATE",
        namespace="garden-dev",
        name="s",
        user=User(by),
        new=new,
        old=old or {},
        garden=lookups.of_request(),
    )


# --- deletions


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ({}, {CONFIRM: "true"}, {CONFIRM: "true", CONFIRMED_BY: "bob"}),
        ({CONFIRM: "1", CONFIRMED_BY: "ann"}, {CONFIRM: "true"}, {CONFIRM: "true", CONFIRMED_BY: "ann"}),
        (
            {CONFIRM: "1", CONFIRMED_BY: "ann"},
            {CONFIRM: "1", CONFIRMED_BY: "carl"},
            {CONFIRM: "1", CONFIRMED_BY: "ann"},
        ),
        ({CONFIRM: "1", CONFIRMED_BY: "ann"}, {CONFIRM: "no", CONFIRMED_BY: "ann"}, {CONFIRM: "no"}),
        ({}, {CONFIRMED_BY: "carl"}, {}),
        ({CONFIRM: "1"}, {CONFIRM: "1", CONFIRMED_BY: "carl"}, {CONFIRM: "1"}),
    ],
)
def test_who_confirmed_a_deletion_cannot_be_forged(old: Object, new: Object, kept: Object) -> None:
    obj = shoot(annotations=dict(new))
    deletion.remember_who_confirmed(write(obj, shoot(annotations=old), by="bob"))
    assert obj["metadata"].get("annotations", {}) == kept


# --- binding


@pytest.mark.parametrize(
    ("old", "new", "requested"),
    [({}, {}, False), ({}, {"seedName": "a"}, True), ({"seedName": "a"}, {"seedName": "a"}, False)],
)
def test_setting_a_seed_takes_a_right(old: Object, new: Object, *, requested: bool) -> None:
    rights = list(binding_right(write(shoot(**new), shoot(**old))))
    assert [(each.verb, each.subresource, each.name) for each in rights] == (
        [("update", "binding", "s")] if requested else []
    )


# --- domains


def secret(name: str, role: str = "default-domain", **annotations: str) -> Object:
    meta = {
        "name": name,
        "namespace": "garden",
        "labels": {"gardener.cloud/role": role},
        "annotations": {f"dns.gardener.cloud/{key.replace('_', '-')}": value for key, value in annotations.items()},
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta}


def test_default_domains_come_by_priority() -> None:
    secrets = (
        secret("a", domain="a.org", provider="p"),
        secret("b", domain="b.org", provider="p", domain_default_priority="9"),
        secret("c", domain="c.org", provider="p", domain_default_priority="-1"),
        secret("d", domain="d.org", provider="p", domain_default_priority="much"),
        secret("e", domain="e.org"),
        secret("i", "internal-domain", domain="i.org", provider="p", zone="z"),
    )
    garden = write(shoot(), garden=secrets).garden
    assert [each.domain for each in domains.default_domains(garden)] == ["b.org", "a.org", "d.org", "c.org"]
    assert domains.internal_domain(garden) == Domain("i.org", "p", "z", "i")


# --- metadata


def test_labels_of_seeds_follow_spec_and_stored_status() -> None:
    new = shoot(labels={"seed.gardener.cloud/x": "true", "a": "b"}, seedName="s") | {"status": {"seedName": "forged"}}
    old = shoot() | {"status": {"seedName": "t"}}
    metadata.seed_labels(("spec", "seedName"), ("status", "seedName"))(write(new, old))
    assert new["metadata"]["labels"] == {"a": "b", "seed.gardener.cloud/s": "true", "seed.gardener.cloud/t": "true"}


OPERATION = "gardener.cloud/operation"


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        ("", "a", []),
        ("a", "a", []),
        ("a", "", []),
        ("a", "b", ['must not overwrite operation "a" with "b"']),
        ("", "c", ['supported values: "a", "b"']),
    ],
)
def test_operations_are_known_and_not_overwritten(old: str, new: str, messages: list[str]) -> None:
    update = write(
        shoot(annotations={OPERATION: new} if new else None), shoot(annotations={OPERATION: old} if old else None)
    )
    found = [*metadata.allowed_operations("b", "a")(update), *metadata.operation_not_overwritten(update)]
    assert len(found) == len(messages)
    assert all(str(each).endswith(message) for each, message in zip(found, messages, strict=True))
