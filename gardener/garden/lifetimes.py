"""Maximum lifetime of a Shoot, from the Quotas of its credentials."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from gardener import keys
from gardener.api.garden import CREDENTIALS_BINDINGS, SECRET_BINDINGS
from gardener.garden import users
from kube.clock import format_time, parse_time
from kube.objects import Key, Object, annotations, metadata, spec
from kube.resources import Resource

_LAST_MOMENT = datetime(9999, 12, 31, tzinfo=UTC)


def binding_of(shoot: Object) -> tuple[Resource, Key] | None:
    """Kind and key of the binding that names its Quotas; None if the Shoot needs no credentials."""
    for resource, references in (
        (CREDENTIALS_BINDINGS, users.credentials_bindings),
        (SECRET_BINDINGS, users.secret_bindings),
    ):
        for key in references(shoot):
            return resource, key
    return None


def lifetime(quotas: Iterable[Object]) -> timedelta | None:
    """The shortest lifetime of all; None if there is no limit."""
    days = (spec(quota).get("clusterLifetimeDays") for quota in quotas)
    shortest = min((each for each in days if isinstance(each, int)), default=None)
    return None if shortest is None else timedelta(days=min(shortest, timedelta.max.days))


def first_end(shoot: Object, allowed: timedelta, *, earliest: datetime | None = None) -> str:
    """Expiration of a Shoot that has none yet, in the format of the annotation."""
    try:
        first = parse_time(metadata(shoot)["creationTimestamp"]) + allowed
    except OverflowError:
        first = _LAST_MOMENT
    return format_time(first if earliest is None else max(first, earliest))


def end(shoot: Object) -> datetime | None:
    """Expiration in the annotation; None if there is none.

    Raises:
        ValueError: its value is not a time.
    """
    written = annotations(shoot).get(keys.SHOOT_EXPIRATION)
    return None if written is None else parse_time(written)
