"""Leader election by a Lease: of all candidates, at most one leads at any time.

The lease names its holder. The holder renews it every `retry_period`; the others read it and take it when its holder
released it or has not renewed it for the duration written in it, counted by their own clock since they observed the
last change. Clocks of different machines are never compared. Candidates also watch it, so that they notice a release at
once; if they may not watch, they rely on reading it regularly.

That no two processes ever write as leaders rests on the holder's side, on `Tenure`: its end is `renew_deadline` after
the *start* of the last renewal that succeeded, and lies therefore before the moment at which another process may take
over, which is at least `lease_duration` after that renewal reached the API server. `Tenure.guard` belongs in front of
every write; it holds even when the event loop was blocked or the machine asleep, when no timer could fire in time.

A pure function, `decide`, determines the action for a lease; written specs are built by pure functions, too.
"""

import asyncio
import math
import random
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import structlog

from kube.clock import format_micro_time
from kube.errors import ApiError, Conflict, Forbidden, KubeError, remedy
from kube.objects import Key, Object, annotations, metadata, resource_version
from kube.resources import LEASES
from kube.runtime.client import Client, Selection
from kube.runtime.events import EventRecorder
from kube.runtime.metrics import leader_election_master_status

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

JITTER_FACTOR = 1.2
_REMOVED_LOCKS = frozenset({"endpoints", "configmaps", "endpointsleases", "configmapsleases"})
_UNWIND_SECONDS = 1.0
_WATCH_SECONDS, _WATCH_IDLE_SECONDS, _WATCH_AGAIN_SECONDS = 300, 60.0, 10.0
# Unlike the monotonic clock, this one also counts the time for which the machine was suspended.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LeadershipLost(KubeError):
    """The process does not lead, or no longer, and must not act as leader."""

    def __init__(self) -> None:
        super().__init__("leader election lost")


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionSettings:
    """Lease, and times of the election in seconds.

    Raises: ValueError: the times or the kind of lock would not work.
    """

    namespace: str
    name: str
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    resource_lock: str = "leases"

    def __post_init__(self) -> None:
        if self.resource_lock in _REMOVED_LOCKS:
            raise ValueError(f"{self.resource_lock} lock is removed, migrate to leases")
        if self.resource_lock != "leases":
            raise ValueError(f"Invalid lock-type {self.resource_lock}")
        if self.lease_duration <= self.renew_deadline:
            raise ValueError("leaseDuration must be greater than renewDeadline")
        if self.renew_deadline <= JITTER_FACTOR * self.retry_period:
            raise ValueError("renewDeadline must be greater than retryPeriod*JitterFactor")
        if self.retry_period <= 0:
            raise ValueError("retryPeriod must be greater than zero")

    @property
    def request_timeout(self) -> float:
        return max(self.renew_deadline / 2, 1.0)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def new_identity() -> str:
    """Name for this process that no other process has or will have."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def boot_clock() -> float:
    """Seconds since some fixed moment, suspension included."""
    return time.clock_gettime(_CLOCK)


# --- rules


class Action(Enum):
    """Action of a candidate or a leader for the observed lease."""

    CREATE = "create"
    RENEW = "renew"
    TAKE = "take"
    WAIT = "wait"


def decide(lease: Object | None, *, identity: str, unchanged_for: float, default_duration: float) -> Action:
    """Determine the action for a lease.

    Args:
        lease: as the API server holds it, None if there is none.
        identity: of this process.
        unchanged_for: seconds of the own clock since this state of the lease was first observed.
        default_duration: seconds after which a lease without a duration expires.
    """
    if lease is None:
        return Action.CREATE
    spec = lease.get("spec") or {}
    holder = spec.get("holderIdentity") or ""
    if holder == identity:
        return Action.RENEW
    if not holder or unchanged_for >= (spec.get("leaseDurationSeconds") or default_duration):
        return Action.TAKE
    return Action.WAIT


def is_release(event: Object) -> bool:
    """Whether an event of a watch shows that the lease has no holder any more."""
    return event["type"] == "DELETED" or (event["type"] in {"ADDED", "MODIFIED"} and not _holder(event["object"]))


def held_spec(old: Object | None, *, identity: str, lease_duration: float, now: datetime) -> Object:
    """Spec of a lease that `identity` takes or renews; `old` is its spec so far, None if it is new."""
    moment = format_micro_time(now)
    spec: dict[str, Any] = {
        **(old or {}),
        "holderIdentity": identity,
        # Rounded up: others must not consider the lease expired before the holder does.
        "leaseDurationSeconds": math.ceil(lease_duration),
        "renewTime": moment,
    }
    if old is None:
        spec |= {"acquireTime": moment, "leaseTransitions": 0}
    elif old.get("holderIdentity") != identity:
        spec |= {"acquireTime": moment, "leaseTransitions": (old.get("leaseTransitions") or 0) + 1}
    return spec


def released_spec(old: Object, *, now: datetime) -> Object:
    moment = format_micro_time(now)
    return {**old, "holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": moment, "renewTime": moment}


class Tenure:
    """Period in which this process may act as the leader.

    Args:
        renew_deadline: seconds that a renewal is valid.
        now: seconds of a clock that never goes back.
    """

    def __init__(self, *, renew_deadline: float, now: Callable[[], float] = boot_clock) -> None:
        self._renew_deadline = renew_deadline
        self._now = now
        self.deadline = -math.inf

    def renewed(self, started: float) -> None:
        """Extend the period after a successful renewal that started at this time."""
        self.deadline = started + self._renew_deadline

    def end(self) -> None:
        self.deadline = -math.inf

    @property
    def remaining(self) -> float:
        """Remaining seconds, not positive if this process does not lead."""
        return self.deadline - self._now()

    def is_leading(self) -> bool:
        return self.remaining > 0

    def guard(self) -> float:
        """Remaining seconds for a write; call it before each one. Raises LeadershipLost."""
        remaining = self.remaining
        if remaining <= 0:
            raise LeadershipLost
        return remaining


# --- the election


class LeaderElector:
    """Takes part in an election, and leads when it wins.

    Args:
        client: for the lease only: without a write guard, and without a rate limit behind which renewals would queue.
        recorder: records taking and giving up the lead as events of the lease.
        now: seconds of a clock that never goes back.
        jitter: a random number from 0 to 1.
    """

    def __init__(
        self,
        client: Client,
        settings: ElectionSettings,
        *,
        identity: str,
        recorder: EventRecorder | None = None,
        now: Callable[[], float] = boot_clock,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.identity = identity
        self.tenure = Tenure(renew_deadline=settings.renew_deadline, now=now)
        self.annotations: Mapping[str, str] = {}
        """Information about the holder: written into a lease that is created here, and kept current there. Only the
        spec is written of a lease that another program has created.
        """
        self._client = client
        self._settings = settings
        self._recorder = recorder
        self._now = now
        self._sleep = sleep
        self._jitter = jitter
        self._lease: Object | None = None
        self._is_own_writing = False
        self._lease_seen = -math.inf
        self._status = leader_election_master_status.labels(settings.name)
        self._status.set(0)

    async def run(self, lead: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Wait for leadership, then `lead` until that ends by itself, leadership is lost, or this is cancelled.

        While `lead` unwinds, the lease is still renewed; it is released once `lead` has ended. An exception of
        `lead` is passed on.

        Raises: LeadershipLost: leadership ended while leading. `lead` was cancelled, but hardly waited for.
        """
        await self._acquire()
        leading = asyncio.create_task(lead(), name="leading")
        renewing = asyncio.create_task(self._keep_renewing(), name="leader election")
        try:
            await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._stop(leading, renewing)
            for error in _errors(renewing, leading):
                log.error("Leading ended with an error", lease=str(self._settings), error=str(error))
            raise
        await self._stop(leading, renewing)
        for error in _errors(renewing, leading):
            raise error

    async def _stop(self, leading: asyncio.Task[object], renewing: asyncio.Task[None]) -> None:
        """End leading, then renewing, then the lease; the lease only if nothing acts in its name any more."""
        try:
            leading.cancel()
            await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
            if not leading.done():
                await asyncio.wait((leading,), timeout=_UNWIND_SECONDS)
        finally:
            may_release = leading.done() and self.tenure.is_leading()
            self.tenure.end()
            self._status.set(0)
            self._record_event("stopped leading")
            renewing.cancel()
            await asyncio.wait((renewing,))
            if may_release:
                await self._release()

    async def _acquire(self) -> None:
        log.info(f"attempting to acquire leader lease {self._settings}...")
        known_holder = ""
        given_up = asyncio.Event()
        watching: asyncio.Task[None] | None = None
        try:
            while not await self._succeeds():
                holder = _holder(self._lease)
                if holder and holder != known_holder:
                    log.info(f"new leader elected: {holder}", lease=str(self._settings))
                    known_holder = holder
                watching = watching or asyncio.create_task(self._watch(given_up), name="lease watch")
                pause = self._settings.retry_period * (1 + JITTER_FACTOR * self._jitter())
                await _first(self._sleep(pause), given_up.wait())
                given_up.clear()
        finally:
            if watching is not None:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
        log.info(f"successfully acquired lease {self._settings}", identity=self.identity)
        self._status.set(1)
        self._record_event("became leader")

    async def _watch(self, given_up: asyncio.Event) -> None:
        """Set the event whenever the lease is released, as long as it may be watched."""
        settings = self._settings
        selection = Selection(namespace=settings.namespace, field_selector=f"metadata.name={settings.name}")
        while True:
            try:
                # Start from the version last read, so that nothing is missed between the two.
                async with self._client.watch(
                    LEASES,
                    selection,
                    resource_version=str(resource_version(self._lease)) if self._lease else "",
                    timeout_seconds=_WATCH_SECONDS,
                    idle_timeout=_WATCH_IDLE_SECONDS,
                ) as events:
                    async for event in events:
                        if is_release(event):
                            given_up.set()
            except Forbidden as error:
                log.info("Watching the leader lease is forbidden; polling it", error=str(error))
                return
            except KubeError as error:
                log.debug("The watch of the leader lease ended", lease=str(settings), error=str(error))
            except Exception:
                log.exception("The watch of the leader lease failed unexpectedly", lease=str(settings))
            await asyncio.sleep(_WATCH_AGAIN_SECONDS)

    async def _keep_renewing(self) -> None:
        """Renew the lease; ends only by LeadershipLost."""
        while True:
            self.tenure.guard()
            await self._sleep(min(self._settings.retry_period, self.tenure.remaining))
            self.tenure.guard()
            if not await self._succeeds() and _holder(self._lease) not in {"", self.identity}:
                self.tenure.end()  # another process leads, so do not even use up the deadline

    async def _succeeds(self) -> bool:
        """Take or renew the lease if permitted. Failures are logged and count as no."""
        started = self._now()
        try:
            async with asyncio.timeout(self._time_for_request()):
                held = await self._take_or_renew()
        except Conflict:
            log.info("Another candidate acquired the leader lease first", lease=str(self._settings))
            return False
        except (KubeError, TimeoutError) as error:
            text = str(error) or "no response in time"
            advice = remedy(error, "get, create and update leases", namespace=self._settings.namespace)
            hint = {"remedy": advice} if advice else {}
            log.error("Cannot read or write the leader lease", lease=str(self._settings), error=text, **hint)
            return False
        except Exception:
            log.exception("The leader election failed unexpectedly", lease=str(self._settings))
            return False
        if held:
            self.tenure.renewed(started)
        return held

    def _time_for_request(self) -> float:
        timeout = self._settings.request_timeout
        return min(timeout, self.tenure.remaining) if self.tenure.is_leading() else timeout

    async def _take_or_renew(self) -> bool:
        if self._is_own_writing:
            # In steady state a renewal is one request: if the lease was changed meanwhile, the API server refuses this.
            try:
                await self._write_held()
            except ApiError as error:
                log.info("Another client changed the leader lease", lease=str(self._settings), error=str(error))
            else:
                return True
        await self._read()
        action = decide(
            self._lease,
            identity=self.identity,
            unchanged_for=self._now() - self._lease_seen,
            default_duration=self._settings.lease_duration,
        )
        if action is Action.WAIT:
            return False
        await self._write_held()
        return True

    # --- requests

    async def _read(self) -> None:
        settings = self._settings
        lease = await self._client.find(LEASES, Key(settings.namespace, settings.name))
        if self._lease is None or lease is None or lease.get("spec") != self._lease.get("spec"):
            self._lease_seen = self._now()
        self._lease = lease

    async def _write_held(self) -> None:
        settings = self._settings
        self._is_own_writing = False
        spec = held_spec(
            self._lease.get("spec") or {} if self._lease else None,
            identity=self.identity,
            lease_duration=settings.lease_duration,
            now=datetime.now(UTC),
        )
        if self._lease is None:
            meta = {"name": settings.name, "namespace": settings.namespace, "annotations": dict(self.annotations)}
            new = {**LEASES.type_meta, "metadata": meta, "spec": spec}
            self._lease = await self._client.create(LEASES, new)
        else:
            present = annotations(self._lease)
            current = {name: value for name, value in self.annotations.items() if name in present}
            meta = {**metadata(self._lease), **({"annotations": {**present, **current}} if current else {})}
            self._lease = await self._client.replace(LEASES, {**self._lease, "metadata": meta, "spec": spec})
        self._is_own_writing = True

    async def _release(self) -> None:
        """Let others take the lease at once. If that fails, they have to wait until it expires."""
        try:
            async with asyncio.timeout(self._settings.request_timeout):
                await self._read()
                if self._lease is None or _holder(self._lease) != self.identity:
                    return
                spec = released_spec(self._lease["spec"], now=datetime.now(UTC))
                await self._client.replace(LEASES, {**self._lease, "spec": spec})
        except (KubeError, TimeoutError) as error:
            text = str(error) or "no response in time"
            log.error("Cannot release the leader lease", lease=str(self._settings), error=text)

    def _record_event(self, what: str) -> None:
        if self._recorder is not None and self._lease is not None:
            self._recorder.event(self._lease, "Normal", "LeaderElection", f"{self.identity} {what}")


def _holder(lease: Object | None) -> str:
    return ((lease or {}).get("spec") or {}).get("holderIdentity") or ""


def _errors(*tasks: asyncio.Task[Any]) -> list[BaseException]:
    ended = (task.exception() for task in tasks if task.done() and not task.cancelled())
    return [error for error in ended if error is not None]


async def _first(*waits: Awaitable[object]) -> None:
    """Wait until one of them has ended; cancel the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
