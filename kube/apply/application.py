"""One object that is to be as it is desired.

An object costs nothing if it is as it was after the last pass and the same is desired, one call if it is new or has to
be changed, and a read before that only if nothing is known of it. What another writer has changed in between is read
and compared anew. By which rules an object is merged, compared and refused, a subclass says.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Never, ParamSpec, TypeVar

from kube.apply.live_objects import LiveObjects
from kube.differences import content_hash
from kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from kube.objects import Key, Object
from kube.packing import LARGE
from kube.resources import Resource
from kube.runtime.client import Client
from kube.runtime.threads import OBJECTS

_OFF_THE_LOOP = 256 << 10
"""Bytes of a manifest from which on what is computed from it may take long enough that others would feel it."""
_COPIES = 6
"""How many times its size a large object takes while it is written: parsed, merged, as JSON, encrypted, the answer."""
_ATTEMPTS = 4
_WORKERS = 10

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """What is desired of one object."""

    resource: Resource
    key: Key
    name: str
    """See `live_objects.id_of`."""
    size: int
    """Bytes of its manifest."""
    fingerprint: bytes
    """Of all that the object depends on: its manifest, and the rules for it."""


@dataclass(frozen=True, slots=True)
class Written:
    """What came of it."""

    before: Object | None
    """None: it was created."""
    after: Object
    differs: bool = True
    """False: it was as desired, and was written only if that is always done."""


async def computed(size: int, compute: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The value of a pure function of a manifest of so many bytes, in a thread if it is large."""
    if size < _OFF_THE_LOOP:
        return compute(*args, **kwargs)
    return await OBJECTS.compute(compute, *args, **kwargs)


class Application(ABC):
    """See the module.

    Args:
        client: by which is written.
        applied: fingerprints of what this process has applied, by name.
        always: whether it is written even if it is as desired.
    """

    def __init__(
        self,
        desired: Desired,
        *,
        live: LiveObjects,
        client: Client,
        applied: MutableMapping[str, bytes],
        always: bool = False,
    ) -> None:
        self._desired = desired
        self._resource = desired.resource
        self._key = desired.key
        self._live = live
        self._client = client
        self._applied = applied
        self._always = always

    # --- the rules

    async def prepare(self) -> None:
        """Called before anything is read: what the other rules need is made ready."""
        await self.turn()

    @abstractmethod
    async def check(self, live: Object) -> None:
        """Raises what says why the live object may not be written."""

    @abstractmethod
    def merged(self, live: Object | None) -> Object:
        """The body of the POST (`live` is None) or of the PUT, with the live object's resourceVersion; pure."""

    @abstractmethod
    def differs(self, merged: Object, live: Object) -> bool:
        """Whether the live object has to be written; pure."""

    async def send(self, write: Callable[..., Awaitable[Object]], body: Object) -> Object:
        """The answer to a write."""
        return await write(self._resource, body)

    async def refused(self, live: Object, merged: Object, error: Invalid) -> Never:  # noqa: ARG002 - for other rules
        """The API server does not take the update."""
        raise error

    # --- the work

    def is_up_to_date(self) -> bool:
        """Whether memory shows that there is nothing to do."""
        is_same = self._applied.get(self._desired.name) == self._desired.fingerprint
        return is_same and self._live.is_accepted(self._resource, self._key)

    async def write(self) -> Written:
        """Make it as it is desired. Raises KubeError, and what the rules raise."""
        if self._desired.size < _OFF_THE_LOOP:
            return await self._attempts()
        async with self._live.memory.hold(_COPIES * self._desired.size):
            return await self._attempts()

    def is_absent(self) -> bool:
        """Whether it is not there as far as is known: then it is created without asking first."""
        is_unknown = self._live.observed(self._resource, self._key) is None
        return is_unknown and self._live.sees(self._resource, self._key)

    async def read(self, *, again: bool = False) -> Object | None:
        """The live object. Args: again: what is known of it is out of date."""
        read = self._live.read_live if again else self._live.read
        return await read(self._resource, self._key)

    async def accept(self, live: Object) -> None:
        """The live object is as desired."""
        content = self._live.content_of(self._resource, live)
        if content is None:
            await self.turn()
            content = await self.computed(content_hash, live)
        self._live.accept(self._resource, live, content)
        self._applied[self._desired.name] = self._desired.fingerprint

    async def turn(self) -> None:
        """Before something is computed that may take milliseconds."""
        if self._desired.size >= LARGE:
            await self._live.turn()

    async def computed(self, compute: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The value of a pure function of the manifest, in a thread if it is large."""
        return await computed(self._desired.size, compute, *args, **kwargs)

    async def _attempts(self) -> Written:
        await self.prepare()
        live = None if self.is_absent() else await self.read()
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._attempt(live)
            except AlreadyExists:
                pass
            except (Conflict, NotFound):
                if live is None:
                    raise
            live = await self.read(again=True)
        return await self._attempt(live)

    async def _attempt(self, live: Object | None) -> Written:
        if live is not None:
            await self.check(live)
        merged = await self.computed(self.merged, live)
        if live is None:
            with self._live.writing(self._resource, self._key):
                after = await self.send(self._client.create, merged)
                await self.accept(after)
            return Written(None, after)
        differs = await self.computed(self.differs, merged, live)
        if not differs and not self._always:
            await self.accept(live)
            return Written(live, live, differs=False)
        with self._live.writing(self._resource, self._key):
            try:
                after = await self.send(self._client.replace, merged)
            except Invalid as error:
                await self.refused(live, merged, error)
            await self.accept(after)
        return Written(live, after, differs=differs)


async def for_each(step: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R]:
    """The results, in order; by a few tasks only, since to start thousands would hold the event loop."""
    if len(items) == 1:
        return [await step(items[0])]
    results: dict[int, R] = {}
    waiting: Iterable[tuple[int, T]] = iter(enumerate(items))

    async def work() -> None:
        for position, each in waiting:
            results[position] = await step(each)

    await asyncio.gather(*(work() for _ in items[:_WORKERS]))
    return [results[position] for position in range(len(items))]
