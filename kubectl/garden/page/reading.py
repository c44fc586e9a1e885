"""Objects of the garden and of seeds, as far as the user may read them.

Reads are page by page, and only rows are kept: a garden may have thousands of Shoots. All requests for the list within
a few seconds share one read.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from gardener.api.kinds import MANAGED_RESOURCES
from kube.errors import KindNotServed, KubeError
from kube.resources import Resource
from kube.runtime.client import Client
from kubectl.garden import readable
from kubectl.garden.page.rows import KINDS, Row, row_of
from kubectl.kinds import plural

_KEEP_SECONDS = 5.0
_READ_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    rows: Sequence[Row]
    notes: Sequence[str]
    """Descriptions of what could not be read."""


@dataclass(eq=False, slots=True)
class Overview:
    """Reads the list.

    Attributes:
        clusters: clients by the name of the cluster: empty for the garden, else that of a Seed.
        namespace: where objects are read if the user may not list them in all namespaces.
    """

    clusters: Mapping[str, Client]
    namespace: str
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _last: Snapshot | None = None
    _read_at: float = 0.0

    async def snapshot(self) -> Snapshot:
        async with self._lock:
            if self._last is None or time.monotonic() - self._read_at > _KEEP_SECONDS:
                self._last = await self._read()
                self._read_at = time.monotonic()
            return self._last

    async def _read(self) -> Snapshot:
        wanted = [("", resource) for resource in KINDS]
        wanted += [(seed, MANAGED_RESOURCES) for seed in self.clusters if seed]
        rows: list[Row] = []
        notes: list[str] = []
        await asyncio.gather(*(self._add(cluster, resource, rows, notes) for cluster, resource in wanted))
        return Snapshot(rows, sorted(notes))

    async def _add(self, cluster: str, resource: Resource, rows: list[Row], notes: list[str]) -> None:
        where = f" in Seed {cluster}" if cluster else ""
        pages = readable.pages(
            self.clusters[cluster],
            resource,
            partial(row_of, cluster, resource),
            here=self.namespace,
            note=lambda text: notes.append(f"{text}{where}"),
        )
        try:
            async with asyncio.timeout(_READ_SECONDS):
                async for page in pages:
                    rows += page
        except KindNotServed:
            return
        except TimeoutError:
            notes.append(f"{plural(resource.kind)}{where} are incomplete: no answer within {_READ_SECONDS:.0f} s")
        except KubeError as error:
            notes.append(f"{plural(resource.kind)}{where} are incomplete: {error}")
