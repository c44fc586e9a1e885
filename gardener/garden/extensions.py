"""Extensions by kind and type: those that a Seed itself needs, and those that a ControllerRegistration provides."""

from collections.abc import Iterator
from typing import NamedTuple

from kube.objects import Object, text
from kube.paths import at, mappings_at


class Extension(NamedTuple):
    kind: str
    type: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.type}"


_NAMESPACE_PREFIX = "extension-"


def namespace_of_installation(name: str) -> str:
    """The namespace in the seed for the objects of a ControllerInstallation."""
    return f"{_NAMESPACE_PREFIX}{name}"


def installation_of(namespace: str) -> str:
    """The name of the installation that has, or would have, this namespace."""
    return namespace.removeprefix(_NAMESPACE_PREFIX)


def needed_by_seed(seed: Object) -> Iterator[Extension]:
    """Extensions of a Seed without Shoots. A type that the Seed leaves out is empty."""
    yield Extension("DNSRecord", text(at(seed, "spec", "dns", "provider", "type")))
    provider = text(at(seed, "spec", "provider", "type"))
    for kind in ("ControlPlane", "Infrastructure", "Worker"):
        yield Extension(kind, provider)


def provided(registration: Object) -> Iterator[Extension]:
    for each in mappings_at(registration, "spec", "resources"):
        yield Extension(text(each.get("kind")), text(each.get("type")))
