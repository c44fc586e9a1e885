"""Namespaces of Projects, which are only deleted with their Project."""

from collections.abc import Iterator

from gardener import keys
from gardener.api.garden import PROJECTS, SHOOTS
from kube.objects import annotations, is_deleting, is_truthy, labels
from kube.resources import NAMESPACES
from webhooks.garden.common.descriptor import Kind, foreign
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Limit, Write
from webhooks.rules.registration import where


def goes_with_project(write: Write) -> Iterator[Finding]:
    project = write.garden.get(PROJECTS, labels(write.new).get(keys.PROJECT_NAME, ""))
    if project is None or is_deleting(write.new):
        return
    if not is_deleting(project):
        reason = f'you must delete the corresponding project "{project["metadata"]["name"]}"'
        yield Denial(f'direct deletion of namespace "{write.name}" is not permitted ({reason})')
    elif is_truthy(annotations(write.new).get(keys.NAMESPACE_KEEP_AFTER_PROJECT_DELETION)):
        # Until its owner reference is removed, the garbage collector would delete it.
        reason = f"it stays when its project goes: annotation {keys.NAMESPACE_KEEP_AFTER_PROJECT_DELETION}"
        yield Denial(f'deletion of namespace "{write.name}" is not permitted ({reason})')


def empty(write: Write) -> Iterator[Limit]:
    project = write.garden.get(PROJECTS, labels(write.new).get(keys.PROJECT_NAME, ""))
    if project is not None and is_deleting(project) and not is_deleting(write.new):
        denial = f'deletion of namespace "{write.name}" is not permitted (it still contains Shoots)'
        selectors = (f"metadata.namespace={write.name}",)
        yield Limit(resource=SHOOTS, field_selectors=selectors, most=0, denial=denial)


NAMESPACE = Kind(
    definition=foreign(NAMESPACES),
    objects=where(keys.PROJECT_NAME, "Exists"),
    deletions=(goes_with_project,),
    deletion_limits=(empty,),
    reads=(PROJECTS,),
)
