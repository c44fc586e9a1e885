"""Corrections of objects that a Shoot names: they start its failed operation again.

While the last operation is in Error or Failed, the Secrets and ConfigMaps in the spec and the credentials of the
binding are watched, each alone: a gardenlet may read no others in their namespaces, and open watches cost no calls.
Only their content counts: other programs write finalizers and labels.

An operation in Error begins again at once instead of after its back-off. One that is Failed waits for a change of its
input; the content of these objects is as much a part of that as the spec which names them. It is requested by the
annotation `retry`, like users do, so that it is visible and outlives this process.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import structlog

from agent.gardenlet.shoot.main.rules.timing import Timing
from agent.gardenlet.shoot.main.tasks.infrastructure import credentials_of
from gardener import keys
from gardener.api.garden import SHOOTS
from gardener.garden.shoots import has_failed, references, responsible_seed
from kube.errors import KubeError, NotFound
from kube.objects import Key, Object, annotations, key, spec, uid
from kube.packing import digest
from kube.resources import Resource
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Client, by_name
from kube.runtime.edits import edit
from kube.runtime.loop import Queue
from kube.runtime.priorities import CHANGE

_MOST = 100
"""Maximum number of Shoots whose objects are watched; further ones wait for their back-off, or a request."""
_MOST_OBJECTS = 20
"""Maximum number of watched objects of a Shoot, its credentials first."""
_AGAIN_SECONDS = 10.0
_BINDINGS = ("credentialsBindingName", "secretBindingName")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Watched:
    """Attributes: named: identifies the Shoot and the objects that its spec names."""

    named: Hashable
    task: asyncio.Task[None]


@dataclass(eq=False, kw_only=True, slots=True)
class Corrections:
    seed_name: str
    client: Client
    """Client of the garden, as `caches` and `shoots`."""
    caches: Caches
    shoots: Store[Object]
    timing: Timing
    _watched: dict[Key, _Watched] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def follow(self, queue: Queue, change: Change[Object]) -> None:
        """Begin or stop to watch the objects of a Shoot: a handler of its changes."""
        shoot, watched = change.new, self._watched.get(change.key)
        named = _named(shoot) if shoot is not None and self._is_open(shoot) else None
        if watched is not None and watched.named != named:
            watched.task.cancel()
            del self._watched[change.key]
        if shoot is None or named is None or change.key in self._watched or len(self._watched) >= _MOST:
            return
        task = asyncio.create_task(self._start_when_corrected(queue, shoot))
        self._watched[change.key] = _Watched(named, task)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _is_open(self, shoot: Object) -> bool:
        return responsible_seed(shoot) == self.seed_name and self.timing.awaits_correction(shoot)

    async def _start_when_corrected(self, queue: Queue, shoot: Object) -> None:
        try:
            await _repeated(partial(self._corrected, shoot), key(shoot))
            await _repeated(partial(self._start, queue, key(shoot)), key(shoot))
        finally:
            watched = self._watched.get(key(shoot))
            if watched is not None and watched.task is asyncio.current_task():
                del self._watched[key(shoot)]

    async def _corrected(self, shoot: Object) -> None:
        """Return when the content of an object has changed."""
        corrected = asyncio.Event()
        inputs = [(resource, Key(key(shoot).namespace, name)) for resource, name in references(shoot)]
        with suppress(NotFound):
            inputs[:0] = [found] if (found := await credentials_of(self.client, shoot)) else []
        async with AsyncExitStack() as stack:
            for resource, name in inputs[:_MOST_OBJECTS]:
                await stack.enter_async_context(self._watching(resource, name, corrected))
            await corrected.wait()

    @asynccontextmanager
    async def _watching(self, resource: Resource, name: Key, corrected: asyncio.Event) -> AsyncIterator[None]:
        def note(change: Change[str]) -> None:
            is_first = change.old is None and change.initial
            if change.new is not None and change.new != change.old and not is_first:
                corrected.set()

        view = View(resource, content, field_selector=by_name(name.name), namespace=name.namespace, streams=True)
        unsubscribe = self.caches.acquire(view).subscribe(note)
        try:
            yield
        finally:
            unsubscribe()
            await asyncio.shield(self.caches.release(view))

    async def _start(self, queue: Queue, name: Key) -> None:
        shoot = self.shoots.get(name)
        if shoot is None:
            return
        if has_failed(shoot):
            await edit(self.client, SHOOTS, shoot, _retried)
        else:
            queue.forget(name)
            queue.add(name, CHANGE)


async def _repeated(act: Callable[[], Awaitable[None]], shoot: Key) -> None:
    """Repeat an action that the API server refuses."""
    while True:
        try:
            return await act()
        except KubeError as error:
            log.info("Cannot react to corrections of a Shoot; trying again", object=shoot, error=str(error))
            await asyncio.sleep(_AGAIN_SECONDS)


def _named(shoot: Object) -> Hashable | None:
    """Identity of the Shoot and the objects that it names; None if it names none."""
    bindings = tuple(name for name in map(spec(shoot).get, _BINDINGS) if name)
    found = (*references(shoot), *bindings)
    return (uid(shoot), *found) if found else None


def content(obj: Object) -> str:
    """Digest of the content, so that no secret is kept."""
    return digest({name: value for name, value in obj.items() if name not in {"metadata", "status"}}).hex()


def _retried(shoot: Object) -> Object | None:
    """The request; none if the Shoot has another one. The one before its failure had no effect."""
    if not has_failed(shoot) or annotations(shoot).get(keys.OPERATION, keys.OPERATION_RETRY) != keys.OPERATION_RETRY:
        return None
    return {"metadata": {"annotations": {keys.OPERATION: keys.OPERATION_RETRY}}}
