"""The template of Shoots, judged by the rules of Shoots as they will be made from it."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gardener.api.garden.shoot import SHOOT
from gardener.api.structural import with_defaults
from kube.objects import mapping
from kube.paths import at, mapping_at
from kube.validation import invalid
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write
from webhooks.garden.shoot import defaults, kubernetes
from webhooks.garden.shoot.spec_checks import SPEC_CHECKS

_PATH = "spec.shootTemplate"


def shoot_errors(write: Write) -> Iterator[Finding]:
    """For `checks`."""
    workers = at(write.spec, "shootTemplate", "spec", "provider", "workers")
    if not workers:
        told = "workers cannot be empty in the Shoot template for a ManagedSeedSet"
        yield invalid(f"{_PATH}.spec.provider.workers", workers, told)
        return
    made = _made(write)
    yield from _of_template(finding for rule in SPEC_CHECKS for finding in rule(made))


def shoot_changes(write: Write) -> Iterator[Finding]:
    """For `changes`: what the Shoots would refuse, which get the template when it changes."""
    before, made = _made(write.of_old()).new, _made(write).new
    changed = replace(write, new=made, old=before)
    yield from _of_template(kubernetes.version_changes(changed))
    nodes = ("spec", "networking", "nodes")
    if at(before, *nodes) and changed.changed(*nodes):
        yield invalid(f"{_PATH}.{'.'.join(nodes)}", at(made, *nodes), "field is immutable")


def _of_template(findings: Iterable[Finding]) -> Iterator[Finding]:
    return (replace(finding, path=f"{_PATH}.{finding.path}") for finding in findings)


def _made(write: Write) -> Write:
    """The request that makes a Shoot of the template."""
    shoot = {
        "apiVersion": SHOOT.resource.api_version,
        "kind": SHOOT.resource.kind,
        "metadata": {"namespace": write.namespace},
        "spec": mapping_at(write.spec, "shootTemplate", "spec"),
    }
    made = replace(write, operation="CREATE", name="", new=mapping(with_defaults(SHOOT.schema, shoot)), old={})
    defaults.set_defaults(made)
    return made
