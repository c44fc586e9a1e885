"""ControllerRegistrations: available extensions."""

from collections.abc import Iterator

from gardener.api.garden import CONTROLLER_DEPLOYMENTS, CONTROLLER_REGISTRATIONS
from gardener.api.garden.controller_registration import CONTROLLER_REGISTRATION as DEFINITION
from kube.objects import Object, mapping, mappings, metadata, spec, text
from kube.validation import duplicate, label_selector_errors
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.metadata import frozen_in_deletion
from webhooks.garden.common.references import exists
from webhooks.garden.common.write import Write
from webhooks.rules.shapes import child

_EXTENSION = "Extension"
_BEFORE, _AFTER = "BeforeKubeAPIServer", "AfterKubeAPIServer"


def set_defaults(write: Write) -> None:
    for resource in _resources(write.new):
        if resource.get("kind") == _EXTENSION:
            resource.setdefault("globallyEnabled", False)
            resource.setdefault("reconcileTimeout", "3m0s")
            lifecycle = child(resource, "lifecycle")
            lifecycle.setdefault("reconcile", _AFTER)
            lifecycle.setdefault("delete", _BEFORE)
            lifecycle.setdefault("migrate", _BEFORE)


def resource_errors(write: Write) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    for index, resource in enumerate(_resources(write.new)):
        path = f"spec.resources[{index}]"
        if (named := _named(resource)) in seen:
            yield duplicate(path, "/".join(named))
        seen.add(named)


def selector_errors(write: Write) -> Iterator[Finding]:
    selector = mapping(mapping(write.spec.get("deployment")).get("seedSelector"))
    yield from label_selector_errors("spec.deployment.seedSelector", selector)


def taken(write: Write) -> Iterator[Finding]:
    """No other registration is the primary one for the same extension."""
    others = [other for other in write.garden.list(CONTROLLER_REGISTRATIONS) if _name(other) != write.name]
    primary = {_named(resource) for other in others for resource in _resources(other) if _is_primary(resource)}
    for index, resource in enumerate(_resources(write.new)):
        if _is_primary(resource) and _named(resource) in primary:
            what = "/".join(_named(resource))
            message = f"another ControllerRegistration resource already exists that controls resource {what} primarily"
            yield Denial(message, f"spec.resources[{index}]")


def deployments_exist(write: Write) -> Iterator[Finding]:
    """The ControllerDeployments exist."""
    references = mappings(mapping(write.spec.get("deployment")).get("deploymentRefs"))
    for index, reference in enumerate(references):
        path = f"spec.deployment.deploymentRefs[{index}]"
        yield from exists(write.garden, path, CONTROLLER_DEPLOYMENTS, text(reference.get("name")))


def _resources(registration: Object) -> list[Object]:
    return mappings(spec(registration).get("resources"))


def _named(resource: Object) -> tuple[str, str]:
    return text(resource.get("kind")), text(resource.get("type"))


def _is_primary(resource: Object) -> bool:
    return resource.get("primary") is not False


def _name(obj: Object) -> str:
    return text(metadata(obj).get("name"))


CONTROLLER_REGISTRATION = Kind(
    definition=DEFINITION,
    defaults=(set_defaults,),
    checks=(resource_errors, selector_errors),
    references=(taken, deployments_exist),
    changes=(frozen_in_deletion,),
    reads=(CONTROLLER_REGISTRATIONS, CONTROLLER_DEPLOYMENTS),
)
