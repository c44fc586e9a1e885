"""Garden objects mirrored as extension objects, by passes that never wait for a response: it starts the next pass.

    async with the pass of the garden object:
        extension = await client.find(BACKUP_BUCKET.resource, name)
        question = Question(kind=BACKUP_BUCKET, manifest=manifest(name, spec))
        if extension is None or question.is_open(extension):
            return await extensions.request(owner, question, extension)
        match standing_of(extension): ...

`answers` selects the changes of extension objects that are responses. Extensions write the annotation, the status and
finalizers in any order, in one request or several; so each change that completes a response counts. A pass that waits
for one returns `awaited`, so that the object is read again when the time is over.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from agent.gardenlet.common.extension_objects.kinds import Kind
from agent.gardenlet.common.extension_objects.objects import ExtensionObjects
from agent.gardenlet.common.extension_objects.questions import Question
from gardener import keys
from gardener.extension_contract import FAILED, last_operation, responds
from kube.clock import seconds_until
from kube.objects import Key, Object, annotations, mapping
from kube.runtime.cache import Change
from kube.runtime.controller import RequeueAfter, Result
from kube.runtime.waiting import Waiting
from process.clusters import Cluster

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 1000.0
_ENDED = ("Succeeded", "Error", FAILED)
_NOT_PICKED_UP = (keys.OPERATION_RECONCILE, keys.OPERATION_WAIT_FOR_STATE)
"""Requests that extensions remove before they work on them; a status with one of them belongs to an earlier request."""


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
    if not has_ended(new):
        return False
    requested, requested_before = (annotations(each).get(keys.OPERATION) for each in (new, old))
    if requested in _NOT_PICKED_UP:
        return False
    if requested is not None and requested != requested_before:
        return responds(new, requested)
    has_picked_up = requested != requested_before
    return _reported(old) != _reported(new) or (has_picked_up and responds(new, requested_before or ""))


def _reported(extension: Object) -> Object:
    """Status without the conditions, which other controllers write."""
    return {name: value for name, value in mapping(extension.get("status")).items() if name != "conditions"}


def awaited(kind: Kind) -> Result:
    """Result of a pass that waits for a response: its event starts the next pass, or the time limit of the kind."""
    return RequeueAfter(kind.longest)


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
        return awaited(question.kind)

    def forget(self, owner: Key) -> None:
        """Forget the pauses of a garden object that is reconciled or gone."""
        self._pauses.forget(owner)
