"""A component of Gardener by its configuration file: which file is its own, and what is in it.

Parse, decode with defaults, override, validate: each step reports all that it finds wrong, and a step that found
something is the last. Nothing here raises anything but ConfigError.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from config.blocks import ClientConnection, Configuration
from config.decode import IDENTITY, Decoder
from config.document import DECODING, parse, read
from config.errors import ConfigError
from config.overrides import ClusterConnection, Overrides, override
from config.validation import check
from kube.validation import FieldError

C = TypeVar("C", bound=Configuration)

_NO_OVERRIDES = Overrides()


@dataclass(frozen=True, slots=True)
class LoadedConfig(Generic[C]):
    """A configuration.

    Attributes:
        warnings: what its author should know: fields that were ignored, names that are aliases.
        conflicts: part of what is wrong with it; empty if it was validated.
        unknown: those of the warnings that tell of unknown fields.
    """

    config: C
    warnings: tuple[str, ...] = ()
    conflicts: tuple[FieldError, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Component(Generic[C]):
    """A component. To make one imports nothing of its schema.

    Attributes:
        name: in Events, user agents and logs.
        metrics_prefix: of the metrics that describe its processes.
        clusters: the first one holds its Lease.
        configuration: imports and returns the class of its configuration.
    """

    name: str
    metrics_prefix: str
    api_version: str
    kind: str
    clusters: tuple[ClusterConnection, ...]
    configuration: Callable[[], type[C]]

    def load(
        self, path: Path, *, overrides: Overrides = _NO_OVERRIDES, environment: Mapping[str, str]
    ) -> LoadedConfig[C]:
        """Read, decode, override and validate. Raises ConfigError."""
        return load(path, (self,), overrides=overrides, environment=environment)[1]

    def decode(self, text: bytes | str) -> LoadedConfig[C]:
        """The configuration of a YAML or JSON text, with defaults for what is not set. Raises ConfigError."""
        return _decoded(self, parse(text), (self,))

    def connections(self, config: C) -> dict[str, ClientConnection]:
        """How to connect to each cluster that is there at the start, by its name."""
        found: dict[str, ClientConnection] = {}
        for cluster in (each for each in self.clusters if each.at_start):
            connection = cluster.configured_in(config)
            if not connection.kubeconfig and cluster.fallback:
                connection = replace(connection, kubeconfig=found[cluster.fallback].kubeconfig)
            found[cluster.name] = connection
        return found


def load(
    path: Path, components: Sequence[Component[Any]], *, overrides: Overrides, environment: Mapping[str, str]
) -> tuple[Component[Any], LoadedConfig[Any]]:
    """The component that the file is for, and its configuration. Raises ConfigError."""
    document = parse(read(path))
    component = next((each for each in components if _names(document, each)), components[0])
    decoded = _decoded(component, document, components)
    config = override(decoded.config, overrides, clusters=component.clusters, environment=environment)
    check(config, conflicts=decoded.conflicts, unknown=decoded.unknown)
    return component, LoadedConfig(config, decoded.warnings)


def _decoded(component: Component[C], document: Mapping[Any, Any], among: Sequence[Component[Any]]) -> LoadedConfig[C]:
    fields = {name: value for name, value in document.items() if name not in IDENTITY}
    decoder = Decoder()
    config = decoder.block(component.configuration()(), fields)
    errors = [*_identity_errors(document, among), *decoder.errors]
    if errors:
        raise ConfigError([*errors, *decoder.unknown], stage=DECODING)
    return LoadedConfig(config, tuple(decoder.warnings), tuple(decoder.conflicts), tuple(decoder.unknown))


def _names(document: Mapping[Any, Any], component: Component[Any]) -> bool:
    # A tuple: what is found may be unhashable.
    return (document.get("apiVersion"), document.get("kind")) == (component.api_version, component.kind)


def _identity_errors(document: Mapping[Any, Any], components: Sequence[Component[Any]]) -> list[str]:
    """Both absent is right, and means the first component: some writers leave them out."""
    found = document.get("apiVersion"), document.get("kind")
    if found == (None, None) or any(_names(document, component) for component in components):
        return []
    known = " or ".join(f"apiVersion {each.api_version} and kind {each.kind}" for each in components)
    return [f"expected {known}, found {found[0]} and {found[1]}"]
