"""CustomResourceDefinitions of a seed: a stage ends when the API server serves its kinds.

Existing definitions of other projects' kinds stay unchanged; their owners may delete them.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from agent.gardenlet.flow.graph import Task
from agent.gardenlet.flow.unit import Leaves, Unit
from agent.gardenlet.seed.main import optional
from agent.gardenlet.seed.main.operation import SeedOperation
from agent.gardenlet.seed.main.skipping import installs_no_autoscaler, is_garden
from gardener import keys
from gardener.api.managed_resource import custom_resource_definition
from gardener.api.seed_definitions import OPEN, Stage, custom_resource_definitions
from kube.errors import Unreachable
from kube.objects import Object, annotations, condition, is_deleting, key, labels, mappings, spec, uid
from kube.paths import at
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from kube.runtime.client import Form
from kube.runtime.controller import ReconcileError
from kube.runtime.discovery import Discovery
from kube.runtime.polling import wait_while

_SERVED_SECONDS = 60.0
_LOOK_SECONDS = 0.25
_GONE_SECONDS = 120.0


def definitions(stage: Stage) -> list[Object]:
    """Definitions of a stage. ManagedResource, by which everything else is deployed, comes with the extensions."""
    own = [custom_resource_definition()] if stage is Stage.EXTENSIONS else []
    return [*own, *custom_resource_definitions(stage)]


def component(stage: Stage) -> str:
    return f"definitions-{stage}"


async def deploy(operation: SeedOperation, stage: Stage) -> None:
    """Deploy the definitions, and wait until the API server serves these kinds.

    Raises:
        ReconcileError: they are not served in time.
    """
    wanted = definitions(stage)
    if stage in OPEN:
        theirs = await _of_others(operation)
        wanted = [each for each in wanted if key(each).name not in theirs]
    await operation.objects.deploy(component(stage), wanted)
    problem = partial(_unserved, operation.cluster.discovery, wanted)
    if await wait_while(problem, seconds=_SERVED_SECONDS, every=_LOOK_SECONDS):
        raise ReconcileError(await _why_not(operation, wanted))


async def _of_others(operation: SeedOperation) -> set[str]:
    """Names of the definitions that no gardenlet has written."""
    listed = await operation.cluster.client.list(CUSTOM_RESOURCE_DEFINITIONS, form=Form.METADATA)
    return {key(each).name for each in listed if keys.GARDENLET_COMPONENT not in annotations(each)}


async def _unserved(discovery: Discovery, wanted: Iterable[Object]) -> str:
    """Name of a definition that is not served yet; empty if all are."""
    for each in wanted:
        group, kind = spec(each)["group"], at(each, "spec", "names", "kind")
        for version in mappings(spec(each).get("versions")):
            if not version.get("served"):
                continue
            # A new group is listed before it is served, or the other way round.
            with suppress(Unreachable):
                if await discovery.kind_if_served(f"{group}/{version['name']}", kind) is not None:
                    continue
            discovery.invalidate(group)
            return key(each).name
    return ""


async def _why_not(operation: SeedOperation, wanted: Iterable[Object]) -> str:
    for each in wanted:
        live = await operation.cluster.client.find(CUSTOM_RESOURCE_DEFINITIONS, key(each).name)
        for of_type in ("NamesAccepted", "Established"):
            found = condition(live or {}, of_type)
            if found is None or found.get("status") != "True":
                problem = (found or {}).get("message") or f"it is not {of_type}"
                return f"{CUSTOM_RESOURCE_DEFINITIONS.kind} {key(each)} is not served: {problem}"
    return f"custom resource definitions are not served within {_SERVED_SECONDS:g} s"


async def are_served(operation: SeedOperation, *resources: Resource) -> bool:
    """Whether the API server serves all these kinds.

    Raises:
        KubeError: discovery failed.
    """
    return all([await operation.cluster.discovery.is_served(each) for each in resources])


async def destroy(operation: SeedOperation, stage: Stage) -> None:
    """Delete the definitions of a stage.

    Raises:
        ReconcileError: they are not gone in time.
    """
    wanted = definitions(stage)
    for each in wanted:
        await _confirm(operation, key(each).name)
    await operation.objects.destroy(component(stage), wanted, seconds=_GONE_SECONDS)
    for group in {spec(each)["group"] for each in wanted}:
        operation.cluster.discovery.invalidate(group)


async def _confirm(operation: SeedOperation, name: str) -> None:
    """Confirm the deletion; a webhook protects some from unconfirmed deletions."""
    live = await operation.cluster.client.find(CUSTOM_RESOURCE_DEFINITIONS, name)
    if live is None or is_deleting(live) or keys.DELETION_PROTECTED not in labels(live):
        return
    if annotations(live).get(keys.CONFIRM_DELETION) != "true":
        confirmed = {keys.CONFIRM_DELETION: "true"}
        await operation.cluster.client.annotate(CUSTOM_RESOURCE_DEFINITIONS, name, confirmed, uid=uid(live))


# --- units


def _need_not(stage: Stage) -> Leaves[SeedOperation]:
    """Whether to skip the definitions, because nothing needs them, or a garden provides them."""
    return lambda operation: operation.is_garden or not optional.is_needed(stage, operation)


_ROWS: Sequence[tuple[Stage, str, str, Leaves[SeedOperation] | None]] = (
    (Stage.MACHINES, "machine", "machine", None),
    (Stage.EXTENSIONS, "extension", "extensions", None),
    (Stage.DRUID, "etcd", "ETCD", is_garden),
    (Stage.VERTICAL_POD_AUTOSCALER, "vpa", "VPA", installs_no_autoscaler),
    (Stage.ISTIO, "istio", "Istio", _need_not(Stage.ISTIO)),
    # Charts of extensions have such objects whether or not the seed has programs for them.
    (Stage.FLUENT_BIT, "logging", "logging", is_garden),
    (Stage.MONITORING, "monitoring", "monitoring", is_garden),
    (Stage.OPEN_TELEMETRY, "open-telemetry", "OpenTelemetry", is_garden),
)
"""Stages, in IDs and in titles of their tasks, with the condition that skips their deployment."""
_UNITS = {
    stage: Unit(
        id=f"{its_id}-definitions",
        title=f"{what}-related custom resource definitions",
        deploy=partial(deploy, stage=stage),
        unless=unless,
        destroy=partial(destroy, stage=stage),
    )
    for stage, its_id, what, unless in _ROWS
}
UNITS = tuple(_UNITS.values())


def removals(after: str) -> Iterator[Task[SeedOperation]]:
    """Tasks that delete the definitions, those of extensions last in the table."""
    for stage in (*(each for each in _UNITS if each is not Stage.EXTENSIONS), Stage.EXTENSIONS):
        yield replace(_UNITS[stage].gone([after], unless=is_garden), id=f"{stage}-definitions")
