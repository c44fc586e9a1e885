"""The warnings about Services that are not healthy, read no more often than they would be reported.

There is no watch of them, and a list is a call. So they are read when another finding about the Service is
made, and as long as it stays the same once in five minutes: a condition in which only they differ is not written more
often anyway.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from agent.resource_manager.common.service_events import warnings_about
from agent.resource_manager.health.conditions import EVENTS_KEPT_FOR
from gardener.health.findings import Finding
from kube.objects import Key
from kube.runtime.client import Client

_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class _Read:
    finding: Finding
    text: str
    at: float


class Warnings:
    """Args: now: monotonic seconds."""

    def __init__(self, client: Client, *, now: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._now = now
        self._read: OrderedDict[Key, _Read] = OrderedDict()

    def known(self, finding: Finding) -> str | None:
        """The text about the Service of a finding, if it need not be read."""
        read = self._read.get(_service(finding))
        if read is None or read.finding != finding or self._now() - read.at >= EVENTS_KEPT_FOR.total_seconds():
            return None
        return read.text

    async def about(self, finding: Finding) -> str:
        known = self.known(finding)
        if known is not None:
            return known
        service = _service(finding)
        read = _Read(finding, await warnings_about(self._client, service), self._now())
        self._read[service] = read
        self._read.move_to_end(service)
        if len(self._read) > _REMEMBERED:
            self._read.popitem(last=False)
        return read.text


def _service(finding: Finding) -> Key:
    return Key(finding.reference.namespace, finding.reference.name)
