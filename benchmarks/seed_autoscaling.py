"""A year of a garden whose Seeds follow its Shoots: in virtual time, with the real decisions of the SeedAutoscaler.

In one garden there is a bit of everything: Shoots come by the hour and the day of the week, more of them in the middle
of the year; many live for a day, others for weeks or months. In the other one there are courses, each of which begins
on a Monday and ends on Friday. The scheduler puts each Shoot on the ready Seed with the fewest. The set makes or
removes one Seed at a time, which takes some time. Random values are the same in each run: the figures do not depend on
the machine.
"""

import heapq
import itertools
import math
import random
import statistics
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

from agent.controller_manager.seed_autoscaler.rules.decision import Memory, decide
from agent.controller_manager.seed_autoscaler.rules.loads import SHOOTS, Observation, SeedLoad
from agent.controller_manager.seed_autoscaler.rules.settings import Settings
from benchmarks.report import Table, number

_START = datetime(2026, 1, 1, tzinfo=UTC)
_HOUR, _DAY = 3600.0, 86400.0
_YEAR = 365 * _DAY
_ROOM = 100
"""Number of Shoots for which a Seed has room."""
_MAKING, _REMOVING = 40 * 60.0, 20 * 60.0
"""Seconds to create a Seed with the cluster that it runs in, and to remove it."""
_GRACE = 60.0
"""Seconds until a waiting Shoot counts as pending."""
_GATHERING = 1.0
"""Seconds for which the controller gathers changes."""
_COURSE = 4.4 * _DAY
_CLASS = 600.0
"""Seconds in which the Shoots of a course are created."""
_COLUMNS = ("", "", "Seeds (most)", "used %", "added", "removed", "waited", "median s", "p99 s", "p99 of all s")


@dataclass(frozen=True, slots=True)
class Shoot:
    """Times of a Shoot in seconds from the start of the year."""

    created: float
    lifetime: float


def mixed(count: int) -> list[Shoot]:
    """Return `count` Shoots, in the order of their creation."""
    chance = random.Random(1)  # noqa: S311 - nothing is secret here
    found: list[Shoot] = []
    while len(found) < count:
        at = chance.random() * _YEAR
        if chance.random() < _density(at):
            found.append(Shoot(at, _lifetime(chance)))
    return sorted(found, key=lambda shoot: shoot.created)


def courses(count: int) -> list[Shoot]:
    """Return Shoots of courses, equally many in each week."""
    begins = [day * _DAY + 9 * _HOUR for day in range(4, 365, 7)]
    return [
        Shoot(begins[number % len(begins)] + _CLASS * number / count, _COURSE)
        for number in sorted(range(count), key=lambda number: (number % len(begins), number))
    ]


def _density(at: float) -> float:
    """Relative rate of new Shoots; the maximum is 1."""
    hour, weekday = at / _HOUR % 24, int(at / _DAY + 3) % 7
    by_hour = 1.0 if 8 <= hour < 18 else 0.25
    by_day = 0.3 if weekday >= 5 else 1.0
    return by_hour * by_day * (0.55 - 0.45 * math.cos(2 * math.pi * at / _YEAR))


def _lifetime(chance: random.Random) -> float:
    kind = chance.random()
    mean = _DAY if kind < 0.4 else 21 * _DAY if kind < 0.8 else 120 * _DAY
    return chance.expovariate(1 / mean)


# --- simulation


@dataclass(eq=False, slots=True)
class Seed:
    number: int
    usage: int = 0
    is_ready: bool = False
    is_going: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a year.

    Attributes:
        waits: seconds that each Shoot waited for a Seed; 0 if it did not.
        seeds: mean number of ready Seeds.
        used: mean share of their room in use.
        levels: day, number of Seeds and number of Shoots at each change.
    """

    waits: Sequence[float]
    seeds: float
    most: int
    used: float
    added: int
    removed: int
    levels: Sequence[tuple[float, int, int]]


class World:
    """Simulated garden; the number of Seeds is fixed if `settings` is None."""

    def __init__(self, shoots: Sequence[Shoot], *, replicas: int, settings: Settings | None) -> None:
        self._settings, self._memory = settings, Memory()
        self._replicas, self._numbers = replicas, itertools.count(replicas)
        self._seeds = [Seed(each, is_ready=True) for each in range(replicas)]
        self._waiting: deque[Shoot] = deque()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._now, self._looking = 0.0, math.inf
        self._scaled: float | None = None
        self._busy = False
        self._waits: list[float] = []
        self._seed_seconds = self._shoot_seconds = 0.0
        self._added = self._removed = 0
        self._levels: list[tuple[float, int, int]] = []
        for shoot in shoots:
            self._at(shoot.created, self._arrival(shoot))

    def run(self) -> Outcome:
        while self._events and self._events[0][0] <= _YEAR:
            at, _, happens = heapq.heappop(self._events)
            self._pass_time(at)
            happens()
        self._pass_time(_YEAR)
        return Outcome(
            waits=self._waits,
            seeds=self._seed_seconds / _YEAR,
            most=max(seeds for _, seeds, _ in self._levels),
            used=self._shoot_seconds / (self._seed_seconds * _ROOM),
            added=self._added,
            removed=self._removed,
            levels=self._levels,
        )

    def _pass_time(self, to: float) -> None:
        ready, used = len(self._ready()), sum(seed.usage for seed in self._seeds)
        self._seed_seconds += ready * (to - self._now)
        self._shoot_seconds += used * (to - self._now)
        if not self._levels or self._levels[-1][1:] != (ready, used):
            self._levels.append((self._now / _DAY, ready, used))
        self._now = to

    def _at(self, time: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._order), happens))

    def _ready(self) -> list[Seed]:
        return [seed for seed in self._seeds if seed.is_ready and not seed.is_going]

    # --- Shoots

    def _arrival(self, shoot: Shoot) -> Callable[[], None]:
        def arrive() -> None:
            self._waiting.append(shoot)
            self._schedule()

        return arrive

    def _schedule(self) -> None:
        while self._waiting:
            free = [seed for seed in self._ready() if seed.usage < _ROOM]
            if not free:
                break
            chosen, shoot = min(free, key=lambda seed: seed.usage), self._waiting.popleft()
            chosen.usage += 1
            self._waits.append(self._now - shoot.created)
            self._at(self._now + shoot.lifetime, self._departure(chosen))
        self._changed()

    def _departure(self, seed: Seed) -> Callable[[], None]:
        def leave() -> None:
            seed.usage -= 1
            self._schedule()

        return leave

    # --- the set

    def _work(self) -> None:
        """Create or remove one Seed at a time."""
        if self._busy or len(self._seeds) == self._replicas:
            return
        if len(self._seeds) < self._replicas:
            seed = Seed(next(self._numbers))
            self._seeds.append(seed)
            self._busy = True
            self._at(self._now + _MAKING, self._done(lambda: setattr(seed, "is_ready", True)))
        elif empty := [seed for seed in self._ready() if not seed.usage]:
            empty[0].is_going = self._busy = True
            self._at(self._now + _REMOVING, self._done(lambda: self._seeds.remove(empty[0])))

    def _done(self, what: Callable[[], None]) -> Callable[[], None]:
        def end() -> None:
            what()
            self._busy = False
            self._schedule()

        return end

    # --- the SeedAutoscaler

    def _changed(self) -> None:
        self._work()
        self._look_at(self._now + _GATHERING)

    def _look_at(self, time: float) -> None:
        if self._settings is not None and time < self._looking:
            self._looking = time
            self._at(time, self._look)

    def _look(self) -> None:
        if self._settings is None or self._now < self._looking:
            return
        self._looking = math.inf
        decision = decide(self._settings, self._seen(), self._memory)
        self._memory = decision.memory
        if decision.why:
            self._added += max(decision.replicas - self._replicas, 0)
            self._removed += max(self._replicas - decision.replicas, 0)
            self._replicas, self._scaled = decision.replicas, self._now
            self._changed()
        if decision.again_at is not None:
            self._look_at((decision.again_at - _START).total_seconds())
        young = [shoot.created + _GRACE for shoot in self._waiting if shoot.created + _GRACE > self._now]
        if young:
            self._look_at(young[0])

    def _seen(self) -> Observation:
        going = [seed for seed in self._seeds if seed.is_going]
        making = [seed for seed in self._seeds if not seed.is_ready]
        is_settled = not self._busy and len(self._seeds) == self._replicas
        return Observation(
            replicas=self._replicas,
            existing=len(self._seeds),
            seeds=[_load(seed) for seed in self._ready()],
            coming=len(making) + max(self._replicas - len(self._seeds) + len(going), 0),
            has_leaving=bool(going),
            unit={SHOOTS: Fraction(_ROOM)},
            pending=sum(shoot.created + _GRACE <= self._now for shoot in self._waiting),
            unsettled="" if is_settled else "a replica is pending",
            last_scale_time=None if self._scaled is None else _time(self._scaled),
            now=_time(self._now),
        )


def _load(seed: Seed) -> SeedLoad:
    return SeedLoad(
        name=str(seed.number),
        usage={SHOOTS: Fraction(seed.usage)},
        allocatable={SHOOTS: Fraction(_ROOM)},
        is_deletable=not seed.usage,
    )


def _time(seconds: float) -> datetime:
    return _START + timedelta(seconds=seconds)


# --- the report


def settings_of(percent: int, **spec: object) -> Settings:
    target = {"type": "Utilization", "averageUtilization": percent}
    metric = {"type": "Resource", "resource": {"name": SHOOTS, "target": target}}
    return Settings.of({"spec": {"maxReplicas": 100, "metrics": [metric], **spec}})


_SCALED = {
    "target 100 %": settings_of(100),
    "target 80 %": settings_of(80),
    "target 80 %, 200 free": settings_of(80, minFreeShoots=200),
    "target 50 %": settings_of(50),
}
_USUAL = "target 80 %"
_SHOWN = {"mixed": 365, "courses": 35}
"""Number of days in the picture."""


async def measure(*, shoots: int, image: Path | None = None) -> Table:
    """Measure, and write the picture to `image`, if any."""
    gardens = {"mixed": mixed(shoots), "courses": courses(shoots)}
    years = {name: _year(demand) for name, demand in gardens.items()}
    if image is not None:
        _draw(image, years)
    peaks = ", ".join(f"{max(used for *_, used in year[_USUAL].levels)} ({name})" for name, year in years.items())
    making, removing = f"{_MAKING / 60:.0f} minutes to make", f"{_REMOVING / 60:.0f} to remove"
    return Table(
        "Seeds that follow their Shoots, for a year",
        _COLUMNS,
        [_row(garden, name, each) for garden, outcomes in years.items() for name, each in outcomes.items()],
        notes=(
            f"{shoots} Shoots in a year of virtual time, so many at once: {peaks}; {_ROOM} on a Seed, which takes",
            f"{making} and {removing}, one after the other. *Mixed*: all year, for days to months; *courses*: every",
            "Monday, until Friday. The decisions are those of the SeedAutoscaler, the same on any machine; what is not",
            "named is as by default. *Used*: Shoots by room on all Seeds. *Waited*: Shoots for which there was no room",
            "when they came, and for how long. *Fixed*: so many Seeds, without a SeedAutoscaler. Shoots are not moved,",
            "and each is put on the Seed with the fewest: Seeds become empty where Shoots are short-lived, and hardly",
            "where they stay.",
            *(("", f"![Seeds and Shoots over the year](images/{image.name})") if image is not None else ()),
        ),
    )


def _year(demand: Sequence[Shoot]) -> dict[str, Outcome]:
    scaled = {name: World(demand, replicas=1, settings=each).run() for name, each in _SCALED.items()}
    usual = scaled[_USUAL]
    numbers = dict.fromkeys((math.ceil(usual.seeds), usual.most))
    return scaled | {f"fixed {each}": World(demand, replicas=each, settings=None).run() for each in numbers}


def _row(garden: str, name: str, outcome: Outcome) -> Sequence[str]:
    waits = sorted(wait for wait in outcome.waits if wait)
    return (
        garden,
        name,
        f"{outcome.seeds:.1f} ({outcome.most})",
        f"{100 * outcome.used:.0f}",
        str(outcome.added),
        str(outcome.removed),
        str(len(waits)),
        number(statistics.median(waits) if waits else None, 0),
        number(_percentile(waits, 0.99) if waits else None, 0),
        number(_percentile(sorted(outcome.waits), 0.99), 0),
    )


def _percentile(values: Sequence[float], share: float) -> float:
    """Percentile of sorted values."""
    return values[min(math.ceil(share * len(values)), len(values)) - 1]


def _draw(file: Path, years: Mapping[str, Mapping[str, Outcome]]) -> None:
    from benchmarks import plots

    panels = []
    for garden, outcomes in years.items():
        levels = [each for each in outcomes[_USUAL].levels if each[0] <= _SHOWN[garden]]
        room = _steps([(day, float(seeds * _ROOM)) for day, seeds, _ in levels])
        used = [(day, float(used)) for day, _, used in levels]
        title = f"{garden}: Shoots, and room for them, {_USUAL}"
        panels.append(plots.Panel(title, {"room": room, "Shoots": used}, below="days"))
    plots.draw(file, "Seeds that follow their Shoots", panels)


def _steps(levels: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Curve with corners at each change."""
    corners = []
    for (_, before), (day, after) in itertools.pairwise(levels):
        if before != after:
            corners += [(day, before), (day, after)]
    return [levels[0], *corners, (levels[-1][0], levels[-1][1])]
