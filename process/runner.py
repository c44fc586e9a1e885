"""Life of a process: start components in order, watch over them, stop them in reverse, choose the exit code.

Components come in groups. The members of a group start together; the next group waits until all of them are ready,
which for an elector means: until it leads. From then on a failure of any component ends the process.

    SIGTERM, SIGINT        everything is stopped, last group first, within one grace period in total: exit 0
    stopped too late       exit 1, with a message; the remaining components are then stopped within one last
                           second, so that a lease is released all the same
    a component fails      the others are stopped in the same way: exit 1, with its text
    an error of `abort_on` such as lost leadership: exit 1 at once, since work must not continue one moment longer
    a second signal        exit 1 at once

`Runner` holds the rules and knows neither signals nor standard output; `run_process` adds both.
"""

import asyncio
import gc
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Never, Protocol

from kube.clock import format_duration
from kube.runtime.kubeconfig import ConfigurationError
from kube.visible_text import printable
from process.lifetime import exit_now
from process.logging import get_logger
from process.open_files import raise_limit
from process.redaction import error_text

_LAST_CHANCE = 1.0


class StartError(Exception):
    """An external cause keeps the program from starting; the text names it."""


def _is_of_user(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_of_user, error.exceptions))
    return isinstance(error, (ConfigurationError, StartError))


class Component(Protocol):
    """A part of the process that is started, runs, and is stopped."""

    @property
    def name(self) -> str: ...

    async def start(self) -> None:
        """Return when ready. Is cancelled when the process ends earlier; raises if it cannot become ready."""

    async def wait(self) -> None:
        """Run along with the started component; raises when it fails. May return if nothing is left to fail."""

    async def stop(self) -> None:
        """Stop cleanly. Also called if `start` failed or was cancelled half way."""


Groups = Sequence[Sequence[Component]]
Compose = Callable[[], Awaitable[Groups]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """End of the process: the exit code and a message, empty for none."""

    code: int
    message: str = ""


class Runner:
    """Runs the components of `compose` until a stop is requested or a component fails.

    Args:
        compose: builds the groups of components, in the order of their start. It runs inside the event loop as the
            first step of the start, so that its errors and signals during it are treated like all others.
        grace_period: seconds for stopping everything.
        abort_on: types of errors that end the process without stopping anything first.
        sleep: waits for so many seconds; tests replace it.
    """

    def __init__(
        self,
        compose: Compose,
        *,
        grace_period: float = 5.0,
        abort_on: tuple[type[BaseException], ...] = (),
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        self._compose = compose
        self._grace_period = grace_period
        self._abort_on = abort_on
        self._sleep = sleep
        self._log = get_logger("runner")
        self._groups: list[list[Component]] = []
        """Groups that were started and whose stop has not begun."""
        self._watchers: dict[asyncio.Task[None], Component] = {}
        self._stop_requested = asyncio.Event()
        self._failure: asyncio.Future[BaseException] | None = None
        self._abort: asyncio.Future[BaseException] | None = None

    def request_stop(self) -> None:
        """Request a graceful end. May be called at any time, more than once."""
        self._stop_requested.set()

    async def run(self) -> Outcome:
        """Run until the process should end; components that still run then may be abandoned."""
        loop = asyncio.get_running_loop()
        self._failure, self._abort = loop.create_future(), loop.create_future()
        starting = asyncio.create_task(self._start(), name="start")
        stop_requested = asyncio.create_task(self._stop_requested.wait(), name="stop request")
        helpers: set[asyncio.Future[Any]] = {starting, stop_requested}
        try:
            await _first_of(stop_requested, self._failure, self._abort)
            if self._abort.done():
                return Outcome(1, error_text(self._abort.result()))
            cause = self._failure.result() if self._failure.done() else None
            stopping = asyncio.create_task(self._stop(starting), name="stop")
            grace = asyncio.create_task(self._sleep(self._grace_period), name="grace period")
            helpers |= {stopping, grace}
            await _first_of(stopping, grace, self._abort)
            if self._abort.done():
                return Outcome(1, error_text(self._abort.result()))
            if not stopping.done():
                stopping.cancel()
                return await self._give_up(cause)
            stopping.result()
            return Outcome(0) if cause is None else Outcome(1, error_text(cause))
        finally:
            for task in (*helpers, *self._watchers):
                task.cancel()
            await asyncio.sleep(0)

    # --- starting and running

    async def _start(self) -> None:
        try:
            for group in await self._compose():
                self._groups.append(list(group))
                async with asyncio.TaskGroup() as members:
                    for component in group:
                        members.create_task(self._start_component(component), name=f"start {component.name}")
        except Exception as error:  # noqa: BLE001 - any error becomes the end of the process
            self._fail(error, "start")

    async def _start_component(self, component: Component) -> None:
        await component.start()
        self._log.debug("Started", component=component.name)
        watcher = asyncio.create_task(component.wait(), name=f"run {component.name}")
        self._watchers[watcher] = component
        watcher.add_done_callback(self._watcher_ended)

    def _watcher_ended(self, watcher: asyncio.Task[None]) -> None:
        component = self._watchers.pop(watcher, None)
        if watcher.cancelled():
            if component is not None and not self._is_stopping:
                self._fail(RuntimeError(f"{component.name} ended unexpectedly"), component.name)
        elif (error := watcher.exception()) is not None:
            self._fail(error, component.name if component else watcher.get_name())

    @property
    def _is_stopping(self) -> bool:
        ends = (self._failure, self._abort)
        return self._stop_requested.is_set() or any(end is None or end.done() for end in ends)

    def _fail(self, error: BaseException, component: str) -> None:
        """End the process for the first failure; further ones are logged, unless they have to end it at once."""
        assert self._failure is not None
        assert self._abort is not None
        must_abort = self._is_abort(error)
        what = "Failed while stopping" if self._is_stopping else "Failed"
        # An error that a user can correct is one line; a stack trace does not help.
        self._log.error(what, component=component, error=error_text(error) if _is_of_user(error) else error)
        if must_abort and not self._abort.done():
            self._abort.set_result(error)
        elif not self._failure.done():
            self._failure.set_result(error)

    def _is_abort(self, error: BaseException) -> bool:
        if isinstance(error, BaseExceptionGroup):
            return any(self._is_abort(member) for member in error.exceptions)
        return isinstance(error, self._abort_on)

    # --- stopping

    async def _stop(self, starting: asyncio.Task[None]) -> None:
        starting.cancel()
        await asyncio.wait({starting})
        while self._groups:
            await self._stop_components(self._groups.pop())

    async def _stop_components(self, components: Iterable[Component]) -> None:
        await asyncio.gather(*(self._stop_component(component) for component in components))

    async def _stop_component(self, component: Component) -> None:
        try:
            await component.stop()
            self._log.debug("Stopped", component=component.name)
        except Exception as error:  # noqa: BLE001 - one that cannot stop must not prevent the others from stopping
            self._log.error("Failed while stopping", component=component.name, error=error)
        for watcher, watched in list(self._watchers.items()):
            if watched is component:
                watcher.cancel()

    async def _give_up(self, cause: BaseException | None) -> Outcome:
        """End though not everything has stopped; stop all remaining components at once."""
        for watcher in list(self._watchers):
            watcher.cancel()
        remaining = [component for group in self._groups for component in group]
        self._groups.clear()
        last_chance = asyncio.create_task(self._stop_components(remaining), name="stop the rest")
        timer = asyncio.create_task(self._sleep(_LAST_CHANCE), name="last chance")
        await _first_of(last_chance, timer)
        last_chance.cancel()
        timer.cancel()
        period = format_duration(self._grace_period)
        late = TimeoutError(
            f"failed waiting for all runnables to end within grace period of {period}: context deadline exceeded"
        )
        return Outcome(1, error_text(late if cause is None else BaseExceptionGroup("", [cause, late])))


async def _first_of(*futures: asyncio.Future[Any]) -> None:
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


async def cancelled(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks and wait for their end; their errors belong to the code that awaits them."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


_SWITCH_SECONDS = 0.0005


def switch_threads_often() -> None:
    """Switch threads often: one that decodes megabytes of YAML must not make the event loop wait 5 ms each time."""
    sys.setswitchinterval(_SWITCH_SECONDS)


def collect_seldom() -> None:
    """Collect garbage seldom: little has cycles. Every 700 objects, it took 7 % of the CPU of applying a thousand."""
    gc.set_threshold(10_000, 10, 10)


def run_process(
    compose: Compose, *, grace_period: float = 5.0, abort_on: tuple[type[BaseException], ...] = ()
) -> Never:
    """Run the components as this process, with its signals, and end the process."""
    import uvloop

    switch_threads_often()
    collect_seldom()
    raise_limit()
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    outcome = loop.run_until_complete(_run_with_signals(compose, grace_period, abort_on))
    if outcome.message:
        sys.stdout.write(f"{printable(outcome.message)}\n")
    exit_now(outcome.code)


async def _run_with_signals(
    compose: Compose, grace_period: float, abort_on: tuple[type[BaseException], ...]
) -> Outcome:
    runner = Runner(compose, grace_period=grace_period, abort_on=abort_on)
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        runner.request_stop()
        # From now on without the event loop, so that the second signal works even if the loop is stuck.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: exit_now(1))

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    return await runner.run()
