"""Previews of an object's next reconciliation: controllers offer them, `/flows` serves them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gardener.difference_reports import DifferenceReport
from kube.objects import Key

_SECONDS = 45.0
"""Time limit of a preview; less than clients wait for a response."""

Preview = Callable[[Key], Awaitable[DifferenceReport]]


class NoPreviewError(Exception):
    """There is no preview.

    Args:
        status: HTTP status.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(eq=False, slots=True)
class Previews:
    """Registry of previews. One runs at a time, because it reads all objects of a control plane."""

    _offered: dict[str, Preview] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def offer(self, kind: str, preview: Preview) -> None:
        """Register a preview, which may raise NoPreviewError and KubeError."""
        self._offered[kind.lower()] = preview

    async def make(self, kind: str, name: Key) -> DifferenceReport:
        """Return a preview; `kind` is case-insensitive.

        Raises:
            NoPreviewError: there is none.
        """
        preview = self._offered.get(kind.lower())
        if preview is None:
            raise NoPreviewError(404, f"this process has no preview of a {kind}; ask the leader, which previews Shoots")
        if self._turn.locked():
            raise NoPreviewError(429, "another preview is in progress; try again in some seconds")
        async with self._turn:
            try:
                async with asyncio.timeout(_SECONDS):
                    return await preview(name)
            except TimeoutError:
                raise NoPreviewError(504, f"the preview took longer than {_SECONDS:g} s; try again") from None
