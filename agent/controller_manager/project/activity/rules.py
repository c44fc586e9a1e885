"""Which changes are activity in a Project, and at which moment.

come    if it was within the last hour: a list that begins a watch is full of old objects
change  the spec of a Shoot or BackupEntry; anything of credentials and Quotas that bindings refer to, but for labels
        and finalizers, which this program writes by itself
go      always

A binding of another namespace counts where the credentials or Quotas are that it refers to.
"""

from datetime import datetime, timedelta

from agent.controller_manager.common.rules.credentials import Credentials
from kube.clock import parse_time
from kube.objects import Object, metadata, text

_RECENT = timedelta(hours=1)
TOGETHER = timedelta(minutes=1)
"""Activity within this time is recorded once."""


def of_objects(old: Object | None, new: Object | None, *, now: datetime, initial: bool) -> datetime | None:
    """Of Shoots, BackupEntries and bindings; `initial` as `kube.runtime.cache.Change` has it."""
    if new is None:
        return now
    if old is None:
        return _coming(text(metadata(new).get("creationTimestamp")), now, initial=initial)
    return now if metadata(old).get("generation") != metadata(new).get("generation") else None


def of_credentials(
    old: Credentials | None, new: Credentials | None, *, now: datetime, initial: bool
) -> datetime | None:
    """Of Secrets and WorkloadIdentities."""
    if not any(each is not None and each.were_referred_to for each in (old, new)):
        return None
    if new is None:
        return now
    if old is None:
        return _coming(new.created, now, initial=initial)
    # The content is not kept: what is told as changed, and looks the same, has another one.
    is_own = initial or (old.labels, old.finalizers) != (new.labels, new.finalizers)
    return None if is_own else now


def of_quotas(old: Object | None, new: Object | None, *, now: datetime, initial: bool) -> datetime | None:
    before, after = (None if each is None else Credentials.of(each) for each in (old, new))
    return of_credentials(before, after, now=now, initial=initial)


def _coming(created: str, now: datetime, *, initial: bool) -> datetime | None:
    """What a list tells of may have come while nobody looked; then it is known when."""
    moment = parse_time(created) if created else now
    if now - moment > _RECENT:
        return None
    return moment if initial else now


def is_news(recorded: str, moment: datetime) -> bool:
    return not recorded or moment - parse_time(recorded) >= TOGETHER
