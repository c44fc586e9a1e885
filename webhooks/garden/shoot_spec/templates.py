"""Shoots from the template of a ManagedSeedSet: the template passes all checks of the spec alone.

Reads `PROJECTS`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gardener.api.garden.shoot import SHOOT
from gardener.api.structural import with_defaults
from kube.objects import mapping
from kube.paths import at, mapping_at
from kube.validation import invalid
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec import (
    defaults,
    dns,
    files,
    known_names,
    kubernetes,
    maintenance,
    networks,
    settings,
    tolerations,
    workers,
)
from webhooks.garden.shoot_spec.fields import project_name

SPEC_CHECKS = (
    settings.general_errors,
    settings.component_errors,
    settings.pool_autoscaler_errors,
    settings.rewriting_errors,
    settings.mask_errors,
    kubernetes.kubelet_errors,
    kubernetes.pool_kubelet_errors,
    kubernetes.versions,
    known_names.unknown_names,
    known_names.api_errors,
    files.plugin_errors,
    workers.workerless,
    workers.worker_errors,
    workers.room_errors,
    networks.type_errors,
    networks.network_errors,
    dns.dns_errors,
    maintenance.window_errors,
    maintenance.schedule_errors,
    tolerations.toleration_errors,
)
"""Checks of Shoots and of templates."""
_PATH = "spec.shootTemplate"


def room_in_names(write: Write) -> int | None:
    """Characters left for numbers in names of a new set's Shoots; None if the set exists, or has no known project."""
    project = project_name(write) if write.is_create else ""
    return settings.LONGEST_NAMES - len(project) - len(write.name) if project else None


def shoot_errors(write: Write) -> Iterator[Finding]:
    """Rule for `checks` of sets."""
    pools = at(write.spec, "shootTemplate", "spec", "provider", "workers")
    if not pools:
        message = "workers cannot be empty in the Shoot template for a ManagedSeedSet"
        yield invalid(f"{_PATH}.spec.provider.workers", pools, message)
        return
    made = _made(write)
    yield from _of_template(finding for rule in SPEC_CHECKS for finding in rule(made))


def shoot_changes(write: Write) -> Iterator[Finding]:
    """Rule for `changes` of sets: refuses changes that the Shoots would refuse, which get a changed template."""
    before, made = _made(write.of_old()).new, _made(write).new
    changed = replace(write, new=made, old=before)
    yield from _of_template(kubernetes.version_changes(changed))
    nodes = ("spec", "networking", "nodes")
    if at(before, *nodes) and changed.changed(*nodes):
        yield invalid(f"{_PATH}.{'.'.join(nodes)}", at(made, *nodes), "field is immutable")


def _of_template(findings: Iterable[Finding]) -> Iterator[Finding]:
    return (replace(finding, path=f"{_PATH}.{finding.path}") for finding in findings)


def _made(write: Write) -> Write:
    """Return the request that creates a Shoot from the template."""
    shoot = {
        **SHOOT.resource.type_meta,
        "metadata": {"namespace": write.namespace},
        "spec": mapping_at(write.spec, "shootTemplate", "spec"),
    }
    made = replace(write, operation="CREATE", name="", new=mapping(with_defaults(SHOOT.schema, shoot)), old={})
    defaults.set_defaults(made)
    return made
