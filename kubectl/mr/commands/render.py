"""`kubectl mr render`: manifests, or ManagedResources with their Secrets, as they would be applied."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.autoscaling import Scaled
from gardener.managed_resource.merge import merge_ignored
from gardener.managed_resource.references import secret_names
from gardener.overview.objects import name_of
from kube.objects import Object, key
from kubectl import output
from kubectl.errors import UserError
from kubectl.mr import files, parameters
from kubectl.mr.desired import DEFAULT_MANAGED_BY, Contents, Merging, plan_of
from kubectl.mr.offline import Kinds
from kubectl.mr.packing import documents_in, managed_resource, pack, secrets
from kubectl.mr.schema import schemas_in, unknown_fields
from kubectl.output import Form
from kubectl.session import run_offline


@click.command
@parameters.required_paths("DIR|FILE")
@click.option(
    "--name",
    metavar="NAME",
    default="example",
    show_default=True,
    help="Name of the ManagedResource, if the files contain none.",
)
@click.option("--namespace", "-n", metavar="NAME", default="garden", show_default=True, help="Namespace of the Secret.")
@click.option(
    "--managed-by",
    metavar="VALUE",
    default=DEFAULT_MANAGED_BY,
    show_default=True,
    help="Value of controllers.managedResource.managedByLabelValue.",
)
@parameters.form_of_objects
def command(*, paths: Sequence[Path], name: str, namespace: str, managed_by: str, form: Form) -> None:
    """Prints objects in the order of their application, with the labels and annotations of the agent, without
    duplicates.

    If the files contain ManagedResources and their Secrets, renders the objects of these; otherwise the files
    themselves, as if a ManagedResource of this name contained them. Custom kinds count as namespaced unless their
    definition is included.
    """

    def work() -> int:
        texts = files.read(paths)
        found = files.objects_in(texts)
        pairs = _managed(found) or [_made_of(texts, name, namespace)]
        objects, problems = asyncio.run(_rendered(pairs, managed_by))
        output.show_objects(objects, form)
        schemas = schemas_in(definition for _, own in pairs for definition in _definitions(own))
        for obj in objects:
            for text in unknown_fields(obj, schemas):
                output.warn(f"{name_of(obj)}: {text}")
        for problem in problems:
            output.failed(problem)
        return 1 if problems else 0

    run_offline(work)


Pair = tuple[Object, list[Object]]
"""A ManagedResource and its Secrets."""


def _managed(found: list[Object]) -> list[Pair]:
    secrets_by_key = {key(obj): obj for obj in found if (obj.get("apiVersion"), obj.get("kind")) == ("v1", "Secret")}
    pairs: list[Pair] = []
    for obj in found:
        if (obj.get("apiVersion"), obj.get("kind")) != (MANAGED_RESOURCES.api_version, MANAGED_RESOURCES.kind):
            continue
        own = [secret for where, secret in secrets_by_key.items() if where.namespace == key(obj).namespace]
        named = {key(secret).name: secret for secret in own}
        missing = [name for name in secret_names(obj) if name not in named]
        if missing:
            raise UserError(f"ManagedResource {key(obj)} names Secrets that are not in the files: {', '.join(missing)}")
        pairs.append((obj, [named[name] for name in secret_names(obj)]))
    return pairs


def _made_of(texts: list[files.Text], name: str, namespace: str) -> Pair:
    made = secrets(name, namespace, pack(documents_in(texts)), immutable=False)
    return managed_resource(name, namespace, made, resource_class="", keep_objects=False), made


async def _rendered(pairs: list[Pair], managed_by: str) -> tuple[list[Object], list[str]]:
    objects: list[Object] = []
    problems: list[str] = []
    for managed, own in pairs:
        plan = await plan_of(managed, own, Kinds(_definitions(own)), managed_by=managed_by)
        problems += plan.decode_errors
        merging = Merging(managed, Scaled())
        for wanted in plan.wanted():
            if wanted.problem:
                problems.append(wanted.problem)
            elif wanted.is_ignored:
                objects.append(merge_ignored(wanted.object(), None) or {})
            else:
                objects.append(merging.merged(wanted, None))
    return objects, problems


def _definitions(own: list[Object]) -> Iterator[Object]:
    for item in Contents(tuple(own), ()).decoded().objects:
        yield item.object
