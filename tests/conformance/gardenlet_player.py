"""Plays the scenarios of a gardenlet between a garden and a seed, and reports what each has seen.

Nothing is cleaned up but what scenarios see that come after one that is `alone`. What is to be seen in the end may come late, on a
busy machine.
"""

import asyncio
import base64
import contextlib
import copy
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from conformance.garden_placeholders import filled
from conformance.gardenlet_judge import accepts
from conformance.gardenlet_normal import GardenletNormal, common_names
from conformance.gardenlet_process import OwnGardenlet
from conformance.gardenlet_scenarios import GardenletScenario
from conformance.gardenlet_sites import Sites
from conformance.scenario_data import Observations, Ref
from conformance.scenario_normal import contains
from kit.chart_archives import archive
from kit.eventually import soon
from kube.clock import utc_now
from kube.errors import AlreadyExists, ApiError, Conflict, KindNotServed, KubeError, NotFound, Unreachable
from kube.objects import Object, mapping
from kube.paths import at
from kube.x509 import make_ca

CORE = "core.gardener.cloud/v1beta1"
MANAGED_RESOURCE = ("resources.gardener.cloud/v1alpha1", "ManagedResource")
CSRS = ("certificates.k8s.io/v1", "CertificateSigningRequest")
_STABLE = 5.0
"""Seconds, unless a step specifies them."""
_PATIENCE = 300.0
"""Seconds at least for what becomes so: the bounds of steps are those of a machine that is not busy."""
_LOOK = 1.0
_AFTER_WAIT = 3.0
"""Seconds after something has come."""


@dataclass(slots=True)
class Play:
    """One scenario on its way. Args: gardenlet: a shared one, or one of its own, which does not run yet."""

    scenario: GardenletScenario
    name: str
    sites: Sites
    gardenlet: OwnGardenlet
    normal: GardenletNormal
    kubeconfigs: dict[str, Object] = field(default_factory=dict)
    seen: Observations = field(default_factory=dict)
    _put_elsewhere: list[tuple[str, Ref]] = field(default_factory=list)
    """With the cluster, but for what is in the garden."""

    @property
    def is_apart(self) -> bool:
        """Whether it has a gardenlet of its own that no other may run beside in the seed."""
        return bool(self.scenario.own and self.scenario.alone)

    @property
    def namespace(self) -> str:
        return f"garden-{self.name}"

    async def run(self) -> None:
        """What goes wrong is the observation `!`."""
        try:
            await self._play()
        except (KubeError, AssertionError, KindNotServed, TimeoutError) as error:
            self.seen["!"] = {"": self.normal.text(f"{type(error).__name__}: {error}")}
        finally:
            if self.scenario.own:
                await self.gardenlet.close()

    async def clean_up(self) -> None:
        """Of what it has put into the seed, or into Shoots, all that gardenlets look at."""
        for cluster, ref in reversed(self._put_elsewhere):
            if ref.kind != "Namespace":
                await self._delete(cluster, ref)

    async def _play(self) -> None:
        if self.scenario.project:
            await self._make_project()
        if self.scenario.own and self.scenario.namespace:
            await self._put("garden", _namespace(f"seed-{self.name}", {}))
        for unfilled in self.scenario.steps:
            text = json.dumps(unfilled).replace("$T6", self.name[-6:]).replace("$TID", f"shoot--{self.name}--s")
            step = filled(json.loads(text.replace("$SEED", self.gardenlet.name)), self.name)
            await self._do(step)

    async def _make_project(self) -> None:
        marks: Object = {"gardener.cloud/role": "project", "project.gardener.cloud/name": self.name}
        await self._put("garden", _namespace(self.namespace, marks))
        project = {"apiVersion": CORE, "kind": "Project", "metadata": {"name": self.name}}
        await self._put("garden", {**project, "spec": {"namespace": self.namespace}})

    async def _do(self, step: Object) -> None:
        match step:
            case {"put": objects}:
                for obj in objects:
                    await self._put(step.get("in", "garden"), obj)
            case {"patch": text, "body": body}:
                await self._patch(text, self._expanded(body), step.get("sub", ""))
            case {"delete": refs}:
                for cluster, ref in map(self._ref, refs):
                    await self._delete(cluster, ref)
            case {"sleep": seconds}:
                await asyncio.sleep(seconds)
            case {"wait": text, "for": wanted}:
                await self._wait(text, wanted)
            case {"observe": name}:
                self.seen[name] = await self._observe(step)
            case {"kubeconfig": name}:
                self.kubeconfigs[name] = await self._kubeconfig(step)
            case {"bind": text, "to": seed}:
                await self._patch(text, {"spec": {"seedName": seed}}, "")
            case {"approve": name}:
                await self._approve(name, step.get("type", "Approved"))
            case _:
                await self._handle_gardenlet(step)

    async def _handle_gardenlet(self, step: Object) -> None:
        match step:
            case {"start": patch}:
                await self.gardenlet.start(self._expanded(patch))
            case {"stop": _}:
                await self.gardenlet.stop()
            case {"exited": seconds}:
                # Whether it has ended is for the next observation.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.gardenlet.ended(), seconds)
            case {"cut": cluster}:
                self.gardenlet.cut(cluster)
            case {"heal": cluster}:
                await self.gardenlet.heal(cluster)
            case {"http_is": code}:

                async def is_so() -> bool:
                    found, _ = await self.gardenlet.http("/healthz")
                    return found == int(code)

                with contextlib.suppress(AssertionError):
                    await soon(is_so, f"/healthz to answer {code}", seconds=step["bound"])
            case _:
                raise ValueError(f"{self.scenario.id}: unknown step {step}")

    def _ref(self, text: str) -> tuple[str, Ref]:
        """With its cluster."""
        cluster, _, rest = text.partition(":")
        if cluster not in self.sites:
            cluster, rest = "garden", text
        return cluster, Ref.parse(rest, namespace=self.namespace)

    def _expanded(self, value: Any) -> Any:
        match value:
            case {"x-b64": text}:
                return _base64(text)
            case {"x-kubeconfig": "shoot"}:
                shoot = self.sites["shoot"]
                return _base64(json.dumps(shoot.kubeconfig({"token": shoot.cluster.token})))
            case {"x-kubeconfig": "notoken"}:
                return _base64(json.dumps(self.sites["shoot"].kubeconfig({})))
            case {"x-kubeconfig": name}:
                return _base64(json.dumps(self.kubeconfigs[name]))
            case {"x-ca": hours}:
                return _base64(make_ca("ca", now=utc_now(), lifetime=timedelta(hours=hours)).certificate_pem.decode())
            case {"x-tgz": files}:
                return base64.b64encode(archive(files)).decode()
            case {"x-ca-of": cluster}:
                return self.sites[cluster].ca
            case dict():
                return {name: self._expanded(inner) for name, inner in value.items()}
            case list():
                return [self._expanded(inner) for inner in value]
            case _:
                return value

    # --- changing

    async def _put(self, cluster: str, given: Object) -> None:
        obj, site = self._expanded(given), self.sites[cluster]
        resource = await site.discovery.find(obj["apiVersion"], obj["kind"])
        if resource.namespaced:
            obj["metadata"].setdefault("namespace", self.namespace)
        if owner := obj.pop("x-owner", None):
            owner_cluster, ref = self._ref(owner)
            live = await self.sites[owner_cluster].get(ref) or {}
            reference: Object = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name}
            reference |= {"uid": live["metadata"]["uid"], "controller": True, "blockOwnerDeletion": False}
            obj["metadata"]["ownerReferences"] = [reference]

        has_observed = mapping(obj.get("status")).get("observedGeneration") == "current"

        async def is_put() -> bool:
            if has_observed:
                live = await site.get(Ref.of(obj)) or obj
                obj["status"]["observedGeneration"] = live["metadata"].get("generation", 1)
            await site.put(obj)
            return True

        # Admission learns of what was put before a moment later.
        passing = (Conflict, AlreadyExists, NotFound, ApiError, Unreachable)
        await soon(is_put, f"{obj['kind']} {obj['metadata']['name']} to be put", passing=passing)
        if cluster != "garden":
            self._put_elsewhere.append((cluster, Ref.of(obj)))

    async def _patch(self, text: str, body: Object, subresource: str) -> None:
        cluster, ref = self._ref(text)
        site = self.sites[cluster]

        async def is_patched() -> bool:
            patch = copy.deepcopy(body)
            if mapping(patch.get("status")).get("observedGeneration") == "current":
                live = await site.get(ref) or {}
                patch["status"]["observedGeneration"] = live["metadata"].get("generation", 0)
            await site.patch(ref, patch, subresource=subresource)
            return True

        # What a controller is to make may not be there yet.
        await soon(is_patched, f"{ref} to be patched", passing=(NotFound, Conflict, Unreachable), seconds=_PATIENCE)

    async def _delete(self, cluster: str, ref: Ref) -> None:
        async def is_deleted() -> bool:
            with contextlib.suppress(NotFound):
                await self.sites[cluster].delete(ref)
            return True

        await soon(is_deleted, f"{ref} to be deleted", passing=(Unreachable,))

    async def _kubeconfig(self, step: Object) -> Object:
        url = await self.gardenlet.url("garden")
        if "token" in step:
            return self.sites["garden"].kubeconfig({"token": step["token"]}, url)
        site, seconds = self.sites["garden"], step.get("seconds")
        user = await site.certified(step["cn"], step.get("o", ()), dns=step.get("sans", ()), seconds=seconds)
        return site.kubeconfig(user, url)

    async def _approve(self, name: str, condition_type: str) -> None:
        site = self.sites["garden"]

        async def is_decided() -> bool:
            undecided = [
                each
                for each in await site.listed(*CSRS)
                if name in common_names(each) and not mapping(each.get("status")).get("conditions")
            ]
            if not undecided:
                return False
            newest = max(undecided, key=lambda each: str(each["metadata"]["creationTimestamp"]))
            await site.decide(newest, condition_type)
            return True

        await soon(is_decided, f"a request for a certificate of {name}", seconds=_PATIENCE, passing=(Unreachable,))

    # --- looking

    async def _wait(self, text: str, wanted: Any) -> None:
        cluster, ref = self._ref(text)

        async def is_so() -> bool:
            live = await self.sites[cluster].get(ref)
            match wanted:
                case "absent":
                    return live is None
                case "present":
                    return live is not None
                case _:
                    return live is not None and contains(live, wanted)

        # The original went on after its time; what is to be seen is seen by the next observation.
        with contextlib.suppress(AssertionError):
            await soon(is_so, f"{text} to be {wanted}", seconds=_PATIENCE, passing=(Unreachable,))
        # What has led to it may lead to one more pass, which is not to see what follows.
        if wanted == "present":
            await asyncio.sleep(_AFTER_WAIT)

    async def _observe(self, step: Object) -> dict[str, Any]:
        """What is not as it is to be is looked at for longer: a user may be late, on a machine that is busy."""
        stable = step.get("stable", _STABLE)
        began = since = time.monotonic()
        last: dict[str, Any] | None = None
        while True:
            await asyncio.sleep(_LOOK)
            try:
                found = await self._found(step)
            except Unreachable:
                continue
            now = time.monotonic()
            if found != last:
                since, last = now, found
            if now - since >= stable:
                seen = {**self.seen, step["observe"]: found}
                if accepts(self.scenario, seen) or not accepts(self.scenario, self.seen) or now - began > _PATIENCE:
                    return dict(sorted(found.items()))

    async def _found(self, step: Object) -> dict[str, Any]:
        fields = step.get("fields", {})
        return {name: each for what in step["of"] async for name, each in self._look(what, fields)}

    async def _look(self, what: str | Object, fields: Object) -> AsyncIterator[tuple[str, Any]]:
        match what:
            case str():
                cluster, ref = self._ref(what)
                yield self.normal.text(what), self.normal.of(await self.sites[cluster].get(ref), fields.get(ref.kind))
            case {"events": text}:
                cluster, ref = self._ref(text)
                events = {self.normal.event(each) for each in await self.sites[cluster].events(ref)}
                yield self.normal.text(f"events of {text}"), sorted(events)
            case {"csrs": name}:
                requests = [each for each in await self.sites["garden"].listed(*CSRS) if name in common_names(each)]
                requests.sort(key=lambda each: str(each["metadata"]["creationTimestamp"]))
                yield self.normal.text(f"requests for {name}"), [self.normal.request(each) for each in requests]
            case {"process": _}:
                yield "gardenlet", self.gardenlet.state
            case {"http": path}:
                code, failed = await self.gardenlet.http(path, metrics="server" in what)
                yield f"GET {path}", {"code": code, **({"failed": failed} if code >= 500 else {})}
            case {"mr": name}:
                async for content in self._content(name):
                    yield content
            case {"list": [kind, *rest]}:
                for name, obj in await self._listed(kind, *rest, where=what.get("where", {})):
                    yield name, obj if isinstance(obj, str) else self.normal.of(obj, fields.get(obj["kind"]))

    async def _content(self, managed_resource: str) -> AsyncIterator[tuple[str, Any]]:
        namespace, _, name = managed_resource.partition("/")
        seed = self.sites["seed"]
        live = await seed.get(Ref(*MANAGED_RESOURCE, namespace, name))
        yield self.normal.text(f"ManagedResource {managed_resource}"), self.normal.of(live)
        for reference in at(live or {}, "spec", "secretRefs") or ():
            secret = await seed.get(Ref("v1", "Secret", namespace, reference["name"]))
            yield self.normal.text(f"Secret {reference['name']}"), self.normal.content(secret)

    async def _listed(
        self, api_version: str, kind: str, namespace: str | None = None, selector: str | None = None, *, where: Object
    ) -> Sequence[tuple[str, Any]]:
        """Args: where: a part that they have."""
        cluster, _, version = api_version.partition(":")
        if cluster not in self.sites:
            cluster, version = "garden", api_version
        try:
            objects = await self.sites[cluster].listed(version, kind, namespace or "", selector or "")
        except KindNotServed:
            return [(f"{api_version} {kind}", "not served")]
        named = list(self._named(f"{api_version} {kind}", [each for each in objects if contains(each, where)]))
        return named or [(self.normal.text(f"{api_version} {kind} list"), "none")]

    def _named(self, what: str, objects: Sequence[Object]) -> Iterator[tuple[str, Object]]:
        for obj in objects:
            place, name = obj["metadata"].get("namespace"), obj["metadata"]["name"]
            if not self.normal.is_foreign(name) and self._is_own_token(obj):
                yield self.normal.text(f"{what} {place + '/' if place else ''}{name}"), obj

    def _is_own_token(self, obj: Object) -> bool:
        """Or none: those by which gardenlets come in have names that do not show whose they are."""
        described = base64.b64decode(mapping(obj.get("data")).get("description", ""))
        return obj.get("type") != "bootstrap.kubernetes.io/token" or self.name.encode() in described


def _namespace(name: str, labels: Object) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
