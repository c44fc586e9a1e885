"""Waiting for objects in tasks; their flow records the object, the start, and the reason."""

from collections.abc import Callable
from typing import Any

from agent.gardenlet.flow.run import awaiting
from kube.objects import Key, Object
from kube.resources import Resource
from kube.runtime.waiting import Report, Unready, Waiting


class NotedWaiting(Waiting):
    async def until_ready(
        self,
        resource: Resource,
        wanted: Key,
        unready: Unready,
        *,
        report: Report = lambda _: None,
        **options: Any,
    ) -> Object:
        with awaiting(resource.kind, wanted) as note:
            return await super().until_ready(resource, wanted, unready, report=_both(report, note), **options)

    async def until_gone(
        self, resource: Resource, wanted: Key, *, report: Report = lambda _: None, **options: Any
    ) -> None:
        with awaiting(resource.kind, wanted) as note:
            await super().until_gone(resource, wanted, report=_both(report, note), **options)


def _both(report: Report, note: Callable[[str], None]) -> Report:
    def reported(reason: str) -> None:
        report(reason)
        note(reason)  # most detailed, so recorded last

    return reported
