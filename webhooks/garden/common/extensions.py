"""Extensions: which are registered, which an object needs, and the labels by which its users find it.

Reads `CONTROLLER_REGISTRATIONS`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gardener.garden.resources import CONTROLLER_REGISTRATIONS
from kube.objects import Object, mappings, spec, text
from webhooks.garden.common.metadata import set_labels
from webhooks.garden.derived import Derived
from webhooks.garden.findings import Denial
from webhooks.garden.write import Garden

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


class Need(NamedTuple):
    """That `kind`/`type` is registered; `what` and `path` are for the message."""

    kind: str
    type: str
    what: str
    path: str


def registered(garden: Garden) -> Mapping[tuple[str, str], Registered]:
    """Kind and type of all extensions that somebody controls primarily."""
    return _registered(*garden.list(CONTROLLER_REGISTRATIONS))


def _primarily(*registrations: Object) -> dict[tuple[str, str], Registered]:
    return {
        (text(each.get("kind")), text(each.get("type"))): Registered(
            globally_enabled=each.get("globallyEnabled") is True, workerless=each.get("workerlessSupported") is True
        )
        for registration in registrations
        for each in mappings(spec(registration).get("resources"))
        if each.get("primary") is not False
    }


_registered = Derived(_primarily, most=1)


def unregistered(garden: Garden, kind: str, needs: Iterable[Need]) -> Iterator[Denial]:
    """For `references`; the kind is that of the object."""
    known = registered(garden)
    for need in needs:
        if need.type and (need.kind, need.type) not in known:
            yield Denial(f'given {kind} uses non-registered {need.what}: {need.path} ("{need.type}")', need.path)


def set_extension_labels(obj: Object, wanted: Iterable[str]) -> None:
    """For `mutations`: `wanted` are whole names, such as `PROVIDER + "local"`."""
    set_labels(obj, wanted, prefixes=LABEL_PREFIXES)
