"""Extensions: registered ones, those that an object needs, and the labels by which the object is found.

Reads `CONTROLLER_REGISTRATIONS`.
"""

from collections.abc import Iterable, Iterator

from gardener import keys
from gardener.api.garden import CONTROLLER_REGISTRATIONS
from kube.objects import Object, mappings, spec, text
from webhooks.garden.common.findings import Denial
from webhooks.garden.common.metadata import set_labels
from webhooks.garden.common.write import GardenLister

_SUFFIX = keys.EXTENSION_LABELS
PROVIDER = f"provider{_SUFFIX}"
DNS_RECORD = f"dnsrecord{_SUFFIX}"
NETWORKING = f"networking{_SUFFIX}"
EXTENSION = f"extensions{_SUFFIX}"
CONTAINER_RUNTIME = f"containerruntime{_SUFFIX}"
OPERATING_SYSTEM_CONFIG = f"operatingsystemconfig{_SUFFIX}"
LABEL_PREFIXES = (PROVIDER, DNS_RECORD, NETWORKING, EXTENSION, CONTAINER_RUNTIME, OPERATING_SYSTEM_CONFIG)


Need = tuple[str, str, str, str]
"""Kind and type of an extension that has to be registered; its description, and the field, for the message."""


def provided(registration: Object) -> Iterator[tuple[str, str]]:
    """Index function: kind and type of the extensions whose primary controller a ControllerRegistration describes."""
    return ((text(each.get("kind")), text(each.get("type"))) for each in _primary(registration))


def provided_for_all(registration: Object) -> set[bool]:
    """Index function: whether all Shoots have any of the extensions."""
    return {any(map(_is_for_all, _primary(registration)))}


def _primary(registration: Object) -> Iterator[Object]:
    return (each for each in mappings(spec(registration).get("resources")) if each.get("primary") is not False)


def _is_for_all(resource: Object) -> bool:
    return resource.get("kind") == "Extension" and resource.get("globallyEnabled") is True


def _is_for_workerless(resource: Object) -> bool:
    return resource.get("workerlessSupported") is True


def globally_enabled(garden: GardenLister, *, workerless: bool) -> set[str]:
    """Types of the extensions that all Shoots, or all without workers, have unless they disable them."""
    return {
        text(each.get("type"))
        for registration in garden.by(CONTROLLER_REGISTRATIONS, provided_for_all, True)
        for each in _primary(registration)
        if _is_for_all(each) and (_is_for_workerless(each) or not workerless)
    }


def needs_workers(garden: GardenLister, extension: str) -> bool:
    """Whether an extension is registered, but not for Shoots without workers."""
    wanted = ("Extension", extension)
    found = [
        _is_for_workerless(each)
        for registration in garden.by(CONTROLLER_REGISTRATIONS, provided, wanted)
        for each in _primary(registration)
        if (each.get("kind"), each.get("type")) == wanted
    ]
    return bool(found) and not any(found)


def unregistered(garden: GardenLister, kind: str, needs: Iterable[Need]) -> Iterator[Denial]:
    """Rule for `references`; `kind` is that of the object."""
    missing: dict[tuple[str, str], bool] = {}
    for of, needed, what, path in needs:
        if (of, needed) not in missing:
            missing[of, needed] = bool(needed) and not garden.by(CONTROLLER_REGISTRATIONS, provided, (of, needed))
        if missing[of, needed]:
            yield Denial(f'given {kind} uses non-registered {what}: {path} ("{needed}")', path)


def set_extension_labels(obj: Object, wanted: Iterable[str]) -> None:
    """Set the labels of extensions; `wanted` are whole names, such as `PROVIDER + "local"`."""
    set_labels(obj, wanted, prefixes=LABEL_PREFIXES)
