"""Extension resources for tests, and what is wrong with them."""

import copy
from typing import Any

import orjson

from kit.webhooks.requests import request_about
from kube.objects import Object
from webhooks.admission import Allowed, Answer, Errored, Failure, Refusal, Request
from webhooks.handlers.extension_validation import KINDS

BY_NAME = {kind.name: kind for kind in KINDS}
DELETING = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"]}

NEEDED = "Required value: field is required"
IMMUTABLE = "field is immutable"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of"
IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"

_SECRET = {"name": "s", "namespace": "n"}
SPECS: dict[str, Object] = {
    "BackupBucket": {"type": "t", "region": "r", "secretRef": _SECRET},
    "BackupEntry": {"type": "t", "region": "r", "bucketName": "b", "secretRef": _SECRET},
    "Bastion": {"type": "t", "userData": "eA==", "ingress": [{"ipBlock": {"cidr": "1.2.3.4/32"}}]},
    "ContainerRuntime": {"type": "t", "binaryPath": "/bin", "workerPool": {"name": "w", "selector": {}}},
    "ControlPlane": {"type": "t", "region": "r", "secretRef": _SECRET},
    "DNSRecord": {"type": "t", "secretRef": _SECRET, "name": "a.example.com", "recordType": "A", "values": ["1.2.3.4"]},
    "Etcd": {"backup": {"store": {"prefix": "n--x", "provider": "S3"}}, "replicas": 3},
    "Extension": {"type": "t", "providerConfig": {"a": 1}},
    "Infrastructure": {"type": "t", "region": "r", "secretRef": _SECRET},
    "Network": {"type": "t", "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16"},
    "OperatingSystemConfig": {
        "type": "t",
        "purpose": "reconcile",
        "units": [{"name": "u", "dropIns": [{"name": "d", "content": "c"}], "filePaths": ["/a"]}],
        "files": [{"path": "/a", "content": {"inline": {"data": "x"}}}],
    },
    "SelfHostedShootExposure": {
        "type": "t",
        "port": 443,
        "endpoints": [{"nodeName": "n", "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}]}],
    },
    "Worker": {
        "type": "t",
        "region": "r",
        "secretRef": _SECRET,
        "pools": [
            {
                "name": "w",
                "machineType": "m",
                "machineImage": {"name": "i", "version": "1"},
                "maxSurge": 1,
                "maxUnavailable": "10%",
                "nodeTemplate": {"capacity": {"cpu": "1500m", "memory": "1Gi", "pods": 10}},
                "machineControllerManager": {"machineDrainTimeout": "1h"},
            }
        ],
    },
}


def valid(kind: str, *, meta: Object | None = None, **spec: Any) -> Object:
    """An object without mistakes; fields of `meta` and `spec` replace those of it, None takes them away."""
    rules = BY_NAME[kind]
    namespace = {"namespace": "n"} if rules.resource.namespaced else {}
    return copy.deepcopy(
        {
            "apiVersion": rules.resource.api_version,
            "kind": kind,
            "metadata": {"name": "x", **namespace, "uid": "u", "resourceVersion": "1", **(meta or {})},
            "spec": {name: value for name, value in {**SPECS[kind], **spec}.items() if value is not None},
        }
    )


def request(kind: str, obj: Any, old: Any = None) -> Request:
    return request_about(BY_NAME[kind].resource, obj, old, name="x", namespace="n")


def answer(kind: str, obj: Any, old: Any = None) -> Answer:
    try:
        if old is None:
            BY_NAME[kind].create(request(kind, obj), obj)
        else:
            BY_NAME[kind].update(request(kind, obj, old), obj, old)
    except Refusal as refusal:
        return refusal.answer
    return Allowed()


def errors(kind: str, obj: Any, old: Any = None) -> list[str]:
    """All that is wrong, as `path: body`; none for an object that is accepted."""
    found = answer(kind, obj, old)
    if isinstance(found, Failure):
        return [f"{cause['field']}: {cause['message']}" for cause in found.status["details"]["causes"]]
    assert found == Allowed(), found
    return []


def spec_errors(kind: str, **spec: Any) -> list[str]:
    """Of a valid object but for these fields of its spec."""
    return errors(kind, valid(kind, **spec))


def fields(found: list[str]) -> list[str]:
    """Where the errors are."""
    return [error.partition(": ")[0] for error in found]


def below(prefix: str, found: list[str]) -> list[str]:
    """Errors whose paths all begin so, without that."""
    assert all(error.startswith(prefix) for error in found)
    return [error.removeprefix(prefix) for error in found]


def shortened(found: list[str]) -> list[str]:
    """Without what a subdomain or label must look like."""
    return [error.split(" lower case alphanumeric")[0] for error in found]


def unsupported(value: str, *supported: str) -> str:
    listed = ", ".join(f'"{each}"' for each in supported)
    return f'Unsupported value: "{value}": supported values: {listed}'


def invalid(field: str, value: Any, detail: str) -> str:
    return f"{field}: Invalid value: {orjson.dumps(value).decode()}: {detail}"


def undecodable(kind: str, obj: Any, old: Any = None) -> str:
    found = answer(kind, obj, old)
    assert isinstance(found, Errored)
    assert found.code == 400
    return found.message
