"""When the end of a Shoot's lifetime is announced, and when it is looked at again."""

from datetime import datetime, timedelta

from gardener import keys
from gardener.garden.lifetimes import binding_of
from kube.clock import parse_time
from kube.objects import Object, annotations, is_deleting, metadata

ANNOUNCED_BEFORE = (timedelta(hours=1), timedelta(days=1), timedelta(days=7))


def announcement(shoot: Object, until: datetime, now: datetime) -> timedelta | None:
    """How long before its end a Shoot has just been, or is about to be, announced; None: not yet.

    Not what was so from the beginning: users know how long a new Shoot lives.
    """
    created = parse_time(metadata(shoot)["creationTimestamp"])
    passed = (before for before in ANNOUNCED_BEFORE if created < until - before <= now)
    return min(passed, default=None)


def next_look(until: datetime, now: datetime, *, sync_period: timedelta) -> timedelta:
    """When the Shoot has expired or is to be announced, but after the period in any case."""
    moments = (until, *(until - before for before in ANNOUNCED_BEFORE))
    return min(sync_period, *(moment - now for moment in moments if moment > now), timedelta.max)


def concerns(shoot: Object) -> tuple[object, ...]:
    """What has to change for a Shoot to be looked at again."""
    return binding_of(shoot), annotations(shoot).get(keys.SHOOT_EXPIRATION), is_deleting(shoot)
