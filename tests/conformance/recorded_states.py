"""The state in which the original leaves a cluster, put into another one as it was recorded.

A recording tells what was done to a cluster and what the original made of it (`scenario_data`). The last observation is
its state at rest: ManagedResources with conditions, inventory, checksum and finalizers, the objects that they stand for
with annotations and labels, tokens, policies, Nodes. `state_of` tells all objects of it, and `Restorer` writes them in
the name of whom they are from: fields that the original has set carry its name in `managedFields`.

Recordings leave out what differs from run to run, so this is made up again: uids, allocated addresses, times, tokens.
Of ManagedResources that were recorded without the objects that they stand for, these are made from the manifests.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import brotli
import yaml

from conformance.scenario_data import Ref, Scenario, prepared
from conformance.scenario_player import Site
from kit.eventually import soon
from kube.errors import AlreadyExists
from kube.objects import Key, Object, annotations, labels
from kube.resources import NAMESPACES
from kube.runtime.client import MERGE_PATCH

DOMAIN = "resources.gardener.cloud"
ORIGIN = f"{DOMAIN}/origin"
MANAGED_BY = f"{DOMAIN}/managed-by"
DESCRIPTION = (
    "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n"
    "Any modifications are discarded and the resource is returned to the original state."
)
_LONG_AGO = "2024-09-19T14:56:41Z"
_RENEW_TIMESTAMP = f"serviceaccount.{DOMAIN}/token-renew-timestamp"
_LATER = "2099-01-01T00:00:00Z"
_PLACEHOLDER = re.compile(r"<(uid|time|age|allocated[^>]*)>")
_TOKEN = re.compile(r"<token of system:serviceaccount:([^:]+):(\S+) for (\S+), (\d+) min>")
_AT_ONCE = 16
_FIRST = (
    *("Namespace", "CustomResourceDefinition", "ServiceAccount", "Secret", "ConfigMap", "Node", "Service"),
    "Deployment",
)
_REPLICA_SET = re.compile(r'(?<=ReplicaSet \\")[a-z0-9-]+(?=\\")')
"""In a message, as JSON."""


@dataclass(slots=True)
class State:
    """What there is when the original has gone."""

    scenario: Scenario
    release: str
    namespaces: Sequence[str]
    objects: dict[Ref, Object] = field(default_factory=dict)
    inputs: set[Ref] = field(default_factory=set)
    """The Secrets that ManagedResources are made of."""
    patches: list[tuple[Ref, Object]] = field(default_factory=list)
    """What was done to objects that the recording does not show."""
    deleted: set[tuple[str, str]] = field(default_factory=set)
    """Kinds and names."""

    @property
    def namespace(self) -> str:
        return self.namespaces[0]

    @property
    def is_told(self) -> bool:
        """Whether the recording shows what became of the ManagedResources, and all that they report."""
        told = [resource.get("status") or {} for resource in self.managed_resources()]
        return all(told) and not any(_PLACEHOLDER.search(json.dumps(status)) for status in told)

    @property
    def name(self) -> str:
        return f"{self.scenario.id} {self.release}"

    def managed_resources(self) -> list[Object]:
        return [obj for ref, obj in self.objects.items() if ref.kind == "ManagedResource"]


def state_of(scenario: Scenario, release: str, namespace: str) -> State:
    """Args: release: whose recording, as in `Scenario.expect`."""
    state = State(scenario, release, scenario.namespaces(namespace))
    for step in scenario.steps_in(namespace):
        _do(state, step)
    _forget_what_was_listed(state, scenario.steps_in(namespace))
    *_, last = json.loads(json.dumps(scenario.expect[release]).replace("$NS", namespace)).values()
    for text, observed in last.items():
        ref = Ref.parse(text, namespace=namespace)
        known = _known(state, ref)
        if observed == "absent":
            state.objects.pop(known, None)
        else:
            state.objects[known] = _restored(observed, state.objects.get(known), is_input=known in state.inputs)
    for resource in state.managed_resources():
        _complete(state, resource)
    return state


def _forget_what_was_listed(state: State, steps: Sequence[Object]) -> None:
    """The last observation has all objects that were listed in it; others of these kinds are gone."""
    *_, last = (step["of"] for step in steps if "observe" in step)
    listed = [tuple(what["list"][:3]) for what in last if isinstance(what, dict)]
    for ref in [ref for ref in state.objects if (ref.api_version, ref.kind, ref.namespace) in listed]:
        del state.objects[ref]


def _do(state: State, step: Object) -> None:
    match step:
        case {"put": objects}:
            for ref, obj in ((Ref.of(obj), obj) for obj in (prepared(each, state.namespace) for each in objects)):
                state.objects[ref] = obj
                if ref.kind == "ManagedResource":
                    secrets = obj["spec"].get("secretRefs") or []
                    state.inputs |= {Ref("v1", "Secret", ref.namespace, each["name"]) for each in secrets}
        case {"patch": text, "body": body}:
            ref = _known(state, Ref.parse(text, namespace=state.namespace))
            if ref in state.objects:
                state.objects[ref] = _merged(state.objects[ref], body)
            else:
                state.patches.append((ref, body))
        case {"delete": refs}:
            for text in refs:
                ref = _known(state, Ref.parse(text, namespace=state.namespace))
                state.objects.pop(ref, None)
                state.deleted.add((ref.kind, ref.name))


def _known(state: State, ref: Ref) -> Ref:
    """As it was put, whether or not its kind is namespaced."""
    for namespace in (ref.namespace, state.namespace, ""):
        if (candidate := Ref(ref.api_version, ref.kind, namespace, ref.name)) in state.objects:
            return candidate
    return ref


def _merged(target: Any, patch: Any) -> Any:
    """A JSON merge patch, applied."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


def _restored(observed: Object, put: Object | None, *, is_input: bool) -> Object:
    """The object of an observation, with what the observation leaves out."""
    obj = {name: value for name, value in observed.items() if name not in {"incarnation", "taints"}}
    match obj["kind"]:
        case "Node":
            assert put is not None
            return {**put, "spec": {**put.get("spec", {}), "taints": observed["taints"]}}
        case "Namespace":
            obj["metadata"]["labels"] = labels(put or {}) | labels(obj)
        case "Secret" if is_input and put is not None:
            obj["data"] = put["data"]
        case "Secret":
            texts = obj.pop("data", {})
            obj["x-texts"] = {
                name: text if isinstance(text, str) else yaml.safe_dump(text, width=10_000)
                for name, text in texts.items()
            }
        case "ManagedResource":
            for found in (obj.get("status") or {}).get("conditions") or []:
                found |= {"lastTransitionTime": _LONG_AGO, "lastUpdateTime": _LONG_AGO}
    if _RENEW_TIMESTAMP in annotations(obj) and annotations(obj)[_RENEW_TIMESTAMP] == "<time>":
        obj["metadata"]["annotations"][_RENEW_TIMESTAMP] = _LATER
    if put is not None and "status" in put and obj["kind"] != "ManagedResource":
        obj["status"] = put["status"]
    restored: Object = _without_placeholders(obj)
    return restored


def _without_placeholders(value: Any) -> Any:
    """What the API server allocates itself is left to it."""
    if not isinstance(value, dict):
        return [_without_placeholders(each) for each in value] if isinstance(value, list) else value
    result = {}
    for name, inner in value.items():
        if name in {"clusterIPs", "controller-uid", "batch.kubernetes.io/controller-uid"} or (
            isinstance(inner, str) and _PLACEHOLDER.fullmatch(inner)
        ):
            continue
        kept = _without_placeholders(inner)
        if kept != {} or inner == {}:
            result[name] = kept
    return result


def _complete(state: State, resource: Object) -> None:
    """The checksum, where it was not recorded, and objects that were not looked at."""
    status = resource.get("status") or {}
    documents = list(_documents(state, resource))
    if status.get("secretsDataChecksum", "").startswith("<"):
        # Over the content of its key once for each object.
        content = b"".join(content for _, content in documents)
        status["secretsDataChecksum"] = hashlib.sha256(content).hexdigest()
    present = {(ref.api_version, ref.kind, ref.name) for ref in state.objects}
    for listed in status.get("resources") or []:
        named = listed["kind"], listed["name"]
        if (listed["apiVersion"], *named) in present or named in state.deleted:
            continue
        manifests = (each for each, _ in documents if (each["kind"], each["metadata"]["name"]) == named)
        applied = _applied(next(manifests), listed, resource)
        ref = Ref.of(applied)
        for _, body in (each for each in state.patches if each[0] == ref):
            applied = _merged(applied, body)
        state.objects[ref] = applied


def _applied(manifest: Object, listed: Object, resource: Object) -> Object:
    """What the original makes of a manifest."""
    if annotations(manifest).get(f"{DOMAIN}/ignore") == "true":
        return manifest
    place = resource["metadata"]
    marks = {f"{DOMAIN}/description": DESCRIPTION, ORIGIN: f"{place['namespace']}/{place['name']}"}
    meta = {
        **manifest["metadata"],
        **({"namespace": listed["namespace"]} if "namespace" in listed else {}),
        "labels": {**labels(manifest), **listed.get("labels", {})},
        "annotations": {**annotations(manifest), **marks},
    }
    applied: Object = json.loads(json.dumps({**manifest, "metadata": meta}))
    if template := (applied.get("spec") or {}).get("template"):
        template["metadata"] = {**template.get("metadata", {})}
        template["metadata"]["labels"] = {**labels(template), MANAGED_BY: "gardener"}
    return applied


def _documents(state: State, resource: Object) -> Iterator[tuple[Object, bytes]]:
    """The manifests in the order in which they are read, each with the content of the key that it is in."""
    for reference in resource["spec"].get("secretRefs") or []:
        ref = Ref("v1", "Secret", resource["metadata"]["namespace"], reference["name"])
        data: Mapping[str, str] = state.objects.get(ref, {}).get("data") or {}
        for key in sorted(data):
            content = base64.b64decode(data[key])
            text = brotli.decompress(content) if key.endswith(".br") else content
            for document in _read(key, text.decode()):
                if isinstance(document, dict) and annotations(document).get(f"{DOMAIN}/mode") != "Ignore":
                    yield document, content


def _read(key: str, text: str) -> Iterator[Any]:
    """The documents that can be read; a separator with more than `---` spoils the one before it."""
    if ".json" in key:
        parts = [each for line in text.splitlines() for each in (line, "")]
    else:
        parts = [*re.split(r"^---(.*)$", text, flags=re.MULTILINE), ""]
    for document, separator in zip(parts[::2], parts[1::2], strict=True):
        with contextlib.suppress(yaml.YAMLError):
            if not separator.partition("#")[0].strip():
                yield yaml.load(document, Loader=yaml.CSafeLoader)


@dataclass(frozen=True, slots=True)
class Restorer:
    """Args: original: with the original's user agent; others: in the name of everybody else."""

    original: Site
    others: Site
    ca: str
    namespace_labels: Mapping[str, str] = field(default_factory=dict)

    async def restore(self, states: Sequence[State]) -> None:
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(state: State) -> None:
            async with limit:
                try:
                    await self._restore(state)
                except Exception as error:
                    raise AssertionError(f"{state.name} can't be restored: {error}") from error

        await asyncio.gather(*map(one, states))

    async def put_inputs(self, state: State) -> None:
        """Only what was given to the original: ManagedResources without status, and their Secrets."""
        await self._make_namespaces(state)
        for step in state.scenario.steps_in(state.namespace):
            for obj in step.get("put", ()):
                await _put_into(self.others, prepared(obj, state.namespace))

    async def _make_namespaces(self, state: State) -> None:
        for name in state.namespaces:
            meta = {"name": name, "labels": dict(self.namespace_labels)}
            await self.others.client.create(NAMESPACES, {"metadata": meta})

    async def _restore(self, state: State) -> None:
        await self._make_namespaces(state)
        order = {kind: number for number, kind in enumerate(_FIRST)}
        for obj in sorted(state.objects.values(), key=lambda obj: order.get(obj["kind"], len(order))):
            await self._write(await self._with_tokens(await self._with_owners(obj, state)))

    async def _write(self, obj: Object) -> None:
        if obj["kind"] == "ManagedResource":
            await self._write_managed_resource(obj)
            return
        meta = {name: value for name, value in obj["metadata"].items() if name != "deletionTimestamp"}
        body = {name: value for name, value in obj.items() if name != "status"} | {"metadata": meta}
        is_of_the_original = ORIGIN in annotations(obj) or obj["kind"] == "NetworkPolicy"
        await _put_into(self.original if is_of_the_original else self.others, body)
        if "status" in obj:
            await self.others.patch(Ref.of(obj), {"status": obj["status"]}, subresource="status")
        if obj["metadata"].get("deletionTimestamp"):
            await self.others.delete(Ref.of(obj))

    async def _write_managed_resource(self, obj: Object) -> None:
        """With as many changes of its spec as there were, so that `observedGeneration` is true."""
        ref, status = Ref.of(obj), await self._with_replica_sets(obj)
        kept = {"name", "namespace", "labels", "annotations"}
        meta = {name: value for name, value in obj["metadata"].items() if name in kept}
        resource = await self.others.discovery.find(ref.api_version, ref.kind)
        head = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": meta}
        generations = status.get("observedGeneration") or 1
        earlier = ([[{"group": "", "kind": f"Earlier{number}"}]] for number in range(1, generations))
        first, *later = [*({**obj["spec"], "equivalences": each} for each in earlier), obj["spec"]]
        live = await self.others.client.create(resource, {**head, "spec": first})
        for spec in later:
            live = await self.others.client.replace(resource, {**live, "spec": spec})
        assert live["metadata"]["generation"] == generations
        if finalizers := obj["metadata"].get("finalizers"):
            await self.original.patch(ref, {"metadata": {"finalizers": finalizers}})
        if status:
            await self.original.patch(ref, {"status": status}, subresource="status")
        if obj["metadata"].get("deletionTimestamp"):
            await self.others.delete(ref)

    async def _with_replica_sets(self, obj: Object) -> Object:
        """The status, with the names that ReplicaSets have here: each version of Kubernetes makes other hashes."""
        text = json.dumps(obj.get("status") or {})
        for recorded in set(_REPLICA_SET.findall(text)):
            deployment = recorded.rpartition("-")[0]
            found = partial(self._replica_set_of, deployment, obj["metadata"]["namespace"])
            text = text.replace(recorded, await soon(found, f"the ReplicaSet of {deployment}"))
        status: Object = json.loads(text)
        return status

    async def _replica_set_of(self, deployment: str, namespace: str) -> str:
        """Its name; empty while there is none."""
        found = await self.others.list("apps/v1", "ReplicaSet", namespace, "")
        owned = (each["metadata"] for each in found if each["metadata"]["ownerReferences"][0]["name"] == deployment)
        return next((str(meta["name"]) for meta in owned), "")

    async def _with_owners(self, obj: Object, state: State) -> Object:
        for owner in obj["metadata"].get("ownerReferences", ()):
            if "uid" not in owner or " " in owner["uid"]:
                text = owner.get("uid") or f"{owner['apiVersion']} {owner['kind']} {owner['name']}"
                live = await self.others.get(Ref.parse(text, namespace=state.namespace))
                assert live is not None
                owner["uid"] = live["metadata"]["uid"]
        return obj

    async def _with_tokens(self, obj: Object) -> Object:
        """A Secret with tokens and the CA of this cluster; `x-texts` is what its data reports."""
        if "x-texts" not in obj:
            return obj
        data = {}
        for name, recorded in obj["x-texts"].items():
            text = recorded.replace("<ca>", self.ca)
            if (found := _TOKEN.search(text)) is not None:
                text = text.replace(found[0], await self._token(*found.groups()))
            data[name] = base64.b64encode(text.encode()).decode()
        return {**{name: value for name, value in obj.items() if name != "x-texts"}, "data": data}

    async def _token(self, namespace: str, account: str, audiences: str, minutes: str) -> str:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        spec = {"audiences": audiences.split(","), "expirationSeconds": int(minutes) * 60}
        answer = await self.original.client.request("POST", path, body={"spec": spec})
        return str(json.loads(answer)["status"]["token"])


async def _put_into(site: Site, obj: Object) -> None:
    resource = await site.discovery.find(obj["apiVersion"], obj["kind"])
    if not resource.namespaced:
        meta = {name: value for name, value in obj["metadata"].items() if name != "namespace"}
        obj = {**obj, "metadata": meta}
    try:
        await site.client.create(resource, obj)
    except AlreadyExists:
        place = obj["metadata"].get("namespace") or ""
        patch = {name: value for name, value in obj.items() if name not in {"apiVersion", "kind"}}
        await site.client.patch(resource, Key(place, obj["metadata"]["name"]), patch, content_type=MERGE_PATCH)
