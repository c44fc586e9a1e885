"""How long a Bastion lives: an hour after its last sign of life, which nobody extends by hand."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from kube.clock import format_time, parse_time, utc_now
from kube.objects import Object, mapping, text
from kube.validation import invalid
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write

TIME_TO_LIVE = timedelta(hours=1)
_CLOCK_SKEW = timedelta(seconds=30)
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
"""Far from these, time zones and hours lead out of the years that there are, or that are written with four digits."""


def set_expiration(write: Write) -> None:
    status = mapping(write.new.get("status"))
    beat = _heartbeat(write.new)
    if beat is not None:
        status["expirationTimestamp"] = format_time(beat + TIME_TO_LIVE)
    else:
        status.pop("expirationTimestamp", None)


def errors(write: Write, *, now: Callable[[], datetime] = utc_now) -> Iterator[Finding]:
    beat = _heartbeat(write.new)
    if beat is not None and beat > now() + _CLOCK_SKEW:
        yield invalid("status.lastHeartbeatTimestamp", format_time(beat), "must not be in the future")


def _heartbeat(bastion: Object) -> datetime | None:
    """None: there is none, or the API server will say that it is no time."""
    try:
        beat = parse_time(text(mapping(bastion.get("status")).get("lastHeartbeatTimestamp")))
    except ValueError:
        return None
    return min(max(beat, _FIRST), _LAST)
