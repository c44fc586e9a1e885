"""Hundreds of Shoots with long messages of wide characters: what the list of `kubectl gardener page` takes.

    python -m tests.attacks.garden_page [number]

Pages come from a client that makes Shoots of 300 KiB as they are read, so that no control plane is needed; one user may
list all Shoots, the other those of each Project.
"""

import asyncio
import resource
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import orjson

from gardener.api.garden import PROJECTS, SHOOTS
from kube.errors import Forbidden
from kube.objects import Object
from kube.resources import Resource
from kube.runtime.client import Client, Selection
from kubectl.garden.page.reading import Overview
from kubectl.garden.page.rows import Query, listing_of

_PROJECTS = 8
_MESSAGE = "\U0001f600" + "é" * 16_000
_TIME = "2026-01-01T00:00:00Z"


class HostileShoots(Client):
    def __init__(self, number: int, *, of_all: bool) -> None:
        self._number, self._of_all = number, of_all

    async def pages(
        self, resource: Resource, selection: Selection, *, limit: int = 100, **_options: Any
    ) -> AsyncIterator[list[Object]]:
        if resource == PROJECTS:
            yield [{"metadata": {"name": f"p{each}"}, "spec": {"namespace": f"p{each}"}} for each in range(_PROJECTS)]
        elif resource == SHOOTS:
            if not (self._of_all or selection.namespace):
                raise Forbidden(403, message="")
            number = self._number // (_PROJECTS if selection.namespace else 1)
            for first in range(0, number, limit):
                # As if they had come from an API server: each text is an object of its own.
                yield orjson.loads(orjson.dumps([_shoot(each) for each in range(first, min(number, first + limit))]))
                await asyncio.sleep(0)


def _shoot(number: int) -> Object:
    times = {"lastTransitionTime": _TIME, "lastUpdateTime": _TIME}
    conditions = [{"type": f"T{each}", "status": "False", "message": _MESSAGE, **times} for each in range(6)]
    operation = {"type": "Reconcile", "state": "Error", "description": _MESSAGE, **times}
    status = {"conditions": conditions, "lastOperation": operation, "lastErrors": [{"description": _MESSAGE}] * 3}
    return {"metadata": {"name": f"s{number}", "namespace": "garden-p"}, "spec": {}, "status": status}


def _used() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(number: int) -> int:
    is_good = True
    for of_all, reader in ((True, "all at once"), (False, "by Project")):
        before, began = _used(), time.process_time()
        snapshot = asyncio.run(Overview({"": HostileShoots(number, of_all=of_all)}, "p0").snapshot())
        read = time.process_time() - began
        began = time.process_time()
        found = listing_of(snapshot.rows, Query(text="a b c")).page.total
        searched, peak = time.process_time() - began, _used() - before
        print(f"| {number} Shoots, {reader} | peak +{peak:.0f} MiB | read {read:.1f} s | search {searched:.2f} s |")
        is_good &= found == 0 and len(snapshot.rows) == number and peak < 200 and searched < 2
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 800))
