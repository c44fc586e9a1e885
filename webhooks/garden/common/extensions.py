"""Extensions: which are registered, which an object needs, and the labels by which its users find it.

Reads `CONTROLLER_REGISTRATIONS`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gardener.api.garden import CONTROLLER_REGISTRATIONS
from kube.objects import Object, mappings, spec, text
from webhooks.garden.common.derived import Derived
from webhooks.garden.common.findings import Denial
from webhooks.garden.common.metadata import set_labels
from webhooks.garden.common.write import Garden

_SUFFIX = ".extensions.gardener.cloud/"
PROVIDER = f"provider{_SUFFIX}"
DNS_RECORD = f"dnsrecord{_SUFFIX}"
NETWORKING = f"networking{_SUFFIX}"
EXTENSION = f"extensions{_SUFFIX}"
CONTAINER_RUNTIME = f"containerruntime{_SUFFIX}"
OPERATING_SYSTEM_CONFIG = f"operatingsystemconfig{_SUFFIX}"
LABEL_PREFIXES = (PROVIDER, DNS_RECORD, NETWORKING, EXTENSION, CONTAINER_RUNTIME, OPERATING_SYSTEM_CONFIG)


class Registered(NamedTuple):
    """One resource of a ControllerRegistration."""

    is_primary: bool = True
    globally_enabled: bool = False
    workerless: bool = False


class Registrations(NamedTuple):
    by_type: Mapping[tuple[str, str], Registered]
    """By kind and type: all extensions that somebody controls primarily."""
    of_all: frozenset[str]
    """Types of extensions that all Shoots have, unless they turn them off."""
    of_workerless: frozenset[str]
    """Those of them that Shoots without workers have, too."""


Need = tuple[str, str, str, str]
"""That an extension of a kind and type is registered; what it is called, and the field, for the message."""


def registered(garden: Garden) -> Registrations:
    return _registered(*garden.list(CONTROLLER_REGISTRATIONS))


def _registrations(*registrations: Object) -> Registrations:
    by_type = {
        (text(each.get("kind")), text(each.get("type"))): Registered(
            globally_enabled=each.get("globallyEnabled") is True, workerless=each.get("workerlessSupported") is True
        )
        for registration in registrations
        for each in mappings(spec(registration).get("resources"))
        if each.get("primary") is not False
    }
    of_all = {kind: each for (of, kind), each in by_type.items() if of == "Extension" and each.globally_enabled}
    of_workerless = frozenset(kind for kind, each in of_all.items() if each.workerless)
    return Registrations(by_type, frozenset(of_all), of_workerless)


_registered = Derived(_registrations, most=1)


def unregistered(known: Registrations, kind: str, needs: Iterable[Need]) -> Iterator[Denial]:
    """For `references`; the kind is that of the object."""
    for of, needed, what, path in needs:
        if needed and (of, needed) not in known.by_type:
            yield Denial(f'given {kind} uses non-registered {what}: {path} ("{needed}")', path)


def set_extension_labels(obj: Object, wanted: Iterable[str]) -> None:
    """For `mutations`: `wanted` are whole names, such as `PROVIDER + "local"`."""
    set_labels(obj, wanted, prefixes=LABEL_PREFIXES)
