"""Shoots for tests of their admission, and a garden in which they are accepted.

Paths of fields have `__` for each dot:

assert create(submitted(purpose="production", kubernetes__version="1.30")).spec["kubernetes"]["version"] == "1.30.5"
"""

from collections.abc import Sequence
from typing import Any

from gardener.api import garden as resources
from gardener.api.garden.definitions import definition
from gardener.api.structural import with_defaults
from kit.garden_objects import shoot
from kit.webhooks.garden import Asked, Outcome
from kube import resources as kubernetes
from kube.objects import Object
from kube.resources import Resource
from webhooks.garden.kinds.shoot.kind import SHOOT
from webhooks.generic import copied

NAMESPACE, PROJECT_NAME = "garden-dev", "dev"
VERSIONS = ("1.29.8", "1.30.1", "1.30.5", "1.31.2", "1.32.0")


def with_fields(obj: Object, **fields: Any) -> Object:
    """A copy with other values at paths; None removes."""
    changed: Object = copied(obj)
    for path, value in fields.items():
        *parents, last = path.split("__")
        parent: Any = changed
        for name in parents:
            parent = parent[int(name)] if isinstance(parent, list) else parent.setdefault(name, {})
        if value is None:
            parent.pop(last, None)
        else:
            parent[last] = value
    return changed


def of(resource: Resource, name: str, *, namespace: str = "", meta: Object | None = None, **fields: Any) -> Object:
    """An object as it is stored: with the defaults of its schema."""
    place = {"namespace": namespace} if namespace else {}
    obj = {
        **resource.type_meta,
        "metadata": {"name": name, **place, **(meta or {})},
    }
    known = definition(group=resource.group, kind=resource.kind)
    complete: Object = with_defaults(known.schema, {**obj, **fields}) if known else {**obj, **fields}
    return complete


PROFILE = of(
    resources.CLOUD_PROFILES,
    "local",
    spec={
        "type": "local",
        "kubernetes": {
            "versions": [
                *({"version": version} for version in VERSIONS[:-1]),
                {"version": VERSIONS[-1], "classification": "preview"},
                {"version": "1.30.0", "expirationDate": "2020-01-01T00:00:00Z"},
            ]
        },
        "machineImages": [
            {
                "name": "linux",
                "versions": [
                    {"version": "1.0.0"},
                    {"version": "2.0.0", "architectures": ["amd64", "arm64"], "kubeletVersionConstraint": ">= 1.30"},
                    {"version": "3.0.0", "classification": "preview"},
                    {"version": "0.9.0", "expirationDate": "2020-01-01T00:00:00Z"},
                ],
            },
            {"name": "other", "versions": [{"version": "1.0.0", "architectures": ["arm64"]}]},
        ],
        "machineTypes": [
            {"name": "small", "cpu": "2", "gpu": "0", "memory": "4Gi"},
            {"name": "old", "cpu": "2", "gpu": "0", "memory": "4Gi", "usable": False},
            {"name": "arm", "cpu": "2", "gpu": "0", "memory": "4Gi", "architecture": "arm64"},
        ],
        "volumeTypes": [
            {"name": "std", "class": "standard", "minSize": "20Gi"},
            {"name": "gone", "class": "premium", "usable": False},
        ],
        "regions": [
            {
                "name": "r",
                "zones": [{"name": "a"}, {"name": "b"}, {"name": "c", "unavailableMachineTypes": ["small"]}],
            },
            {"name": "without-zones"},
        ],
    },
)
REGISTRATION = of(
    resources.CONTROLLER_REGISTRATIONS,
    "local",
    spec={
        "resources": [
            *({"kind": kind, "type": "local"} for kind in ("ControlPlane", "DNSRecord", "Infrastructure", "Worker")),
            {"kind": "Network", "type": "calico"},
            {"kind": "OperatingSystemConfig", "type": "linux"},
            {"kind": "Extension", "type": "all", "globallyEnabled": True, "workerlessSupported": False},
            {"kind": "Extension", "type": "some", "workerlessSupported": True},
        ]
    },
)
PROJECT = of(
    resources.PROJECTS,
    PROJECT_NAME,
    spec={
        "namespace": NAMESPACE,
        "tolerations": {"defaults": [{"key": "d"}], "whitelist": [{"key": "d"}, {"key": "w"}]},
    },
)
BINDING = of(
    resources.SECRET_BINDINGS,
    "sb",
    namespace=NAMESPACE,
    secretRef={"name": "cred", "namespace": NAMESPACE},
    provider={"type": "local"},
)
SECRET = of(kubernetes.SECRETS, "cred", namespace=NAMESPACE)
DOMAIN = of(
    kubernetes.SECRETS,
    "default-domain",
    namespace="garden",
    meta={
        "labels": {"gardener.cloud/role": "default-domain"},
        "annotations": {"dns.gardener.cloud/provider": "local", "dns.gardener.cloud/domain": "ex.org"},
    },
)
SEED = of(
    resources.SEEDS,
    "seed",
    meta={"labels": {"on": "earth"}},
    spec={
        "provider": {"type": "local", "region": "r", "zones": ["a", "b", "c"]},
        "networks": {
            "nodes": "10.10.0.0/16",
            "pods": "10.20.0.0/16",
            "services": "10.30.0.0/16",
            "shootDefaults": {"pods": "100.96.0.0/11", "services": "100.64.0.0/13"},
        },
        "dns": {"provider": {"type": "local", "secretRef": {"name": "dns", "namespace": "garden"}}},
        "ingress": {"domain": "ingress.example.com", "controller": {"kind": "nginx"}},
    },
)
GARDEN = (PROFILE, REGISTRATION, PROJECT, BINDING, SECRET, DOMAIN, SEED)


def worker(name: str = "w", **fields: Any) -> Object:
    return with_fields({"name": name, "minimum": 1, "maximum": 2, "machine": {"type": "small"}}, **fields)


def submitted(name: str = "a", **fields: Any) -> Object:
    """Args: fields: paths below `spec`, and `meta__...` below `metadata`."""
    obj = shoot(
        f"{NAMESPACE}/{name}",
        cloudProfile={"kind": "CloudProfile", "name": "local"},
        region="r",
        secretBindingName="sb",
        provider={"type": "local", "workers": [worker()]},
        networking={"type": "calico"},
        kubernetes={"version": "1.30.5"},
    )
    return with_fields(obj, **_placed(fields))


def workerless(name: str = "a", **fields: Any) -> Object:
    return submitted(name, **{"provider__workers": None, "networking__type": None, "secretBindingName": None, **fields})


def _placed(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        f"metadata__{path.removeprefix('meta__')}" if path.startswith("meta__") else f"spec__{path}": value
        for path, value in fields.items()
    }


def requested(*more: Object, user: str = "ann", denied: Sequence[str] = ()) -> Asked:
    """With the garden above; objects of the same kind and name replace those in it."""
    named = {(obj["kind"], obj["metadata"]["name"]): obj for obj in (*GARDEN, *more)}
    return Asked(SHOOT, user=user, garden=list(named.values()), denied=denied)


def create(obj: Object, *more: Object) -> Outcome:
    return requested(*more).create(obj)


def stored(obj: Object | None = None, *more: Object, status: Object | None = None, **fields: Any) -> Object:
    """A Shoot that was accepted, with another status and other fields; see `shoot`."""
    created = create(submitted() if obj is None else obj, *more)
    assert created.status is None, created.message
    found = created.object if status is None else {**created.object, "status": status}
    return with_fields(found, **_placed(fields))


def update(old: Object, *more: Object, **fields: Any) -> Outcome:
    """Args: fields: what changes; see `shoot`."""
    return requested(*more).update(old, with_fields(old, **_placed(fields)))


def operation(kind: str = "Reconcile", state: str = "Succeeded", **more: Any) -> Object:
    """A status with this last operation."""
    last = {"type": kind, "state": state, "progress": 100, "description": "", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    return {"lastOperation": last, **more}
