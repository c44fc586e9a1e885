"""Plays scenarios in one cluster, or in a source and a target cluster, and tells what they look like then.

Nothing is cleaned up: the clusters are for this alone.
"""

import asyncio
import contextlib
import signal
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from conformance.scenario_data import Observations, Ref, Scenario, prepared
from conformance.scenario_normal import Judge, Normal, is_settled
from devcluster.cluster import Cluster
from kit.eventually import soon
from kit.processes.agent import AgentProcess, sole_configuration
from kit.world import connected as admin_of
from kube.errors import AlreadyExists, KindNotServed, KubeError, NoStatus, NotFound, Unreachable
from kube.objects import Key, Object, is_deleting
from kube.resources import NAMESPACES, SERVICE_ACCOUNTS
from kube.runtime.client import MERGE_PATCH, Client, Selection
from kube.runtime.discovery import Discovery

S = TypeVar("S", bound=Scenario)

_STABLE, _STABLE_IF_UNSETTLED, _BOUND = 5.0, 17.0, 60.0
"""Seconds. A ManagedResource that is not settled is looked at beyond a whole sync period of 15 s."""
_NAMESPACE_BOUND = 300.0
"""Seconds for a Namespace to go: Kubernetes removes all that is in it, and some versions look again only after minutes."""
_REACTION = 2.0
"""Seconds after each change for its first effect: some changes matter only if they are seen before the next one."""
_LOOK = 2.0
"""Seconds between looks: hundreds of scenarios are replayed at once."""
_DELIVERY = 3.0
"""Seconds within which an API server has sent changes to those who watch, also on a busy machine."""


@dataclass(frozen=True, slots=True)
class Site:
    """One cluster, as its administrator sees it."""

    client: Client
    discovery: Discovery

    async def get(self, ref: Ref) -> Object | None:
        try:
            resource = await self.discovery.find(ref.api_version, ref.kind)
            return await self.client.get(resource, Key(ref.namespace, ref.name))
        except (NotFound, KindNotServed, NoStatus):  # a new kind is listed a moment before its objects can be read
            return None

    async def list(self, api_version: str, kind: str, namespace: str, selector: str) -> list[Object]:
        resource = await self.discovery.find(api_version, kind)
        return await self.client.list(resource, Selection(namespace=namespace, label_selector=selector))

    async def put(self, obj: Object) -> None:
        resource = await self.discovery.find(obj["apiVersion"], obj["kind"])
        try:
            await self.client.create(resource, obj)
        except AlreadyExists:
            live = await self.client.get(resource, Key(Ref.of(obj).namespace, Ref.of(obj).name))
            version = {"resourceVersion": live["metadata"]["resourceVersion"]}
            await self.client.replace(resource, {**obj, "metadata": {**obj["metadata"], **version}})
        if "status" in obj:
            await self.patch(Ref.of(obj), {"status": obj["status"]}, subresource="status")

    async def patch(self, ref: Ref, body: Object, *, content_type: str = MERGE_PATCH, subresource: str = "") -> None:
        resource = await self.discovery.find(ref.api_version, ref.kind)
        await self.client.patch(
            resource, Key(ref.namespace, ref.name), body, content_type=content_type, subresource=subresource
        )

    async def delete(self, ref: Ref) -> None:
        with contextlib.suppress(NotFound, KindNotServed):
            resource = await self.discovery.find(ref.api_version, ref.kind)
            await self.client.delete(resource, Key(ref.namespace, ref.name))


@contextlib.asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Site]:
    async with admin_of(kubeconfig, "scenarios") as client:
        yield Site(client, Discovery(client))


class Pauses:
    """Keeps the agent from seeing the first of several changes before the last one is made."""

    def __init__(self, agent: AgentProcess) -> None:
        self._agent = agent
        self._open = 0

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Any number at a time."""
        self._open += 1
        if self._open == 1:
            self._agent.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self._agent.signal(signal.SIGCONT)


async def play_all(
    scenarios: Sequence[Scenario],
    agent: AgentProcess,
    *,
    source: Site,
    target: Site,
    judge: Judge,
    prefix: str,
    at_once: int,
) -> dict[str, str]:
    """By id, what went wrong or is not as recorded. Args: source, target: may be the same; prefix: of namespaces."""
    limit, pauses = asyncio.Semaphore(at_once), Pauses(agent)
    problems: dict[str, str] = {}

    async def play(number: int, scenario: Scenario) -> None:
        namespace = f"{prefix}-{number:03}"
        play = _Play(source, target, pauses, scenario=scenario, namespace=namespace, judge=judge)
        async with limit:
            try:
                for site in [source] if source is target else [source, target]:
                    await asyncio.gather(*(_make_namespace(site, name) for name in scenario.namespaces(namespace)))
                await play.run()
                problems[scenario.id] = judge.difference(scenario, play.seen)
            except (KubeError, TimeoutError) as error:
                problems[scenario.id] = f"{type(error).__name__}: {error}"

    # Long ones first, so that at the end no worker waits for one of them.
    by_length = sorted(enumerate(scenarios), key=lambda numbered: -numbered[1].seconds)
    await asyncio.gather(*(play(number, scenario) for number, scenario in by_length))
    return problems


def play_alone(
    cluster: Cluster,
    scenarios: Sequence[Scenario],
    *,
    judge: Judge,
    prefix: str,
    at_once: int,
    controllers: Mapping[str, Any],
) -> dict[str, str]:
    """The same in one cluster, of an agent with this section of the configuration."""

    async def play(agent: AgentProcess) -> dict[str, str]:
        async with connected(cluster.kubeconfig) as site:
            return await play_all(
                scenarios, agent, source=site, target=site, judge=judge, prefix=prefix, at_once=at_once
            )

    with AgentProcess(sole_configuration(controllers=controllers), kubeconfig=cluster.kubeconfig) as agent:
        agent.wait_until_ready()
        return asyncio.run(play(agent))


def chosen(session: pytest.Session, scenarios: Mapping[str, S]) -> list[S]:
    """Those that the tests of this run are about."""
    calls = [getattr(item, "callspec", None) for item in session.items]
    names = {str(call.params["scenario"]) for call in calls if call is not None and "scenario" in call.params}
    return [scenario for name, scenario in scenarios.items() if name in names]


def _is_going_namespace(obj: Object | None) -> bool:
    return obj is not None and obj["kind"] == "Namespace" and is_deleting(obj)


def check(problem: str) -> None:
    if problem:
        pytest.fail(problem)


async def _make_namespace(site: Site, name: str) -> None:
    await site.client.create(NAMESPACES, {"metadata": {"name": name}})
    account = partial(site.client.get, SERVICE_ACCOUNTS, Key(name, "default"))
    await soon(account, f"the ServiceAccount of {name}", seconds=180, passing=(NotFound,))  # many are made at once


def _together(steps: Sequence[Object]) -> Iterator[Sequence[Object]]:
    """The steps one by one, but a change by hand together with a change of manifests right after it.

    The original sees both in one pass, seconds later; an agent that is quick puts the first one right before the second.
    """
    rest = deque(steps)
    while rest:
        step = rest.popleft()
        yield [step, rest.popleft()] if "patch" in step and rest and "put" in rest[0] else [step]


@dataclass(slots=True)
class _Play:
    """One scenario on its way."""

    source: Site
    target: Site
    pauses: Pauses
    scenario: Scenario
    namespace: str
    judge: Judge
    seen: Observations = field(default_factory=dict)
    inputs: set[Ref] = field(default_factory=set)
    """The Secrets that ManagedResources are made of; all other Secrets are managed ones."""
    normal: Normal = field(init=False)

    def __post_init__(self) -> None:
        self.normal = Normal(namespace=self.namespace, checksum_varies=self.scenario.has_variable_data)

    async def run(self) -> None:
        for steps in _together(self.scenario.steps_in(self.namespace)):
            with self.pauses.pause() if len(steps) > 1 else contextlib.nullcontext():
                for step in steps:
                    await self._do(step)
                if len(steps) > 1:
                    await asyncio.sleep(_DELIVERY)
            if "observe" not in steps[-1]:
                await asyncio.sleep(_REACTION)

    async def _do(self, step: Object) -> None:
        match step:
            case {"put": objects}:
                for obj in objects:
                    await self._put(obj)
            case {"patch": text, "body": body}:
                how = {"content_type": step.get("type", MERGE_PATCH), "subresource": step.get("sub", "")}
                await self._patch(self._ref(text), body, **how)
            case {"delete": refs}:
                for ref in map(self._ref, refs):
                    await self._site(ref).delete(ref)
            case {"sleep": seconds}:
                await asyncio.sleep(seconds)
            case {"observe": name, "of": refs}:
                self.seen[name] = await self._observe(
                    name, refs, stable=step.get("stable", _STABLE), bound=step.get("bound", _BOUND)
                )
            case _:
                raise ValueError(f"{self.scenario.id}: unknown step {step}")

    def _ref(self, text: str) -> Ref:
        return Ref.parse(text, namespace=self.namespace)

    def _site(self, ref: Ref) -> Site:
        return self.source if ref.kind == "ManagedResource" or ref in self.inputs else self.target

    async def _patch(self, ref: Ref, body: Object, **how: str) -> None:
        """What the agent is to apply may not be there yet."""

        async def is_patched() -> bool:
            await self._site(ref).patch(ref, body, **how)
            return True

        await soon(is_patched, f"{ref} to be there", passing=(NotFound, KindNotServed, Unreachable))

    async def _put(self, recorded: Object) -> None:
        obj = prepared(recorded, self.namespace)
        ref = Ref.of(obj)
        if "x-data" in recorded:
            self.inputs.add(ref)
        site = self._site(ref)
        for owner in obj["metadata"].get("ownerReferences", ()):
            if " " in owner["uid"]:  # a ref instead of the uid, which is unknown beforehand
                owner["uid"] = (await site.get(self._ref(owner["uid"])) or {})["metadata"]["uid"]
        await site.put(obj)

    async def _observe(self, name: str, refs: Sequence[str | Object], *, stable: float, bound: float) -> dict[str, Any]:
        """What is not as it is to be is looked at for longer: a user may be late, on a machine that is busy."""
        began = since = time.monotonic()
        live: dict[str, Object | None] | None = None
        last, settled = None, False
        while True:
            before = live
            live = {ref: obj for some in await asyncio.gather(*map(self._look, refs)) for ref, obj in some.items()}
            if live != before:
                now = {ref: self.normal.of(obj) for ref, obj in sorted(live.items())}
                if now != last:
                    since, last = time.monotonic(), now
                settled = all(map(is_settled, now.values()))
            patience = stable if settled else max(stable, _STABLE_IF_UNSETTLED)
            passed, longest = time.monotonic() - began, max(bound, stable * 2)
            most = max(longest, _NAMESPACE_BOUND if any(map(_is_going_namespace, live.values())) else _BOUND)
            if time.monotonic() - since >= patience or passed > longest:
                seen = {self.normal.text(ref): self.normal.of(obj, final=True) for ref, obj in sorted(live.items())}
                if self.judge.accepts(self.scenario, {**self.seen, name: seen}) or passed > most:
                    return seen
            await asyncio.sleep(_LOOK)

    async def _look(self, what: str | Object) -> dict[str, Object | None]:
        """By ref: the object that one names, or all of a kind in a namespace of the target."""
        if isinstance(what, str):
            ref = self._ref(what)
            return {what: await self._site(ref).get(ref)}
        api_version, kind, namespace, *selector = what["list"]
        found = await self.target.list(api_version, kind, namespace, "".join(selector))
        return {f"{api_version} {kind} {namespace}/{obj['metadata']['name']}": obj for obj in found}
