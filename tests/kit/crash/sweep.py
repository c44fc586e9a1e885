"""kill -9 at any write of anything that writes to an API server: one way to do it for all.

A `Scene` is something that a program does in a cluster: from a state before, by a change, to a state after. `Sweep`
plays it again and again, each time in a place of its own and with a proxy between program and API server. At one write
the program dies, with all that it had in memory: either the write is never sent, or it is carried out and no one sees
the answer. Whatever it sends at that moment beside or after that write is lost. Then the program restarts, and in
the end

    all that counts is as it is when no process dies, so nothing is lost and nothing leaks
    what belongs to another client is as it was
    there were no more successful writes than when no process dies, and those that the scene allows

In most runs the program is its control loops, in this process: they are cancelled and their connections cut. A real
process, killed by SIGKILL, takes their place once in each scene that `is_real`: one for each controller of the resource
manager at least, and one for the controller manager.
"""

import asyncio
import difflib
import functools
import itertools
import math
import os
import pprint
import re
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import orjson

from agent.resource_manager.controllers import CONTROLLERS, compose_controllers, watch_source
from config.resource_manager import decode
from devcluster.cluster import Cluster
from devcluster.testing.faults import Fault, Request, Rules, Silence
from devcluster.testing.proxy import FaultProxy
from kit.controllers import at_work, cluster_of, context_of
from kit.granted_rights import Right
from kit.objects import Kind, obj, resource_of
from kit.processes.agent import AgentProcess, configuration
from kit.proxied import proxy_to
from kit.world import World, connected
from kube.objects import Object, key, metadata, resource_version
from kube.runtime.client import Client

FULL = os.environ.get("CRASH_SWEEP") == "full"
"""Every write of every scene, before and after it; see `deaths_in` for the rest."""
USER_AGENT = "gardener-resource-manager/crash-sweep"
"""Begins with the name of the field manager that the agent looks for in what it has written."""
PATIENCE = 300.0
_AT_ONCE = 8
"""Runs of a scene at the same time."""
_MORE = 20
"""Writes that a run may take beyond those of the first one."""
_QUIET_SECONDS = 0.25
"""Without a write, until a program counts as idle."""
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_REVIEWS = frozenset({"tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"})
"""They are created, but nothing is there afterwards."""
_EVENTS = "events"


def right(text: str) -> Right:
    """`verb resource[/subresource][.group]`, as `str` of a Right is."""
    verb, _, rest = text.partition(" ")
    resource, _, group = rest.partition(".")
    return Right(group, resource, verb)


def crossing(*texts: str) -> frozenset[Right]:
    """`verb resource …`: each of these resources as `right` takes it."""
    split = ((text.partition(" ")[0], text.split()[1:]) for text in texts)
    return frozenset(right(f"{verb} {resource}") for verb, resources in split for resource in resources)


def scenes_of(module: str) -> list[type["Scene"]]:
    """Those that stand there and report what they cross, in this order."""
    classes = [each for each in vars(sys.modules[module]).values() if isinstance(each, type)]
    return [
        each for each in classes if each.__module__ == module and issubclass(each, Scene) and hasattr(each, "crosses")
    ]


@functools.cache
def write_of(request: Request) -> Right | None:
    """What a request writes; None if it only reads, or only tries."""
    verb = _VERBS.get(request.method)
    found = re.fullmatch(
        r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/[^/]+(?=/(?!finalize|status)))?"
        r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?P<sub>/[^/]+)?)?",
        request.path,
    )
    if verb is None or found is None or found["resource"] in _REVIEWS or "dryRun=" in request.query:
        return None
    if verb == "delete" and not found["name"]:
        verb = "deletecollection"
    return Right(found["group"] or "", found["resource"] + (found["sub"] or ""), verb)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The `number`-th write, of this sort if one is given."""

    number: int
    carried_out: bool
    of: Right | None = None

    def __str__(self) -> str:
        return f"{'after' if self.carried_out else 'before'} write {self.number}{f' of {self.of}' if self.of else ''}"


class Death(Rules):
    """Lets everything through until the moment, and nothing from then on."""

    def __init__(self) -> None:
        super().__init__()
        self.at: Right | None = None
        """What was being written when it came."""
        self._moment: Moment | None = None
        self._left = 0

    def arm(self, moment: Moment) -> None:
        self._moment, self._left = moment, moment.number

    @property
    def carries_out(self) -> bool:
        return self._moment is not None and self._moment.carried_out

    def choose(self, request: Request) -> Fault | None:
        if self.at is not None:
            return Silence()
        written = write_of(request)
        if self._moment is None or written is None or self._moment.of not in {None, written}:
            return None
        self._left -= 1
        if self._left:
            return None
        self.at = written
        return Silence(carried_out=self._moment.carried_out)


class Killed(Exception):
    """Ends an incarnation not in order."""


class Incarnation:
    """One life of a program, seen from the proxy that stands before it."""

    def __init__(self, proxy: FaultProxy, kubeconfig: Path) -> None:
        self.proxy = proxy
        self.kubeconfig = kubeconfig
        self.death = Death()
        proxy.rules = self.death
        self._begun = 0

    def arm(self, moment: Moment | None) -> None:
        """Writes count from now on."""
        self._begun = len(self.proxy.log)
        if moment is not None:
            self.death.arm(moment)

    @property
    def is_struck(self) -> bool:
        """Whether the moment came, and whatever was to be carried out is."""
        # Other writes that were under way meet silence at once, and report nothing of the one that is carried out.
        return bool(self.proxy.injected[Silence(carried_out=self.death.carries_out).name])

    @property
    def writes(self) -> list[Right]:
        """What was written with success."""
        done = [e.request for e in list(self.proxy.log)[self._begun :] if e.answer is not None and e.answer < 300]
        return [written for request in done if (written := write_of(request)) is not None]

    @property
    def requests(self) -> int:
        return sum(write_of(entry.request) is not None for entry in self.proxy.log)


class Scene(World):
    """What a program does; one instance for each time that it is simulated.

    `mark` is part of all names, since others play at the same time, and is the namespace of most that it is about.
    """

    crosses: ClassVar[frozenset[Right]]
    """All writes by which the change becomes true; the sweep makes sure of that."""
    spare: ClassVar[int] = 0
    """How many writes more there may be if a process dies, and why."""
    warm: ClassVar[bool] = False
    """Whether there is a state before, which the program that is going to die has brought about itself."""
    is_real: ClassVar[bool] = False
    """Whether the first who dies is a process of its own; reports nothing of scenes that are made from this one."""
    is_renewed: ClassVar[bool] = False
    """Whether something is written again and again, so that writes report nothing."""
    longest_back_off = math.inf
    """Of controllers, in seconds."""
    everywhere: ClassVar[bool] = False
    """Whether it is about what has no namespace, so that it is simulated alone."""

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        self.mark = f"crash-{uuid.uuid4().hex[:10]}"
        super().__init__(admin, self.mark)
        self.cluster = cluster
        self.foreign: list[tuple[Kind, Object]] = []

    async def prepare(self) -> None:
        """What is there before any program runs."""
        raise NotImplementedError

    async def change(self) -> None:
        """What the program that dies is to deal with; nothing if it is all prepared."""

    async def change_again(self) -> None:
        """What happens between death and rebirth."""

    async def problem(self) -> str:
        """What is not yet as it is to be; empty if all is well."""
        raise NotImplementedError

    async def state(self) -> Any:
        """All that counts at the end, without what differs from run to run."""
        raise NotImplementedError

    async def clean_up(self) -> None:
        """What others would see. Namespaces stay as long as the cluster: a hundred calls to remove one are many."""

    def at_work(self, client: Client) -> AbstractAsyncContextManager[Callable[[], bool]]:
        """The program in this process; gives what reports whether it has nothing to do."""
        raise NotImplementedError

    def process(self, kubeconfig: Path) -> AgentProcess:
        """The program as a process of its own, to be started."""
        raise NotImplementedError

    # --- for scenes

    async def make_namespace(self, name: str = "", **labelled: str) -> None:
        marks = {label.replace("__", "/"): value for label, value in labelled.items()}
        await self.create(obj("Namespace", name or self.mark, labels=marks))

    async def make_foreign(self, obj: Object, kind: Kind = "") -> None:
        """Something that no one may touch."""
        self.foreign.append((kind or obj["kind"], await self.create(obj, kind)))

    async def touched(self) -> list[str]:
        found = []
        for kind, made in self.foreign:
            live = await self.find(kind, key(made).name, namespace=key(made).namespace)
            if live is None or resource_version(live) != resource_version(made):
                found.append(f"{resource_of(kind).kind} {key(made)}")
        return found

    async def snapshot(self, *kinds: Kind, namespaces: Sequence[str] = ()) -> dict[str, Object]:
        """All objects of these kinds, here or in these namespaces, without what differs from run to run."""
        return {
            f"{resource_of(kind).kind} {key(obj)}".replace(self.mark, "$MARK"): comparable(obj, self.mark)
            for kind in kinds
            for namespace in namespaces or (self.mark,)
            for obj in await self.list(kind, namespace=namespace)
            if metadata(obj)["name"] not in {"kube-root-ca.crt", "default"}
        }


class AgentScene(Scene):
    """What the agent does in namespaces."""

    sections: ClassVar[dict[str, Any]] = {}
    """Of the configuration, beside `controllers`."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        return () if self.everywhere else (self.mark,)

    def controllers(self) -> dict[str, Any]:
        """The section of the configuration."""
        return {}

    def configuration(self) -> dict[str, Any]:
        connection = {"namespaces": list(self.namespaces), "qps": 1000, "burst": 1000}
        return configuration(
            self.mark,
            leaderElection={"leaderElect": False},
            sourceClientConnection=connection,
            targetClientConnection=connection,
            controllers=self.controllers(),
            **self.sections,
        )

    def at_work(self, client: Client) -> AbstractAsyncContextManager[Callable[[], bool]]:
        return self.agent_at_work(client, self.configuration())

    @asynccontextmanager
    async def agent_at_work(self, client: Client, configuration: dict[str, Any]) -> AsyncIterator[Callable[[], bool]]:
        cluster = cluster_of(client, *self.namespaces)
        config = decode(orjson.dumps(configuration)).config
        context = replace(context_of(cluster, config.controllers), config=config)
        loops = compose_controllers(context, CONTROLLERS.load(config), source_objects=watch_source(cluster))
        for loop in loops:
            queue = loop.controller.queue
            queue._max_backoff = min(queue._max_backoff, self.longest_back_off)
        async with at_work(context, *loops):
            yield lambda: all(loop.controller.queue.is_idle for loop in loops)

    def process(self, kubeconfig: Path) -> AgentProcess:
        return AgentProcess(self.configuration(), kubeconfig=kubeconfig)


@dataclass(frozen=True, slots=True)
class Played:
    """How it went."""

    died_at: Right | None
    writes: list[Right]
    """Of all who lived, with success."""
    state: Any


@dataclass(slots=True)
class Report:
    """What a sweep has come through."""

    undisturbed: Played
    crossed: Counter[tuple[Right, bool]] = field(default_factory=Counter)
    """How often a process died at a write, and whether it was carried out."""

    def reached(self) -> set[Right]:
        """In both ways to die, if all are tried."""
        ways = Counter(written for written, _ in self.crossed)
        return {written for written, count in ways.items() if count == 2 or not FULL}

    def __str__(self) -> str:
        counts = [
            f"{written}: {self.crossed[written, False]} before, {self.crossed[written, True]} after"
            for written in sorted({written for written, _ in self.crossed})
        ]
        return "\n  ".join([f"{len(self.undisturbed.writes)} writes, {self.crossed.total()} deaths", *counts])


class Sweep:
    """Deaths of a scene."""

    def __init__(self, scene: type[Scene], cluster: Cluster, *, at_once: int = _AT_ONCE) -> None:
        self.make = scene
        self.cluster = cluster
        self.places = asyncio.Semaphore(at_once)

    async def run(self, deaths: Mapping[Right, bool]) -> Report:
        """See `deaths_in`."""
        undisturbed = await self.play(None)
        assert self.make.crosses <= set(undisturbed.writes), "the scene lacks some"
        report = Report(undisturbed)
        async with asyncio.TaskGroup() as group:
            for number, moments in enumerate(_moments(undisturbed.writes, deaths)):
                as_process = number == 0 and vars(self.make).get("is_real", False)
                group.create_task(self._go_through(moments, undisturbed, report, as_process=as_process))
        assert deaths.keys() <= report.reached(), "the sweep misses some"
        return report

    async def _go_through(
        self, moments: Iterable[Moment], undisturbed: Played, report: Report, *, as_process: bool
    ) -> None:
        """Until one is not reached any more."""
        for moment in moments:
            died_at = (await self._checked(moment, undisturbed, as_process=as_process)).died_at
            as_process = False  # a real one can't be queried whether it has come to its end
            if died_at is None:
                return
            report.crossed[died_at, moment.carried_out] += 1

    async def _checked(self, moment: Moment, undisturbed: Played, *, as_process: bool) -> Played:
        try:
            played = await self.play(moment, as_process=as_process)
            assert played.state == undisturbed.state, difference(undisturbed.state, played.state)
            if not self.make.is_renewed:
                needed, found = _counted(undisturbed.writes), _counted(played.writes)
                assert found.total() <= needed.total() + self.make.spare, f"too many writes: {found - needed}"
        except Exception as error:
            error.add_note(f"killed {moment}")
            raise
        return played

    async def play(self, moment: Moment | None, *, as_process: bool = False) -> Played:
        async with self.places, connected(self.cluster) as admin:
            scene = self.make(self.cluster, admin)
            try:
                return await self._play(scene, moment, as_process=as_process)
            finally:
                await scene.clean_up()

    async def _play(self, scene: Scene, moment: Moment | None, *, as_process: bool) -> Played:
        await scene.prepare()
        async with self.incarnation() as first:
            if not scene.warm:
                await scene.change()
                first.arm(moment)
            async with living(scene, first, as_process=as_process) as is_idle:
                if scene.warm:
                    await until_idle(scene, first, is_idle)
                    first.arm(moment)
                    await scene.change()

                def is_done() -> bool:
                    # A process of its own may pause for long before the moment comes; it does come.
                    return is_idle() and not as_process

                with suppress(_Struck):
                    await until_idle(scene, first, is_done)
                if first.is_struck:
                    raise Killed
            before = first.writes
        await scene.change_again()
        async with self.incarnation() as last, living(scene, last) as is_idle:
            last.arm(None)
            await until_idle(scene, last, is_idle)
            state = await scene.state()
            assert await scene.touched() == []
            return Played(first.death.at, [*before, *last.writes], state)

    @asynccontextmanager
    async def incarnation(self) -> AsyncIterator[Incarnation]:
        with tempfile.TemporaryDirectory(prefix="crash-") as directory:
            kubeconfig = Path(directory) / "kubeconfig"
            async with proxy_to(self.cluster) as proxy:
                proxy.write_kubeconfig(kubeconfig, token=self.cluster.token)
                yield Incarnation(proxy, kubeconfig)


class _Struck(Exception):
    """The moment has come."""


@asynccontextmanager
async def living(
    scene: Scene, incarnation: Incarnation, *, as_process: bool = False
) -> AsyncIterator[Callable[[], bool]]:
    """The program at work; `Killed` ends it at once, and it reports nothing any more."""
    if as_process:
        process = scene.process(incarnation.kubeconfig)
        with process.start():

            def has_written() -> bool:
                assert process.process.poll() is None, f"it ended:\n{process.output}{process.log[-4000:]}"
                return incarnation.requests > 0

            try:
                yield has_written
            except Killed:
                process.kill()
            else:
                raise AssertionError("the process was never killed")
        return
    async with connected(incarnation.kubeconfig, USER_AGENT) as client:
        with suppress(Killed):
            async with scene.at_work(client) as is_idle:
                try:
                    yield is_idle
                except Killed:
                    await incarnation.proxy.pause()
                    raise


async def until_idle(scene: Scene, incarnation: Incarnation, is_idle: Callable[[], bool]) -> None:
    """All is as it is to be, and nothing is done any more. Raises _Struck if the moment comes before."""
    deadline = time.monotonic() + PATIENCE
    written, since, problem = incarnation.requests, time.monotonic(), "never looked"
    while True:
        if incarnation.is_struck:
            raise _Struck
        now = time.monotonic()
        if incarnation.requests != written or not is_idle():
            written, since = incarnation.requests, now
        pause = 0.02
        if now - since >= _QUIET_SECONDS or scene.is_renewed:
            problem = await scene.problem()
            if not problem and (scene.is_renewed or incarnation.requests == written):
                return
            pause = 0.1
        assert now < deadline, f"{type(scene).__name__}: {problem}; it wrote {list(map(str, incarnation.writes))}"
        await asyncio.sleep(pause)


def deaths_in(scenes: Sequence[type[Scene]]) -> dict[type[Scene], dict[Right, bool]]:
    """At which writes the program of each scene dies, and whether they are carried out; in a full sweep, it is both.

    Without CRASH_SWEEP=full it dies at each write in the first scene that crosses it, and at one in each other scene.
    """
    found: dict[type[Scene], dict[Right, bool]] = {}
    seen: set[Right] = set()
    numbers = itertools.count()
    for number, scene in enumerate(scenes):
        crosses = sorted(scene.crosses)
        own = [each for each in crosses if FULL or each not in seen] or [crosses[number % len(crosses)]]
        found[scene] = {each: next(numbers) % 2 == 1 for each in own}
        seen.update(own)
    return found


def _moments(writes: Sequence[Right], deaths: Mapping[Right, bool]) -> Iterable[Iterable[Moment]]:
    """Groups, of which each ends with the first moment that does not come."""
    sorts = list(dict.fromkeys(each for each in writes if each in deaths))
    if not FULL:
        yield from ([Moment(number=1, carried_out=deaths[of], of=of)] for of in sorts)
        return
    for carried_out in (False, True):
        # Which write comes when is chance where several are on their way: each sort has its turn for sure.
        yield from ([Moment(number=1, carried_out=carried_out, of=of)] for of in sorts)
        # The last group goes on: a run may take more writes than the first one did.
        starts = [(number, number + 1) for number in range(1, len(writes))]
        for first, end in [*starts, (max(len(writes), 1), len(writes) + _MORE)]:
            yield [Moment(number=number, carried_out=carried_out) for number in range(first, end)]


def difference(wanted: Any, found: Any) -> str:
    undisturbed, killed = (pprint.pformat(state, width=120).splitlines() for state in (wanted, found))
    return "\n".join(difflib.unified_diff(undisturbed, killed, "undisturbed", "killed", lineterm=""))


def _counted(writes: Iterable[Right]) -> Counter[Right]:
    """Without Events, which may be lost or come twice."""
    return Counter(written for written in writes if written.resource != _EVENTS)


# --- for scenes


_TRANSIENT = (
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_HASH = re.compile(r"\b[0-9a-f]{64}\b")


def comparable(obj: Object, mark: str) -> Object:
    meta = {name: value for name, value in metadata(obj).items() if name not in _TRANSIENT}
    meta["ownerReferences"] = [{**each, "uid": ""} for each in meta.get("ownerReferences") or []]
    text = orjson.dumps({**obj, "metadata": meta}, option=orjson.OPT_SORT_KEYS).decode().replace(mark, "$MARK")
    found: Object = orjson.loads(_HASH.sub("<hash>", _TIME.sub("<time>", text)))
    return found
