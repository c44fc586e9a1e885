"""Long steps in a thread next to the event loop, which serves others meanwhile and can end them.

Steps of large reviews run like this, one at a time, for all webhooks: a handler awaits `offloaded` for each step whose
duration grows with the size of an object. For all other reviews this is a plain call.

A thread blocks the event loop for no longer than the interpreter takes to switch, except for single calls that keep its
lock, which are limited by the bounds of a body.
"""

import asyncio
import contextlib
import ctypes
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Generic, Never, TypeVar

T = TypeVar("T")

LONGEST_SECONDS = 4.0
"""Processor time after which a step is ended: an API server waits for ten seconds, and sends each write twice."""

_LOOK_EVERY_SECONDS = 0.05
_SWITCH_SECONDS = 0.001


class TookTooLong(Exception):
    def __init__(self) -> None:
        super().__init__(f"reviewing the object took more than {LONGEST_SECONDS:g} s; make it smaller")


class Offload:
    """Steps of one large review; all of them share `one_at_a_time`."""

    def __init__(self, one_at_a_time: asyncio.Lock) -> None:
        self._one_at_a_time = one_at_a_time
        self.spent = 0.0
        """Seconds of processor time of all steps."""
        self.idle = asyncio.Event()
        """Set while no step is running or waiting."""
        self.idle.set()

    async def run(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, or raise its error.

        Raises:
            TookTooLong: it was ended.
        """
        self.idle.clear()
        try:
            async with self._one_at_a_time:
                step = _Step(work)
                try:
                    return await step.result()
                finally:
                    self.spent += step.spent
        finally:
            self.idle.set()


current: ContextVar[Offload | None] = ContextVar("offload", default=None)
"""Steps of the review of a task; None if it is small."""


async def offloaded(work: Callable[[], T]) -> T:
    """Return the result of a function, or raise its error; it must not touch the event loop.

    Raises:
        TookTooLong: it was ended.
    """
    offload = current.get()
    return work() if offload is None else await offload.run(work)


class _Ended(BaseException):
    """Ends a thread whose time is over; no rule catches it."""


class _Step(Generic[T]):
    """A function in a thread of its own, so that stopping it affects nothing else."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._work = work
        self._outcome: Callable[[], T] = _took_too_long
        self._clock: int | None = None
        """Clock of the thread's processor time."""
        self._thread = threading.Thread(target=copy_context().run, args=(self._run,), name="review", daemon=True)
        self.spent = 0.0

    async def result(self) -> T:
        before = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        self._thread.start()
        try:
            while self._is_at_work():
                await asyncio.wait({self._over}, timeout=_LOOK_EVERY_SECONDS)
                if self._is_at_work() and self._time() > LONGEST_SECONDS:
                    self._end()
        finally:
            while self._is_at_work():
                self._end()
                await asyncio.sleep(_LOOK_EVERY_SECONDS)
            sys.setswitchinterval(before)
        return self._taken()

    def _taken(self) -> T:
        """Return the outcome without keeping it: an error and its frames would keep the body of the review."""
        outcome, self._outcome = self._outcome, _took_too_long
        try:
            return outcome()
        finally:
            del outcome

    def _is_at_work(self) -> bool:
        return not self._over.done() and self._thread.is_alive()

    def _run(self) -> None:
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        try:
            result = self._work()
            self._outcome = lambda: result
        except _Ended:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised by the function that awaits the result
            self._outcome = partial(_raised, error)
        self.spent = time.thread_time()
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._is_over)

    def _is_over(self) -> None:
        if not self._over.done():
            self._over.set_result(None)

    def _time(self) -> float:
        try:
            return 0.0 if self._clock is None else time.clock_gettime(self._clock)
        except OSError:
            return 0.0  # the thread has ended

    def _end(self) -> None:
        """Raise in the thread. Repeated until it ends, since exceptions in a callback of the interpreter are lost."""
        assert self._thread.ident is not None
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), ctypes.py_object(_Ended))


def _took_too_long() -> Never:
    raise TookTooLong


def _raised(error: BaseException) -> Never:
    try:
        raise error
    finally:
        del error
