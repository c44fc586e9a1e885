"""Waiting in dry runs: objects are accepted in any state."""

from typing import Any

from kube.objects import Key, Object
from kube.resources import Resource
from kube.runtime.controller import ReconcileError
from kube.runtime.waiting import Unready, Waiting


class NotThereError(ReconcileError):
    """An object that a task waits for does not exist yet."""


class NoWaiting(Waiting):
    async def until_ready(
        self,
        resource: Resource,
        wanted: Key,
        unready: Unready,  # noqa: ARG002 - any state is accepted
        *,
        or_gone: bool = False,
        **_: Any,
    ) -> Object:
        """Return the object in any state.

        Raises:
            NotThereError: it does not exist yet.
            KubeError: it can't be read.
        """
        live = await self.find(resource, wanted)
        if live is None and not or_gone:
            raise NotThereError(f"{resource.kind} {wanted} does not exist yet")
        return live or {}

    async def until_gone(self, *_: Any, **__: Any) -> None:
        return

    async def until_none(self, *_: Any, **__: Any) -> None:
        return
