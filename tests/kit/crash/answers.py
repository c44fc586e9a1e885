"""Answers that no API server gave, met by any program: one way for all.

Proxies, gateways and login pages answer in the API server's place when they can't find it, and some cut answers short.
A scene of `kit.crash.sweep` is simulated once undisturbed and once for each such answer (or one of them), which every call of the program gets
once: each sort of list, watch, read, write and discovery. In the end all is as it is undisturbed, nothing was deleted
that is not deleted then, and what belongs to another client is as it was.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from devcluster.testing.faults import STRANGERS, EndWatch, Fault, Request, Truncated, WatchEnd
from kit.crash.scenes_alone import Command
from kit.crash.sweep import (
    FULL,
    USER_AGENT,
    Death,
    Incarnation,
    Scene,
    Sweep,
    living,
    until_idle,
)
from kit.world import connected
from kube.errors import KubeError
from webhooks.certificates.keeper import CannotKeep

_ALIKE = {"json-404", "html-403"}
"""Some that the client takes as it takes others of these."""
ANSWERS: list[Fault] = [*(each for each in STRANGERS if each.name not in _ALIKE), Truncated()]
_HASHED = re.compile(r"-[0-9a-f]{5,10}$")
"""Ends of names that are made from what differs from run to run."""
_BACK_OFF = 0.1
"""Seconds: one call after the other goes wrong, and each ends a pass."""


def answers_of(number: int) -> Sequence[Fault]:
    """For the scene of this number: one after the other, or all with CRASH_SWEEP=full."""
    return ANSWERS if FULL else [ANSWERS[number % len(ANSWERS)]]


class Strangers(Death):
    """No process dies: from the moment on, another client answers the first call of each sort."""

    def __init__(self, answer: Fault | None) -> None:
        super().__init__()
        self.is_armed = False
        self._answer = answer
        self._seen: set[tuple[str, str, bool]] = set()

    def choose(self, request: Request) -> Fault | None:
        if self._answer is None or not self.is_armed:
            return None
        sort = request.method, _sort_of(request.path), request.watch
        if sort in self._seen:
            return None
        self._seen.add(sort)
        if request.watch and isinstance(self._answer, Truncated):
            return EndWatch(how=WatchEnd.TRUNCATED)
        return self._answer


def _sort_of(path: str) -> str:
    """The kind, and whether it is about one object or all: `/api/v1/namespaces/x/secrets/y` is one of the secrets."""
    inner = re.sub(r"(?<=/)namespaces/[^/]+/(?!finalize|status)", "", path)
    found = re.fullmatch(r"(/api/[^/]+/|/apis/[^/]+/[^/]+/)([^/]+)(/[^/]+)?(/[^/]+)?", inner)
    return f"{found[1]}{found[2]}{'/*' if found[3] else ''}{found[4] or ''}" if found else path


@dataclass(frozen=True, slots=True)
class End:
    state: Any
    deleted: frozenset[str]
    """Paths, without what differs from run to run."""


class Answers(Sweep):
    async def check(self, answers: Sequence[Fault]) -> None:
        undisturbed = await self.met(None)

        async def meet(answer: Fault) -> None:
            met = await self.met(answer)
            assert (met.state, met.deleted - undisturbed.deleted) == (undisturbed.state, frozenset()), answer.name

        async with asyncio.TaskGroup() as group:
            for answer in answers:
                group.create_task(meet(answer))

    async def met(self, answer: Fault | None) -> End:
        async with self.places, connected(self.cluster) as admin:
            scene = self.make(self.cluster, admin)
            scene.longest_back_off = _BACK_OFF
            try:
                return await self._meet(scene, answer)
            except Exception as error:
                error.add_note(f"answered by {answer}")
                raise
            finally:
                await scene.clean_up()

    async def _meet(self, scene: Scene, answer: Fault | None) -> End:
        await scene.prepare()
        async with self.incarnation() as incarnation:
            proxy = incarnation.proxy
            strangers = proxy.rules = incarnation.death = Strangers(answer)
            if isinstance(scene, Command):
                strangers.is_armed = True
                await self._until_done(scene, incarnation)
            else:
                await self._at_work(scene, incarnation, strangers)
            state = await scene.state()
            assert await scene.touched() == []
            assert answer is None or proxy.injected[answer.name]
        done = [each for each in proxy.log if each.request.method == "DELETE" and each.answer in range(200, 300)]
        return End(state, frozenset(_HASHED.sub("", each.request.path.replace(scene.mark, "$MARK")) for each in done))

    async def _until_done(self, scene: Command, incarnation: Incarnation) -> None:
        """As a program that ends with an error is started again."""
        async with connected(incarnation.kubeconfig, USER_AGENT) as client:
            while True:
                try:
                    return await scene.command(client)
                except (KubeError, CannotKeep):
                    continue

    async def _at_work(self, scene: Scene, incarnation: Incarnation, strangers: Strangers) -> None:
        strangers.is_armed = not scene.warm
        if not scene.warm:
            await scene.change()
        async with living(scene, incarnation) as is_idle:
            if scene.warm:
                await until_idle(scene, incarnation, is_idle)
                strangers.is_armed = True
                await scene.change()
                # All has to be listed and watched again.
                incarnation.proxy.end_watches(WatchEnd.EXPIRED)
            await until_idle(scene, incarnation, is_idle)
