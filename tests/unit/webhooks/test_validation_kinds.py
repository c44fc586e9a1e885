"""What all kinds of extension resources have in common, and the simple rules of each."""

import functools
import operator
from typing import Any, cast

import pytest

from config.resource_manager.webhooks import Webhook
from kit.webhooks.validating import (
    BY_NAME,
    DELETING,
    IMMUTABLE,
    NEEDED,
    SPECS,
    answer,
    errors,
    fields,
    invalid,
    request,
    undecodable,
    valid,
)
from kube.objects import Object
from webhooks.admission import Allowed, Errored, Failure, Refusal
from webhooks.handlers import extension_validation
from webhooks.handlers.extension_validation import KINDS

NOUNS = {
    "BackupBucket": "backup bucket",
    "BackupEntry": "backup entry",
    "Bastion": "bastion",
    "ContainerRuntime": "container runtime",
    "ControlPlane": "control plane",
    "DNSRecord": "dns record",
    "Extension": "extension",
    "Infrastructure": "infrastructure",
    "Network": "network",
    "OperatingSystemConfig": "operatingsystemconfig",
    "SelfHostedShootExposure": "SelfHostedShootExposure",
    "Worker": "worker",
}
PLACED = ["type", "region", "secretRef.name"]
REQUIRED = {
    **dict.fromkeys(("BackupBucket", "ControlPlane", "Infrastructure", "Worker"), PLACED),
    "BackupEntry": ["type", "bucketName", "region", "secretRef.name"],
    "Bastion": ["type", "userData", "ingress"],
    "ContainerRuntime": ["type", "binaryPath", "workerPool.name"],
    "Extension": ["type"],
}
IMMUTABLE_FIELDS: list[tuple[str, str, str]] = [
    *((kind, "type", "new") for kind in NOUNS),
    *((kind, "region", "new") for kind in ("BackupBucket", "ControlPlane", "Infrastructure", "Worker")),
    ("Bastion", "userData", "eHg="),
    ("ContainerRuntime", "workerPool.name", "new"),
    ("DNSRecord", "name", "b.example.com"),
    ("DNSRecord", "recordType", "AAAA"),
    ("Network", "podCIDR", "10.2.0.0/16"),
    ("Network", "serviceCIDR", "10.3.0.0/16"),
    ("OperatingSystemConfig", "purpose", "provision"),
]
MAY_CHANGE: list[tuple[str, Object]] = [
    ("BackupEntry", {"region": "new"}),
    ("BackupEntry", {"bucketName": "new"}),
    ("Bastion", {"ingress": [{"ipBlock": {"cidr": "::/0"}}]}),
    ("ContainerRuntime", {"binaryPath": "/new"}),
    ("ControlPlane", {"purpose": "anything"}),
    ("DNSRecord", {"values": ["1.1.1.1"]}),
    ("Extension", {"providerConfig": {"a": 2}}),
    ("Infrastructure", {"secretRef": {"name": "new"}}),
    ("Worker", {"pools": None}),
]


def with_value(obj: Object, path: str, value: Any) -> Object:
    *parents, last = path.split(".")
    functools.reduce(operator.getitem, parents, obj["spec"])[last] = value
    return obj


def test_each_kind_has_its_path() -> None:
    paths = [webhook.path for webhook in extension_validation.WEBHOOKS]
    assert [path.rsplit("-", 1)[1] for path in paths] == [kind.lower() for kind in BY_NAME]
    assert set(SPECS) == set(BY_NAME)
    assert paths[0] == "/validate-extensions-gardener-cloud-v1alpha1-backupbucket"
    assert "/validate-druid-gardener-cloud-v1alpha1-etcd" in paths
    assert "/validate-extensions-gardener-cloud-v1alpha1-selfhostedshootexposure" in paths
    assert [kind.resource.plural for kind in KINDS][5:7] == ["dnsrecords", "etcds"]


@pytest.mark.parametrize("kind", SPECS)
def test_a_valid_object_is_accepted_and_may_be_updated_with_itself(kind: str) -> None:
    assert errors(kind, valid(kind)) == errors(kind, valid(kind), valid(kind)) == []
    deleting = valid(kind, meta=DELETING)
    assert errors(kind, deleting, deleting) == []


@pytest.mark.parametrize("kind", SPECS)
async def test_the_handler_queries_the_rules_of_its_kind(kind: str) -> None:
    handle = BY_NAME[kind].webhook().handler(Webhook(enabled=True), cast("Any", None))
    assert await handle(request(kind, valid(kind))) == Allowed()
    assert isinstance(await handle(request(kind, valid(kind, meta={"name": "X"}))), Failure)
    assert isinstance(await handle(request(kind, valid(kind), valid(kind, meta={"uid": "other"}))), Failure)
    assert isinstance(await handle(request(kind, valid(kind, meta={"name": 1}))), Errored)


@pytest.mark.parametrize(("kind", "path"), [(kind, path) for kind, paths in REQUIRED.items() for path in paths])
@pytest.mark.parametrize("nothing", [None, "empty"])
def test_what_is_required_must_not_be_empty(kind: str, path: str, nothing: str | None) -> None:
    empty = [] if path == "ingress" else ""
    obj = with_value(valid(kind), path, None if nothing is None else empty)
    assert errors(kind, obj) == [f"spec.{path}: {NEEDED}"]


@pytest.mark.parametrize("kind", REQUIRED)
def test_all_that_is_missing_is_reported_at_once(kind: str) -> None:
    obj = valid(kind)
    del obj["spec"]
    assert errors(kind, obj) == [f"spec.{path}: {NEEDED}" for path in REQUIRED[kind]]


@pytest.mark.parametrize(("kind", "path", "value"), IMMUTABLE_FIELDS)
def test_what_is_immutable_cannot_change(kind: str, path: str, value: str) -> None:
    changed = with_value(valid(kind), path, value)
    assert errors(kind, changed, valid(kind)) == [invalid(f"spec.{path}", value, IMMUTABLE)]


@pytest.mark.parametrize(("kind", "change"), MAY_CHANGE)
def test_other_fields_can_change(kind: str, change: Object) -> None:
    assert errors(kind, valid(kind, **change), valid(kind)) == []


def test_what_is_gone_is_reported_to_be_immutable_and_required_and_nothing_may_become_empty() -> None:
    full, gone, empty = (valid("Bastion", **data) for data in ({}, {"userData": None}, {"userData": ""}))
    assert errors("Bastion", gone, full) == [invalid("spec.userData", None, IMMUTABLE), f"spec.userData: {NEEDED}"]
    assert errors("Bastion", empty, gone) == [f"spec.userData: {NEEDED}"]


@pytest.mark.parametrize("kind", NOUNS)
def test_the_spec_is_frozen_while_an_object_is_being_deleted(kind: str) -> None:
    old, new = valid(kind, meta=DELETING), valid(kind, meta=DELETING, type="new")
    sentence = f"cannot update {NOUNS[kind]} spec if deletion timestamp is set. Requested changes:"
    assert errors(kind, new, old) == [f"spec: Forbidden: {sentence} DefaultSpec.Type: new != t"]


def test_the_deletion_of_the_new_object_counts() -> None:
    old, new = valid("Extension"), valid("Extension", meta=DELETING, providerConfig={"a": 2})
    assert fields(errors("Extension", new, old)) == ["metadata.deletionTimestamp", "spec"]


def test_an_update_during_deletion_is_denied_with_what_it_would_change() -> None:
    old = valid("Infrastructure", meta=DELETING, secretRef={"name": "old"})
    new = valid("Infrastructure", meta=DELETING, secretRef={"name": "new"})
    found = answer("Infrastructure", new, old)
    assert isinstance(found, Failure)
    sentence = "cannot update infrastructure spec if deletion timestamp is set. Requested changes:"
    detail = f"Forbidden: {sentence} SecretRef.Name: new != old"
    assert found.status == {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f'Infrastructure.extensions.gardener.cloud "x" is invalid: spec: {detail}',
        "details": {
            "name": "x",
            "group": "extensions.gardener.cloud",
            "kind": "Infrastructure",
            "causes": [{"reason": "FieldValueForbidden", "message": detail, "field": "spec"}],
        },
    }


def test_metadata_and_spec_are_checked_though_the_spec_is_frozen() -> None:
    old = valid("BackupBucket", meta=DELETING)
    new = valid("BackupBucket", meta={**DELETING, "resourceVersion": ""}, region="")
    assert fields(errors("BackupBucket", new, old)) == ["metadata.resourceVersion", "spec", "spec.region"]


def test_several_errors_stand_in_brackets_and_equal_ones_only_once() -> None:
    meta = {"labels": {"a": "-"}}
    once = answer("Extension", valid("Extension", meta=meta), valid("Extension"))
    assert isinstance(once, Failure)
    assert len(once.status["details"]["causes"]) == 2
    begin = 'Extension.extensions.gardener.cloud "x" is invalid: metadata.labels: Invalid value: "-": '
    assert once.status["message"].startswith(begin)
    two = answer("BackupBucket", valid("BackupBucket", type="", region=""))
    assert isinstance(two, Failure)
    both = f"[spec.type: {NEEDED}, spec.region: {NEEDED}]"
    assert two.status["message"] == f'BackupBucket.extensions.gardener.cloud "x" is invalid: {both}'


def test_no_more_errors_are_listed_than_anybody_reads() -> None:
    obj = valid("Worker", pools=[{} for _ in range(10_000)])
    assert len(errors("Worker", obj)) == 200


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize(
    "wrong",
    [1, "x", [], True, {"spec": []}, {"spec": "x"}, {"metadata": 1}, {"metadata": {"labels": {"a": 1}}}],
    ids=str,
)
def test_what_is_no_such_object_cannot_be_decoded(kind: str, wrong: Any) -> None:
    assert undecodable(kind, wrong).startswith(f"unable to decode into {kind}: Expected ")
    assert undecodable(kind, valid(kind), wrong).startswith(f"unable to decode into {kind}: Expected ")


@pytest.mark.parametrize(
    ("kind", "spec", "what"),
    [
        ("Extension", {"type": 1}, "Expected `str`, got `int` - at `$.spec.type`"),
        ("Bastion", {"userData": "no base64"}, "Invalid base64 encoded string - at `$.spec.userData`"),
        ("DNSRecord", {"ttl": "1"}, "Expected `int | null`, got `str` - at `$.spec.ttl`"),
        ("DNSRecord", {"ttl": 2**70}, "Expected `int` <= 9223372036854775807 - at `$.spec.ttl`"),
        ("Worker", {"pools": {}}, "Expected `array | null`, got `object` - at `$.spec.pools`"),
        ("Worker", {"pools": [{"maximum": 2**31}]}, "Expected `int` <= 2147483647 - at `$.spec.pools[0].maximum`"),
        ("Etcd", {"backup": {"store": {"prefix": 1}}}, "Expected `str`, got `int` - at `$.backup.store.prefix`"),
    ],
)
def test_fields_of_the_wrong_type_are_named(kind: str, spec: Object, what: str) -> None:
    assert undecodable(kind, valid(kind, **spec)) == f"unable to decode into {kind}: {what}"


def test_another_kind_cannot_be_decoded() -> None:
    for wrong in ({"kind": "Worker"}, {"apiVersion": "v1"}):
        message = undecodable("Extension", {**valid("Extension"), **wrong})
        assert message.startswith("unable to decode ")
        assert message.endswith(" into Extension")
    obj = valid("Extension")
    del obj["kind"], obj["apiVersion"]
    assert errors("Extension", obj) == []


def test_null_is_the_same_as_leaving_a_field_out() -> None:
    obj = valid("Infrastructure")
    obj["spec"] |= dict.fromkeys(("class", "providerConfig", "region", "secretRef"))
    obj["metadata"] |= dict.fromkeys(("labels", "creationTimestamp", "generateName"))
    assert errors("Infrastructure", obj) == [f"spec.region: {NEEDED}", f"spec.secretRef.name: {NEEDED}"]


def test_unknown_fields_are_left_alone() -> None:
    obj = valid("ContainerRuntime", meta=DELETING, unknown={"a": [1]})
    assert errors("ContainerRuntime", obj, valid("ContainerRuntime", meta=DELETING)) == []


def test_what_is_nested_too_deeply_to_be_compared_is_refused() -> None:
    old, new = (valid("Extension", meta=DELETING) for _ in range(2))
    for obj, bottom in ((old, 1), (new, 2)):
        obj["spec"]["providerConfig"] = functools.reduce(lambda inner, _: [inner], range(5000), cast("Any", bottom))
    assert undecodable("Extension", new, old) == "unable to check Extension: nested too deeply"
    new["spec"]["type"] = None
    assert undecodable("Extension", new) == "unable to decode into Extension: nested too deeply"


@pytest.mark.parametrize("kind", SPECS)
def test_a_deleted_object_must_be_decodable(kind: str) -> None:
    BY_NAME[kind].delete(request(kind, None), valid(kind))
    with pytest.raises(Refusal):
        BY_NAME[kind].delete(request(kind, None), cast("Object", []))
