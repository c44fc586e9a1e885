"""How long a Bastion is of use, and when it has a heartbeat to be recorded."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from gardener import keys
from kube.clock import time_or_none
from kube.objects import Key, Object, annotations, integer, is_deleting, key, metadata, spec, text, uid
from kube.paths import at

TIME_TO_LIVE = timedelta(hours=1)
"""After a heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bastion:
    """What is kept of one."""

    uid: str
    version: str
    generation: int
    shoot: Key
    seed: str
    created: datetime | None
    expires: datetime | None
    asks_for_heartbeat: bool
    """It has none yet, or somebody wants to keep it alive."""
    is_kept_alive: bool
    """By an annotation, which is removed after the heartbeat."""
    is_deleting: bool

    @classmethod
    def of(cls, obj: Object) -> "Bastion":
        is_kept_alive = annotations(obj).get(keys.OPERATION) == keys.OPERATION_KEEPALIVE
        return cls(
            uid=uid(obj),
            version=text(metadata(obj).get("resourceVersion")),
            generation=integer(metadata(obj).get("generation")),
            shoot=Key(key(obj).namespace, text(at(spec(obj), "shootRef", "name"))),
            seed=text(spec(obj).get("seedName")),
            created=time_or_none(metadata(obj).get("creationTimestamp")),
            expires=time_or_none(at(obj, "status", "expirationTimestamp")),
            asks_for_heartbeat=is_kept_alive or not at(obj, "status", "lastHeartbeatTimestamp"),
            is_kept_alive=is_kept_alive,
            is_deleting=is_deleting(obj),
        )


def why_useless(bastion: Bastion, shoot: Object | None) -> str:
    """What is wrong with its Shoot; empty: nothing."""
    if shoot is None:
        return "its Shoot does not exist"
    if is_deleting(shoot):
        return "its Shoot is being deleted"
    if text(spec(shoot).get("seedName")) != bastion.seed:
        return "its Shoot is on another Seed"
    return ""


def end(bastion: Bastion, *, max_lifetime: timedelta) -> datetime | None:
    """When it is to be deleted at the latest, as far as that is known."""
    too_old = bastion.created + max_lifetime if bastion.created is not None else None
    return min((time for time in (too_old, bastion.expires) if time is not None), default=None)
