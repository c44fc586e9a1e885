"""Configuration file of a component: its identity, and its content.

Parse, decode with defaults, override, validate: each step reports all its errors, and a step with errors is the last.
ConfigError is the only exception here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml

from kube.files import read_bounded
from kube.validation import FieldError
from kube.yaml import check_structure
from process.configuration.blocks import ClientConnection, Configuration
from process.configuration.decode import IDENTITY, Decoder
from process.configuration.errors import ConfigError
from process.configuration.fields import is_block, join, members
from process.configuration.overrides import ClusterConnection, Overrides, override

C = TypeVar("C", bound=Configuration)

_DECODING = "error decoding config"
_LARGEST_FILE = 1 << 20  # bytes
_READING = "error reading config file"
_NO_OVERRIDES = Overrides()


@dataclass(frozen=True, slots=True)
class LoadedConfig(Generic[C]):
    """A configuration.

    Attributes:
        warnings: for its author: fields that are ignored, names that are aliases.
        conflicts: some of its errors; empty if it was validated.
        unknown: warnings about unknown fields.
    """

    config: C
    warnings: tuple[str, ...] = ()
    conflicts: tuple[FieldError, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Component(Generic[C]):
    """A component. Its definition does not import the schema.

    Attributes:
        name: in Events, user agents and logs.
        metrics_prefix: of the metrics that describe its processes.
        clusters: the first one has its Lease.
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
        """Read, decode, override and validate.

        Raises:
            ConfigError: the file or its content is invalid.
        """
        return load(path, (self,), overrides=overrides, environment=environment)[1]

    def decode(self, text: bytes | str) -> LoadedConfig[C]:
        """Return the configuration of a YAML or JSON text, with defaults for unset fields.

        Raises:
            ConfigError: the text is invalid.
        """
        return _decoded(self, parse(text), (self,))

    def connections(self, config: C) -> dict[str, ClientConnection]:
        """Return the connection settings of each cluster that is connected at the start, by its name."""
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
    """Return the component of the file, and its configuration.

    Raises:
        ConfigError: the file or its content is invalid.
    """
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
        raise ConfigError([*errors, *decoder.unknown], stage=_DECODING)
    return LoadedConfig(
        config, (*decoder.warnings, *config.warnings()), tuple(decoder.conflicts), tuple(decoder.unknown)
    )


def _names(document: Mapping[Any, Any], component: Component[Any]) -> bool:
    # A tuple: the values may be unhashable.
    return (document.get("apiVersion"), document.get("kind")) == (component.api_version, component.kind)


def _identity_errors(document: Mapping[Any, Any], components: Sequence[Component[Any]]) -> list[str]:
    """Return errors of the identity. Both absent is valid, and means the first component: some writers omit them."""
    found = document.get("apiVersion"), document.get("kind")
    if found == (None, None) or any(_names(document, component) for component in components):
        return []
    known = " or ".join(f"apiVersion {each.api_version} and kind {each.kind}" for each in components)
    return [f"expected {known}, found {found[0]} and {found[1]}"]


def read(path: Path) -> bytes:
    """Read a file of limited size.

    Raises:
        ConfigError: it cannot be read, or is too large.
    """
    try:
        return read_bounded(path, most=_LARGEST_FILE)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError([f"open {path}: {reason}"], stage=_READING) from error
    except ValueError:
        raise ConfigError([f"{path} is larger than {_LARGEST_FILE} bytes"], stage=_READING) from None


def parse(text: bytes | str) -> Mapping[Any, Any]:
    """Parse YAML or JSON.

    Raises:
        ConfigError: the text is not a valid document with fields.
    """
    document = _parsed(text)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(["the document is not an object with fields"], stage=_DECODING)
    return document


class _Loader(yaml.CSafeLoader):
    """Loads dates and `=` as strings, as Go does."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in {"timestamp", "value"}]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _parsed(text: bytes | str) -> Any:
    try:
        check_structure(text, aliases=True)
        loader = _Loader(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_explain(error)], stage=_DECODING) from error
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        # PyYAML does not wrap errors of values, such as those of `!!int x` and `!!bool x`.
        detail = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError([f"not valid YAML: {detail}"], stage=_DECODING) from error


def _explain(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{where}{error.problem or error.context}"


def check(config: Any, *, conflicts: tuple[FieldError, ...] = (), unknown: tuple[str, ...] = ()) -> None:
    """Check the values of a configuration.

    Args:
        config: the block of all fields.
        conflicts: errors of names from decoding.
        unknown: warnings about unknown fields from decoding: a missing field may be misspelt.

    Raises:
        ConfigError: all errors, including those of names.
    """
    if errors := [*conflicts, *validate(config)]:
        raise ConfigError([*errors, *unknown])


def validate(config: Any) -> Iterator[FieldError]:
    yield from _block_errors(config, "", on=True)


def _block_errors(block: Any, path: str, *, on: bool) -> Iterator[FieldError]:
    on = on and getattr(block, "enabled", True)
    for member in members(type(block)):
        value, where = getattr(block, member.attribute), join(path, member.reported_as)
        if value is None:
            continue
        for rule in member.setting.checks:
            if on or rule.even_if_disabled:
                yield from rule.errors(where, value)
        if is_block(type(value)):
            yield from _block_errors(value, where, on=on)
        elif isinstance(value, tuple):
            for index, each in enumerate(value):
                if is_block(type(each)):
                    yield from _block_errors(each, f"{where}[{index}]", on=on)
    if on and hasattr(block, "errors"):
        yield from block.errors(path)
