"""One run: set the stage, let users and faults play, then ask the oracles."""

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import calls, manifests, oracles
from campaign.model import FLEETING, SETTLED, withdrawal
from campaign.oracles import Level, Problem
from campaign.plan import Plan
from campaign.replicas import Replica
from campaign.report import Report, Violation
from campaign.stage import LEASE, SECOND, Stage, standing
from campaign.strikes import Acts
from kube.errors import KubeError
from localprocesses.local import LocalProcessError

_SETTLE_SECONDS = 150.0
_MOST_VIOLATIONS = 25
_QUIET_SECONDS = 2.0
"""What was done last may have an echo: an event, the next look of a controller."""
_MORE_BYTES, _MORE_FILES = 48 << 20, 24
_TOLERANCE = 1.5
_THREADS = 32
_LOG_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Limits:
    rest: float
    """Seconds to watch the clusters in steady state."""
    patience: float = 1.0
    """By how much everything may take longer than on an idle machine."""


def patience_now() -> float:
    """By the load of the machine."""
    return min(max(load_now(), 1.0), 4.0)


def load_now() -> float:
    return os.getloadavg()[0] / (os.cpu_count() or 1)


async def run(plan: Plan, limits: Limits, *, report: Report) -> None:
    """Fills in the report as it goes, so that there is something to report whatever happens."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS))
    with tempfile.TemporaryDirectory(prefix="campaign-") as directory:
        timed = _Timed(report)
        async with contextlib.AsyncExitStack() as stack:
            async with timed("begin"):
                stage = await stack.enter_async_context(
                    standing(Path(directory), seed=plan.seed, patience=limits.patience)
                )
            await _Run(stage, plan, limits, report, timed).play()
            async with timed("end"):
                await stack.aclose()


class _Timed:
    def __init__(self, report: Report) -> None:
        self._report = report

    @contextlib.asynccontextmanager
    async def __call__(self, part: str) -> AsyncIterator[None]:
        began = time.monotonic()
        print(f"{time.strftime('%H:%M:%S')} {part}", flush=True)
        try:
            yield
        finally:
            self._report.parts[part] = time.monotonic() - began


@dataclass(slots=True)
class _Run:
    stage: Stage
    plan: Plan
    limits: Limits
    report: Report
    timed: _Timed

    def _log(self, text: str) -> None:
        print(f"{text[:300]}", flush=True)

    async def play(self) -> None:
        stage, world = self.stage, self.stage.world
        began = time.time()
        world.edit(self.plan.initial_edits)
        async with self.timed("first state"):
            await self._settle("before any fault")
            self.report.before = await self._levels()
        acts = Acts(stage, self.plan, injected=self.report.injected)
        async with stage.users:
            try:
                async with self.timed("faults"):
                    await acts.play()
            finally:
                self._found("faults", acts.problems)
            async with self.timed("settle"):
                await self._settle("after the faults")
        self._check_admissions()
        async with self.timed("rest"):
            await self._rest()
        self.report.after = await self._levels()
        self._check_levels()
        world.edit(withdrawal(world.model))
        async with self.timed("withdrawal"):
            await self._settle("after everything was withdrawn")
        self._check_calls(since=began)
        self._check_logs()
        self.report.tries = dict(world.failures)
        self.report.exits = {replica.name: replica.exits for replica in stage.replicas}

    # --- state

    async def _settle(self, when: str) -> None:
        """Waits until all is as it has to be; what is not so in time is a violation."""
        began = time.monotonic()
        deadline = began + _SETTLE_SECONDS * self.limits.patience
        problems: Sequence[Problem] = [Problem("state", "nothing was seen")]
        reported = began
        try:
            while problems and time.monotonic() < deadline:
                await asyncio.sleep(0.5)
                problems = await self._problems()
                if problems and time.monotonic() > reported + _LOG_SECONDS:
                    reported = time.monotonic()
                    self._log(f"waiting for {len(problems)} things, such as {problems[0]}")
        finally:
            self._found(when, problems)

    async def _problems(self) -> list[Problem]:
        world = self.stage.world
        try:
            async with asyncio.timeout(10):
                await world.written()
        except TimeoutError:
            return [Problem("campaign", f"users could not write all they want: {world.last_failure}")]
        if unready := await self.stage.unready():
            return [Problem("state", f"{', '.join(unready)} not ready")]
        try:
            seen = await world.snapshot()
            await world.revive_pods(seen)
        except (TimeoutError, KubeError) as error:
            return [Problem("state", f"could not be seen: {error!r}")]
        expected = manifests.expected(world.model)
        state = oracles.state_problems(
            world.model, expected, seen, foreign=self.stage.foreign, namespaces=(*SETTLED, FLEETING)
        )
        return [*state, *oracles.foreign_problems(self.stage.foreign, seen)]

    # --- rest

    async def _rest(self) -> None:
        await asyncio.sleep(_QUIET_SECONDS * self.limits.patience)
        since = time.time()
        await asyncio.sleep(self.limits.rest)
        self.report.rest_seconds = time.time() - since
        done = await asyncio.to_thread(self._writes, since)
        self._found("steady state", oracles.rest_problems(done, seconds=self.report.rest_seconds))

    def _writes(self, since: float) -> list[oracles.Write]:
        return calls.writes(self.stage.clusters, users=self.stage.writers, since=since)

    async def _levels(self) -> dict[str, Level]:
        """Of the leader, the other agents, and the webhooks."""
        leader = await self.stage.leader()
        roles: dict[str, Replica[Any]] = {
            "leader" if each is leader else "follower": each for each in self.stage.agents
        }
        others: list[Replica[Any]] = [self.stage.second, *self.stage.webhooks]
        roles |= {each.name: each for each in others}
        return {role: replica.level() for role, replica in roles.items() if replica.is_running}

    # --- assessment

    def _check_levels(self) -> None:
        before, after = self.report.before, self.report.after
        compared = {name: level for name, level in after.items() if name in before}
        found = oracles.level_problems(before, compared, more_bytes=_MORE_BYTES, more_files=_MORE_FILES)
        self._found("steady state", found)

    def _check_admissions(self) -> None:
        seen = self.stage.users.seen
        self.report.admissions = seen.succeeded
        found = oracles.admission_problems(seen, self.stage.excuses)
        self.report.excused = len(seen.failures)
        self._found("faults", found)

    def _check_calls(self, *, since: float) -> None:
        done = self._writes(since)
        self.report.writes = len(done)
        stays = self.stage.world.moves.stays
        self.report.moved = len(stays)
        self._found("faults", oracles.move_problems(stays, done))
        # Each replica has a user in each cluster; the lease is in one of them.
        accounts = self.stage.accounts.items()
        names = {account.user: f"agent-{number}" for (_, number), account in accounts if number != SECOND}
        of_agents = [oracles.by(write, names[write.user]) for write in done if write.user in names]
        self._found(
            "faults", oracles.writer_problems(of_agents, lease=LEASE, tolerance=_TOLERANCE * self.limits.patience)
        )

    def _check_logs(self) -> None:
        for replica in self.stage.replicas:
            self._found("logs", oracles.log_problems(replica.name, replica.log()))

    def _found(self, when: str, problems: Sequence[Problem]) -> None:
        for problem in problems[:_MOST_VIOLATIONS]:
            reported: list[str] = []
            if problem.place is not None:
                with contextlib.suppress(LocalProcessError, OSError):
                    reported = calls.writes_to(self.stage.clusters, problem.place)
            self.report.violations.append(Violation(problem, when, reported))
