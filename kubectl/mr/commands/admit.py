"""`kubectl mr admit`: what the webhooks would do to an object, as a diff; for the CI of authors of manifests.

The webhooks are called like by an API server, in its order and by the selectors of their registrations, each with the
object as changed by the previous ones. Files contain everything that they would look up in a cluster.
"""

import asyncio
import uuid
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import jsonpatch
import orjson

from config.resource_manager import load
from config.resource_manager.schema import ResourceManagerConfiguration
from gardener.managed_resource.changes import changes
from gardener.overview.objects import name_of
from kube.objects import Object, key, labels
from kube.resources import Resource
from kubectl import options, output
from kubectl.errors import UserError
from kubectl.mr import files, parameters
from kubectl.mr.changes import described
from kubectl.mr.offline import Kinds, cluster_of
from kubectl.output import Form
from kubectl.session import run_offline
from kubectl.style import BOLD, DIM, GREEN, RED, Line, Word, counted
from process.configuration.errors import ConfigError
from webhooks.configurations.registrations import mutating, validating
from webhooks.routes import routes
from webhooks.rules.registration import Instance, Mode, Registration
from webhooks.state import SharedListers

_NAME_LABEL = "kubernetes.io/metadata.name"
_TEMPLATES = {
    "Deployment": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}


@click.command
@parameters.required_paths("OBJECT")
@click.option("--config", type=options.FILE, required=True, metavar="FILE", help="Configuration file of the webhooks.")
@click.option(
    "--namespace-file",
    "namespace_files",
    type=options.FILE,
    multiple=True,
    metavar="FILE",
    help="Namespace, and other objects that webhooks read from a cluster; repeatable.",
)
@click.option(
    "--old", type=options.FILE, metavar="FILE", help="Previous version of the objects, to simulate an update."
)
@click.option(
    "--mode",
    type=options.OneOf(Mode),
    default=Mode.RUNTIME.value,
    show_default=True,
    help="Installation mode, which determines the selectors.",
)
@click.option(
    "--output", "-o", "form", type=options.OneOf(Form), help="Print the resulting objects instead of changes."
)
def command(
    *,
    paths: Sequence[Path],
    config: Path,
    namespace_files: Sequence[Path],
    old: Path | None,
    mode: Mode,
    form: Form | None,
) -> None:
    """Also shows the pod that a workload would create. Exit code 1: at least one object is refused."""

    def work() -> int:
        objects = files.objects_in(files.read(paths))
        around = files.objects_in(files.read(namespace_files)) if namespace_files else []
        before = {name_of(obj): obj for obj in files.objects_in(files.read([old]))} if old else {}
        outcomes = asyncio.run(_admitted(_config(config), mode, objects, around, before))
        if form is None:
            output.show(lines(outcomes))
            if passed := sum(not outcome.steps for outcome in outcomes):
                output.waiting(f"no webhook handles the kind of {counted(passed, 'more object')}")
        else:
            output.show_objects([outcome.after for outcome in outcomes], form)
        refused = [(outcome, step) for outcome in outcomes for step in outcome.steps if step.refusal]
        for outcome, step in refused:
            output.failed(f"{outcome.name} is refused by {step.webhook}: {step.refusal}")
        return 1 if refused else 0

    run_offline(work)


def _config(path: Path) -> ResourceManagerConfiguration:
    try:
        loaded = load(path, environment={})
    except ConfigError as error:
        raise UserError(str(error)) from error
    for warning in loaded.warnings:
        output.warn(warning)
    return loaded.config


@dataclass(frozen=True, slots=True)
class Step:
    webhook: str
    before: Object
    after: Object
    refusal: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    after: Object
    steps: Sequence[Step]


async def _admitted(
    config: ResourceManagerConfiguration,
    mode: Mode,
    objects: Sequence[Object],
    around: Sequence[Object],
    before: dict[str, Object],
) -> list[Outcome]:
    # The surroundings take precedence over the objects: they are what the webhooks would see.
    everything = list({name_of(obj): obj for obj in (*objects, *around)}.values())
    requested = [*objects, *(pod for obj in objects if (pod := pod_of(obj)))]
    namespaces = _namespaces(requested, everything)
    cluster = cluster_of([*everything, *namespaces.values()])
    state = SharedListers(cluster, cluster)
    webhooks = _Webhooks(config, mode, state, Kinds(everything))
    await state.start()
    try:
        # Synced before the first call, since any webhook may look up any of them.
        for store in cluster.caches.stores():
            await store.synced.wait()
        return [await webhooks.ask(obj, namespaces, before.get(name_of(obj))) for obj in requested]
    finally:
        await state.close()
        await cluster.caches.close()


def _namespaces(requested: Sequence[Object], everything: Sequence[Object]) -> dict[str, Object]:
    """Namespaces of the objects; one that is in no file has nothing but its name."""
    found = {key(obj).name: obj for obj in everything if obj.get("kind") == "Namespace"}
    for obj in requested:
        name = key(obj).namespace or "default"
        found.setdefault(name, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return {name: _with_name_label(obj, name) for name, obj in found.items()}


def _with_name_label(namespace: Object, name: str) -> Object:
    meta = {**namespace["metadata"], "labels": {**labels(namespace), _NAME_LABEL: name}}
    return {**namespace, "metadata": meta}


def pod_of(workload: Object) -> Object | None:
    template: Any = workload
    for field in _TEMPLATES.get(workload.get("kind") or "", ("",)):
        template = template.get(field) if isinstance(template, dict) else None
    if not isinstance(template, dict):
        return None
    name = key(workload)
    own = {"generateName": f"{name.name}-", "namespace": name.namespace or "default"}
    meta = {**(template.get("metadata") or {}), **own}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template.get("spec") or {}}


class _Webhooks:
    """All enabled webhooks, in the order in which an API server calls them."""

    def __init__(self, config: ResourceManagerConfiguration, mode: Mode, state: SharedListers, kinds: Kinds) -> None:
        instance = Instance(mode=mode)
        self._registrations = [*mutating(config.webhooks, instance), *validating(config.webhooks, instance)]
        self._endpoints = {route.path: route.endpoint() for route in routes(config, state) if route.enabled}
        self._kinds = kinds

    async def ask(self, obj: Object, namespaces: dict[str, Object], old: Object | None) -> Outcome:
        resource = self._kinds.resource(obj.get("apiVersion") or "", obj.get("kind") or "")
        namespace = (key(obj).namespace or "default") if resource.namespaced else ""
        of_namespace = labels(namespaces[namespace]) if namespace else {}
        steps: list[Step] = []
        after = obj
        for entry in self._registrations:
            if not _matches(entry, resource, "UPDATE" if old else "CREATE"):
                continue
            if not entry.objects.matches(labels(after)) or not entry.namespaces.matches(of_namespace):
                what = "object" if entry.namespaces.matches(of_namespace) else "namespace"
                steps.append(Step(entry.name, after, after, note=f"not called, because of the labels of the {what}"))
                continue
            step = await self._step(entry, resource, namespace, after, old)
            steps.append(step)
            after = step.after
            if step.refusal:
                break
        return Outcome(_name(obj, namespace), after, steps)

    async def _step(
        self, entry: Registration, resource: Resource, namespace: str, obj: Object, old: Object | None
    ) -> Step:
        request = {
            "uid": str(uuid.uuid4()),
            "kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
            "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
            "operation": "UPDATE" if old else "CREATE",
            "name": key(obj).name,
            "namespace": namespace,
            "object": obj,
            "oldObject": old,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        endpoint: Any = self._endpoints[entry.path]
        response = orjson.loads(await endpoint(orjson.dumps(review), "application/json"))["response"]
        if not response["allowed"]:
            message = (response.get("status") or {}).get("message") or "no reason given"
            if entry.failure_policy == "Ignore" and (response.get("status") or {}).get("code") != 403:
                return Step(entry.name, obj, obj, note=f"failed, which is ignored: {message}")
            return Step(entry.name, obj, obj, refusal=message)
        patch = orjson.loads(b64decode(response["patch"])) if response.get("patch") else []
        after: Object = jsonpatch.apply_patch(obj, patch) if patch else obj
        return Step(entry.name, obj, after)


def _name(obj: Object, namespace: str) -> str:
    if key(obj).name:
        return name_of(obj)
    return f"{obj.get('kind')}/{namespace}/{(obj.get('metadata') or {}).get('generateName') or ''}*"


def _matches(entry: Registration, resource: Resource, operation: str) -> bool:
    return any(
        operation in rule.operations
        and rule.group == resource.group
        and resource.version in rule.versions
        and resource.plural in rule.resources
        for rule in entry.rules
    )


def lines(outcomes: Sequence[Outcome]) -> Iterator[Line]:
    for outcome in outcomes:
        if outcome.steps:
            yield [Word(outcome.name, BOLD)]
        for step in outcome.steps:
            yield from _lines_of(step)


def _lines_of(step: Step) -> Iterator[Line]:
    if step.refusal:
        yield ["  ", Word("✗ ", RED), f"{step.webhook} refuses: {step.refusal}"]
    elif step.note:
        yield ["  ", Word(f"- {step.webhook}: {step.note}", DIM)]
    elif found := list(changes(step.before, step.after)):
        yield ["  ", Word("✔ ", GREEN), f"{step.webhook} changes"]
        for change in found:
            yield from (["    ", *line] for line in described(change))
    else:
        yield ["  ", Word("✔ ", GREEN), f"{step.webhook}: nothing to change"]
