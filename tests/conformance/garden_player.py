"""Plays the scenarios of a garden, all at once, and tells what each has seen.

Nothing is cleaned up: the garden is for this alone. What a scenario waits for it sees at once, by watches; what it is to
see in the end it may see late, on a busy machine.
"""

import asyncio
import contextlib
import math
import random
import re
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.garden_judge import accepts
from conformance.garden_mirror import Mirror, mirror
from conformance.garden_normal import GardenNormal
from conformance.garden_placeholders import filled
from conformance.garden_scenarios import GardenScenario
from conformance.object_normal import project_name
from conformance.scenario_data import Observations, Ref
from conformance.scenario_normal import contains
from conformance.scenario_player import Pauses
from gardener.api.garden import NAMESPACED_CLOUD_PROFILES, SHOOTS
from kit.eventually import soon
from kit.processes.agent import AgentProcess
from kit.signing.requests import csr_object, signing_request
from kube.errors import AlreadyExists, ApiError, Conflict, KubeError, NotFound, Unreachable
from kube.objects import Key, Object, annotations, labels
from kube.resources import SERVICE_ACCOUNTS
from kube.runtime.client import Client
from kube.runtime.discovery import Discovery

CORE = "core.gardener.cloud/v1beta1"
PROJECT = (CORE, "Project")

_OF_MONITORING = "observability-ingress-"
_STABLE = 7.0
"""Seconds, unless a step tells."""
_PATIENCE = 150.0
"""Seconds at least for what becomes so: the bounds of steps are those of a machine that is not busy."""
_PATIENCE_IN_PAUSE = 10.0
"""All others wait meanwhile."""
_REACTION = 20.0
"""Seconds at most for what follows from a change, where a step only sleeps: lives are short in some scenarios."""
_LOOK = 0.25
_DELIVERY = 0.5
"""Seconds within which an API server has sent changes to those who watch."""
_WORK = re.compile(r'(?:workqueue_depth|controller_runtime_active_workers){controller="(?P<controller>[^"]+)"')
_LAGS = re.compile("not found|not yet ready|not been synchronized")
_BOOTSTRAPPERS = "system:bootstrappers"


async def play_all(
    scenarios: Sequence[GardenScenario], client: Client, agents: Sequence[AgentProcess], *, at_once: int
) -> dict[str, Observations]:
    """By id what was seen; what went wrong as the observation `error`."""
    pauses = [Pauses(agent) for agent in agents]
    limit, run = asyncio.Semaphore(at_once), random.randrange(1 << 16)
    seen: dict[str, Observations] = {}
    async with mirror(client, {PROJECT, *_kinds(scenarios)}) as mirrored, _idleness(agents) as idleness:
        discovery = Discovery(client)

        async def play(number: int, scenario: GardenScenario) -> None:
            one = _Play(client, discovery, mirrored, pauses, idleness, scenario, project_name(run, number))
            async with limit:
                try:
                    await one.run()
                except (KubeError, AssertionError) as error:
                    one.seen["error"] = {"": one.normal.text(f"{type(error).__name__}: {error}")}
                seen[scenario.id] = one.seen

        # Long ones first, so that at the end no worker waits for one of them.
        by_length = sorted(enumerate(scenarios), key=lambda numbered: -numbered[1].seconds)
        await asyncio.gather(*(play(number, scenario) for number, scenario in by_length))
    return seen


def _kinds(scenarios: Sequence[GardenScenario]) -> Iterator[tuple[str, str]]:
    """That are looked at."""
    for step in (step for scenario in scenarios for step in scenario.steps):
        for what in (*step.get("of", ()), *(step[verb] for verb in ("wait", "patch") if verb in step)):
            match what:
                case {"list": [api_version, kind, *_]}:
                    yield api_version, kind
                case {"events": ref} | (str() as ref):
                    api_version, kind, _ = ref.split(" ")
                    yield api_version, kind


class _Idleness:
    """When each controller was last seen with nothing to do."""

    def __init__(self, agents: Sequence[AgentProcess]) -> None:
        self._agents = agents
        self._last: dict[str, float] = {}
        self._began = 0.0

    async def follow(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            began = time.monotonic()
            now, work = time.monotonic(), Counter[str]()
            for agent in self._agents:
                for series, value in (await asyncio.to_thread(agent.metrics)).items():
                    if found := _WORK.match(series):
                        work[found["controller"]] += int(value)
            self._last |= {controller: now for controller, count in work.items() if not count}
            self._began = began

    async def has_answered(self) -> None:
        """Returns when all agents have answered a request that was made after this call: they have read their watches."""
        called = time.monotonic()
        while self._began < called and time.monotonic() < called + _REACTION:
            await asyncio.sleep(_LOOK)

    async def reached(self, area: str) -> None:
        """Those that a scenario is about have had nothing to do at some time after this call, unless they always have."""
        called = time.monotonic()
        while time.monotonic() < called + _REACTION:
            last = [seen for controller, seen in self._last.items() if _plain(area) in _plain(controller)]
            if min(last, default=math.inf) > called:
                return
            await asyncio.sleep(_LOOK)


def _plain(name: str) -> str:
    return name.replace("-", "")


@contextlib.asynccontextmanager
async def _idleness(agents: Sequence[AgentProcess]) -> AsyncIterator[_Idleness]:
    idleness = _Idleness(agents)
    following = asyncio.create_task(idleness.follow())
    try:
        yield idleness
    finally:
        following.cancel()


@dataclass(slots=True)
class _Play:
    """One scenario on its way."""

    client: Client
    discovery: Discovery
    mirror: Mirror
    pauses: Sequence[Pauses]
    idleness: "_Idleness"
    scenario: GardenScenario
    project: str
    patience: float = _PATIENCE
    seen: Observations = field(default_factory=dict)
    areas: set[str] = field(init=False)
    """The controllers that it is about."""
    status_of: str = ""
    """The object whose status was patched just now."""
    normal: GardenNormal = field(init=False)

    def __post_init__(self) -> None:
        self.areas = {self.scenario.area}
        self.normal = GardenNormal(self.project)

    @property
    def namespace(self) -> str:
        return f"garden-{self.project}"

    async def run(self) -> None:
        if self.scenario.project:
            await self._make_project()
        for unfilled in _together(self.scenario.steps):
            steps = [filled(step, self.project) for step in unfilled]
            if len(steps) == 1:
                await self._do(steps[0])
                continue
            await self._wait(steps[0]["patch"], "present")
            self.patience = _PATIENCE_IN_PAUSE
            with contextlib.ExitStack() as stack:
                for pauses in self.pauses:
                    stack.enter_context(pauses.pause())
                for step in steps:
                    await self._do(step)
                await asyncio.sleep(_DELIVERY)
            self.patience = _PATIENCE

    async def _make_project(self) -> None:
        marks = {"gardener.cloud/role": "project", "project.gardener.cloud/name": self.project}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": marks}}
        meta = {"name": self.project}
        project = {"apiVersion": CORE, "kind": "Project", "metadata": meta, "spec": {"namespace": self.namespace}}
        for obj in (namespace, project):
            await self._put(obj, self.client)
        ready = {"status": {"phase": "Ready"}}
        await self._wait(f"{CORE} Project {self.project}", ready)

        async def has_account() -> bool:
            return await self.client.find(SERVICE_ACCOUNTS, Key(self.namespace, "default")) is not None

        await soon(has_account, "the account of new objects")

    async def _do(self, step: Object) -> None:
        client = self.client
        if "as" in step:
            client = client.impersonating(step["as"], _groups(step))
        match step:
            case {"put": objects}:
                for obj in objects:
                    if obj["kind"] == SHOOTS.kind:
                        # What decides about it is to have seen all that was put before, which other watches bring.
                        await asyncio.sleep(_DELIVERY)
                        await self.idleness.has_answered()
                    await self._put(obj, client)
            case {"csr": name}:
                pem = signing_request(step["cn"], organizations=step.get("o", ()))
                signer = step.get("signer", "kubernetes.io/kube-apiserver-client")
                await self._put(csr_object(pem, name=name, signer=signer, usages=step["usages"]), client)
            case {"approve": name, "condition": condition}:
                await self._approve(name, condition)
            case {"patch": text, "body": body}:
                if self.status_of not in {"", text}:
                    # The watch of this object may be ahead of that of the other.
                    await asyncio.sleep(_DELIVERY)
                self.status_of = text if "sub" in step else ""
                await self._patch(self._ref(text), body, client, subresource=step.get("sub", ""))
            case {"bind": text, "seed": seed}:
                await self._patch(self._ref(text), {"spec": {"seedName": seed}}, client)
            case {"delete": refs}:
                for ref in map(self._ref, refs):
                    await self._delete(ref, client)
            case _:
                await self._look_at(step)

    async def _look_at(self, step: Object) -> None:
        match step:
            case {"sleep": seconds}:
                await asyncio.sleep(seconds)
                for area in self.areas:
                    await self.idleness.reached(area)
            case {"wait": text, "for": wanted}:
                await self._wait(text, wanted)
            case {"observe": name}:
                self.seen[name] = await self._observe(step)
            case _:
                raise ValueError(f"{self.scenario.id}: unknown step {step}")

    def _ref(self, text: str) -> Ref:
        return Ref.parse(text, namespace=self.namespace)

    # --- changing

    async def _put(self, obj: Object, client: Client) -> None:
        """Create it, or replace what it reports; its finalizers, and what others wrote to the metadata, stay."""
        resource = await self.discovery.find(obj["apiVersion"], obj["kind"])
        if resource == NAMESPACED_CLOUD_PROFILES:
            self.areas.add(obj["kind"].lower())  # of no use until it is rendered
        status, body = obj.get("status"), {name: value for name, value in obj.items() if name != "status"}
        meta = {
            **body["metadata"],
            **({"namespace": self.namespace} if resource.namespaced else {}),
            **body["metadata"],
        }
        if owner := body.pop("x-owner", None):
            meta["ownerReferences"] = [await self._owner(self._ref(owner))]
        body["metadata"] = meta
        name, namespace = meta["name"], meta.get("namespace", "")

        is_new: bool | None = None

        async def is_written() -> bool:
            nonlocal is_new
            if is_new is None:
                is_new = await client.find(resource, Key(namespace, name)) is None
            if is_new:
                with contextlib.suppress(AlreadyExists):  # an earlier attempt succeeded, but its answer was lost
                    await client.create(resource, body)
                return True
            live = await client.get(resource, Key(namespace, name))
            kept = {
                **live["metadata"],
                **meta,
                "labels": {**labels(live), **labels(body)},
                "annotations": {**annotations(live), **annotations(body)},
            }
            await client.replace(resource, {**body, "metadata": kept})
            return True

        await self._persist(is_written, f"put {obj['kind']} {name}")
        if status is not None:
            await self._patch(
                Ref(obj["apiVersion"], obj["kind"], namespace, name), {"status": status}, client, subresource="status"
            )

    async def _owner(self, ref: Ref) -> Object:
        resource = await self.discovery.find(ref.api_version, ref.kind)
        live = await self.client.get(resource, Key(ref.namespace if resource.namespaced else "", ref.name))
        reference = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name, "uid": live["metadata"]["uid"]}
        return {**reference, "controller": True, "blockOwnerDeletion": True}

    async def _patch(self, ref: Ref, body: Object, client: Client, *, subresource: str = "") -> None:
        """What a controller is to make may not be there yet."""
        resource = await self.discovery.find(ref.api_version, ref.kind)
        namespace = ref.namespace if resource.namespaced else ""

        async def is_patched() -> bool:
            await client.patch(resource, Key(namespace, ref.name), body, subresource=subresource)
            return True

        await self._persist(is_patched, f"patch {ref}")

    async def _delete(self, ref: Ref, client: Client) -> None:
        resource = await self.discovery.find(ref.api_version, ref.kind)

        async def is_deleted() -> bool:
            await client.delete_if_exists(resource, Key(ref.namespace if resource.namespaced else "", ref.name))
            return True

        await self._persist(is_deleted, f"delete {ref}")

    async def _approve(self, name: str, condition: Object) -> None:
        resource = await self.discovery.find("certificates.k8s.io/v1", "CertificateSigningRequest")

        async def is_approved() -> bool:
            live = await self.client.get(resource, name)
            conditions = (live.get("status") or {}).get("conditions", [])
            if condition["type"] not in {each["type"] for each in conditions}:
                decided = {**live, "status": {"conditions": [*conditions, condition]}}
                await self.client.replace(resource, decided, subresource="approval")
            return True

        await self._persist(is_approved, f"approve {name}")

    async def _persist(self, attempt: Callable[[], Any], what: str) -> None:
        """Tries again while admission, who writes at the same time, or a busy machine stands in the way."""

        async def is_done() -> bool:
            try:
                return bool(await attempt())
            except (Conflict, NotFound, Unreachable) as error:
                raise AssertionError(str(error)) from error
            except ApiError as error:
                if error.status in {500, 503} or _LAGS.search(str(error)):
                    raise AssertionError(str(error)) from error
                raise

        await soon(is_done, what, seconds=self.patience)

    # --- looking

    async def _wait(self, text: str, wanted: Any) -> None:
        """Goes on if it does not become so, too."""
        ref, deadline = self._ref(text), time.monotonic() + _PATIENCE
        while not _is_so(self.mirror.get(ref), wanted) and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK)

    async def _observe(self, step: Object) -> dict[str, Any]:
        """Once it has been the same for a while, or is as it is to be in the end."""
        stable: float = step.get("stable", _STABLE)
        began = since = time.monotonic()
        versions: Any = None
        last: dict[str, Any] | None = None
        while True:
            live = {name: found for what in step["of"] for name, found in self._look(what)}
            now = time.monotonic()
            if (changed := _versions(live)) != versions:
                versions = changed
                normal = self._normal(live, step.get("fields", {}))
                if normal != last:
                    since, last = now, normal
            if now - since >= stable or now - began > _PATIENCE:
                seen = {**self.seen, step["observe"]: last or {}}
                may_be_right = accepts(self.scenario, self.seen)
                if not may_be_right or now - began > _PATIENCE or accepts(self.scenario, seen):
                    return last or {}
            await asyncio.sleep(_LOOK)

    def _look(self, what: str | Object) -> Iterator[tuple[str, Any]]:
        match what:
            case str():
                yield self.normal.text(what), self.mirror.get(self._ref(what))
            case {"events": ref}:
                events = self.mirror.events(self._ref(ref))
                yield self.normal.text(f"events of {ref}"), [event for event in events if _is_compared(event)]
            case {"list": [api_version, kind, *rest]}:
                namespace, selector, *_ = (*rest, None, None)
                listed: list[tuple[str, Any]] = list(
                    self._listed(api_version, kind, namespace or "", selector or "", what.get("where", {}))
                )
                yield from listed or [(self.normal.text(f"{api_version} {kind} list"), "none")]

    def _listed(
        self, api_version: str, kind: str, namespace: str, selector: str, where: Object
    ) -> Iterator[tuple[str, Object]]:
        names: set[str] = set()
        for obj in self.mirror.listed(api_version, kind, namespace, selector):
            name = obj["metadata"]["name"]
            # The Secret of monitoring, which both make at their start, has another content each time: it is not recorded.
            if not contains(obj, where) or self.normal.is_foreign(name) or name.startswith(_OF_MONITORING):
                continue
            place = obj["metadata"].get("namespace")
            base = f"{api_version} {kind} {self.normal.text(place) + '/' if place else ''}{self.normal.name(obj)}"
            name, number = base, 2
            while name in names:
                name, number = f"{base} #{number}", number + 1
            names.add(name)
            yield name, obj

    def _normal(self, live: dict[str, Any], fields: Object) -> dict[str, Any]:
        def of(found: Any) -> Any:
            match found:
                case list():
                    told = (f"{event['type']} {event['reason']}: {event.get('message', '')}" for event in found)
                    return sorted({self.normal.text(each) for each in told})
                case str():
                    return found
                case None:
                    return self.normal.of(None)
                case _:
                    return self.normal.of(found, fields.get(found["kind"]))

        return {name: of(found) for name, found in sorted(live.items())}


def _together(steps: Sequence[Object]) -> Iterator[Sequence[Object]]:
    """The steps one by one, but two changes of an object right after each other together.

    The original sees both at once; who is quick would have done what follows from the first before the second is made.
    """
    rest = deque(steps)
    while rest:
        step = rest.popleft()
        are_two = "patch" in step and bool(rest) and rest[0].get("patch") == step["patch"]
        yield [step, rest.popleft()] if are_two else [step]


def _is_so(live: Object | None, wanted: Any) -> bool:
    match wanted:
        case "absent":
            return live is None
        case "present":
            return live is not None
        case _:
            return live is not None and contains(live, wanted)


def _versions(live: dict[str, Any]) -> Any:
    """What changes with what is seen."""

    def of(found: Any) -> Any:
        if isinstance(found, list):
            return sorted(map(of, found))
        return found["metadata"]["resourceVersion"] if isinstance(found, dict) else found

    return {name: of(found) for name, found in live.items()}


def _is_compared(event: Object) -> bool:
    """What depends on who is quicker is not."""
    transient = re.search(
        "the object has been modified|cross-checking number of shoots failed", event.get("message", "")
    )
    is_of_waiting = event["involvedObject"]["kind"] == "ManagedSeedSet" and event["reason"].startswith("WaitingFor")
    return not (transient or is_of_waiting)


def _groups(step: Object) -> list[str]:
    """The original gives gardenlets the rights of all bootstrap tokens; here they have a group of their own."""
    groups = list(step.get("groups", ()))
    return [*groups, f"{_BOOTSTRAPPERS}:gardenlet"] if _BOOTSTRAPPERS in groups else groups
