from typing import Any

import pytest

from kit.webhooks.validating import (
    DELETING,
    IP,
    NEEDED,
    SUBDOMAIN,
    below,
    errors,
    fields,
    invalid,
    shortened,
    spec_errors,
    undecodable,
    unsupported,
    valid,
)
from kube.objects import Object

NEGATIVE, FRACTION = "must be greater than or equal to 0", "must be an integer"
POOL = {"name": "w", "machineType": "m", "machineImage": {"name": "i", "version": "1"}}
REFERENCE = {"apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": "s"}
ADDRESS_TYPES = ("ExternalDNS", "ExternalIP", "Hostname", "InternalDNS", "InternalIP")
UNKNOWN_TYPE = 'Invalid value: "a": invalid address for unsupported address type'


def worker(**pool: Any) -> Object:
    return valid("Worker", pools=[{**POOL, **pool}])


def capacity_errors(capacity: Object) -> list[str]:
    found = errors("Worker", worker(nodeTemplate={"capacity": capacity}))
    return below("spec.pools[0].nodeTemplate.capacity.", found)


@pytest.mark.parametrize(
    ("pool", "found"),
    [
        (POOL, []),
        ({}, [f"{path}: {NEEDED}" for path in ("machineType", "machineImage.name", "machineImage.version", "name")]),
        ({**POOL, "architecture": "arm64"}, []),
        (
            {**POOL, "architecture": "", "name": ""},
            [f"architecture: {unsupported('', 'amd64', 'arm64')}", f"name: {NEEDED}"],
        ),
    ],
)
def test_worker_pools(pool: Object, found: list[str]) -> None:
    assert spec_errors("Worker", pools=[POOL, pool]) == [f"spec.pools[1].{error}" for error in found]


@pytest.mark.parametrize(
    ("resource", "quantity", "found"),
    [
        ("cpu", "1.5", []),
        ("cpu", "-1", [invalid("cpu", "-1", "must be greater than or equal to 0")]),
        ("memory", 0.5, []),
        ("pods", 10, []),
        ("pods", "1k", []),
        ("pods", "1500m", [invalid("pods", "1500m", FRACTION)]),
        ("pods", "-0.5", [invalid("pods", "-0.5", NEGATIVE), invalid("pods", "-0.5", FRACTION)]),
        ("services.nodeports", "0.1", [invalid("services.nodeports", "0.1", FRACTION)]),
        ("nvidia.com/gpu", "0.1", [f'nvidia.com/gpu: Invalid value: "0.1": {FRACTION}']),
        ("nvidia.com/gpu", "1000m", []),
        ("a.kubernetes.io/b", "0.1", []),
        ("requests.nvidia.com/gpu", "0.1", []),
        ("gpu", "0.1", []),
    ],
)
def test_capacities(resource: str, quantity: Any, found: list[str]) -> None:
    assert capacity_errors({resource: quantity}) == found


def test_capacities_are_reported_by_name() -> None:
    assert fields(capacity_errors({"pods": "-1", "cpu": "-1", "memory": "-1"})) == ["cpu", "memory", "pods"]


@pytest.mark.parametrize("quantity", ["", "1x", "1 Gi", "e", "1" * 200, "1e" + "9" * 50, True, [], {}])
def test_what_is_no_quantity_cannot_be_decoded(quantity: Any) -> None:
    undecoded = undecodable("Worker", worker(nodeTemplate={"capacity": {"cpu": quantity}}))
    assert "spec.pools[0].nodeTemplate.capacity[...]" in undecoded


@pytest.mark.parametrize("duration", ["", "1", "1 hour", 60])
def test_what_is_no_duration_cannot_be_decoded(duration: Any) -> None:
    settings = {"machineDrainTimeout": duration}
    assert "machineDrainTimeout" in undecodable("Worker", worker(machineControllerManager=settings))


def test_surges_are_numbers_or_percentages() -> None:
    assert errors("Worker", worker(maxSurge="10%", maxUnavailable=1)) == []
    assert "maxSurge" in undecodable("Worker", worker(maxSurge=1.5))


@pytest.mark.parametrize(
    ("store", "found"),
    [
        ({"prefix": "a--n/x"}, []),
        ({"prefix": "x"}, [invalid("prefix", "x", "must contain object name and namespace")]),
        ({}, [invalid("prefix", "", "must contain object name and namespace")]),
        ({"prefix": "nx", "provider": ""}, []),
        ({"prefix": "nx", "provider": "local"}, []),
        ({"prefix": "nx", "provider": "s3"}, ["provider: Invalid value: \"s3\": unsupported storage provider: 's3'"]),
    ],
)
def test_stores_of_etcds(store: Object, found: list[str]) -> None:
    assert spec_errors("Etcd", backup={"store": store}) == [f"spec.backup.store.{error}" for error in found]


@pytest.mark.parametrize(
    "provider",
    [
        *("aws", "S3", "stackit", "azure", "ABS", "alicloud", "OSS", "openstack", "Swift", "gcp", "GCS", "dell", "ECS"),
        *("openshift", "OCS", "Local", "local"),
    ],
)
def test_providers_that_are_known(provider: str) -> None:
    assert spec_errors("Etcd", backup={"store": {"prefix": "nx", "provider": provider}}) == []


def test_an_etcd_needs_no_store() -> None:
    assert spec_errors("Etcd", backup={}) == spec_errors("Etcd", backup=None) == []


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"store": {"prefix": "nx"}}, {"store": {"prefix": "xn"}}, True),
        ({"store": {"prefix": "nx"}}, {"store": {"prefix": "nx", "provider": "S3"}}, False),
        ({"store": {"prefix": "nx"}}, {}, False),
        ({}, {"store": {"prefix": "nx"}}, False),
    ],
)
def test_the_prefix_of_a_store_is_immutable(old: Object, new: Object, found: bool) -> None:
    expected = [invalid("spec.backup.store.prefix", "xn", "field is immutable")] if found else []
    assert errors("Etcd", valid("Etcd", backup=new), valid("Etcd", backup=old)) == expected


def test_the_prefix_of_members_is_immutable() -> None:
    new, old = valid("Etcd", memberNamePrefix="a"), valid("Etcd")
    assert errors("Etcd", new, old) == [invalid("spec.memberNamePrefix", "a", "field is immutable")]
    assert errors("Etcd", old, new) == [invalid("spec.memberNamePrefix", None, "field is immutable")]


def test_the_spec_of_an_etcd_is_frozen_while_it_is_being_deleted() -> None:
    old, new = valid("Etcd", meta=DELETING), valid("Etcd", meta=DELETING, replicas=1, memberNamePrefix="a")
    spec = '{"backup":{"store":{"prefix":"n--x","provider":"S3"}},"replicas":1,"memberNamePrefix":"a"}'
    assert errors("Etcd", new, old) == [f"spec: Invalid value: {spec}: field is immutable"]
    assert errors("Etcd", valid("Etcd", meta=DELETING, labels={}, etcd=None), old) == []


def unsupported_kind(kind: str) -> str:
    return f': Unsupported value: {kind}: supported values: "/v1, Kind=Secret"'


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ({}, []),
        ({"namespace": "m"}, [invalid(".namespace", "m", "must equal metadata.namespace")]),
        ({"namespace": ""}, [".namespace: Required value: must provide a namespace"]),
        ({"name": ""}, [".name: Required value: must provide a name"]),
        ({"name": "A"}, [invalid(".name", "A", SUBDOMAIN)]),
        (
            {"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "WorkloadIdentity"},
            [unsupported_kind('{"Group":"security.gardener.cloud","Version":"v1alpha1","Kind":"WorkloadIdentity"}')],
        ),
        (
            {"apiVersion": "", "kind": ""},
            [
                ".apiVersion: Required value: must provide an apiVersion",
                ".kind: Required value: must provide a kind",
                unsupported_kind('{"Group":"","Version":"","Kind":""}'),
            ],
        ),
    ],
)
def test_credentials_of_exposures(reference: Object, found: list[str]) -> None:
    credentials = {**REFERENCE, **reference}
    found_errors = shortened(spec_errors("SelfHostedShootExposure", credentialsRef=credentials))
    assert below("spec.credentialsRef", found_errors) == found


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"type": ""}, [f"type: {NEEDED}"]),
        ({"port": 65535}, []),
        ({"port": None}, [invalid("port", 0, "must be between 1 and 65535, inclusive")]),
        ({"port": 65536}, [invalid("port", 65536, "must be between 1 and 65535, inclusive")]),
        ({"endpoints": []}, [f"endpoints: {NEEDED}"]),
        ({"endpoints": None}, [f"endpoints: {NEEDED}"]),
        ({"endpoints": [{}]}, [f"endpoints[0].nodeName: {NEEDED}"]),
    ],
)
def test_exposures(spec: Object, found: list[str]) -> None:
    assert spec_errors("SelfHostedShootExposure", **spec) == [f"spec.{error}" for error in found]


@pytest.mark.parametrize(
    ("kind", "address", "found"),
    [
        ("InternalIP", "1.2.3.4", []),
        ("InternalIP", "01.02.003.4", []),
        ("ExternalIP", "::ffff:1.2.3.4", []),
        ("ExternalIP", "::ffff:01.2.3.4", []),
        ("ExternalIP", "fe80::1%eth0", [invalid("address", "fe80::1%eth0", IP)]),
        ("InternalIP", "a.b", [invalid("address", "a.b", IP)]),
        ("Hostname", "a", []),
        ("ExternalDNS", "a.b", []),
        ("InternalDNS", "A", [invalid("address", "A", SUBDOMAIN)]),
        ("Hostname", "", [f"address: {NEEDED}"]),
        ("", "a", [f"type: {NEEDED}", f'address: {UNKNOWN_TYPE} ""']),
        ("IP", "a", [f"type: {unsupported('IP', *ADDRESS_TYPES)}", f'address: {UNKNOWN_TYPE} "IP"']),
    ],
)
def test_addresses_of_exposures(kind: str, address: str, found: list[str]) -> None:
    endpoints = [{"nodeName": "n", "addresses": [{"type": kind, "address": address}]}]
    found_errors = shortened(spec_errors("SelfHostedShootExposure", endpoints=endpoints))
    assert below("spec.endpoints[0].addresses[0].", found_errors) == found
