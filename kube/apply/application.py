"""Write one object to its desired state.

An object costs nothing if neither it nor the desired state has changed since the last pass, one call if it is new or
has to be changed, and a read before that only if it is unknown. An object that another writer has changed in between is
read and compared again. Subclasses define how an object is merged, compared and refused.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Never, ParamSpec, TypeVar

from kube.apply.live_objects import LiveObjects
from kube.differences import content_hash
from kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from kube.json_patches import replacing
from kube.objects import Key, Object, resource_version
from kube.packing import LARGE
from kube.resources import Resource
from kube.runtime.client import JSON_PATCH, Client
from kube.runtime.threads import OBJECTS

_OFF_THE_LOOP = 256 << 10
"""Bytes of a manifest above which computations may block the event loop noticeably, so they run in a thread."""
_COPIES = 6
"""Memory for writing a large object, as a multiple of its size: parsed, merged, JSON, encrypted, response."""
_ATTEMPTS = 4
_WORKERS = 10

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """Desired state of one object."""

    resource: Resource
    key: Key
    name: str
    """See `live_objects.id_of`."""
    size: int
    """Bytes of its manifest."""
    fingerprint: bytes
    """Hash of all inputs of the object: its manifest, and the rules for it."""


@dataclass(frozen=True, slots=True)
class Written:
    """Result of a write."""

    before: Object | None
    """None if it was created."""
    after: Object
    differs: bool = True
    """False: it was as desired, and was written only because of `always`."""


async def computed(size: int, compute: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Compute a pure function of a manifest with this many bytes, in a thread if it is large."""
    if size < _OFF_THE_LOOP:
        return compute(*args, **kwargs)
    return await OBJECTS.compute(compute, *args, **kwargs)


class Application(ABC):
    """See the module.

    Args:
        client: client for the writes.
        applied: fingerprints applied by this process, by name.
        always: write even if the object is as desired.
    """

    shares: ClassVar[bool] = False
    """Whether only the changed fields are a precondition after a conflict, see `json_patches`; it takes another right
    than a PUT.
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
        """Prepare for the other rules; called before any read."""
        await self.turn()

    @abstractmethod
    async def check(self, live: Object) -> None:
        """Check whether the live object may be written; raise an error that states the reason if not."""

    @abstractmethod
    def merged(self, live: Object | None) -> Object:
        """The body of the POST (`live` is None) or of the PUT, with the live object's resourceVersion; pure."""

    @abstractmethod
    def differs(self, merged: Object, live: Object) -> bool:
        """Whether the live object has to be written; pure."""

    async def send(self, write: Callable[..., Awaitable[Object]], body: Object) -> Object:
        """Send a write and return the response."""
        return await write(self._resource, body)

    async def refused(self, live: Object, merged: Object, error: Invalid) -> Never:  # noqa: ARG002 - for other rules
        """Handle an update that the API server rejects as invalid."""
        raise error

    # --- the work

    def is_up_to_date(self) -> bool:
        """Whether there is nothing to do, according to memory."""
        is_same = self._applied.get(self._desired.name) == self._desired.fingerprint
        return is_same and not self._always and self._live.is_accepted(self._resource, self._key)

    async def write(self) -> Written:
        """Write the desired state. Raises KubeError, and errors of the rules."""
        if self._desired.size < _OFF_THE_LOOP:
            return await self._attempts()
        async with self._live.memory.hold(_COPIES * self._desired.size):
            return await self._attempts()

    def is_absent(self) -> bool:
        """Whether it is absent as far as known: then it is created without a read."""
        is_unknown = self._live.observed(self._resource, self._key) is None
        return is_unknown and self._live.sees(self._resource, self._key)

    async def read(self, *, again: bool = False) -> Object | None:
        """Read the live object. Args: again: the cached state is stale."""
        read = self._live.read_live if again else self._live.read
        return await read(self._resource, self._key)

    async def accept(self, live: Object) -> None:
        """Record that the live object is as desired."""
        content = self._live.content_of(self._resource, live)
        if content is None:
            await self.turn()
            content = await self.computed(content_hash, live)
        self._live.accept(self._resource, live, content)
        self._applied[self._desired.name] = self._desired.fingerprint

    async def turn(self) -> None:
        """Yield to others before a computation that may take milliseconds."""
        if self._desired.size >= LARGE:
            await self._live.turn()

    async def computed(self, compute: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Compute a pure function of the manifest, in a thread if it is large."""
        return await computed(self._desired.size, compute, *args, **kwargs)

    async def _attempts(self) -> Written:
        await self.prepare()
        live = None if self.is_absent() else await self.read()
        is_shared = False
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._attempt(live, is_shared=is_shared)
            except AlreadyExists:
                pass
            except (Conflict, NotFound):
                if live is None:
                    raise
                is_shared = self.shares
            live = await self.read(again=True)
        return await self._attempt(live, is_shared=is_shared)

    async def _attempt(self, live: Object | None, *, is_shared: bool) -> Written:
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
                after = await (self._share(live, merged) if is_shared else self.send(self._client.replace, merged))
            except Invalid as error:
                await self.refused(live, merged, error)
            await self.accept(after)
        return Written(live, after, differs=differs)

    async def _share(self, live: Object, merged: Object) -> Object:
        """Write only fields that differ. Raises Conflict: these have changed; KubeError: the write failed."""
        try:
            return await self._client.patch(self._resource, self._key, replacing(live, merged), content_type=JSON_PATCH)
        except Invalid as error:
            present = await self._live.read_live(self._resource, self._key)
            if present is None or resource_version(present) == resource_version(live):
                raise
            raise Conflict(409, message=str(error)) from error


async def for_each(step: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R]:
    """Results in order, computed by a few tasks only: starting thousands would block the event loop."""
    if len(items) == 1:
        return [await step(items[0])]
    results: dict[int, R] = {}
    waiting: Iterable[tuple[int, T]] = iter(enumerate(items))

    async def work() -> None:
        for position, each in waiting:
            results[position] = await step(each)

    await asyncio.gather(*(work() for _ in items[:_WORKERS]))
    return [results[position] for position in range(len(items))]
