"""The gardenlet with Shoots that are clusters: one through its life, and several in steady state.

Garden and seed are two clusters, and the local provider runs the control planes of Shoots. Calls to garden and seed are
those in the audit logs, watches included, without Leases. Each figure is followed by the original's, whose Shoot has
another extension, a referenced Secret and a backup entry.
"""

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from benchmarks.gardenlet import Gardenlet, make_garden
from benchmarks.measuring import QUIET_SECONDS
from benchmarks.program import PATIENT_ELECTION
from benchmarks.report import Table, number
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from devcluster.garden.box import account_of
from devcluster.garden.objects import GARDENLET_ACCOUNT
from devcluster.garden.seed import GARDENLET, SHAPE_WITH_SHOOTS, SeedBox, configuration, provider_state
from devcluster.program import Program
from gardener import keys
from gardener.api.extensions import EXTENSIONS
from gardener.api.garden import CONTROLLER_REGISTRATIONS, SHOOTS
from gardener.garden.shoots import last_operation
from kube.objects import Object, key, metadata
from kube.paths import at
from localprocesses import supervisor
from localprocesses.local import LocalProcessError, wait_until
from localprocesses.versions import NEWEST

_SEED, _NAMESPACE = "meadow", "garden-dev"
_AGENT = "gardenlet/"
_PATIENCE_SECONDS = 900.0
_CAPACITY = "1000"
_PATIENT = {name: PATIENT_ELECTION[name] for name in ("leaseDuration", "renewDeadline", "retryPeriod")}
_READS = ("get", "list", "watch")
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Figures:
    """Cost of an operation. Calls are without Leases."""

    seconds: float
    garden: int
    garden_writes: int
    seed: int
    seed_writes: int
    cpu: float

    def cells(self) -> list[str]:
        calls = (f"{self.garden} ({self.garden_writes})", f"{self.seed} ({self.seed_writes})")
        return [number(self.seconds), *calls, number(self.cpu, 2)]


ORIGINALS = {
    "create": Figures(80.3, 167, 156, 198, 161, 4.53),
    "reconcile": Figures(13.5, 141, 138, 89, 79, 0.75),
    "spec change": Figures(78.2, 151, 143, 119, 79, 1.11),
    "hibernate": Figures(39.0, 141, 137, 110, 95, 0.76),
    "wake up": Figures(73.7, 149, 140, 111, 81, 1.01),
    "delete": Figures(53.9, 182, 177, 166, 144, 1.01),
}
"""Figures of v1.104.3, on two cores that other work shared: upper bounds of seconds."""
_LIFE_COLUMNS = ("what", "s", "garden: calls (writes)", "seed: calls (writes)", "CPU s", "the original")
_REST_COLUMNS = ("Shoots", "garden: calls", "seed: calls", "CPU s", "RSS (peak) MiB", "the original")
_IN_REST = {
    1: "6 and 6, 0.40 s CPU, 138 MiB",
    5: "20 and 22, 0.50 s CPU, 150 MiB",
}
"""Figures of the original, for a minute."""


class Meadow:
    """Seed with its gardenlet, and the Shoots on it."""

    def __init__(self, garden: Cluster, seed: Cluster, box: SeedBox, in_garden: Audit, in_seed: Audit) -> None:
        self.hosts = {each.url.removeprefix("https://") for each in (garden, seed)}
        self.seed_api = seed.api
        self._api, self._seed, self._box = garden.api, seed, box
        self.audits = in_garden, in_seed
        self.gardenlet = Gardenlet(box, seed)

    # --- Shoots

    def create(self, names: Sequence[str], *, asleep: bool = False, at_once: int = _AT_ONCE) -> None:
        """Create Shoots, and wait for all of them; at most `at_once` are in creation."""
        for first in range(0, len(names), at_once):
            some = names[first : first + at_once]
            for name in some:
                self._api.create(SHOOTS.path(namespace=_NAMESPACE), _shoot(name, asleep=asleep))
            for name in some:
                self.wait(name, "Create", "Reconcile")

    def shoot(self, name: str) -> Object:
        return self._api.get(SHOOTS.path(namespace=_NAMESPACE, name=name))

    def pid_of(self, namespace: str, name: str) -> int:
        """Process id of a component of a control plane, by its Deployment."""
        processes = supervisor.ask(provider_state(self._seed) / "run", "status")["components"]
        return int(processes[f"{namespace}.{name}"]["pid"])

    def shoots(self) -> list[Object]:
        return list(self._api.get(SHOOTS.path(namespace=_NAMESPACE))["items"])

    def report(self, name: str, status: Object) -> None:
        """Patch the status of a Shoot."""
        self._api.patch(f"{SHOOTS.path(namespace=_NAMESPACE, name=name)}/status", {"status": status})

    def stop(self) -> None:
        """Stop the gardenlet."""
        self._box.gardenlet.stop()

    def start(self, *arguments: str) -> Program:
        """Start the stopped gardenlet with these arguments, and wait until it is ready."""
        self._box.gardenlet = _gardenlet(self._seed, *arguments)
        self._box.gardenlet.start()
        self.gardenlet = Gardenlet(self._box, self._seed)
        return self._box.gardenlet

    def change(self, name: str, patch: Object) -> None:
        self._api.patch(SHOOTS.path(namespace=_NAMESPACE, name=name), patch)
        self.wait(name, "Reconcile")

    def delete(self, name: str) -> None:
        path = SHOOTS.path(namespace=_NAMESPACE, name=name)
        self._api.patch(path, {"metadata": {"annotations": {keys.CONFIRM_DELETION: "true"}}})
        self._api.delete(path)
        self._until(lambda: self._api.raw("GET", path)[0] == 404, f"{name} to go")

    def wait(self, name: str, *kinds: str) -> None:
        """Wait until an operation of one of these kinds has succeeded for the current spec."""

        def done() -> bool:
            shoot = self.shoot(name)
            is_current = at(shoot, "status", "observedGeneration") == metadata(shoot)["generation"]
            last = last_operation(shoot)
            return is_current and last.get("type") in kinds and last.get("state") == "Succeeded"

        self._until(done, f"{' or '.join(kinds)} of {name}")

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        def checked() -> bool:
            self.gardenlet.check()
            return holds()

        wait_until(checked, what=what, within=_PATIENCE_SECONDS, pause=0.1, explain=self._statuses)

    def _statuses(self) -> str:
        return "; ".join(f"{key(each).name}: {at(each, 'status', 'lastOperation')}" for each in self.shoots())

    # --- measurement

    def measure(self, act: Callable[[], None], *, quiet: float = QUIET_SECONDS) -> Figures:
        """Measure an action; calls and CPU in the `quiet` seconds after it count."""
        marks = [audit.mark() for audit in self.audits]
        cpu, began = self.gardenlet.cpu_seconds(), time.monotonic()
        act()
        seconds = time.monotonic() - began
        time.sleep(quiet)
        calls = [
            [each.verb for each in audit.calls(since=mark, user_agent=_AGENT, watches=True)]
            for audit, mark in zip(self.audits, marks, strict=True)
        ]
        garden, seed = ((len(verbs), sum(verb not in _READS for verb in verbs)) for verbs in calls)
        used = self.gardenlet.cpu_seconds() - cpu
        return Figures(seconds, *garden, *seed, used)


@asynccontextmanager
async def meadow() -> AsyncIterator[Meadow]:
    async with Cluster() as garden, Cluster(nodes=1, shape=SHAPE_WITH_SHOOTS) as seed:
        await asyncio.to_thread(make_garden, garden)
        _offer_extension(garden)
        box = SeedBox(garden, seed, _SEED, shoots=True)
        box.gardenlet = _gardenlet(seed)
        await asyncio.to_thread(box.install)
        with contextlib.closing(garden.audit()) as in_garden, contextlib.closing(seed.audit()) as in_seed:
            yield Meadow(garden, seed, box, in_garden, in_seed)


def _gardenlet(seed: Cluster, *arguments: str) -> Program:
    config = configuration(_SEED, visible=True, shoots=True)
    config["resources"]["capacity"]["shoots"] = _CAPACITY
    config["leaderElection"] = _PATIENT
    account = account_of(seed, GARDENLET_ACCOUNT)
    return Program("agent", seed, config, name=GARDENLET, kubeconfig=account, arguments=arguments)


def _offer_extension(garden: Cluster) -> None:
    """Offer the extension also to Shoots without workers."""
    path = CONTROLLER_REGISTRATIONS.path(name="local")
    resources = [
        {**each, "workerlessSupported": True} if each["kind"] == EXTENSIONS.kind else each
        for each in garden.api.get(path)["spec"]["resources"]
    ]
    garden.api.patch(path, {"spec": {"resources": resources}})


def _shoot(name: str, *, asleep: bool) -> Object:
    return {
        **SHOOTS.type_meta,
        "metadata": {"name": name, "namespace": _NAMESPACE},
        "spec": {
            "cloudProfile": {"name": "local"},
            "region": "local",
            "purpose": "evaluation",
            "kubernetes": {"version": NEWEST},
            "networking": {"services": "10.4.0.0/16"},
            "provider": {"type": "local"},
            "extensions": [{"type": "local"}],
            "hibernation": {"enabled": asleep},
            # Far from now: maintenance would change it in between.
            "maintenance": {"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}},
        },
    }


# --- a life


async def measure_life(*, lives: int) -> Table:
    """Measure the life of `lives` Shoots, one after the other."""
    async with meadow() as place:
        # The first one in a process also begins the watches of the common kinds, which continue.
        await asyncio.to_thread(place.create, ["first"])
        found = [await asyncio.to_thread(_life, place, f"life-{number_}") for number_ in range(lives)]
    rows = [
        (name, *_median(each[name] for each in found).cells(), _shown(theirs)) for name, theirs in ORIGINALS.items()
    ]
    notes = [
        f"Medians of {lives} Shoots, one after the other, beside one that stays.",
        "Calls include watches, and are without Leases.",
        "*reconcile*: changes nothing. *spec change*: of `eventTTL`; the API server is rolled out.",
        "*the original*: seconds; calls to garden and seed; CPU seconds.",
    ]
    return Table("Gardenlet: the life of a Shoot", _LIFE_COLUMNS, rows, notes)


def _life(place: Meadow, name: str) -> dict[str, Figures]:
    requested = {"metadata": {"annotations": {keys.OPERATION: "reconcile"}}}
    ttl = {"spec": {"kubernetes": {"kubeAPIServer": {"eventTTL": "2h0m0s"}}}}
    sleep, wake = ({"spec": {"hibernation": {"enabled": enabled}}} for enabled in (True, False))
    found = {"create": place.measure(lambda: place.create([name]))}
    place.change(name, requested)  # the first one writes fields only known after the creation
    found["reconcile"] = place.measure(lambda: place.change(name, requested))
    found["spec change"] = place.measure(lambda: place.change(name, ttl))
    found["hibernate"] = place.measure(lambda: place.change(name, sleep))
    found["wake up"] = place.measure(lambda: place.change(name, wake))
    found["delete"] = place.measure(lambda: place.delete(name))
    return found


def _median(found: Iterable[Figures]) -> Figures:
    every = list(found)

    def of(name: str) -> float:
        return float(statistics.median(getattr(each, name) for each in every))

    return Figures(
        seconds=of("seconds"),
        garden=int(of("garden")),
        garden_writes=int(of("garden_writes")),
        seed=int(of("seed")),
        seed_writes=int(of("seed_writes")),
        cpu=of("cpu"),
    )


def _shown(theirs: Figures) -> str:
    calls = f"{theirs.garden}, {theirs.seed}"
    return f"{number(theirs.seconds)}; {calls}; {number(theirs.cpu, 2)}"


# --- steady state


async def measure_rest(*, awake: Sequence[int], asleep: int, rest: float) -> Table:
    """Measure the rest.

    `awake` are numbers of running Shoots, in ascending order, `asleep` the number of hibernated ones, which are only
    objects, and `rest` seconds.
    """
    rows: list[Sequence[str]] = []
    async with meadow() as place:

        async def measured(name: str, theirs: str = "") -> None:
            await asyncio.sleep(QUIET_SECONDS)
            place.gardenlet.forget_peak()
            found = await asyncio.to_thread(place.measure, lambda: None, quiet=rest)
            memory = f"{place.gardenlet.resident_mib():.0f} ({place.gardenlet.peak_mib():.0f})"
            calls = (found.garden, found.seed)
            rows.append((name, *map(str, calls), number(found.cpu, 2), memory, theirs))

        await measured("none")
        there, problem = 0, ""
        for count in awake:
            try:
                await asyncio.to_thread(place.create, [f"awake-{number_}" for number_ in range(there, count)])
            except LocalProcessError as error:
                problem = f"{count} did not come up: {error}"[:300]
                break
            there = count
            await measured(str(count), _IN_REST.get(count, ""))
        await asyncio.to_thread(place.create, [f"asleep-{number_}" for number_ in range(asleep)], asleep=True)
        await measured(f"{there}, and {asleep} asleep")
    notes = [
        f"Of {rest:.0f} s, with one reconcile of the Seed a minute: calls to the seed and the garden are its.",
        "*asleep*: hibernated from the start, so that there are objects and no processes.",
        *([problem] if problem else []),
    ]
    return Table("Gardenlet: Shoots in steady state", _REST_COLUMNS, rows, notes)
