"""Usage of the Secrets of a namespace by Pods: one list of its Pods serves all Secrets, and lists alternate with rests.

Pods cannot be selected by their mounts, so all of a namespace are read. Any client that can create large Pods
determines the cost; therefore a namespace rests after each list for a multiple of its duration, and namespaces with
long lists share one rest. Namespaces with small lists do not wait for others.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from agent.resource_manager.token_invalidator.rules import used_secrets
from kube.errors import KubeError
from kube.objects import Key
from kube.resources import PODS
from kube.runtime.client import Client, Selection
from kube.runtime.controller import ReconcileError

IN_USE_SECONDS = 30.0
"""Seconds between two checks whether Pods have stopped using a Secret."""
_FRESH_SECONDS = 1.0
"""Maximum age, in seconds, of a list that shows that a Secret is unused."""
REST = 50
"""Rest after a list, as a multiple of its duration."""
_LONG_SECONDS = 0.1
_PAGE = 50
"""Small, as Pods are up to a megabyte."""


@dataclass(frozen=True, slots=True)
class InUse:
    """Attributes: seconds: delay before the next check."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Unknown:
    """Attributes: seconds: delay until Pods may be read again."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Unused:
    pass


@dataclass(frozen=True, slots=True)
class _Listed:
    began: float
    took: float
    used: frozenset[str]

    @property
    def ended(self) -> float:
        return self.began + self.took


class Usage:
    """Args: now: monotonic seconds."""

    def __init__(self, client: Client, *, now: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._now = now
        self._listed: dict[str, _Listed] = {}
        """Latest lists by namespace, until their rest has been over for a while."""
        self._long_rest_until = float("-inf")
        self._turn = asyncio.Lock()

    async def of(self, secret: Key) -> InUse | Unknown | Unused:
        """Return the usage of a Secret.

        Raises:
            ReconcileError: the Pods cannot be listed.
        """
        requested = self._now()
        if (known := self._known(secret, requested)) is not None:
            return known
        async with self._turn:
            if (known := self._known(secret, requested)) is not None:
                return known
            self._forget_old()
            listed = self._listed[secret.namespace] = await self._list(secret.namespace)
            if listed.took > _LONG_SECONDS:
                self._long_rest_until = listed.ended + REST * listed.took
        return InUse(IN_USE_SECONDS) if secret.name in listed.used else Unused()

    def _known(self, secret: Key, requested: float) -> InUse | Unknown | Unused | None:
        """Return the usage according to an earlier list; None if Pods have to be read."""
        listed, now = self._listed.get(secret.namespace), self._now()
        if listed is None:
            return None
        if secret.name in listed.used and now - listed.ended < IN_USE_SECONDS:
            return InUse(IN_USE_SECONDS)
        if secret.name not in listed.used and listed.began >= requested - _FRESH_SECONDS:
            return Unused()
        rest = listed.ended + REST * listed.took
        if listed.took > _LONG_SECONDS:
            rest = max(rest, self._long_rest_until)
        return Unknown(rest - now) if rest > now else None

    def _forget_old(self) -> None:
        oldest = self._now() - 2 * IN_USE_SECONDS
        self._listed = {
            name: listed for name, listed in self._listed.items() if listed.ended + REST * listed.took > oldest
        }

    async def _list(self, namespace: str) -> _Listed:
        began, used = self._now(), set[str]()
        try:
            async for pods in self._client.pages(PODS, Selection(namespace=namespace), limit=_PAGE):
                for pod in pods:
                    used |= used_secrets(pod)
        except KubeError as error:
            raise ReconcileError(f"could not list Pods: {error}") from error
        return _Listed(began, self._now() - began, frozenset(used))
