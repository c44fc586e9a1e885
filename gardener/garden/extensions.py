"""Extensions by kind and type: what a Seed itself needs, and what a ControllerRegistration provides."""

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
    """The namespace in the seed of what a ControllerInstallation installs."""
    return f"{_NAMESPACE_PREFIX}{name}"


def installation_of(namespace: str) -> str:
    """The name of the installation whose namespace it is or would be."""
    return namespace.removeprefix(_NAMESPACE_PREFIX)


def needed_by_seed(seed: Object) -> Iterator[Extension]:
    """Without any Shoot on it. A type that the Seed leaves out is empty."""
    yield Extension("DNSRecord", text(at(seed, "spec", "dns", "provider", "type")))
    provider = text(at(seed, "spec", "provider", "type"))
    for kind in ("ControlPlane", "Infrastructure", "Worker"):
        yield Extension(kind, provider)


def provided(registration: Object) -> Iterator[Extension]:
    for each in mappings_at(registration, "spec", "resources"):
        yield Extension(text(each.get("kind")), text(each.get("type")))
