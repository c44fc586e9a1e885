"""Garden objects mirrored as extension objects, by passes that never wait for a response: it starts the next pass.

    async with the pass of the garden object:
        extension = await client.find(BACKUP_BUCKET.resource, name)
        question = Question(kind=BACKUP_BUCKET, manifest=manifest(name, spec))
        if extension is None or question.is_open(extension):
            return await extensions.request(owner, question, extension)
        match standing_of(extension): ...

`answers` selects the changes of extension objects that are responses.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from agent.gardenlet.common.extension_objects.objects import ExtensionObjects
from agent.gardenlet.common.extension_objects.questions import Question
from gardener import keys
from gardener.extension_contract import FAILED, last_operation
from kube.clock import seconds_until
from kube.objects import Key, Object, annotations
from kube.runtime.cache import Change
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.waiting import Waiting
from process.clusters import Cluster

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 1000.0
_ENDED = ("Succeeded", "Error", FAILED)
_ASKS = (keys.OPERATION_MIGRATE, keys.OPERATION_RESTORE)


def manifest(name: Key, spec: Object) -> Object:
    """Extension object with this spec."""
    place = {"namespace": name.namespace} if name.namespace else {}
    return {"metadata": {"name": name.name, **place}, "spec": spec}


def has_ended(extension: Object) -> bool:
    return last_operation(extension).get("state") in _ENDED


def answers(change: Change[Object]) -> bool:
    """Whether an extension has responded; the response in an object not seen before may be new, so it counts."""
    old, new = change.old, change.new
    if new is None:
        return False
    if old is None:
        return has_ended(new)
    requested, asked_before = (annotations(each).get(keys.OPERATION) for each in (new, old))
    if requested == keys.OPERATION_RECONCILE or (requested in _ASKS and requested != asked_before):
        return False
    return has_ended(new) and last_operation(old) != last_operation(new)


class Pauses:
    """Growing pauses between requests to an extension that fails."""

    def __init__(self) -> None:
        self._until: dict[Key, tuple[datetime, float]] = {}

    def next(self, name: Key, *, now: datetime) -> float:
        """Seconds until the next request; 0 if it may be sent now, which starts the next pause."""
        until, pause = self._until.get(name, (now, _FIRST_PAUSE / 2))
        if until > now:
            return seconds_until(until, now, longest=pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
        self._until[name] = now + timedelta(seconds=pause), pause
        return 0.0

    def forget(self, name: Key) -> None:
        self._until.pop(name, None)


class MirroredObjects(ExtensionObjects):
    """Extension objects that mirror garden objects, with pauses between requests if an extension keeps failing."""

    def __init__(self, seed: Cluster, *, clock: Callable[[], datetime]) -> None:
        waiting = Waiting(client=seed.client, caches=seed.caches, discovery=seed.discovery)
        super().__init__(client=seed.client, waiting=waiting, clock=clock)
        self._pauses = Pauses()

    async def request(self, owner: Key, question: Question, live: Object | None) -> Result:
        """Send a request for a garden object; `live` is the extension object as just read, None if there is none."""
        has_failed = last_operation(live or {}).get("state") == FAILED
        if has_failed and (pause := self._pauses.next(owner, now=self._clock())):
            return RequeueAfter(pause)
        await self.send(question, live=live, is_absent=live is None)
        return Done()

    def forget(self, owner: Key) -> None:
        """Forget the pauses of a garden object that is reconciled or gone."""
        self._pauses.forget(owner)
