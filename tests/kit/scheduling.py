"""Seeds and Shoots as the scheduler sees them: a Seed takes every Shoot, unless specified otherwise."""

from typing import Any

from gardener.api.garden import CLOUD_PROFILES, SEEDS
from kit.garden_objects import garden_object, shoot
from kube.objects import Object

REGION, PROVIDER, PROFILE = "europe", "local", "profile"
READY: Object = {"type": "GardenletReady", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def ready_status(*, room: str | int | None = None) -> Object:
    last = {
        "type": "Reconcile",
        "state": "Succeeded",
        "progress": 100,
        "description": "",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
    status: Object = {
        "lastOperation": last,
        "conditions": [{"reason": "r", "message": "", "lastUpdateTime": READY["lastTransitionTime"], **READY}],
    }
    return status if room is None else {**status, "allocatable": {"shoots": room}}


def seed(name: str, *, room: str | int | None = None, region: str = REGION, provider: str = PROVIDER) -> Object:
    """Args: room: allocatable Shoots."""
    obj = garden_object(SEEDS, name)
    obj["spec"] = {
        **obj["spec"],
        "taints": [],
        "provider": {"type": provider, "region": region, "zones": ["a", "b", "c"]},
        "networks": {"nodes": "10.10.0.0/16", "pods": "10.20.0.0/16", "services": "10.30.0.0/16"},
    }
    return {**obj, "status": ready_status(room=room)}


def schedulable(name: str = "s", *, namespace: str = "garden-p", on: str = "", **spec: Any) -> Object:
    """Args: on: the Seed; empty: it waits for the scheduler."""
    defaults: Object = {
        "cloudProfile": {"kind": CLOUD_PROFILES.kind, "name": PROFILE},
        "region": REGION,
        "networking": {
            "type": "calico",
            "nodes": "10.250.0.0/16",
            "pods": "100.96.0.0/11",
            "services": "100.64.0.0/13",
        },
        **({"seedName": on} if on else {}),
    }
    return shoot(f"{namespace}/{name}", whole=True, **defaults | spec)


def toleration(text: str) -> Object:
    """Of `key` or `key=value`; a taint is written in the same way."""
    key, equal, value = text.partition("=")
    return {"key": key, **({"value": value} if equal else {})}
